//! How a command ends: what is said of an error, and the exit code.
//!
//! It is 2 where the user asked for what there is not, or for what cannot be done, and nothing was done; 1 where something
//! failed on the way.

use std::process::ExitCode;

use rustix::io::Errno;

use super::{device, output};
use crate::error::{BookError, DeviceError, FileError, explained};
use crate::files::has_made_any;
use crate::results::nearest;

/// How a command ended, as its exit code.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// All is well.
    Well = 0,
    /// Something failed on the way; what did not is there.
    Failed = 1,
    /// What the user gave is wrong; nothing was done.
    Refused = 2,
    /// The user stopped it: 128 + SIGINT, as shells have it.
    Interrupted = 130,
}

/// Says why a command failed, where no other process did.
pub(super) fn failed(error: &anyhow::Error) -> End {
    if let Some(AlreadyReported(end)) = error.downcast_ref() {
        return *end;
    }
    alert!("error: {}", told(error));
    code_of(error)
}

/// The exit code of how a program ended, which failed if standard output could not be written.
pub(super) fn exit_code(end: End) -> ExitCode {
    match output::failure() {
        Some(error) => {
            alert!("error: standard output: {error}");
            ExitCode::from(if matches!(end, End::Well) { End::Failed } else { end } as u8)
        }
        None => ExitCode::from(end as u8),
    }
}

/// What is wrong; where a device is not there, with the nearest name and what hides GPUs.
pub(super) fn told(error: &anyhow::Error) -> String {
    let near = match error.downcast_ref() {
        Some(DeviceError::NoSuchDevice { name, available, .. }) => {
            let hidden = if name.starts_with("cuda:") { device::hidden() } else { String::new() };
            hidden + &nearest(name, available.iter().map(String::as_str))
        }
        _ => String::new(),
    };
    format!("{}{near}", explained(error))
}

fn code_of(error: &anyhow::Error) -> End {
    let device = error.downcast_ref::<DeviceError>();
    let asked_wrongly = matches!(device, Some(DeviceError::NoSuchDevice { .. }))
        || matches!(error.downcast_ref(), Some(error) if is_a_users_file(error))
        || error.is::<UsageError>()
        || matches!(error.downcast_ref(), Some(error) if is_the_users(error))
        || matches!(error.downcast_ref(), Some(error) if is_of_the_place(error));
    // Of a command that makes several things, the first may be there.
    if asked_wrongly && !has_made_any() { End::Refused } else { End::Failed }
}

/// Whether the course, or the place that was named for the book, is wrong.
fn is_the_users(error: &BookError) -> bool {
    match error {
        BookError::Io { cause, .. } => is_of_the_place(cause),
        BookError::File(error) => is_a_users_file(error),
        BookError::NoRuns | BookError::Busy { .. } | BookError::Build { .. } => false,
        _ => true,
    }
}

/// Whether a file of the user's is wrong, or its name; a disk that is full, or a system that has no more to give, is no
/// fault of the command.
fn is_a_users_file(error: &FileError) -> bool {
    use std::io::ErrorKind::{BrokenPipe, OutOfMemory, QuotaExceeded, StorageFull};
    const OF_THE_SYSTEM: [Errno; 5] = [Errno::AGAIN, Errno::IO, Errno::MFILE, Errno::NFILE, Errno::NOLCK];
    match error {
        FileError::Io { cause, .. } => {
            let is_of_the_system = |errno: &Errno| cause.raw_os_error() == Some(errno.raw_os_error());
            let is_without = matches!(cause.kind(), BrokenPipe | OutOfMemory | QuotaExceeded | StorageFull);
            !is_without && !OF_THE_SYSTEM.iter().any(is_of_the_system)
        }
        FileError::Unwritten { .. } => false,
        FileError::Invalid { .. } | FileError::Version { .. } => true,
    }
}

/// Whether nothing can be put where the user said.
fn is_of_the_place(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as Kind;
    const OF_A_NAME: [Kind; 5] =
        [Kind::AlreadyExists, Kind::InvalidFilename, Kind::IsADirectory, Kind::NotADirectory, Kind::NotFound];
    OF_A_NAME.contains(&error.kind()) || matches!(error.kind(), Kind::PermissionDenied | Kind::ReadOnlyFilesystem)
}

/// What another process of this program has said already, and how it ended.
#[derive(Debug, thiserror::Error)]
#[error("a process of this program failed")]
pub(super) struct AlreadyReported(pub(super) End);

/// A wrong argument that clap could not know to be wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(pub(super) String);
