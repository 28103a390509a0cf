//! cudarc: its streams, memory and launches, with its event tracking on and off.

#[path = "../../../src/listings/cudarc_calls.rs"]
mod calls;

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream};
use cudarc::nvrtc::{Ptx, compile_ptx};
use syncscope_peer::syncscope::device::{Device, Stream};
use syncscope_peer::syncscope::measure::Case;
use syncscope_peer::{Calls, MetricSpec, Parameter, Result, Rows, System, ordinal, pinned};

const ELEMENTS: usize = 1 << 16;

const SOURCE: &str = r#"extern "C" __global__ void scale(float* x, float by, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}"#;

fn main() -> ExitCode {
    syncscope_peer::main::<Cudarc>()
}

struct Cudarc {
    device: Device,
    ordinal: usize,
    ptx: Ptx,
}

/// What a call is made on: a context of its own, its streams, and memory that the first of them made.
struct Fixture {
    context: Arc<CudaContext>,
    ordinal: usize,
    /// The one that made the memory, and the one that the call is on: the same where there is one alone.
    first: Arc<CudaStream>,
    stream: Arc<CudaStream>,
    /// Both as the library has them.
    held_first: Stream,
    held: Stream,
    /// Those between them, which are there and idle.
    _others: Vec<Arc<CudaStream>>,
    ptx: Ptx,
    module: Arc<CudaModule>,
    scale: CudaFunction,
    x: RefCell<CudaSlice<f32>>,
    y: RefCell<CudaSlice<f32>>,
}

impl System for Cudarc {
    const NAME: &'static str = "cudarc";
    type Fixture = Fixture;
    const CALLS: &'static [Calls<Fixture>] = &[calls::CALLS];
    const ROWS: &'static [Rows<Self>] = &[&[("crate-calls.same.a", same), ("crate-calls.same.b", same)]];

    fn versions() -> Vec<(String, String)> {
        vec![("cudarc".to_owned(), pinned(include_str!("../../Cargo.toml"), "cudarc"))]
    }

    fn open(device: &Device) -> Result<Self> {
        Ok(Self { device: device.clone(), ordinal: ordinal(device)?, ptx: compile_ptx(SOURCE)? })
    }

    fn fixture(self: &Rc<Self>, row: &MetricSpec) -> Result<Fixture> {
        let context = CudaContext::new(self.ordinal)?;
        if row.parameters.get("tracking") == Some(&Parameter::from("off")) {
            // Safety: what is made from now on is used on one stream at a time, with a synchronization in between.
            unsafe { context.disable_event_tracking() };
        }
        let count = match row.parameters.get("streams") {
            // Without a stream that was made, cudarc records no events, whatever its tracking says.
            Some(Parameter::Integer(1)) => 0,
            Some(Parameter::Integer(count)) => usize::try_from(*count)?,
            _ => 1,
        };
        let mut streams = (0..count).map(|_| context.new_stream()).collect::<std::result::Result<Vec<_>, _>>()?;
        let first = if streams.is_empty() { context.default_stream() } else { streams.remove(0) };
        let stream = streams.pop().unwrap_or_else(|| Arc::clone(&first));
        let module = context.load_module(self.ptx.clone())?;
        let held = self.device.wrap(&stream)?;
        Ok(Fixture {
            held_first: if Arc::ptr_eq(&first, &stream) { held.clone() } else { self.device.wrap(&first)? },
            held,
            x: RefCell::new(first.clone_htod(&vec![1.0; ELEMENTS])?),
            y: RefCell::new(first.clone_htod(&vec![1.0; ELEMENTS])?),
            scale: module.load_function("scale")?,
            ordinal: self.ordinal,
            ptx: self.ptx.clone(),
            _others: streams,
            module,
            context,
            first,
            stream,
        })
    }
}

/// A call that does not wait, twice.
fn same(system: &Rc<Cudarc>, row: &MetricSpec) -> Result<Case<'static>> {
    let fixture = system.fixture(row)?;
    Ok(Case::single(row.title(), move || fixture.stream.memset_zeros(&mut *fixture.y.borrow_mut())))
}
