//! `launch-path.queue`: how many launches a stream's queue takes before a launch blocks, and what a launch into a queue with
//! room costs.
//!
//! - *depth*: behind a closed gate, launches follow one another until one does not return. A watchdog thread opens the gate
//!   once no launch has returned for the patience; the count at that moment is the depth. Where [`LIMIT`] launches have
//!   returned, that is the value: the queue is at least as deep. A host that is not scheduled for as long looks like a
//!   full queue.
//! - *enqueue*: the host time of one of [`FEW`] launches into an empty queue: fewer than half of what a queue of CUDA takes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};

use crate::affinity;
use crate::experiment::prelude::*;

const LIMIT: u64 = 4096;
const FEW: usize = 256;

pub(super) fn run(elements: usize, patience: Duration) -> Group {
    Group::of("Launch queue", [("elements", elements.into())])
        .setup(move |device| {
            let x = device.stream()?.zeros::<f32>([elements])?;
            // What the launch loads is loaded before a gate closes.
            x.affine_in_place(1.0, 1.0).map(|()| x)
        })
        .value_of("launch-path.queue.depth", "Launches until one blocks", Unit::Number, move |x| depth(x, patience))
        .host_time_of("launch-path.queue.enqueue", "One launch into a queue with room", move |x| {
            (0..FEW).try_for_each(|_| x.affine_in_place(1.0, 1.0))
        })
        .per(FEW)
        .work(Work::launches(1.0, "1"))
        .build()
}

/// How many launches return behind a closed gate.
fn depth(x: &Tensor<f32>, patience: Duration) -> Result<f64> {
    let (gate, returned) = (x.stream().device().gate()?, AtomicU64::new(0));
    let (done, working) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        x.stream().wait_gate(&gate)?;
        let (gate, returned) = (&gate, &returned);
        let watchdog = move || {
            let mut before = None;
            loop {
                // The sender is dropped once all launches have returned.
                let over = working.recv_timeout(patience) != Err(RecvTimeoutError::Timeout);
                let now = returned.load(Ordering::SeqCst);
                if over || before == Some(now) {
                    gate.open();
                    return now;
                }
                before = Some(now);
            }
        };
        let watchdog = affinity::beside(scope, watchdog)?;
        let launch = || x.affine_in_place(1.0, 1.0).map(|()| returned.fetch_add(1, Ordering::SeqCst));
        let launched = (0..LIMIT).try_for_each(|_| launch().map(drop));
        drop(done);
        let depth = watchdog.join().unwrap_or(0);
        launched.map(|()| depth as f64)
    })
}
