//! The audit of a region of a program that uses this library, from the library's own recording: nothing is put into the
//! program, and it works on each engine.
//!
//! # Limits
//! It knows the calls of one device of this library alone, and of each the one place that called it. Waits and copies have
//! their times from the source that the timeline names. [`report audit`](super) sees all calls of the driver.

use std::panic::Location;

use super::own;
use super::recording::ProgramRecording;
use super::report::{AuditReport, JudgedCalls};
use super::steps::Budget;
use super::verdict::{Breach, verdict};
use crate::device::Device;
use crate::timeline::Timeline;
use crate::units::counted;
use syncscope::error::DeviceError;

/// Runs `region` and says where it waited for its device.
///
/// ```
/// use syncscope_audit::Budget;
/// use syncscope::prelude::*;
///
/// let device = Device::open("cpu:0")?;
/// let stream = device.stream()?;
/// let (sum, region) = syncscope_audit::region(&device, || stream.ones::<f32>([64])?.sum()?.item())?;
/// assert_eq!(sum, 64.0);
/// for place in &region.report.places {
///     println!("{} {}: {} ns. {}", place.place, place.call, place.total_ns, place.advice);
/// }
/// // One read may wait.
/// assert_eq!(region.complaint(&Budget { waits: Some(1), ..Budget::default() }), None);
/// # Ok::<(), DeviceError>(())
/// ```
///
/// # Errors
/// As [`Device::record`].
#[track_caller]
pub fn region<R, E: From<DeviceError>>(
    device: &Device,
    region: impl FnOnce() -> Result<R, E>,
) -> Result<(R, Region), E> {
    let place = Location::caller();
    let recording = device.begin_recording()?;
    let result = region()?;
    let command = format!("the region at {}:{}", place.file(), place.line());
    Ok((result, Region::of(recording.end()?, command)))
}

/// The audit of a region.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Region {
    /// The same as of a whole program. Its time reaches to the end of the work that the region left pending.
    pub report: AuditReport,
    /// What the host and the device did.
    pub timeline: Timeline,
    recording: ProgramRecording,
    judged: Vec<JudgedCalls>,
}

impl Region {
    fn of(timeline: Timeline, command: String) -> Self {
        let mut process = own::process(&timeline.device, &timeline.spans);
        // Unlike other recordings, this one knows when it began and ended.
        (process.start, process.end) = (0, timeline.end_ns());
        (process.number, process.command, process.lost) = (std::process::id(), command.clone(), timeline.dropped);
        let source =
            format!("this library's recording of {}; times of the device: {}", timeline.device, timeline.source);
        let lost = || format!("{} lost: waits may be missing", counted(timeline.dropped, "record"));
        let missing = (timeline.dropped > 0).then(lost).into_iter().collect();
        let recording = ProgramRecording { source, processes: vec![process], missing, ..ProgramRecording::default() };
        let (report, judged) = AuditReport::of(&recording, &command, None);
        Self { report, timeline, recording, judged }
    }

