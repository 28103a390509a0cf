//! `async-frontend.model`: the three times of the cost model, the totals that they predict, and the totals measured. All are
//! one group: a prediction and its measured total are of the same rounds.

use super::operands;
use crate::experiment::prelude::*;

pub(super) fn run(n: usize, operations: &[Count]) -> Group {
    const LOOP: usize = 100;
    let group = Group::of("Cost model", [("size", n.into())]);
    let base = group.parameters();
    let launch = |(x, w): &(Tensor<f32>, Tensor<f32>)| {
        let (x, w) = (x.clone(), w.clone());
        move || (0..LOOP).try_for_each(|_| x.matmul(&w).map(|y| drop(black_box(y))))
    };
    let mut group = group
        .setup(move |device| operands(device, n))
        .host_time("async-frontend.model.t1", "t1: dispatch of one matmul", move |shared| Ok(launch(shared)))
        .per(LOOP)
        .work(Work::launches(1.0, "1"))
        .device_time("async-frontend.model.t2", "t2: one matmul on the device", move |shared| {
            Ok((shared.0.stream().clone(), launch(shared)))
        })
        .per(LOOP)
        .work(Work::matmul(matmul_flops(n), "2 · size³"))
        .stopwatch_of("async-frontend.model.t3", "t3: device-to-host latency", move |(x, w), watch| {
            let y = x.matmul(w)?;
            y.stream().synchronize()?;
            watch.time(|| y.get([0, 0])?.item()).map(drop)
        });

    let predicted = |text: &str| {
        let times = ["async-frontend.model.t1", "async-frontend.model.t2", "async-frontend.model.t3"];
        let [t1, t2, t3] = times;
        let formula = Formula::of(text, [("t1", t1), ("t2", t2), ("t3", t3)]);
        ["t1", "t2", "t3"].iter().fold(formula, |formula, name| formula.from_row(name, &base))
    };
    for operations in operations.iter().map(|operations| operations.get()) {
        let matmuls = || Work::matmul(matmul_flops(n) * operations as f64, "2 · size³ · operations");
        group = group
            .with_parameters([("operations", operations.into())])
            .host_time_of("async-frontend.model.queued", "n matmuls and one read, measured", move |(x, w)| {
                (1..operations).try_for_each(|_| x.matmul(w).map(|y| drop(black_box(y))))?;
                x.matmul(w)?.get([0, 0])?.item()
            })
            .work(matmuls())
            .derived(
                "async-frontend.model.queued.predicted",
                "n matmuls and one read, predicted",
                Unit::Seconds,
                predicted("t1 + operations · t2 + t3"),
            )
            .host_time_of("async-frontend.model.serial", "n matmuls, each read, measured", move |(x, w)| {
                let read = || x.matmul(w)?.get([0, 0])?.item();
                (0..operations).try_for_each(|_| read().map(|value| _ = black_box(value)))
            })
            .work(matmuls())
            .derived(
                "async-frontend.model.serial.predicted",
                "n matmuls, each read, predicted",
                Unit::Seconds,
                predicted("operations · (t1 + t2 + t3)"),
            );
    }
    group.build()
}
