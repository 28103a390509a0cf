//! Audits: where the host waits for the device, and for how much.
//!
//! # Limits
//! Whether work was pending is known of this run alone: a device that is fast enough has finished by the time of the
//! barrier. To test that a region is free of barriers whatever the device's speed, hold the stream with a
//! [`Gate`](crate::device::Gate) that is opened behind the region.

use std::fmt;

use super::{BarrierKind, Kind, Timeline};
use crate::device::Device;
use crate::error::DeviceError;
use crate::units::Unit;

/// A call that waits for the device.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Barrier {
    /// The call: `Stream::synchronize`; of an implicit barrier, the operation that caused it: `item`.
    pub name: String,
    /// What it waits for.
    pub kind: BarrierKind,
    /// Where it stands in the program; unknown for what is printed or dropped.
    pub site: Option<String>,
    /// How long the host was in it, in nanoseconds.
    pub blocked_ns: u64,
    /// How many kernels, copies and waits that it waited for were not done when it began.
    pub pending: usize,
}

impl Barrier {
    /// Its place in the program, in words.
    pub fn place(&self) -> &str {
        self.site.as_deref().unwrap_or("(unknown place)")
    }
}

/// The barriers of a region, in the order in which they began.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Audit {
    /// The barriers.
    pub barriers: Vec<Barrier>,
    /// The share of the time that the host was in them.
    pub stalled_share: f64,
    /// Who knew when the device worked.
    pub source: String,
    /// How many records were lost: barriers may be missing where it is not 0.
    pub dropped: u64,
}

/// Auditing what is done on a device.
impl Device {
    /// Runs `region` and lists its barriers. See [`record`](Device::record), which it stands on.
    ///
    /// # Errors
    /// As `record`.
    pub fn audit<R>(&self, region: impl FnOnce() -> Result<R, DeviceError>) -> Result<(R, Audit), DeviceError> {
        let (result, timeline) = self.record(region)?;
        Ok((result, timeline.audit()))
    }
}

impl Timeline {
    /// Its barriers.
    pub fn audit(&self) -> Audit {
        let spans = self.spans.iter().filter(|span| span.kind == Kind::Synchronize);
        let barriers = spans.map(|span| Barrier {
            name: span.name.clone(),
            kind: span.barrier.unwrap_or(BarrierKind::Implicit),
            site: span.site.clone(),
            blocked_ns: span.duration_ns(),
            pending: self.pending(span),
        });
        Audit {
            barriers: barriers.collect(),
            stalled_share: self.host_stalled_share(),
            source: self.source.clone(),
            dropped: self.dropped,
        }
    }
}

impl Audit {
    /// The barriers that had something to wait for and whose names are not in `allowed`.
    pub fn stalls<'a>(&'a self, allowed: &'a [&str]) -> impl Iterator<Item = &'a Barrier> {
        self.barriers.iter().filter(|b| b.pending > 0 && !allowed.contains(&b.name.as_str()))
    }

    /// What is wrong unless there is no such barrier: each with its place. Where records were lost, nobody knows, which
    /// is wrong, too. For [`assert_no_sync!`](crate::assert_no_sync).
    pub fn complaint(&self, allowed: &[&str]) -> Option<String> {
        if self.dropped > 0 {
            return Some(format!("{} records of the region were lost: barriers may be missing", self.dropped));
        }
        let stalls: Vec<String> = self.stalls(allowed).map(|barrier| format!("\n  {barrier}")).collect();
        let count = stalls.len();
        let (noun, verb) = if count == 1 { ("barrier", "waits") } else { ("barriers", "wait") };
        (count > 0).then(|| format!("{count} {noun} within the region {verb} for pending work:{}", stalls.concat()))
    }
}

impl fmt::Display for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocked = Unit::Seconds.format(self.blocked_ns as f64 * 1e-9, 3);
        let Self { name, kind, pending, .. } = self;
        write!(f, "{}: {name} ({kind}), {blocked}, {pending} pending", self.place())
    }
}

