//! The errors of the library, one enum per concern.
//!
//! Every message says what was wrong, where, and, where there is one, the remedy.

use std::any::Any;
use std::path::PathBuf;

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
    /// A device kernel does not compile.
    #[error("kernels/{file} does not compile for {architecture}:\n{log}")]
    KernelBuild {
        /// The file's name.
        file: &'static str,
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
        "the budget of {seconds} s was spent before a whole round of samples had been kept: take less work a case, fewer warm-up rounds, or a larger budget"
    )]
    OverBudget {
        /// The budget.
        seconds: f64,
    },
    /// The user asked to stop before a round had been kept.
    #[error("interrupted before a whole round of samples had been kept")]
    Interrupted,
}

/// What can be wrong with a file that a person or another program wrote: a suite, a document, results.
///
/// ```
/// # #[cfg(feature = "report")]
/// # {
/// use syncscope::audit::AuditReport;
/// use syncscope::error::FileError;
///
/// // A message names the file, and the line and column where they are known.
/// let error = AuditReport::parse("{\n  nothing\n}", "audit.json").unwrap_err();
/// assert!(matches!(error, FileError::Invalid { line: 2, .. }) && error.to_string().starts_with("audit.json"));
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It cannot be read or written.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// What was made cannot be put there, though the place could be claimed.
    #[error("{}: {cause}", path.display())]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// Something in it is wrong.
    #[error("{origin}{}: {message}{hint}", place(*line, *column))]
    Invalid {
        /// The file's name.
        origin: String,
        /// The line, from 1; 0 where the file as a whole is meant.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What was found and what was expected.
        message: String,
        /// What may have been meant, to be read behind the message; empty where nothing is known.
        hint: String,
    },
    /// It has a schema version that this program does not read.
    #[error(
        "{origin}: schema version {found} is not one that this program reads ({supported}); use the syncscope that wrote it, or a newer one"
    )]
    Version {
        /// The file's name.
        origin: String,
        /// The file's version.
        found: String,
        /// The versions that are read.
        supported: String,
    },
}

impl FileError {
    /// What was made cannot be put at `path`.
    #[cfg(feature = "report")]
    pub(crate) fn unwritten(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        |cause| Self::Unwritten { path: path.to_owned(), cause }
    }

    /// Something is wrong with the file as a whole.
    #[cfg(feature = "report")]
    pub(crate) fn whole(origin: impl Into<String>, message: impl Into<String>) -> Self {
        let (origin, message, hint) = (origin.into(), message.into(), String::new());
        Self::Invalid { origin, line: 0, column: 0, message, hint }
    }

    /// The file is not JSON of the right shape, or was cut short.
    #[cfg(feature = "report")]
    pub(crate) fn json(origin: impl Into<String>, what: &str, error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let message = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
        let (message, hint) = (format!("not {what}: {}", in_plain_words(message)), String::new());
        // The parser counts what it has read of a line, and that of the next line may be nothing yet.
        Self::Invalid { origin: origin.into(), line, column: column.max(1), message, hint }
    }
}

/// A parser's message with words of a reader in the place of what it calls values and the types of this program.
#[cfg(feature = "report")]
pub(crate) fn in_plain_words(message: &str) -> String {
    const EXPECTED: &str = ", expected ";
    const TOO_LARGE: &str = "JSON number out of range";
    if let Some(way) = message.strip_suffix(TOO_LARGE) {
        return format!("{way}a number that is too large");
    }
    let Some((found, expected)) = message.split_once(EXPECTED) else { return message.to_owned() };
    let plain = match expected {
        "a boolean" => "true or false",
        "a string" => "a text",
        "a sequence" => "a list",
        "f32" | "f64" => "a number",
        "a nonzero u8" => "a whole number from 1 to 255",
        "a nonzero u32" => "a whole number from 1 to 4294967295",
        "a nonzero u64" | "a nonzero usize" => "a whole number above 0",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number that is not negative",
        "i32" | "i64" => "a whole number",
        structure if structure == "a map" || structure.starts_with("struct ") => "a mapping",
        other => other,
    };
    let way = ["invalid type: ", "invalid value: "].iter().find_map(|kind| found.split_once(kind));
    let found = way.map_or_else(|| found.to_owned(), |(way, what)| format!("{way}found {}", found_in_words(what)));
    format!("{found}{EXPECTED}{plain}")
}

/// What a parser found, in words.
#[cfg(feature = "report")]
fn found_in_words(what: &str) -> String {
    /// The longest number that is written out.
    const MOST_DIGITS: usize = 20;
    match what {
        "unit value" | "null" => "nothing".to_owned(),
        "sequence" => "a list".to_owned(),
        "map" => "a mapping".to_owned(),
        _ => match what.split_once('`').and_then(|(kind, number)| Some((kind, number.strip_suffix('`')?))) {
            Some(("integer " | "floating point ", number)) => match number.parse::<f64>() {
                Ok(value) if number.len() > MOST_DIGITS => format!("the number {value:e}"),
                _ => format!("the number {number}"),
            },
            Some(("boolean ", value)) => format!("`{value}`"),
            _ => what.strip_prefix("string ").map_or_else(|| what.to_owned(), |text| format!("the text {text}")),
        },
    }
}

