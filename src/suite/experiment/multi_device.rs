//! `multi-device`: what waits where one thread drives several devices of an engine.
//!
//! - *pair*: the loops of [`idle-device`](super::IdleDevice) for each pair of devices: the device `busy` works, and each
//!   iteration synchronizes it (*same*) or the device `idle` (*other*).
//! - *wait*: a kernel of a known length on each of the `devices`. The host enqueues one and waits for it before it enqueues the
//!   next (*in-turn*), or enqueues all and then waits for each (*together*). *one* is one device alone; what the others add
//!   to it is *further*. *idle* is the synchronizing alone, with nothing pending on any of them.
//! - *copy*: a copy to another device (*alone*), a kernel of a known length on this device (*kernel*), and both at once.
//! - *all-reduce*: a sum over all devices by the engine's own library for it (NCCL): until all its calls have returned
//!   (*enqueue*), and until all devices are done (*done*). *rate* is how fast each device moves bytes for it, as NCCL's own
//!   tests compute it (“bus bandwidth”, doc/PERFORMANCE.md in nccl-tests).
//! - *first*: what connecting the devices takes (*connect*), and the calls of the first all-reduce (*enqueue*) and of the
//!   second one (*again*).
//! - *overlap*: an all-reduce (*all-reduce*), a matmul on each device (*matmul*), and both at once on streams of their own. The
//!   parameter `first` says which of the two is enqueued first. *enqueue* is the host's time for the second one.
//!
//! *hidden* is the share of the shorter one of two that costs no time beside the longer one: 1 where they overlap, 0 where one
//! runs after the other. While the host enqueues the second one (*enqueue*), the first one runs, which is no overlap of the two:
//! this time is taken off the shorter one and off what is hidden of it.
//!
//! One thread drives all devices. NCCL enables access between devices, which changes what later copies take, so its rows are
//! measured after those that need none ([`Part::Connected`](super::group::Part)).

use std::time::Instant;

use super::idle_device::{Wait, loops, of_engine};
use crate::calls::ranks::{AllReduce, FirstCalls};
use crate::calls::ways::{Heading, MemoryWay, MovedBy, Ways};
use crate::experiment::prelude::*;

/// How often devices are connected.
const FEW: Count = count(3);

parameters! {
    /// What waits where one thread drives several devices.
    pub struct MultiDevice {
        /// Iterations of the loop of a pair.
        iters: Count = count(200),
        /// Rows and columns of its matrices.
        size: Count = count(100),
        /// The lengths of the kernels that are waited for.
        kernels: Vec<Seconds> = vec![Seconds::of(2e-5), Seconds::milliseconds(1)],
        /// The bytes of the copy to another device.
        copy: Size = count(256 << 20),
        /// The length of the kernel beside it.
        beside: Seconds = Seconds::milliseconds(1),
        /// The bytes of all-reduces.
        sizes: Vec<Size> = [4, 64 << 10, 1 << 20, 256 << 20].map(count).to_vec(),
        /// The bytes of the all-reduce beside a matmul.
        gradients: Size = count(256 << 20),
        /// Rows and columns of the matrices of this matmul.
        matmul: Count = count(4096),
    }
}

impl Experiment for MultiDevice {
    const NAME: &'static str = "multi-device";
    const SUMMARY: &'static str = "What waits where one thread drives several devices";
    const ITERATIONS: Option<&'static str> = Some("iters");

    fn for_cpu() -> Self {
        Self { iters: count(20), ..Self::default() }
    }

    fn groups(&self, engine: &str) -> Vec<Group> {
        let devices = Devices::of(engine);
        let mut groups = self.pairs(&devices);
        groups.extend(self.kernels.iter().map(|kernel| waits(&devices, *kernel)));
        groups.push(self.copy(&devices));
        groups.extend(self.sizes.iter().map(|bytes| all_reduce(&devices, bytes.get())));
        groups.extend([first(&devices), self.overlap(&devices), same(&devices)]);
        groups
    }
}

/// The devices of an engine, by their names; two names where there are fewer, of rows that are left out.
#[derive(Clone)]
struct Devices {
    names: Vec<String>,
    lacking: Option<String>,
}

