//! Reads of a result that is pending, and of one that is ready.

use super::{SyncPoints, dtype, operands};
use crate::experiment::prelude::*;

/// Reads a tensor.
type Read<T> = fn(&Tensor<T>) -> Result<()>;

/// Two operands of a matmul.
type Operands<T> = (Tensor<T>, Tensor<T>);

/// A scalar read with nothing pending, after kernels of several lengths that were waited for: one group.
pub(super) fn after(kernels: &[Length]) -> Group {
    let mut group = Group::of("Ready reads", []).setup(|device| device.stream()?.ones::<f32>([1]));
    for Bounded(seconds) in kernels {
        let kernel = Duration::from_secs_f64(*seconds);
        group = group.with_parameters([("kernel_seconds", (*seconds).into())]).stopwatch_of(
            "sync-points.item.after",
            "Read a scalar after a kernel that was waited for",
            move |x, watch| {
                x.stream().spin(kernel)?;
                x.stream().device().synchronize()?;
                watch.time(|| x.get([0])?.item()).map(drop)
            },
        );
    }
    group.build()
}

fn scalar_reads<T: Float>(group: GroupBuilder<Device>, n: usize) -> GroupBuilder<Device> {
    let element = move |device: &Device| {
        let (_, x, w) = operands::<T>(device, n)?;
        Ok::<_, DeviceError>(move || x.matmul(&w)?.get([0, 0]))
    };
    group
        .host_time_within("sync-points.item.pending", "Read a scalar, matmul pending", move |device| {
            let element = element(device)?;
            Ok(move |watch: &mut Stopwatch| {
                let y = element()?;
                watch.time(|| y.item()).map(drop)
            })
        })
        .host_time_within("sync-points.print.pending", "Print an element, matmul pending", move |device| {
            let (element, mut null) = (element(device)?, null_device()?);
            Ok(move |watch: &mut Stopwatch| {
                let y = element()?;
                watch.time(|| print_to(&mut null, &y))
            })
        })
        .host_time_within("sync-points.print.ready", "Print an element, nothing pending", move |device| {
            let (element, mut null) = (element(device)?, null_device()?);
            Ok(move |watch: &mut Stopwatch| {
                let y = element()?;
                y.stream().device().synchronize()?;
                watch.time(|| print_to(&mut null, &y))
            })
        })
        .host_time_within("sync-points.item.ready", "Read a scalar, nothing pending", move |device| {
            let element = element(device)?;
            Ok(move |watch: &mut Stopwatch| {
                let y = element()?;
                y.stream().device().synchronize()?;
                watch.time(|| y.item()).map(drop)
            })
        })
        .observed("sync-points.item.value", "The value that was read", Unit::Number, move |device| {
            let element = element(device)?;
            Ok(move || Ok(f64::from(element()?.item()?.to_f32())))
        })
}

impl SyncPoints {
    /// One element of a large matmul of each type, read and printed: one group.
    pub(super) fn scalar_reads(&self) -> Group {
        let n = self.big.get();
        let mut group = Group::of("Reads of one element", [("size", n.into())]);
        for &dtype in &self.dtypes {
            group = group.with_parameters([("dtype", dtype.name().into())]);
            group = with_float!(dtype, T => scalar_reads::<T>(group, n));
        }
        group.build()
    }

    /// What else reads values: a copy, a host array, a condition, host indices.
    pub(super) fn other_reads<T: Float>(&self) -> Group {
        let (n, behind) = (self.small.get().max(3), self.big.get());
        let copy: Read<T> = |y| y.to_vec().map(|values| drop(black_box(values)));
        let array: Read<T> = |y| y.to_array().map(|values| drop(black_box(values)));
        let any: Read<T> = |y| {
            if y.gt(0.0)?.any()? {
                black_box(());
            }
            Ok(())
        };
        let index: Read<T> = |y| y.index_select(&[0, 1, 2]).map(|rows| drop(black_box(rows)));

        let bytes = (n * n * size_of::<T>()) as f64;
        let to_host = || Work::to_host(bytes, "width · size²", bytes);
        let pending = |read: Read<T>| {
            move |((x, w), large): &(Operands<T>, Operands<T>), watch: &mut Stopwatch| {
                black_box(large.0.matmul(&large.1)?);
                let y = x.matmul(w)?;
                watch.time(|| read(&y))
            }
        };
        let ready = |read: Read<T>| {
            move |((x, w), _): &(Operands<T>, Operands<T>), watch: &mut Stopwatch| {
                let y = x.matmul(w)?;
                y.stream().device().synchronize()?;
                watch.time(|| read(&y))
            }
        };
        Group::of("Other implicit synchronization", [dtype::<T>(), ("size", n.into()), ("behind", behind.into())])
            .setup(move |device| {
                let (stream, x, w) = operands::<T>(device, n)?;
                Ok(((x, w), (stream.normal([behind, behind])?, stream.normal([behind, behind])?)))
            })
            .stopwatch_of("sync-points.other.copy.pending", "Copy to the host, matmul pending", pending(copy))
            .stopwatch_of("sync-points.other.array.pending", "Host array, matmul pending", pending(array))
            .stopwatch_of("sync-points.other.any.pending", "Branch on any(x > 0), matmul pending", pending(any))
            .stopwatch_of("sync-points.other.index.pending", "Rows by host indices, matmul pending", pending(index))
            .stopwatch_of("sync-points.other.copy.ready", "Copy to the host, nothing pending", ready(copy))
            .work(to_host())
            .stopwatch_of("sync-points.other.array.ready", "Host array, nothing pending", ready(array))
            .work(to_host())
            .stopwatch_of("sync-points.other.any.ready", "Branch on any(x > 0), nothing pending", ready(any))
            .stopwatch_of("sync-points.other.index.ready", "Rows by host indices, nothing pending", ready(index))
            .build()
    }
}