fn place(line: usize, column: usize) -> String {
    if line == 0 { String::new() } else { format!(":{line}:{column}") }
}

/// What can go wrong while a book is made.
#[cfg(feature = "report")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BookError {
    /// There is nothing to publish.
    #[error("a book needs the results of at least one run")]
    NoRuns,
    /// A file of the book's project is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of the course is missing or is not text.
    #[error("there is no text file `{name}`, which the book needs")]
    Missing {
        /// The file, of the program's own course by its name in the source tree.
        name: String,
    },
    /// A file of a course's folder is none that a book is made of: a link that leads out of it, a device.
    #[error("{}: {reason}", path.display())]
    Outside {
        /// The file or folder.
        path: PathBuf,
        /// Why it is refused.
        reason: String,
    },
    /// What stands in the place of the book was not made by this program.
    #[error("{}: this was not made by report, so it is not replaced; move it away or give another folder by --out", path.display())]
    NotOurs {
        /// The folder or file.
        path: PathBuf,
    },
    /// Another process makes a book in the same place.
    #[error("{}: another report is writing there; wait for it to end", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A course is to be written where something is.
    #[error("{}: the folder is not empty; name one that is, or one that is not there", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// What is to be a notebook is none.
    #[error("{name}: {message}")]
    Notebook {
        /// The notebook's file.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// A template failed.
    #[error("{name}: {message}")]
    Template {
        /// The template.
        name: String,
        /// The template engine's message, with an excerpt of the template.
        message: String,
    },
    /// A page is larger than one may be.
    #[error(
        "the page that {template} makes would be longer than 32 MB, which none may be; its longest text has {longest}: shorten it in the results, the audit or the course"
    )]
    TooLarge {
        /// The template.
        template: String,
        /// How long the longest text of the page is, and how it begins.
        longest: String,
    },
    /// A plot could not be drawn.
    #[error("plot `{id}`: {cause}")]
    Plot {
        /// The plot's identifier.
        id: String,
        /// Why.
        cause: PlotError,
    },
    /// The data of a plot could not be written.
    #[error("the data of a plot: {message}")]
    Data {
        /// What went wrong.
        message: String,
    },
    /// A file or folder of the book cannot be read or written.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// mdBook did not build the site.
    #[error("mdBook: {message}")]
    Build {
        /// Its message and the causes.
        message: String,
    },
}

/// Why a plot could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("the plot could not be drawn: {message}")]
pub struct PlotError {
    /// What the drawing library reported.
    pub message: String,
}

/// An error with its causes, each said once: a message may hold its cause's already.
#[cfg(feature = "report")]
pub(crate) fn explained(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            text = if text.is_empty() { cause } else { format!("{text}: {cause}") };
        }
    }
    text
}

/// What a caught panic said.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(all(test, feature = "report"))]
mod tests {
    use super::*;

    #[test]
    fn what_a_parser_found_and_expected_is_said_in_words() {
        for (message, plain) in [
            ("a.b: invalid type: sequence, expected a string", "a.b: found a list, expected a text"),
            ("invalid type: unit value, expected a map", "found nothing, expected a mapping"),
            (
                "invalid type: string \"x\", expected u64",
                "found the text \"x\", expected a whole number that is not negative",
            ),
            (
                "invalid value: integer `70000`, expected u16",
                "found the number 70000, expected a whole number from 0 to 65535",
            ),
            ("a: JSON number out of range", "a: a number that is too large"),
            ("unknown field `x`, expected one of `a`, `b`", "unknown field `x`, expected one of `a`, `b`"),
        ] {
            assert_eq!(in_plain_words(message), plain);
        }
        let huge = format!("invalid type: floating point `1{}.0`, expected usize", "0".repeat(300));
        assert_eq!(in_plain_words(&huge), "found the number 1e300, expected a whole number that is not negative");
    }

    #[test]
    fn a_cause_is_said_once_wherever_the_message_holds_it() {
        let io = || std::io::Error::other("the disk is full");
        let file = FileError::Io { path: "a.yaml".into(), cause: io() };
        // Whoever prints the chain of causes says it once, too.
        assert_eq!(format!("{:#}", anyhow::Error::new(file)), "a.yaml: the disk is full");
        let case = MeasureError::Case { case: "copy".to_owned(), cause: Box::new(io()) };
        assert_eq!(format!("{:#}", anyhow::Error::new(case)), "case `copy`: the disk is full");
        let held = anyhow::Error::new(io()).context("the disk is full, so nothing is written").context("b.yaml");
        assert_eq!(explained(&held), "b.yaml: the disk is full, so nothing is written");
        let apart = anyhow::Error::new(io()).context("b.yaml");
        assert_eq!(explained(&apart), "b.yaml: the disk is full");
    }
}
