//! `self-audit.kernel`: kernels of the kinds that users bring, each at several sizes under five stopwatches.
//!
//! - *gate*: batches of launches behind a closed gate, divided by their number.
//! - *events*: two events around one launch on an idle stream.
//! - *loop*: two events around a loop of [`LAUNCHES`] launches on an idle stream, divided by their number.
//! - *cold*: as *events*, after the caches were filled with other data.
//! - *records*: the device's own record of one launch. It is measured after all other rows, so that it is not sampled in turn
//!   with them.
//! - *unpaused*: *gate* less the pause that the device makes between two launches. The pause is that of the smallest saxpy: what it
//!   takes behind the gate beyond its record. It is longer for a large grid, whose last writes no record holds.
//!
//! The sources stand beside the script of PyTorch, which times the same kernels by its own means.

use crate::device::{Code, Kernel, Launch};
use crate::experiment::prelude::*;
use crate::measure::DeviceClock;

const SOURCE: &str = include_str!("../../../../book/peers/pytorch_system/kernels.cu");

/// The launches of a loop, as many as the script of PyTorch makes.
const LAUNCHES: usize = 100;

/// The most elements of a tensor: the kernels count in 32 bits.
const MAX_ELEMENTS: u64 = 1 << 30;

/// The sizes that are timed where a suite states none.
const SIZES: [(Name, [u32; 5]); 4] = [
    (Name::Saxpy, [1 << 12, 1 << 16, 1 << 20, 1 << 23, 1 << 26]),
    (Name::Sum, [1 << 12, 1 << 16, 1 << 20, 1 << 23, 1 << 26]),
    (Name::Transpose, [64, 256, 1024, 2048, 4096]),
    (Name::Matmul, [64, 128, 256, 512, 1024]),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Saxpy,
    Sum,
    Transpose,
    Matmul,
}

impl Name {
    fn word(self) -> &'static str {
        match self {
            Self::Saxpy => "saxpy",
            Self::Sum => "sum",
            Self::Transpose => "transpose",
            Self::Matmul => "matmul",
        }
    }
}

/// A kernel and its size, `saxpy 4096`: elements of saxpy and sum, the side of the square matrix of transpose and matmul.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct SizedKernel {
    name: Name,
    size: u32,
}

impl TryFrom<String> for SizedKernel {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = || {
            let (word, size) = text.split_once(' ')?;
            let name = SIZES.iter().map(|(name, _)| *name).find(|name| name.word() == word)?;
            Some(Self { name, size: size.parse().ok().filter(|size| *size > 0)? })
        };
        let names = SIZES.map(|(name, _)| name.word()).join(", ");
        let own =
            read().ok_or_else(|| format!("expected one of {names} and a size, as in `saxpy 4096`, not `{text}`"))?;
        if own.elements() > MAX_ELEMENTS {
            return Err(format!("`{text}` has more than {MAX_ELEMENTS} elements"));
        }
        if own.name == Name::Matmul && own.size % 16 != 0 {
            return Err(format!("`{text}`: the side of a matmul is a multiple of 16"));
        }
        Ok(own)
    }
}

impl From<SizedKernel> for String {
    fn from(own: SizedKernel) -> Self {
        format!("{} {}", own.name.word(), own.size)
    }
}

impl SizedKernel {
    /// All that are timed where a suite states none.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        SIZES.into_iter().flat_map(|(name, sizes)| sizes.map(|size| Self { name, size }))
    }

    /// Elements of its largest tensor.
    fn elements(self) -> u64 {
        let size = u64::from(self.size);
        match self.name {
            Name::Saxpy | Name::Sum => size,
            Name::Transpose | Name::Matmul => size * size,
        }
    }

    fn launch(self) -> Launch {
        let (size, blocks) = (self.size as usize, |side: u32| self.size.div_ceil(side));
        match self.name {
            Name::Saxpy => Launch::over(size, 256),
            Name::Sum => Launch::over((size / 4).clamp(1, 1 << 18), 256),
            Name::Transpose => Launch::new([blocks(32), blocks(32), 1], [32, 8, 1]),
            Name::Matmul => Launch::new([blocks(16), blocks(16), 1], [16, 16, 1]),
        }
    }

    fn parameters(self) -> Parameters {
        Parameters::from([("kernel".to_owned(), String::from(self).into())])
    }
}

/// The kernels at their sizes: for each the rows that need no recording, and those that come from one.
pub(super) fn run(kernels: &[SizedKernel]) -> impl Iterator<Item = Group> {
    let smallest = kernels.iter().filter(|own| own.name == Name::Saxpy).min_by_key(|own| own.size).copied();
    kernels.iter().flat_map(move |own| [stopwatches(*own), records(*own, smallest)])
}