impl Devices {
    fn of(engine: &str) -> Self {
        let names: Vec<_> = of_engine(engine).collect();
        match names.len() {
            0 | 1 => Self {
                names: [0, 1].map(|number| format!("{engine}:{number}")).to_vec(),
                lacking: Some("this engine has only one device here".to_owned()),
            },
            _ => Self { names, lacking: None },
        }
    }

    /// All of them, each with a stream.
    fn streams(&self) -> Result<Vec<Stream>> {
        self.names.iter().map(|name| Device::open(name)?.stream()).collect()
    }
}

impl MultiDevice {
    /// All ordered pairs: one group for each.
    fn pairs(&self, devices: &Devices) -> Vec<Group> {
        let numbers = 0..devices.names.len();
        let pairs = numbers.clone().flat_map(|busy| numbers.clone().map(move |idle| (busy, idle)));
        let (size, iters) = (self.size, self.iters);
        let pair = |(busy, idle): (usize, usize)| {
            let parameters = [
                ("busy", busy.into()),
                ("idle", idle.into()),
                ("size", size.get().into()),
                ("iters", iters.get().into()),
            ];
            let names = [busy, idle].map(|number| devices.names[number].clone());
            let group = Group::of("Each pair of devices", parameters)
                .skipped(devices.lacking.clone())
                .setup(move |_| Ok((Device::open(&names[0])?.stream()?, Device::open(&names[1])?)));
            let ids = ["multi-device.pair.other", "multi-device.pair.same", "multi-device.pair.delta"];
            let waits: [Wait<Device>; 2] = [|_, idle| idle.synchronize(), |stream, _| stream.device().synchronize()];
            loops(group, ids, "device", [size, iters], waits)
        };
        pairs.filter(|(busy, idle)| busy != idle).map(pair).collect()
    }

    /// A copy to another device beside a kernel of this one.
    fn copy(&self, devices: &Devices) -> Group {
        let (bytes, busy) = (self.copy.get(), self.beside.duration());
        let spin = move |stream: &Stream| stream.spin(busy);
        Group::of(
            "A copy to another device beside a kernel",
            [("bytes", bytes.into()), ("busy_seconds", busy.as_secs_f64().into())],
        )
        .skipped(devices.lacking.clone())
        .setup(move |device| {
            let way = Ways::new(device)?.of(MovedBy::Peer { access: true }, bytes)?;
            Ok((Rc::new(way), device.stream()?))
        })
        .seconds_of(Clock::Host, "multi-device.copy.alone", "The copy", move |(way, _): &(Rc<MemoryWay>, Stream)| {
            way.time(Heading::Away)
        })
        .host_time_of("multi-device.copy.kernel", "The kernel", move |(_, stream)| {
            spin(stream).and_then(|()| stream.synchronize())
        })
        .seconds_of(Clock::Host, "multi-device.copy.both", "Both at once", move |(way, stream)| {
            way.time_beside(Heading::Away, || spin(stream), || stream.synchronize())
        })
        .derived(
            "multi-device.copy.hidden",
            "Hidden share of the shorter one",
            Unit::Ratio,
            hidden([
                ("copy", "multi-device.copy.alone"),
                ("kernel", "multi-device.copy.kernel"),
                ("both", "multi-device.copy.both"),
            ]),
        )
        .build()
    }

