//! `memory-ways`: how fast bytes get between the memory of the host and that of the device, or between two devices, in each
//! way that there is, by how many they are.
//!
//! The parameter `memory` says which way: copies from and to ordinary host memory (*pageable*), memory that is page-locked by
//! its allocation (*pinned*) or afterwards (*registered*); memory that the driver moves, when it is touched (*managed*) or when
//! it is asked to (*prefetched*); or a kernel that reads and writes page-locked memory where it lies (*zero-copy*). The
//! parameter `bytes` says how many go in one direction.
//!
//! - *to-device*, *to-host*: the host's time from the call that enqueues a transfer until it has been waited for;
//! - *both*: one transfer in each direction at once, until both are over;
//! - *peer.one-way*, *peer.both*: copies from this device to another one, and in both directions, with access to the other
//!   one's memory and without (parameter `access`).
//!
//! One thread enqueues both directions, on a stream each; between two devices, on a stream of the device whose memory is read.
//! Two kernels that read and write the host's memory have room beside each other. What a kernel touches is moved to the device, and what a thread
//! touches is moved to the host. Before each transfer the memory is where it is to be moved from. Large sizes are measured a
//! few times, and one that does not fit into half of what is free is left out.

use crate::calls::ways::{Heading, MemoryWay, MovedBy, Ways};
use crate::experiment::prelude::*;

/// From how many bytes on a size is measured [`FEW`] times.
const LARGE: usize = 256 << 20;
const FEW: Count = count(3);

parameters! {
    /// How fast bytes move, in each way that there is.
    pub struct MemoryWays {
        /// How many bytes are moved in one direction.
        sizes: Vec<Size> = [4, 256, 4 << 10, 64 << 10, 1 << 20, 32 << 20, 1 << 30].map(count).to_vec(),
        /// How many are moved where the same code is measured twice.
        same: Size = count(64 << 10),
    }
}

impl Experiment for MemoryWays {
    const NAME: &'static str = "memory-ways";
    const SUMMARY: &'static str =
        "How fast bytes move between host and device, or two devices, in each way that there is";

    fn for_cpu() -> Self {
        Self { sizes: [4, 64 << 10, 1 << 20].map(count).to_vec(), ..Self::default() }
    }

    fn groups(&self, _engine: &str) -> Vec<Group> {
        let sizes = || self.sizes.iter().map(|size| size.get());
        sizes().map(with_host).chain(sizes().map(between_devices)).chain([self.same()]).collect()
    }
}

/// A way, or why there is none.
type Made = Result<Rc<MemoryWay>, DeviceError>;

/// Those of them that are asked for, of one size.
fn all<const N: usize>(device: &Device, ways: [MovedBy; N], bytes: usize) -> Result<[Made; N], DeviceError> {
    let of_device = Ways::new(device)?;
    Ok(ways.map(|way| of_device.of(way, bytes).map(Rc::new)))
}

/// The seconds of transfers.
fn timed(way: &Made, heading: Heading) -> Result<impl FnMut() -> Result<f64, DeviceError> + use<>, DeviceError> {
    let way = way.clone()?;
    Ok(move || way.time(heading))
}

/// All ways between the host and the device for one size: one group.
fn with_host(bytes: usize) -> Group {
    let mut group = Group::of("Between host and device", [("bytes", bytes.into())]);
    if bytes >= LARGE {
        group = group.trials(*FEW);
    }
    let mut group = group.setup(move |device| all(device, MovedBy::OF_HOST, bytes));
    for (place, way) in MovedBy::OF_HOST.into_iter().enumerate() {
        group = group
            .with_parameters([("memory", way.name().into())])
            .time_by(Clock::Host, "memory-ways.to-device", "To the device", move |made| {
                timed(&made[place], Heading::Away)
            })
            .time_by(Clock::Host, "memory-ways.to-host", "To the host", move |made| timed(&made[place], Heading::Back))
            .time_by(Clock::Host, "memory-ways.both", "Both directions at once", move |made| {
                timed(&made[place], Heading::Both)
            });
    }
    group.build()
}

/// Copies between two devices of one size: one group.
fn between_devices(bytes: usize) -> Group {
    const WAYS: [MovedBy; 2] = [MovedBy::Peer { access: false }, MovedBy::Peer { access: true }];
    let mut group = Group::of("Between two devices", [("bytes", bytes.into())]);
    if bytes >= LARGE {
        group = group.trials(*FEW);
    }
    let mut group = group.setup(move |device| all(device, WAYS, bytes));
    for (place, way) in WAYS.into_iter().enumerate() {
        group = group
            .with_parameters([("access", way.name().into())])
            .time_by(Clock::Host, "memory-ways.peer.one-way", "To the other device", move |made| {
                timed(&made[place], Heading::Away)
            })
            .time_by(Clock::Host, "memory-ways.peer.both", "To the other device and back at once", move |made| {
                timed(&made[place], Heading::Both)
            });
    }
    group.build()
}

impl MemoryWays {
    /// A copy from pageable memory, twice.
    fn same(&self) -> Group {
        let bytes = self.same.get();
        Group::of("The same code twice", [("bytes", bytes.into())])
            .setup(move |device| Ways::new(device)?.of(MovedBy::Pageable, bytes).map(Rc::new))
            .twice(["memory-ways.same.a", "memory-ways.same.b", "memory-ways.same.ratio"], move |way| {
                way.time(Heading::Away)
            })
    }
}
