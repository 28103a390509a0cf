//! The errors of the library, one enum per concern.
//!
//! Every message says what was wrong, where, and, where there is one, the remedy.

use std::any::Any;

/// What can go wrong between the host and a device.
///
/// Errors are `Clone`: a failure in enqueued work is reported by every later call on its stream.
///
/// ```
/// use syncscope::device::Device;
/// use syncscope::error::DeviceError;
///
/// match Device::open("cpu:99").map(drop) {
///     Err(DeviceError::NoSuchDevice { name, available, .. }) => assert!(!available.contains(&name)),
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// No device has this name.
    #[error("there is no device `{name}`; there are: {}{}", available.join(", "), note.as_deref().map(|n| format!(" ({n})")).unwrap_or_default())]
    NoSuchDevice {
        /// The name that was asked for.
        name: String,
        /// The names of the devices there are.
        available: Vec<String>,
        /// Why an engine offers none, where that explains the miss.
        note: Option<String>,
    },
    /// An engine cannot be used on this machine.
    #[error("{engine} cannot be used here: {reason}")]
    EngineUnavailable {
        /// The engine, as in a device name: `cuda`.
        engine: &'static str,
        /// What is missing, and where it was looked for.
        reason: String,
    },
    /// The device has no room for an allocation.
    #[error("{device} has no room for {requested} bytes{}", free.map(|f| format!(" ({f} bytes are free)")).unwrap_or_default())]
    OutOfMemory {
        /// The device's name.
        device: String,
        /// The size of the allocation, in bytes.
        requested: usize,
        /// What was free, in bytes, where the device can tell.
        free: Option<usize>,
    },
    /// The operation has no meaning on this engine.
    #[error("{what} has no meaning on {device}: {reason}")]
    NotApplicable {
        /// What was asked for.
        what: String,
        /// The device's name.
        device: String,
        /// Why it has none.
        reason: String,
    },
    /// Enqueued work failed. The stream stays failed: what it computed since cannot be trusted.
    #[error("work enqueued on {device} failed in `{operation}`: {reason}")]
    WorkFailed {
        /// The device's name.
        device: String,
        /// The operation that failed.
        operation: String,
        /// What it reported.
        reason: String,
    },
    /// A call into a driver or library failed.
    #[error("{call} failed on {device}: {reason}")]
    CallFailed {
        /// The device's name.
        device: String,
        /// The call, by its own name: `cuLaunchKernel`.
        call: &'static str,
        /// Its code and message.
        reason: String,
    },
    /// A kernel does not compile.
    #[error("{file} does not compile for {architecture}:\n{log}")]
    KernelBuild {
        /// The file's name.
        file: String,
        /// The target architecture: `sm_90`.
        architecture: String,
        /// The compiler's log.
        log: String,
    },
    /// Two objects of different devices met in one call.
    #[error("{what} belongs to another device than {device}")]
    ForeignObject {
        /// The object.
        what: &'static str,
        /// The device of the call.
        device: String,
    },
    /// The time between two events was asked for before both had completed or without timing.
    #[error("no time lies between these events: {reason}")]
    EventNotReady {
        /// Which condition does not hold.
        reason: &'static str,
    },
    /// A call that cannot be a part of a graph, on a stream whose work is being captured.
    #[error("`{call}` while the stream's work is captured: a graph holds operations on the device alone")]
    Capturing {
        /// The call.
        call: &'static str,
    },
    /// A recording of the device was asked for while another is in progress: two would be one mix.
    #[error("{device} is being recorded already: end that recording first")]
    AlreadyRecording {
        /// The device's name.
        device: String,
    },
    /// The arguments of an operation do not fit together.
    #[error("{operation}: {reason}")]
    InvalidArgument {
        /// The operation.
        operation: &'static str,
        /// What does not fit.
        reason: String,
    },
}

impl DeviceError {
    /// That `what` has no meaning on a device.
    pub fn not_applicable(what: impl Into<String>, device: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::NotApplicable { what: what.into(), device: device.into(), reason: reason.into() }
    }

    /// That a call of the system or of a driver failed on a device.
    pub fn call_failed(device: impl Into<String>, call: &'static str, reason: impl Into<String>) -> Self {
        Self::CallFailed { device: device.into(), call, reason: reason.into() }
    }

    /// That an operation was given what does not fit.
    pub fn invalid(operation: &'static str, reason: impl Into<String>) -> Self {
        Self::InvalidArgument { operation, reason: reason.into() }
    }
}

/// Why a case failed: the error of what it measures, of any type.
///
/// ```
/// use syncscope::error::CaseError;
///
/// // Any error is one, and a text, too.
/// fn read() -> Result<u64, CaseError> {
///     let text = std::str::from_utf8(b"12")?;
///     text.parse().map_err(|_| "no number".into())
/// }
/// assert_eq!(read().ok(), Some(12));
/// ```
pub type CaseError = Box<dyn std::error::Error + Send + Sync>;

/// What can go wrong while cases are sampled.
///
/// ```
/// use syncscope::error::MeasureError;
/// use syncscope::measure::Samples;
///
/// let error = Samples::new("copy", vec![1e-6, f64::NAN]).unwrap_err();
/// assert!(matches!(error, MeasureError::NotFinite { index: 1, .. }));
/// assert!(error.to_string().contains("`copy`"));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The sampling plan cannot end or cannot give an estimate.
    #[error("sampling plan: {0}")]
    Plan(String),
    /// There are too few samples for the estimate.
    #[error("an estimate of `{case}` needs at least {needed} samples, there are {got}")]
    TooFewSamples {
        /// The case's name.
        case: String,
        /// The least number of samples.
        needed: usize,
        /// What there is.
        got: usize,
    },
    /// A case failed while it ran.
    #[error("case `{case}`: {cause}")]
    Case {
        /// The case's name.
        case: String,
        /// Why it failed.
        cause: CaseError,
    },
    /// A sample is no finite number.
    #[error("sample {index} of `{case}` is {value}, which is no finite number: the case must return a measured value")]
    NotFinite {
        /// The case's name.
        case: String,
        /// The place of the sample, from 0.
        index: usize,
        /// What it is.
        value: f64,
    },
    /// Sample sets that are to be subtracted are not of the same rounds.
    #[error("`{a}` has {len_a} samples and `{b}` has {len_b}: only sets of one sampling can be subtracted")]
    Unpaired {
        /// The one case.
        a: String,
        /// The number of its samples.
        len_a: usize,
        /// The other case.
        b: String,
        /// The number of its samples.
        len_b: usize,
    },
    /// A sampler's budget was spent before a round had been kept.
    #[error(
        "the budget of {} was spent before a whole round of samples had been kept: take less work a case, fewer warm-up rounds, or a larger budget",
        syncscope_present::units::Unit::Seconds.format(*.seconds, 3)
    )]
    OverBudget {
        /// The budget.
        seconds: f64,
    },
    /// The user asked to stop before a round had been kept.
    #[error("interrupted before a whole round of samples had been kept")]
    Interrupted,
}

/// What a caught panic said.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}