/// A table: place, call, kind, time in it, pending work.
impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = ["place", "barrier", "kind", "blocked", "pending"].map(str::to_owned);
        let row = |b: &Barrier| {
            let blocked = Unit::Seconds.format(b.blocked_ns as f64 * 1e-9, 3);
            [b.place().to_owned(), b.name.clone(), b.kind.to_string(), blocked, b.pending.to_string()]
        };
        let rows: Vec<[String; 5]> = std::iter::once(heading).chain(self.barriers.iter().map(row)).collect();
        let widths: [usize; 5] =
            std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
        for row in &rows {
            let [place, name, kind, blocked, pending] = row;
            let [a, b, c, d, e] = widths;
            writeln!(f, "{place:a$}  {name:b$}  {kind:c$}  {blocked:>d$}  {pending:>e$}")?;
        }
        let share = 100.0 * self.stalled_share;
        write!(f, "{} barriers; the host spent {share:.1} % of the time in them", self.barriers.len())?;
        if self.dropped > 0 {
            write!(f, "; {} records were lost: barriers may be missing", self.dropped)?;
        }
        Ok(())
    }
}

/// Runs a block on a device and panics if a barrier within it waited for pending work, naming each with its place.
/// Barriers named in `allow` may wait. The value is the block's.
///
/// The block is the body of a closure that returns a `Result<_, DeviceError>`: `?` leaves the block, and an error of it
/// is a panic here. See [`Audit`](crate::timeline::Audit) for what is known to be pending.
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
        match $device.audit(|| $block) {
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
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Runs `region` with a stream that is held until a barrier has begun.
    fn held<R>(device: &Device, region: impl FnOnce(&Stream) -> Result<R, DeviceError>) -> Result<R, DeviceError> {
        let (stream, gate) = (device.stream()?, device.gate()?);
        stream.wait_gate(&gate)?;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !device.engine().tracer().has_begun_a_barrier() {
                    std::thread::yield_now();
                }
                gate.open();
            });
            region(&stream)
        })
    }

    fn audited<R>(device: &Device, region: impl FnOnce(&Stream) -> Result<R, DeviceError>) -> (R, Audit) {
        device.audit(|| held(device, region)).unwrap()
    }

    fn ones(audit: &Audit) -> Vec<(&str, BarrierKind)> {
        audit.stalls(&[]).map(|b| (b.name.as_str(), b.kind)).collect()
    }

    #[test]
    fn each_kind_of_barrier_is_named_for_what_it_waits_for() {
        let device = Device::open("cpu:0").unwrap();
        let (_, audit) = audited(&device, |stream| stream.synchronize());
        assert_eq!(ones(&audit), [("Stream::synchronize", BarrierKind::Stream)]);
        let (_, audit) = audited(&device, |_| device.synchronize());
        assert_eq!(ones(&audit), [("Device::synchronize", BarrierKind::Device)]);
        let (_, audit) = audited(&device, |stream| {
            let event = device.event()?;
            stream.record(&event)?;
            event.synchronize()
        });
        assert_eq!(ones(&audit), [("Event::synchronize", BarrierKind::Event)]);
        let (any, audit) = audited(&device, |stream| stream.ones::<f32>([4])?.any());
        assert_eq!(ones(&audit), [("any", BarrierKind::Implicit)]);
        assert!(any && audit.barriers[0].site.as_deref().is_some_and(|site| site.starts_with(file!())));
    }

    #[test]
    fn a_barrier_with_nothing_to_wait_for_is_listed_and_is_no_stall() {
        let device = Device::open("cpu:0").unwrap();
        let stream = device.stream().unwrap();
        let (_, audit) = device.audit(|| stream.synchronize()).unwrap();
        assert_eq!((audit.barriers.len(), audit.stalls(&[]).count()), (1, 0));
        assert!(audit.to_string().contains("Stream::synchronize"), "{audit}");
    }

    #[test]
    fn a_stall_fails_the_assertion_with_its_place_unless_it_is_allowed() {
        let device = Device::open("cpu:0").unwrap();
        let stall = || held(&device, |stream| stream.ones::<f32>([])?.item());
        assert_eq!(assert_no_sync!(device, allow: ["item"], { stall() }), 1.0);
        let panic = catch_unwind(AssertUnwindSafe(|| assert_no_sync!(device, { stall() }))).unwrap_err();
        let text = crate::error::panic_message(&*panic);
        assert!(text.contains(file!()) && text.contains("item (implicit)"), "{text}");
    }

    #[test]
    fn a_region_without_barriers_passes_while_its_stream_is_held() {
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
