//! Files with audits, traces and budgets, read for the analysis, which reads none itself.

use std::path::Path;

use syncscope_audit::{
    AuditReport, Budget, MAX_AUDIT_BYTES, MAX_SARIF_BYTES, MAX_TRACE_BYTES, ProgramRecording, is_sarif, trace_of_bytes,
};

use crate::error::FileError;
use crate::files::{read_bytes, read_text};
use crate::yaml;

/// The text of a file that may hold an audit.
pub(crate) fn text(path: &Path) -> Result<String, FileError> {
    read_text(path, MAX_AUDIT_BYTES).map_err(|cause| FileError::Io { path: path.to_owned(), cause })
}

/// An audit that `--json` kept.
pub(crate) fn audit(path: &Path) -> Result<AuditReport, FileError> {
    AuditReport::parse(&text(path)?, &path.display().to_string())
}

/// A trace of another program, which may be packed.
pub(crate) fn trace(path: &Path) -> Result<ProgramRecording, FileError> {
    let bytes = read_bytes(path, MAX_TRACE_BYTES).map_err(|cause| FileError::Io { path: path.to_owned(), cause })?;
    trace_of_bytes(bytes, &path.display().to_string())
}

/// A budget.
pub(crate) fn budget(path: &Path) -> Result<Budget, FileError> {
    let origin = path.display().to_string();
    let budget: Budget = yaml::parse(&yaml::read(path)?, &origin)?;
    budget.checked().map_err(|message| FileError::whole(origin, message))
}

/// Whether a file is SARIF that this program wrote.
pub(crate) fn is_own_sarif(path: &Path) -> bool {
    read_text(path, MAX_SARIF_BYTES).is_ok_and(|text| is_sarif(&text))
}
