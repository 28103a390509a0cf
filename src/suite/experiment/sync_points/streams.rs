//! Two streams: two matmuls on one and on both, and what a synchronize waits for while the other stream is busy.

use super::{dtype, operands};
use crate::experiment::prelude::*;

pub(super) fn two_matmuls<T: Float>(model: &'static str, n: usize) -> Group {
    let matmuls = || Work::matmul(2.0 * matmul_flops(n), "4 · size³");
    Group::of("Several streams", [dtype::<T>(), ("model", model.into()), ("size", n.into())])
        .setup(move |device| {
            let (_, x, w) = operands::<T>(device, n)?;
            let (_, v, u) = operands::<T>(device, n)?;
            let same = (v.on(x.stream())?, u.on(x.stream())?);
            // What other streams will read must have been written.
            device.synchronize()?;
            Ok(((x, w), same, (v, u)))
        })
        .host_time_of("sync-points.multi-stream.one-stream", "Two matmuls on one stream", |(own, same, _)| {
            both(own, same)
        })
        .work(matmuls())
        .host_time_of("sync-points.multi-stream.two-streams", "Two matmuls on two streams", |(own, _, other)| {
            both(own, other)
        })
        .work(matmuls())
        .build()
}

/// Two matmuls, each on the stream of its operands, and a synchronize of the device.
fn both<T: Float>((x, w): &Pair<T>, (v, u): &Pair<T>) -> Result<Pair<T>> {
    let results = (x.matmul(w)?, v.matmul(u)?);
    x.stream().device().synchronize().map(|()| results)
}

type Pair<T> = (Tensor<T>, Tensor<T>);

/// For how long the other stream is kept busy: well above what a small matmul and a synchronize take.
const BUSY: Duration = Duration::from_millis(5);

pub(super) fn scope<T: Float>(n: usize) -> Group {
    Group::of("Several streams", [dtype::<T>(), ("size", n.into()), ("busy_seconds", BUSY.as_secs_f64().into())])
        .setup(move |device| {
            let (stream, x, w) = operands::<T>(device, n)?;
            let other = device.stream()?;
            let begin = {
                let other = other.clone();
                move || {
                    other.spin(BUSY)?;
                    x.matmul(&w)
                }
            };
            Ok((stream, other, begin))
        })
        .stopwatch_of(
            "sync-points.multi-stream.stream-synchronize",
            "Stream synchronize, other stream busy",
            move |(stream, _, begin), watch| {
                let _result = begin()?;
                watch.time(|| stream.synchronize())
            },
        )
        .stopwatch_of(
            "sync-points.multi-stream.device-synchronize",
            "Device synchronize, other stream busy",
            move |(stream, _, begin), watch| {
                let _result = begin()?;
                watch.time(|| stream.device().synchronize())
            },
        )
        .value_of(
            "sync-points.multi-stream.other-still-pending",
            "Other stream still busy after a stream synchronize",
            Unit::Ratio,
            move |(stream, other, begin)| {
                let _result = begin()?;
                stream.synchronize()?;
                Ok(if other.is_complete()? { 0.0 } else { 1.0 })
            },
        )
        .build()
}
