//! Audits: where the host waits for the device, and for how much work.
//!
//! # Limits
//! Whether work was pending holds for this run alone: a fast device may have finished before the synchronization point.
//! [`assert_no_sync!`](crate::assert_no_sync) does not ask for it.

use std::fmt;

use super::analysis::Work;
use super::span::Timeline;
use crate::device::Device;
use crate::device::kind::{Kind, SyncKind};
use crate::device::tracer::BEHIND_A_GATE;
use crate::error::DeviceError;
use crate::units::{Scale, Unit, counted};

/// A call that waits for the device.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SyncPoint {
    /// The call: `Stream::synchronize`; where the wait is implicit, the operation that caused it: `item`.
    pub name: String,
    /// What it waits for.
    pub kind: SyncKind,
    /// Its place in the program; unknown for a tensor that is printed or dropped.
    pub site: Option<String>,
    /// How long it blocked the host, in nanoseconds.
    pub blocked_ns: u64,
    /// How many kernels, copies and waits that it waited for were not complete when it began.
    pub pending: usize,
}

impl SyncPoint {
    /// Its place in the program, in words.
    pub fn place(&self) -> &str {
        self.site.as_deref().unwrap_or("(unknown place)")
    }
}

/// The synchronization points of a region, in the order in which they began.
///
/// ```
/// use syncscope::prelude::*;
///
/// let stream = Device::open("cpu:0")?.stream()?;
/// let (_, audit) = stream.device().audit(|| stream.ones::<f32>([64])?.sum()?.item())?;
/// assert_eq!(audit.sync_points[0].name, "item");
/// # Ok::<(), syncscope::error::DeviceError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Audit {
    /// The synchronization points.
    pub sync_points: Vec<SyncPoint>,
    /// The share of the time that the host was blocked at them.
    pub stalled_share: f64,
    /// Where the device's times come from.
    pub source: String,
    /// How many records were lost: unless it is 0, synchronization points may be missing.
    pub dropped: u64,
}

/// Auditing what is done on a device.
impl Device {
    /// Runs `region` and lists its synchronization points, those of other libraries too. It uses [`record`](Device::record).
    ///
    /// # Errors
    /// As `record`.
    pub fn audit<R, E: From<DeviceError>>(&self, region: impl FnOnce() -> Result<R, E>) -> Result<(R, Audit), E> {
        let (result, timeline) = self.record(region)?;
        Ok((result, timeline.audit()))
    }
}

impl Timeline {
    /// Its synchronization points.
    pub fn audit(&self) -> Audit {
        let work = Work::of(self);
        let spans = self.spans.iter().filter(|span| span.kind == Kind::Synchronize);
        let sync_points = spans.map(|span| SyncPoint {
            name: span.name.clone(),
            kind: span.sync.unwrap_or(SyncKind::Implicit),
            site: span.site.clone(),
            blocked_ns: span.duration_ns(),
            pending: work.pending(span),
        });
        Audit {
            sync_points: sync_points.collect(),
            stalled_share: self.host_stalled_share(),
            source: self.source.clone(),
            dropped: self.dropped,
        }
    }
}

impl Audit {
    /// The synchronization points at which work was pending and whose names are not in `allowed`.
    pub fn stalls<'a>(&'a self, allowed: &'a [&str]) -> impl Iterator<Item = &'a SyncPoint> {
        self.sync_points.iter().filter(|point| point.pending > 0 && !allowed.contains(&point.name.as_str()))
    }

    /// The message for a region that has synchronization points whose names are not in `allowed`, whether or not work was
    /// pending: each with its place. Where records were lost, or a closed gate kept calls of other libraries out of the recording,
    /// nothing can be said, which is an error, too. For [`assert_no_sync!`](crate::assert_no_sync).
    pub fn complaint(&self, allowed: &[&str]) -> Option<String> {
        if self.dropped > 0 {
            let lost = counted(self.dropped, "record");
            return Some(format!("the recording of the region lost {lost}: synchronization points may be missing"));
        }
        if self.source.contains(BEHIND_A_GATE) {
            let why =
                "where synchronization points of other libraries are not recorded: open it before the region begins";
            return Some(format!("{BEHIND_A_GATE}, {why}"));
        }
        let points = self.sync_points.iter().filter(|point| !allowed.contains(&point.name.as_str()));
        let points: Vec<String> = points.map(|point| format!("\n  {point}")).collect();
        let count = counted(points.len(), "synchronization point");
        (!points.is_empty()).then(|| format!("{count} within the region:{}", points.concat()))
    }
}

impl fmt::Display for SyncPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocked = Unit::Seconds.format(self.blocked_ns as f64 * 1e-9, 3);
        let Self { name, kind, pending, .. } = self;
        write!(f, "{}: {name} ({kind}), blocked for {blocked}, {pending} pending", self.place())
    }
}

/// A line for each synchronization point, and the share of the time that they take.
impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for point in &self.sync_points {
            writeln!(f, "{point}")?;
        }
        let (count, share) = (self.sync_points.len(), Scale::PERCENT.fixed(self.stalled_share, 1));
        write!(f, "{}; the host was blocked for {share} of the time", counted(count, "synchronization point"))?;
        if self.dropped > 0 {
            let lost = counted(self.dropped, "record");
            write!(f, "; the recording lost {lost}: synchronization points may be missing")?;
        }
        Ok(())
    }
}

