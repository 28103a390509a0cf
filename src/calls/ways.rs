//! The ways in which bytes get between the memory of the host and that of a device, or between two devices, each measured
//! by itself.
//!
//! # Method
//! A way has two blocks of memory of the host (or of the other device) and two of the device. What it moves is put where it is
//! to be moved from before each transfer. A transfer is enqueued and waited for by one thread, and the host's clock is read
//! before and after. *Both* is one transfer in each direction at once, on two streams and on blocks of their own. Between two
//! devices, each direction is on a stream of the device whose memory it reads. A kernel that moves bytes takes a part of the
//! device, so that two of them run beside each other.
//!
//! # Limits
//! One thread enqueues both directions: a call that returns only when its copy is over makes the other direction start late.
//! The time of few bytes is that of the calls.

use std::rc::Rc;
use std::time::Instant;

use super::{Result, Rig, rig};
use syncscope::device::{Device, available_memory};
use syncscope::error::DeviceError;

/// A way of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MovedBy {
    /// Copies from and to ordinary host memory.
    Pageable,
    /// Copies from and to memory that is page-locked by its allocation.
    Pinned,
    /// Copies from and to ordinary memory that was page-locked afterwards.
    Registered,
    /// Managed memory that moves when it is touched: by a kernel to the device, by a host thread to the host.
    Managed,
    /// Managed memory that the driver is asked to move.
    Prefetched,
    /// A kernel that reads and writes page-locked memory where it lies.
    ZeroCopy,
    /// Copies between two devices.
    Peer {
        /// Whether this device has access to the other one's memory.
        access: bool,
    },
}

impl MovedBy {
    /// Those between the host and a device.
    pub const OF_HOST: [Self; 6] =
        [Self::Pageable, Self::Pinned, Self::Registered, Self::Managed, Self::Prefetched, Self::ZeroCopy];

    /// Its name, as a parameter of a row.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pageable => "pageable",
            Self::Pinned => "pinned",
            Self::Registered => "registered",
            Self::Managed => "managed",
            Self::Prefetched => "prefetched",
            Self::ZeroCopy => "zero-copy",
            Self::Peer { access: true } => "on",
            Self::Peer { access: false } => "off",
        }
    }
}

/// Where bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// To the device; between two devices, to the other one.
    Away,
    /// Back from there.
    Back,
    /// One transfer in each direction at once.
    Both,
}

/// The transfers of one way, of one size.
pub(crate) trait Transfers {
    /// Puts what is to be moved where it is moved from. Nothing is pending.
    fn prepare(&self) -> Result<()>;

    /// Moves it, and waits until it has arrived.
    fn transfer(&self, heading: Heading) -> Result<()>;

    /// Takes back what [`prepare`](Self::prepare) has changed for others.
    fn settle(&self) -> Result<()> {
        Ok(())
    }
}

/// The ways of a device, to be measured.
pub struct Ways {
    rig: Rc<dyn Rig>,
}

impl Ways {
    /// Those of a device.
    pub fn new(device: &Device) -> Result<Self> {
        rig(device).map(|rig| Self { rig: rig.into() })
    }

    /// A way for so many bytes.
    ///
    /// # Errors
    /// [`NotApplicable`](DeviceError::NotApplicable) where the device lacks the way, or where the bytes do not fit.
    pub fn of(&self, way: MovedBy, bytes: usize) -> Result<MemoryWay> {
        let of_host = if matches!(way, MovedBy::Peer { .. }) { 0 } else { 2 };
        // As much again is left for others.
        if available_memory().is_some_and(|available| available / 2 < bytes.saturating_mul(of_host)) {
            return Err(no_room("the host", bytes));
        }
        let way = MemoryWay { transfers: self.rig.transfers(way, bytes)?, rig: Rc::clone(&self.rig) };
        // What is loaded and mapped at the first use is part of no sample.
        [Heading::Away, Heading::Back].into_iter().try_for_each(|heading| way.time(heading).map(drop))?;
        Ok(way)
    }
}

/// A way of a device for so many bytes.
pub struct MemoryWay {
    transfers: Box<dyn Transfers>,
    #[allow(dead_code, reason = "its streams are used by the transfers, which end before it")]
    rig: Rc<dyn Rig>,
}

impl MemoryWay {
    /// Seconds of the host from the call that enqueues a transfer until it is over.
    pub fn time(&self, heading: Heading) -> Result<f64> {
        self.time_beside(heading, || Ok(()), || Ok(()))
    }

    /// As [`time`](Self::time), with other work beside the transfer: from before it is enqueued until both are over.
    pub fn time_beside(
        &self,
        heading: Heading,
        enqueue: impl FnOnce() -> Result<()>,
        wait: impl FnOnce() -> Result<()>,
    ) -> Result<f64> {
        let timed = self.transfers.prepare().and_then(|()| {
            let start = Instant::now();
            let outcome = enqueue().and_then(|()| self.transfers.transfer(heading)).and_then(|()| wait());
            let seconds = start.elapsed().as_secs_f64();
            outcome.map(|()| seconds)
        });
        let settled = self.transfers.settle();
        timed.and_then(|seconds| settled.map(|()| seconds))
    }
}

/// That two blocks of this size do not fit.
pub(crate) fn no_room(place: &str, bytes: usize) -> DeviceError {
    let reason = format!("{place} has no room for two blocks of this size");
    DeviceError::not_applicable(format!("two blocks of {bytes} bytes"), place, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_of_the_host_s_own_memory_moves_bytes_of_any_number_in_both_directions() {
        let ways = Ways::new(&Device::open("cpu:0").unwrap()).unwrap();
        for bytes in [1, 4, 4096, 100_003] {
            let way = ways.of(MovedBy::Pageable, bytes).unwrap();
            for heading in [Heading::Away, Heading::Back, Heading::Both] {
                assert!(way.time(heading).unwrap() > 0.0, "{bytes} {heading:?}");
            }
        }
    }

    #[test]
    fn a_way_that_an_engine_lacks_and_a_size_that_does_not_fit_say_why() {
        let ways = Ways::new(&Device::open("cpu:0").unwrap()).unwrap();
        let lacking = MovedBy::OF_HOST[1..].iter().copied().chain([true, false].map(|access| MovedBy::Peer { access }));
        for way in lacking {
            let refused = ways.of(way, 4).map(drop);
            assert!(matches!(refused, Err(DeviceError::NotApplicable { .. })), "{way:?}: {refused:?}");
        }
        if available_memory().is_some() {
            match ways.of(MovedBy::Pageable, 1 << 60).map(drop) {
                Err(DeviceError::NotApplicable { reason, .. }) => assert!(reason.contains("no room"), "{reason}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