    /// An all-reduce beside a matmul on each device, each of which is enqueued first once.
    fn overlap(&self, devices: &Devices) -> Group {
        let (bytes, size, all) = (self.gradients.get(), self.matmul.get(), devices.clone());
        let parameters = [("devices", devices.names.len().into()), ("bytes", bytes.into()), ("size", size.into())];
        let mut group = Group::of("An all-reduce beside a matmul", parameters)
            .measured_in(Part::Connected)
            .skipped(devices.lacking.clone())
            .setup(move |device| {
                let sum = AllReduce::new(device, bytes)?;
                let normal = |stream: &Stream| stream.normal([size, size]);
                let work =
                    Rc::new(Beside { sum, matrices: all.streams()?.iter().map(normal).collect::<Result<_, _>>()? });
                let both = [false, true].map(|sum_first| {
                    let work = Rc::clone(&work);
                    EachRound::new(move || work.both(sum_first))
                });
                Ok((work, both))
            })
            .host_time_of("multi-device.overlap.all-reduce", "The all-reduce", move |(work, _): &BesideAndBoth| {
                work.sum.enqueue().and_then(|()| work.sum.synchronize())
            })
            .host_time_of("multi-device.overlap.matmul", "The matmuls", move |(work, _)| {
                work.multiply().and_then(|()| work.wait_for_matmuls())
            });
        let alone = group.parameters();
        for (place, first) in ["matmul", "all-reduce"].into_iter().enumerate() {
            // The host enqueues the second one while the first runs: that is no overlap of the devices' work.
            let share = hidden([
                ("sum", "multi-device.overlap.all-reduce"),
                ("matmul", "multi-device.overlap.matmul"),
                ("both", "multi-device.overlap.both"),
                ("enqueue", "multi-device.overlap.enqueue"),
            ]);
            let (whole, second) = ("multi-device.overlap.both", "multi-device.overlap.enqueue");
            group = group
                .with_parameters([("first", first.into())])
                .parts(
                    place,
                    move |(_, both)| Ok(Rc::clone(&both[place])),
                    [
                        (whole, "Both at once", Unit::Seconds, Clock::Host, |both: &Both| both.whole),
                        (second, "Enqueue the second one", Unit::Seconds, Clock::Host, |both| both.enqueue),
                    ],
                )
                .derived(
                    "multi-device.overlap.hidden",
                    "Hidden share of the shorter one",
                    Unit::Ratio,
                    share.from_row("sum", &alone).from_row("matmul", &alone),
                );
        }
        group.build()
    }
}

/// An all-reduce, and a matrix on a stream of its own on each device.
struct Beside {
    sum: AllReduce,
    matrices: Vec<Tensor<f32>>,
}

/// The two pieces of work, and the two of them at once: the matmuls first, and the all-reduce first.
type BesideAndBoth = (Rc<Beside>, [Rc<EachRound<Both>>; 2]);

/// What both at once take, in seconds of the host.
struct Both {
    whole: f64,
    /// To enqueue the second one.
    enqueue: f64,
}

impl Beside {
    /// Enqueues a matmul on each device.
    fn multiply(&self) -> Result<()> {
        self.matrices.iter().try_for_each(|matrix| matrix.matmul(matrix).map(drop))
    }

    fn wait_for_matmuls(&self) -> Result<()> {
        self.matrices.iter().try_for_each(|matrix| matrix.stream().synchronize())
    }

    fn both(&self, sum_first: bool) -> Result<Both> {
        let (sum, matmuls) = (|| self.sum.enqueue(), || self.multiply());
        let [first, second]: [&dyn Fn() -> Result<()>; 2] = if sum_first { [&sum, &matmuls] } else { [&matmuls, &sum] };
        let begun = Instant::now();
        first()?;
        let between = begun.elapsed().as_secs_f64();
        second()?;
        let enqueue = begun.elapsed().as_secs_f64() - between;
        self.wait_for_matmuls()?;
        self.sum.synchronize()?;
        Ok(Both { whole: begun.elapsed().as_secs_f64(), enqueue })
    }
}

/// Which share of the shorter one of two pieces of work costs no time beside the longer one. The first two rows are the pieces
/// alone, the third is both at once. What follows is a part of the shorter one that is no overlap of theirs.
fn hidden<const ROWS: usize>(rows: [(&'static str, &'static str); ROWS]) -> Formula {
    let (first, second, both) = (rows[0].0, rows[1].0, rows[2].0);
    let apart: String = rows[3..].iter().map(|(name, _)| format!(" − {name}")).collect();
    let sum = format!("{first} + {second}");
    Formula::of(format!("({sum} − {both}{apart}) / ({sum} − max({first}, {second}){apart})"), rows)
}

fn synchronize(streams: &[Stream]) -> Result<()> {
    streams.iter().try_for_each(Stream::synchronize)
}

