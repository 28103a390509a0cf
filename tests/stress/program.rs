//! A program: steps of several host threads on the streams of two devices, whose results are known beforehand.
//!
//! The order of the steps is that of a sequential execution, which the oracle follows. Threads run their steps at the same
//! time; a step waits on the host only for steps that it depends on (`after`), and its stream waits by events only for
//! steps on other streams whose memory it touches (`waits`). All else may happen in any order.

use std::fmt;

use syncscope::device::DType;

/// The number of a step, which also names what the step made: a stream, a tensor, a graph, a gate, or a host buffer.
pub(crate) type Id = usize;

/// Host threads.
pub(crate) const THREADS: usize = 3;

/// Devices; the two may be one piece of hardware, opened twice.
pub(crate) const DEVICES: usize = 2;

/// Steps in the order of a sequential execution.
#[derive(Clone, Default)]
pub(crate) struct Program {
    pub(crate) steps: Vec<Step>,
}

/// What one thread does at one time.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) thread: usize,
    /// Must have returned before this one begins.
    pub(crate) after: Vec<Id>,
    /// This step's stream first waits for their events.
    pub(crate) waits: Vec<Id>,
    /// Where it enqueues.
    pub(crate) stream: Option<Id>,
    /// Whether an event is recorded behind it.
    pub(crate) records: bool,
    pub(crate) action: Action,
}

/// What a step does.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    NewStream {
        device: usize,
    },
    /// A stream that another library uses, too.
    SharedStream {
        device: usize,
        how: How,
    },
    /// Memory of the other library, filled by it.
    TheirUpload {
        values: Values,
    },
    /// Computed here, copied by the other library, and taken back.
    TheirCopy {
        x: Id,
        scale: i64,
        shift: i64,
    },
    /// Computed here, and read by the other library.
    TheirRead {
        x: Id,
        expected: Values,
    },
    Full {
        dtype: DType,
        len: usize,
        value: i64,
    },
    Upload {
        dtype: DType,
        values: Values,
    },
    Affine {
        x: Id,
        scale: i64,
        shift: i64,
    },
    AffineInPlace {
        x: Id,
        scale: i64,
        shift: i64,
    },
    Elementwise {
        kind: Kind,
        x: Id,
        y: Id,
    },
    Matmul {
        x: Id,
        y: Id,
        sizes: [usize; 3],
    },
    Greater {
        x: Id,
        threshold: i64,
    },
    Sum {
        x: Id,
    },
    Gather {
        x: Id,
        width: usize,
        rows: Vec<usize>,
        by_host: bool,
    },
    Stack {
        x: Id,
        y: Id,
    },
    Assign {
        target: Id,
        source: Id,
    },
    View {
        x: Id,
        width: usize,
        row: usize,
    },
    Share {
        x: Id,
    },
    Spin {
        microseconds: u64,
    },
    /// Drops the handle that a step made.
    Drop {
        of: Id,
    },
    Read {
        x: Id,
        expected: Values,
    },
    Item {
        x: Id,
        at: usize,
        expected: i64,
    },
    Any {
        x: Id,
        expected: bool,
    },
    Nonzero {
        x: Id,
        expected: Values,
    },
    NewBuffer {
        device: usize,
        len: usize,
        pageable: bool,
    },
    CopyTo {
        buffer: Id,
        x: Id,
    },
    CopyFrom {
        buffer: Id,
        x: Id,
    },
    ReadBuffer {
        buffer: Id,
        expected: Values,
    },
    WriteBuffer {
        buffer: Id,
        values: Values,
    },
    Synchronize,
    SynchronizeDevice {
        device: usize,
    },
    SynchronizeEvent {
        of: Id,
    },
    /// Makes a closed gate and has the stream wait for it.
    Hold,
    /// Has the stream wait for a gate of another step, too.
    HoldBy {
        gate: Id,
    },
    Open {
        gate: Id,
    },
    Capture {
        parts: Vec<Part>,
    },
    Launch {
        graph: Id,
    },
    /// Fails a stream of another opening of the device, and looks for the error.
    FailedStream {
        device: usize,
    },
    /// Asks a stream, and an event where there is one, whether they are complete.
    Query {
        of: Option<Id>,
    },
    Trim {
        device: usize,
    },
    /// Records a device while other threads use it, and looks for the own work in the timeline.
    Record {
        device: usize,
        launches: usize,
    },
    /// Has the n-th call of a kind fail, on an opening of its own.
    Inject {
        device: usize,
        what: usize,
        nth: u64,
    },
    /// Copies from a buffer on one thread while another reads it.
    Together {
        buffer: Id,
        x: Id,
        expected: Values,
    },
    /// Fills a queue behind a gate until a launch waits for room.
    Fill {
        device: usize,
    },
    /// Copies much from or to pageable memory while gates hold the stream, which another thread goes on to use.
    Large {
        device: usize,
        how: usize,
    },
    /// Uses one tensor on many streams, and drops it and them behind gates.
    Spread {
        device: usize,
        streams: usize,
    },
    /// Drops a stream that fails, and goes on with tensors that it made and used.
    Outlive {
        device: usize,
        how: usize,
    },
    /// As `Drop`, but no drop runs.
    Forget {
        of: Id,
    },
    /// Leaves a function that has a stream held, by an error or a panic.
    Leave {
        device: usize,
        how: usize,
    },
}

/// How a stream comes to be used by two libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Another's, wrapped.
    Wrapped,
    /// Another's, by its handle alone.
    Raw,
    /// One's own, lent.
    Lent,
}

/// An elementwise operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Add,
    Subtract,
    Multiply,
}

/// An operation in a graph.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    InPlace {
        x: Id,
        scale: i64,
        shift: i64,
    },
    /// Through a tensor that only the graph keeps.
    Through {
        target: Id,
        source: Id,
        scale: i64,
        shift: i64,
    },
}

/// Elements, of which a failure shows the first ones.
#[derive(Clone, PartialEq)]
pub(crate) struct Values(pub(crate) Vec<i64>);

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first: Vec<i64> = self.0.iter().take(4).copied().collect();
        write!(f, "{first:?}")?;
        if self.0.len() > first.len() { write!(f, "…{}", self.0.len()) } else { Ok(()) }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, step) in self.steps.iter().enumerate() {
            write!(f, "\n  {id:3} thread {}: {}", step.thread, step)?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.action)?;
        if let Some(stream) = self.stream {
            write!(f, " on {stream}")?;
        }
        if !self.waits.is_empty() {
            write!(f, ", waits for the events of {:?}", self.waits)?;
        }
        Ok(())
    }
}

impl Action {
    /// Its name, to count it by.
    pub(crate) fn name(&self) -> String {
        let text = format!("{self:?}");
        text.split([' ', '{']).next().unwrap_or_default().to_owned()
    }
}