fn stopwatches(own: SizedKernel) -> Group {
    group(own)
        .device_time_by(Clock::DeviceBatch, "self-audit.kernel.gate", "Behind the gate, in batches", |own| {
            timed(own, |clock| Ok(clock.behind_gate()), 1)
        })
        .device_time_by(Clock::DeviceEvents, "self-audit.kernel.events", "Events around one launch", |own| {
            timed(own, Ok, 1)
        })
        .device_time_by(Clock::DeviceEvents, "self-audit.kernel.loop", "Events around a loop, divided", |own| {
            timed(own, Ok, LAUNCHES)
        })
        .per(LAUNCHES)
        .device_time_by(Clock::DeviceEvents, "self-audit.kernel.cold", "Events, with cold caches", |own| {
            timed(own, DeviceClock::cold, 1)
        })
        .build()
}

fn records(own: SizedKernel, smallest: Option<SizedKernel>) -> Group {
    let records = group(own).measured_in(Part::Recorded).device_time_by(
        Clock::DeviceRecords,
        "self-audit.kernel.records",
        "The device's own records",
        |own| timed(own, |clock| Ok(clock.by_records()), 1),
    );
    let Some(smallest) = smallest.map(SizedKernel::parameters) else { return records.build() };
    let [gate, record] = ["self-audit.kernel.gate", "self-audit.kernel.records"];
    let formula = Formula::of("gate − (smallest − record)", [("gate", gate), ("smallest", gate), ("record", record)]);
    let formula = formula.from_row("smallest", &smallest).from_row("record", &smallest);
    let label = "Behind the gate, less the device's pause";
    records.derived("self-audit.kernel.unpaused", label, Unit::Seconds, formula).build()
}

fn group(own: SizedKernel) -> GroupBuilder<Rc<Prepared>> {
    Group::of("Kernels under five stopwatches", [("kernel", String::from(own).into())])
        .setup(move |device| Prepared::new(device, own).map(Rc::new))
}

/// A kernel with its tensors on a device.
struct Prepared {
    stream: Stream,
    kernel: Kernel,
    own: SizedKernel,
    tensors: Vec<Tensor<f32>>,
}

impl Prepared {
    /// Loads it and launches it once.
    fn new(device: &Device, own: SizedKernel) -> Result<Self> {
        let kernel = device.load(&Code::cuda("kernels.cu", SOURCE))?.kernel(own.name.word())?;
        let (stream, elements) = (device.stream()?, own.elements() as usize);
        let (ones, zeros) = (|| stream.ones([elements]), |count| stream.zeros([count]));
        let tensors = match own.name {
            Name::Saxpy | Name::Transpose => vec![ones()?, zeros(elements)?],
            Name::Sum => vec![ones()?, zeros(1)?],
            Name::Matmul => vec![ones()?, ones()?, zeros(elements)?],
        };
        let prepared = Self { stream, kernel, own, tensors };
        prepared.launch()?;
        prepared.stream.synchronize()?;
        Ok(prepared)
    }

    fn launch(&self) -> Result<()> {
        let (stream, launch, size) = (&self.stream, self.own.launch(), self.own.size);
        match (self.own.name, &self.tensors[..]) {
            (Name::Saxpy, [x, y]) => self.kernel.launch(stream, launch, (0.5_f32, x, y, size)),
            (_, [x, y]) => self.kernel.launch(stream, launch, (x, y, size)),
            (_, [a, b, c]) => self.kernel.launch(stream, launch, (a, b, c, size)),
            _ => Ok(()),
        }
    }
}

/// A clock of its stream, and what is timed by it: so many launches.
fn timed(
    own: &Rc<Prepared>,
    by: fn(DeviceClock) -> Result<DeviceClock>,
    launches: usize,
) -> Result<(DeviceClock, impl FnMut() -> Result<()> + use<>)> {
    let (clock, own) = (by(DeviceClock::new(&own.stream)?)?, Rc::clone(own));
    Ok((clock, move || (0..launches).try_for_each(|_| own.launch())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_read_as_it_is_written_and_refused_where_it_has_no_meaning() {
        let read = |text: &str| SizedKernel::try_from(text.to_owned());
        for own in SizedKernel::all() {
            assert_eq!(read(&String::from(own)), Ok(own));
        }
        for (text, part) in [
            ("gemm 64", "expected one of saxpy, sum, transpose, matmul"),
            ("saxpy 0", "expected one of"),
            ("sum 4294967295", "more than 1073741824 elements"),
            ("transpose 65536", "more than 1073741824 elements"),
            ("matmul 24", "a multiple of 16"),
        ] {
            assert!(read(text).is_err_and(|why| why.contains(part)), "{text}");
        }
    }

    #[test]
    fn the_source_has_each_kernel() {
        for (name, _) in SIZES {
            assert!(SOURCE.contains(&format!("void {}(", name.word())));
        }
    }
}
