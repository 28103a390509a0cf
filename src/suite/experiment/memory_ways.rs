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
        let with_host = |bytes| ways("Between host and device", bytes, ("memory", MovedBy::OF_HOST), &WITH_HOST);
        let peers = [false, true].map(|access| MovedBy::Peer { access });
        let between = move |bytes| ways("Between two devices", bytes, ("access", peers), &BETWEEN_DEVICES);
        let bytes = self.same.get();
        let same = Group::of("The same code twice", [("bytes", bytes.into())])
            .setup(move |device| Ways::new(device)?.of(MovedBy::Pageable, bytes).map(Rc::new))
            .twice(["memory-ways.same.a", "memory-ways.same.b", "memory-ways.same.ratio"], move |way| {
                way.time(Heading::Away)
            });
        sizes().map(with_host).chain(sizes().map(between)).chain([same]).collect()
    }
}

/// A way, or why there is none.
type Made = Result<Rc<MemoryWay>>;

/// A row: its identifier, its label, and where the bytes go.
type Transfer = (&'static str, &'static str, Heading);

const WITH_HOST: [Transfer; 3] = [
    ("memory-ways.to-device", "To the device", Heading::Away),
    ("memory-ways.to-host", "To the host", Heading::Back),
    ("memory-ways.both", "Both directions at once", Heading::Both),
];

const BETWEEN_DEVICES: [Transfer; 2] = [
    ("memory-ways.peer.one-way", "To the other device", Heading::Away),
    ("memory-ways.peer.both", "To the other device and back at once", Heading::Both),
];

/// All ways for one size, told apart by a parameter: one group.
fn ways<const N: usize>(
    heading: &str,
    bytes: usize,
    (parameter, ways): (&str, [MovedBy; N]),
    rows: &[Transfer],
) -> Group {
    let mut group = Group::of(heading, [("bytes", bytes.into())]);
    if bytes >= LARGE {
        group = group.trials(*FEW);
    }
    let mut group = group.setup(move |device| {
        let of_device = Ways::new(device)?;
        Ok(ways.map(|way| -> Made { of_device.of(way, bytes).map(Rc::new) }))
    });
    for (place, way) in ways.into_iter().enumerate() {
        group = group.with_parameters([(parameter, way.name().into())]);
        for &(id, label, heading) in rows {
            group = group.time_by(Clock::Host, id, label, move |made| {
                let way = made[place].clone()?;
                Ok(move || way.time(heading))
            });
        }
    }
    group.build()
}