/// Runs a block on a device and panics if it has a synchronization point. The message names each with its place. Those named in
/// `allow` may be there. The value is the block's.
///
/// A call that can wait for the device is one, whether or not something was pending, so that the assertion says the same on a
/// fast device. This is also so for calls that other libraries make of the driver: synchronizations, copies into pageable
/// memory, and calls that free memory, by the same rule as in no-wait tests of Python and C. They are seen where a
/// [recording](crate::device::Device::record) takes them in. Where it would but for a closed gate, that is a panic, too.
///
/// A call that makes something ready, as the first launch of a kernel does, and an upload from pageable memory count only where they
/// waited. Run the block once before.
///
/// The block is the body of a closure that returns a `Result<_, DeviceError>`: `?` leaves the block, and its error is a
/// panic here.
///
/// ```
/// use syncscope::prelude::*;
///
/// let device = Device::open("cpu:0")?;
/// let stream = device.stream()?;
/// let total = syncscope::assert_no_sync!(device, allow: ["item"], {
///     stream.ones::<f32>([64])?.sum()?.item()
/// });
/// assert_eq!(total, 64.0);
/// # Ok::<(), DeviceError>(())
/// ```
#[macro_export]
macro_rules! assert_no_sync {
    ($device:expr, allow: [$($name:expr),* $(,)?], $block:block) => {
        match $device.audit(|| -> ::std::result::Result<_, $crate::error::DeviceError> { $block }) {
            Ok((value, audit)) => match audit.complaint(&[$($name),*]) {
                None => value,
                Some(complaint) => panic!("{complaint}"),
            },
            Err(error) => panic!("the region cannot be audited: {error}"),
        }
    };
    ($device:expr, $block:block) => { $crate::assert_no_sync!($device, allow: [], $block) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Stream;
    use crate::timeline::by_hand::held;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn audited<R>(device: &Device, region: impl FnOnce(&Stream) -> Result<R, DeviceError>) -> (R, Audit) {
        let stream = device.stream().unwrap();
        device.audit(|| held(&stream, || region(&stream))).unwrap()
    }

    fn ones(audit: &Audit) -> Vec<(&str, SyncKind)> {
        audit.stalls(&[]).map(|b| (b.name.as_str(), b.kind)).collect()
    }

    #[test]
    fn each_kind_of_synchronization_is_named_for_what_it_waits_for() {
        let device = Device::open("cpu:0").unwrap();
        let (_, audit) = audited(&device, |stream| stream.synchronize());
        assert_eq!(ones(&audit), [("Stream::synchronize", SyncKind::Stream)]);
        let (_, audit) = audited(&device, |_| device.synchronize());
        assert_eq!(ones(&audit), [("Device::synchronize", SyncKind::Device)]);
        let (_, audit) = audited(&device, |stream| {
            let event = device.event()?;
            stream.record(&event)?;
            event.synchronize()
        });
        assert_eq!(ones(&audit), [("Event::synchronize", SyncKind::Event)]);
        let (any, audit) = audited(&device, |stream| stream.ones::<f32>([4])?.any());
        assert_eq!(ones(&audit), [("any", SyncKind::Implicit)]);
        assert!(any && audit.sync_points[0].site.as_deref().is_some_and(|site| site.starts_with(file!())));
    }

    #[test]
    fn a_synchronization_with_nothing_to_wait_for_is_listed_and_is_no_stall() {
        let device = Device::open("cpu:0").unwrap();
        let stream = device.stream().unwrap();
        let (_, audit) = device.audit(|| stream.synchronize()).unwrap();
        assert_eq!((audit.sync_points.len(), audit.stalls(&[]).count()), (1, 0));
        assert!(audit.to_string().contains("Stream::synchronize"), "{audit}");
    }

    #[test]
    fn a_synchronization_with_nothing_to_wait_for_fails_the_assertion_all_the_same() {
        let device = Device::open("cpu:0").unwrap();
        let stream = device.stream().unwrap();
        let audit = || device.audit(|| stream.synchronize()).unwrap().1;
        let complaint = audit().complaint(&[]).unwrap();
        assert!(complaint.starts_with("1 synchronization point within the region:\n  "), "{complaint}");
        assert_eq!(audit().complaint(&["Stream::synchronize"]), None);
    }

    #[test]
    fn an_assertion_says_nothing_of_a_region_whose_other_libraries_it_does_not_see() {
        let device = Device::open("cpu:0").unwrap();
        let seen = device.audit(|| Ok::<_, DeviceError>(())).unwrap().1;
        let source = format!("events around each call ({BEHIND_A_GATE})");
        let unseen = Audit { source, ..seen.clone() };
        assert_eq!(seen.complaint(&[]), None);
        assert!(unseen.complaint(&[]).is_some_and(|said| said.contains("open it before")));
    }

    #[test]
    fn a_stall_fails_the_assertion_with_its_place_unless_it_is_allowed() {
        let device = Device::open("cpu:0").unwrap();
        let stream = device.stream().unwrap();
        let stall = || held(&stream, || stream.ones::<f32>([])?.item());
        assert_eq!(assert_no_sync!(device, allow: ["item"], { stall() }), 1.0);
        let panic = catch_unwind(AssertUnwindSafe(|| assert_no_sync!(device, { stall() }))).unwrap_err();
        let text = crate::error::panic_message(&*panic);
        assert!(text.contains(file!()) && text.contains("item (implicit)"), "{text}");
    }

    #[test]
    fn a_region_without_synchronization_passes_while_its_stream_is_held() {
        let device = Device::open("cpu:0").unwrap();
        let (stream, gate) = (device.stream().unwrap(), device.gate().unwrap());
        stream.wait_gate(&gate).unwrap();
        let x = assert_no_sync!(device, {
            let x = stream.ones::<f32>([4])?.add_scalar(1.0)?;
            gate.open();
            Ok(x)
        });
        assert_eq!(x.to_vec().unwrap(), [2.0; 4]);
    }
}
