//! The causes for which a device is idle, in words, and what can be done about each.

use super::super::class::{Activity, Class};
use super::super::evidence::{CallJudgement, Cause};
use super::super::recording::RecordedCall;

/// Why a device had nothing to do.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum IdleCause {
    /// The host had waited for the device, and launched the next work only then.
    Wait,
    /// The host was blocked by its own copy.
    Copy,
    /// The driver loaded code.
    Load,
    /// Memory was allocated, freed or page-locked.
    Allocate,
    /// A call of the driver took its time.
    Call,
    /// The host launches no faster.
    Launch,
    /// The device pauses between two pieces of work, whatever the host does.
    Pause,
    /// The program waited for its data loader.
    Loader,
    /// It slept.
    Sleep,
    /// It waited for input or output.
    InputOutput,
    /// It waited for a lock, a queue or its other threads.
    Lock,
    /// Another thread held the interpreter's lock.
    InterpreterLock,
    /// Other threads or programs had the processor.
    Descheduled,
    /// The quota of processor time was used up.
    Throttled,
    /// Pages of memory were touched for the first time.
    PageFault,
    /// It waited for another rank of the job.
    Rank,
    /// The audit held the program up.
    Audit,
    /// The program ran its own code.
    Own,
    /// It is not known.
    Unknown,
}

impl IdleCause {
    /// In words, of the program.
    pub fn words(self) -> &'static str {
        match self {
            Self::Wait => "waits for the device",
            Self::Copy => "is blocked by its own copy",
            Self::Load => "loads code",
            Self::Allocate => "allocates, frees or page-locks memory",
            Self::Call => "is in a call of the driver",
            Self::Launch => "launches no faster",
            Self::Pause => "pauses between two pieces of work by itself",
            Self::Loader => "waits for its data loader",
            Self::Sleep => "sleeps",
            Self::InputOutput => "waits for input or output",
            Self::Lock => "waits for a lock, a queue or other threads of its own",
            Self::InterpreterLock => "holds the interpreter's lock in another thread",
            Self::Descheduled => "is kept from the processor by others",
            Self::Throttled => "has used up its quota of processor time",
            Self::PageFault => "touches new pages of memory",
            Self::Rank => "arrives last at what all ranks do together",
            Self::Audit => "holds the program up, to look where it is",
            Self::Own => "runs its own code",
            Self::Unknown => "does what is not known",
        }
    }

    /// What can be done.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Wait => {
                "read results later or less often, and keep decisions on the device, so that launches go ahead of it"
            }
            Self::Copy => "copy from and to page-locked memory without blocking",
            Self::Load => "load code before the first iteration: run each shape once, or set CUDA_MODULE_LOADING=EAGER",
            Self::Allocate => "allocate and page-lock memory once, and reuse it",
            Self::Call => "make such calls less often, or before the first iteration",
            Self::Launch => {
                "launch fewer, larger kernels: a larger batch, fused operations (torch.compile), or a CUDA graph"
            }
            Self::Pause => "let there be fewer, larger kernels, or launch them by a CUDA graph",
            Self::Loader => "load ahead: more workers, a larger prefetch_factor, pin_memory, or less work per sample",
            Self::Sleep => "do not sleep between launches",
            Self::InputOutput => "read and write in another thread, ahead of when it is needed",
            Self::Lock => "fill the queue ahead, hold the lock for less time, or leave those threads less to do",
            Self::InterpreterLock => "move that work to another process",
            Self::Descheduled => {
                "leave the program a processor of its own: fewer threads, fewer neighbours, or pin them"
            }
            Self::Throttled => "raise the quota of the container, or start fewer threads",
            Self::PageFault => "reuse buffers: memory that is new in each iteration is touched page by page",
            Self::Rank => {
                "give all ranks as much to do in each iteration; where one is late, look at what it does at its lines"
            }
            Self::Audit => "without the audit it is not there: mend the other lines",
            Self::Own => "do this in another process or thread, ahead of the device, or less of it",
            Self::Unknown => "audit for longer, so that more samples fall into it",
        }
    }

    /// Of what a call does with its time. One that does not return before work has ended waits for the device, also where
    /// that had ended before.
    pub(crate) fn of_call(call: &RecordedCall, judgement: &CallJudgement) -> Self {
        match call.class.cost() {
            _ if judgement.cause == Cause::Wait || call.class.is_explicit() => Self::Wait,
            _ if call.name.contains("Launch") => Self::Launch,
            _ if matches!(call.class, Class::Copy { .. }) && judgement.bound.is_some() => Self::Copy,
            Activity::Loading => Self::Load,
            Activity::Allocating | Activity::PageLocking => Self::Allocate,
            _ => Self::Call,
        }
    }
}
