//! `sync-points.linear`: whether the cost of a synchronize in each iteration adds up, by the number of iterations. Loops of all
//! lengths are one group.

use super::{dtype, iterate, matmul, operands};
use crate::experiment::prelude::*;

pub(super) fn run<T: Float>(n: usize, loops: &[Count]) -> Group {
    let mut group =
        Group::of("Linearity", [dtype::<T>(), ("size", n.into())]).setup(move |device| operands::<T>(device, n));
    for iters in loops.iter().map(|iters| iters.get()) {
        let looped = move |synchronize: bool| {
            move |(stream, x, w): &(Stream, Tensor<T>, Tensor<T>)| {
                let (x, w) = (x.clone(), w.clone());
                Ok((stream.clone(), move || iterate(&x, &w, iters, synchronize)))
            }
        };
        group = group
            .with_parameters([("iters", iters.into())])
            .device_time("sync-points.linear.async", "No synchronize in the loop", looped(false))
            .per(iters)
            .work(matmul(n))
            .device_time("sync-points.linear.forced", "Synchronize each iteration", looped(true))
            .per(iters)
            .work(matmul(n))
            .difference(
                "sync-points.linear.delta",
                "Cost of a synchronize, per iteration",
                ["sync-points.linear.forced", "sync-points.linear.async"],
            );
    }
    group.build()
}