/// A kernel of this length on each device, waited for in turn or together.
fn waits(devices: &Devices, kernel: Seconds) -> Group {
    let (length, all) = (kernel.duration(), devices.clone());
    let parameters = [("devices", devices.names.len().into()), ("kernel_seconds", length.as_secs_f64().into())];
    Group::of("Waiting for several devices", parameters)
        .skipped(devices.lacking.clone())
        .setup(move |_| all.streams().map(Rc::new))
        .host_time_of("multi-device.wait.idle", "Synchronize all, nothing pending", move |streams: &Rc<Vec<Stream>>| {
            synchronize(streams)
        })
        .host_time_of("multi-device.wait.one", "One device", move |streams| in_turn(&streams[..1], length))
        .host_time_of("multi-device.wait.in-turn", "All devices, one after the other", move |streams| {
            in_turn(streams, length)
        })
        .host_time_of("multi-device.wait.together", "All devices, together", move |streams| {
            streams.iter().try_for_each(|stream| stream.spin(length))?;
            synchronize(streams)
        })
        .difference(
            "multi-device.wait.further",
            "Together − one device",
            ["multi-device.wait.together", "multi-device.wait.one"],
        )
        .build()
}

fn in_turn(streams: &[Stream], length: Duration) -> Result<()> {
    streams.iter().try_for_each(|stream| stream.spin(length).and_then(|()| stream.synchronize()))
}

/// An all-reduce of so many bytes.
fn all_reduce(devices: &Devices, bytes: usize) -> Group {
    let parameters = [("devices", devices.names.len().into()), ("bytes", bytes.into())];
    Group::of("All-reduce", parameters)
        .measured_in(Part::Connected)
        .skipped(devices.lacking.clone())
        .setup(move |device| AllReduce::new(device, bytes).map(Rc::new))
        .stopwatch_of(
            "multi-device.all-reduce.enqueue",
            "Enqueue on all devices",
            move |sum: &Rc<AllReduce>, stopwatch| {
                stopwatch.time(|| sum.enqueue())?;
                // The wait is beside the time.
                sum.synchronize()
            },
        )
        .host_time_of("multi-device.all-reduce.done", "Until all devices are done", move |sum| {
            sum.enqueue().and_then(|()| sum.synchronize())
        })
        .derived(
            "multi-device.all-reduce.rate",
            "Bus bandwidth",
            Unit::BytesPerSecond,
            "2 · (devices − 1) / devices · bytes / done",
        )
        .build()
}

/// What the first calls of a connection take: of one connection for each round.
fn first(devices: &Devices) -> Group {
    let [connect, first, again] =
        ["multi-device.first.connect", "multi-device.first.enqueue", "multi-device.first.again"];
    Group::of("First calls", [("devices", devices.names.len().into())])
        .trials(*FEW)
        .measured_in(Part::Connected)
        .skipped(devices.lacking.clone())
        .setup(|device| {
            let sum = RefCell::new(AllReduce::new(device, size_of::<f32>())?);
            Ok(EachRound::new(move || sum.borrow_mut().first_calls()))
        })
        .parts(
            0,
            |connections: &Rc<EachRound<FirstCalls>>| Ok(Rc::clone(connections)),
            [
                (connect, "Connect the devices", Unit::Seconds, Clock::Host, |calls: &FirstCalls| calls.connect),
                (first, "Enqueue the first all-reduce", Unit::Seconds, Clock::Host, |calls| calls.first),
                (again, "Enqueue the second one", Unit::Seconds, Clock::Host, |calls| calls.second),
            ],
        )
        .build()
}

/// The wait for all devices with nothing pending, twice.
fn same(devices: &Devices) -> Group {
    let all = devices.clone();
    Group::of("The same code twice", [("devices", devices.names.len().into())])
        .skipped(devices.lacking.clone())
        .setup(move |_| all.streams().map(Rc::new))
        .twice(
            ["multi-device.same.a", "multi-device.same.b", "multi-device.same.ratio"],
            move |streams: &Rc<Vec<Stream>>| in_turn(streams, Duration::from_micros(20)),
        )
}
