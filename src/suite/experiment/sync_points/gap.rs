//! `sync-points.gap`: how long the device idles between two kernels where the host synchronizes after the first, by the
//! length of the kernels.
//!
//! An event directly behind the first kernel and one directly before the second give the gap on the device's clock. Without
//! the synchronize (*none*) nothing lies between the two events but what recording them takes.

use crate::experiment::prelude::*;

pub(super) fn run(kernels: &[Length]) -> Group {
    let mut group = Group::of("Gap between kernels", []).setup(|device| device.stream());
    for Bounded(seconds) in kernels {
        let kernel = Duration::from_secs_f64(*seconds);
        let gap = move |synchronize: bool| {
            move |stream: &Stream| {
                let (stream, device) = (stream.clone(), stream.device().clone());
                let (end, start) = (device.timing_event()?, device.timing_event()?);
                Ok(move || {
                    stream.spin(kernel)?;
                    stream.record(&end)?;
                    if synchronize {
                        device.synchronize()?;
                    }
                    stream.record(&start)?;
                    stream.spin(kernel)?;
                    stream.synchronize()?;
                    Ok(start.elapsed_since(&end)?.as_secs_f64())
                })
            }
        };
        group = group
            .with_parameters([("kernel_seconds", (*seconds).into())])
            .time_by(Clock::DeviceEvents, "sync-points.gap", "Gap that a synchronize leaves", gap(true))
            .time_by(Clock::DeviceEvents, "sync-points.gap.none", "Gap without a synchronize", gap(false));
    }
    group.build()
}