    /// What of the region is over a budget, each place with what can be done; none where it is held. Where records were lost
    /// nothing can be said, which is over any budget.
    pub fn complaint(&self, budget: &Budget) -> Option<String> {
        let verdict = verdict((Some(budget), None), &self.recording, &self.judged, &self.report);
        let breach =
            |Breach { place, why }: Breach| format!("{} ({}): {why}; {}", place.name(), place.call, place.advice);
        let unheld: Vec<String> = verdict.unheld_words().collect();
        let lines: Vec<String> = verdict.breaches.into_iter().map(breach).chain(unheld).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WaitPlace;
    use crate::device::HostKind;
    use crate::timeline::by_hand::held;
    use crate::{Activity, Allowed, Reason};
    use syncscope::tensor::Tensor;

    /// A region with a wait of each kind.
    fn planted() -> Region {
        let device = Device::open("cpu:0").unwrap();
        let stream = device.stream().unwrap();
        let x = stream.ones::<f32>([16]).unwrap();
        let mut buffer = device.host_buffer::<f32>(HostKind::Pageable, 16).unwrap();
        let event = device.event().unwrap();
        let waits = || {
            let sum = x.sum()?;
            held(&stream, || {
                x.add_scalar(2.0)?;
                sum.item() // waits: item
            })?;
            held(&stream, || {
                let y = x.add_scalar(3.0)?;
                y.to_vec() // waits: to_vec
            })?;
            held(&stream, || {
                x.add_scalar(4.0)?;
                stream.synchronize() // waits: Stream::synchronize
            })?;
            held(&stream, || {
                x.add_scalar(5.0)?;
                device.synchronize() // waits: Device::synchronize
            })?;
            held(&stream, || {
                x.add_scalar(6.0)?;
                stream.record(&event)?;
                event.synchronize() // waits: Event::synchronize
            })?;
            held(&stream, || {
                x.copy_to(&mut buffer)?;
                buffer.read().map(drop) // waits: HostBuffer::read
            })
        };
        region(&device, waits).unwrap().1
    }

    /// The place and the call of each planted wait.
    fn expected() -> Vec<(String, String)> {
        let marked = |(line, text): (usize, &str)| {
            let call = text.split_once(concat!("// waits", ": "))?.1;
            Some((format!("{}:{line}", file!()), call.to_owned()))
        };
        (1..).zip(include_str!("region.rs").lines()).filter_map(marked).collect()
    }

    #[test]
    fn each_planted_wait_of_a_region_is_found_at_its_line_and_nothing_else_is() {
        let Region { report, .. } = planted();
        let waits: Vec<_> = report.places.iter().filter(|place| place.reason == Reason::Wait).collect();
        let mut found: Vec<_> = waits.iter().map(|place| (place.place.clone(), place.call.clone())).collect();
        found.sort();
        assert_eq!((found, expected().len()), (expected(), 6), "{:#?}", report.places);
        for wait in waits {
            assert!(
                wait.count == 1 && wait.waited_for.ends_with("on stream 0") && !wait.advice.is_empty(),
                "{wait:#?}"
            );
        }
        assert!(report.command.starts_with(&format!("the region at {}:", file!())), "{}", report.command);
        assert_eq!(report.warnings, [""; 0]);
        let process = &report.processes[0];
        assert_eq!(process.host.iter().map(|share| share.ns).sum::<u64>(), process.wall_ns);
        assert!(process.host.iter().any(|share| share.doing == Activity::Waiting && share.ns > 0));
    }

    #[test]
    fn a_region_that_only_enqueues_has_no_place_even_while_its_stream_is_held() {
        let device = Device::open("cpu:0").unwrap();
        let (stream, gate) = (device.stream().unwrap(), device.gate().unwrap());
        let enqueued = || -> Result<Tensor<f32>, DeviceError> {
            stream.wait_gate(&gate)?;
            let x = stream.ones::<f32>([16])?;
            let sum = (0..20).try_fold(x, |x, _| x.add_scalar(1.0))?.sum()?;
            gate.open();
            Ok(sum)
        };
        let (sum, region) = region(&device, enqueued).unwrap();
        assert!(region.report.places.is_empty(), "{:#?}", region.report.places);
        assert_eq!(region.complaint(&Budget { waits: Some(0), ..Budget::default() }), None);
        assert_eq!(sum.item().unwrap(), 16.0 * 21.0);
    }

    #[test]
    fn a_budget_says_which_places_of_a_region_are_over_it_and_allows_what_it_lists() {
        let region = planted();
        let budget = |waits| Budget { waits: Some(waits), ..Budget::default() };
        let complaint = region.complaint(&budget(5)).unwrap();
        for (place, call) in expected() {
            assert!(complaint.contains(&format!("{place} ({call})")), "{complaint}");
        }
        let allowed = Allowed { place: file!().to_owned(), reason: "it is a test".to_owned() };
        assert_eq!(region.complaint(&Budget { allow: vec![allowed], ..budget(0) }), None);
    }

    #[test]
    fn a_region_that_misses_records_or_has_no_step_is_over_any_budget() {
        let mut region = planted();
        let budget = Budget { waits: Some(100), ..Budget::default() };
        assert_eq!(region.complaint(&budget), None);
        let skips = Budget { skip_first: 1, ..budget.clone() };
        assert_eq!(region.complaint(&skips).unwrap(), "the budget is not held: `skip_first` leaves none of 1 step");
        region.timeline.dropped = 3;
        let lost = Region::of(region.timeline, String::new());
        assert_eq!(lost.complaint(&budget).unwrap(), "the budget is not held: 3 records lost: waits may be missing");
    }

    #[test]
    fn the_trace_of_a_region_has_the_places_of_its_audit() {
        let region = planted();
        let again = AuditReport::of_trace(region.timeline.to_trace(), "t.json").unwrap();
        let places = |report: &AuditReport| -> Vec<_> {
            let of = |WaitPlace { place, call, reason, count, total_ns, waited_for, .. }: &WaitPlace| {
                (place.clone(), call.clone(), *reason, *count, *total_ns, waited_for.clone())
            };
            report.places.iter().map(of).collect()
        };
        assert!(places(&again).len() >= expected().len());
        assert_eq!(places(&again), places(&region.report));
        let kernels = |report: &AuditReport| report.processes[0].devices[0].kernels_ns;
        assert_eq!(kernels(&again), kernels(&region.report));
    }
}
