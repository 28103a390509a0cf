//! `overlap.implicit`: which calls wait for the work before them. For every read of the library and for calls that only
//! launch work (the copies of host buffers stand in `host_buffers`):
//!
//! - *blocks*: in which share of the trials of a run the call returned only after a gate before it was opened ([`blocks`]): 1 is a
//!   call that waits, 0 one that does not;
//! - *stall*: for how long the call blocks the host behind a kernel of known length.

use super::host_buffers;
use crate::experiment::prelude::*;
use crate::measure::blocks;

/// For how long the stream is busy before a call whose stall is measured.
pub(super) const BUSY: Duration = Duration::from_millis(2);

/// How often a call is made behind a closed gate, in each run.
const TRIALS: Count = count(3);

/// Elements of the tensor that is read.
const ELEMENTS: usize = 1 << 16;

/// The rows of a call, by what is asked of it.
pub(super) type Ids = [&'static str; 2];

/// A call on the fixture.
type Call = fn(&Fixture) -> Result<()>;

const CALLS: &[(&str, Ids, Call)] = &[
    ("Launch one kernel", ["overlap.implicit.launch.blocks", "overlap.implicit.launch.stall"], |f| {
        f.x.add_scalar(1.0).map(discard)
    }),
    ("Index one element, unread", ["overlap.implicit.view.blocks", "overlap.implicit.view.stall"], |f| {
        f.x.get([7]).map(discard)
    }),
    ("Read one element", ["overlap.implicit.item.blocks", "overlap.implicit.item.stall"], |f| {
        f.x.get([7])?.item().map(discard)
    }),
    ("Host array", ["overlap.implicit.array.blocks", "overlap.implicit.array.stall"], |f| f.x.to_array().map(discard)),
    ("Print one element", ["overlap.implicit.print.blocks", "overlap.implicit.print.stall"], |f| {
        print_to(&mut null_device()?, &f.x.get([7])?)
    }),
    ("Branch on any(x)", ["overlap.implicit.any.blocks", "overlap.implicit.any.stall"], |f| f.x.any().map(discard)),
    ("nonzero(x)", ["overlap.implicit.nonzero.blocks", "overlap.implicit.nonzero.stall"], |f| {
        f.x.nonzero().map(discard)
    }),
    (
        "Rows by host indices",
        ["overlap.implicit.rows-from-host.blocks", "overlap.implicit.rows-from-host.stall"],
        |f| f.x.index_select(&[2, 0, 1]).map(discard),
    ),
    (
        "Rows by device indices",
        ["overlap.implicit.rows-on-device.blocks", "overlap.implicit.rows-on-device.stall"],
        |f| f.x.gather(&f.rows).map(discard),
    ),
    ("Sum, left on the device", ["overlap.implicit.sum.blocks", "overlap.implicit.sum.stall"], |f| {
        f.x.sum().map(discard)
    }),
    ("Tensor of host values", ["overlap.implicit.upload.blocks", "overlap.implicit.upload.stall"], |f| {
        f.x.stream().tensor(&[1.0f32; 16], [16]).map(discard)
    }),
];

/// The copy to the host, by the memory that the tensor was uploaded from.
const COPY: (&str, Ids, Call) =
    ("Copy to the host", ["overlap.implicit.copy.blocks", "overlap.implicit.copy.stall"], |f| {
        f.x.to_vec().map(discard)
    });

fn discard<T>(value: T) {
    drop(std::hint::black_box(value));
}

/// What the calls are made on.
struct Fixture {
    stream: Stream,
    x: Tensor<f32>,
    rows: Tensor<i64>,
}

impl Fixture {
    fn new(device: &Device) -> Result<Rc<Self>> {
        let stream = device.stream()?;
        Ok(Rc::new(Self { x: stream.normal([ELEMENTS])?, rows: stream.tensor(&[2, 0, 1], [3])?, stream }))
    }

    /// With a tensor that was uploaded from a host buffer of this kind.
    fn from(device: &Device, origin: HostKind) -> Result<Rc<Self>> {
        let fixture = Self::new(device)?;
        fixture.x.copy_from(&device.host_buffer(origin, ELEMENTS)?)?;
        Ok(fixture)
    }
}

/// What is asked of a call.
#[derive(Clone, Copy)]
pub(super) enum Asked {
    /// In which share of some trials it came back only after the gate was opened, which stays closed for so long.
    Blocks(Duration),
    /// For how long it keeps the host behind a kernel.
    Stall,
}

/// The rows of the calls, then those of the copies of host buffers. What waits is decided by trials; the times of the calls of
/// a group are sampled together, so that they can be compared.
pub(super) fn run(patience: Duration, sizes: &[usize]) -> Vec<Group> {
    let mut groups = Vec::new();
    let bytes = ELEMENTS * size_of::<f32>();
    for asked in [Asked::Blocks(patience), Asked::Stall] {
        let mut group = asked.group([("busy_seconds", BUSY.as_secs_f64().into()), ("bytes", bytes.into())]);
        for call in CALLS {
            group = row(group, asked, *call, Fixture::new);
        }
        for origin in [HostKind::Pageable, HostKind::Pinned] {
            group = group.with_parameters([("origin", origin.to_string().into())]);
            group = row(group, asked, COPY, move |device| Fixture::from(device, origin));
        }
        groups.push(group.build());
    }
    groups.extend([Asked::Blocks(patience), Asked::Stall].map(|asked| host_buffers::run(asked, sizes)));
    groups
}

/// The row of a call, with a fixture of its own.
fn row(
    group: GroupBuilder<Device>,
    asked: Asked,
    (label, ids, call): (&str, Ids, Call),
    fixture: impl Fn(&Device) -> Result<Rc<Fixture>> + 'static,
) -> GroupBuilder<Device> {
    asked.row(group, label, ids, move |device| {
        let fixture = fixture(device)?;
        Ok((fixture.stream.clone(), move || call(&fixture)))
    })
}

impl Asked {
    /// An empty group for such rows.
    pub(super) fn group<const N: usize>(self, parameters: [(&str, Parameter); N]) -> GroupBuilder<Device> {
        let group = Group::of("Implicit synchronization", parameters);
        match self {
            Self::Blocks(_) => group.trials(*TRIALS),
            Self::Stall => group,
        }
    }

    /// The row of a call: `make` gives its stream and the call, which is made once before it is measured. Whatever code it
    /// loads is loaded then, and not behind a closed gate.
    pub(super) fn row<C>(
        self,
        group: GroupBuilder<Device>,
        label: &str,
        [blocks_id, stall_id]: Ids,
        make: impl Fn(&Device) -> Result<(Stream, C)> + 'static,
    ) -> GroupBuilder<Device>
    where
        C: Fn() -> Result<()> + 'static,
    {
        let ready = move |device: &Device| {
            let (stream, call) = make(device)?;
            call()?;
            stream.synchronize()?;
            Ok((stream, call))
        };
        match self {
            Self::Blocks(patience) => {
                group.observed(blocks_id, &format!("{label}: blocked"), Unit::Ratio, move |device| {
                    let (stream, call) = ready(device)?;
                    Ok(move || Ok(f64::from(blocks(&stream, patience, &call)?)))
                })
            }
            Self::Stall => group.host_time_within(stall_id, &format!("{label}: stall"), move |device| {
                let (stream, call) = ready(device)?;
                Ok(move |watch: &mut Stopwatch| {
                    stream.spin(BUSY)?;
                    watch.time(&call)
                })
            }),
        }
    }
}
