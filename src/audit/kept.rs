//! An audit that was kept by `--json`, read again: as a baseline, for a check, or for a chapter of a book. It may be
//! anybody's, so its numbers have to agree with each other.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::places::WaitPlace;
use super::report::{AuditReport, FORMAT, HostShare, ProcessReport};
use syncscope_present::FileError;

/// The most bytes of a file with an audit.
pub const MAX_BYTES: usize = 64 << 20;

/// Whether a text holds an audit, and not results: of what is neither, no.
pub fn is_audit(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Begun {
        format: Option<IgnoredAny>,
        places: Option<IgnoredAny>,
    }
    serde_json::from_str(text).is_ok_and(|begun: Begun| begun.format.is_some() && begun.places.is_some())
}

impl AuditReport {
    /// An audit from its JSON. `origin` names the file in messages.
    ///
    /// # Errors
    /// The text is no audit of this format, or its numbers contradict each other; the message says where.
    pub fn parse(text: &str, origin: &str) -> Result<Self, FileError> {
        let report: Self = serde_json::from_str(text).map_err(|error| FileError::json(origin, "audit", &error))?;
        if report.format != FORMAT {
            let message = format!("the audit has format {}; this program reads {FORMAT}", report.format);
            return Err(FileError::whole(origin, message));
        }
        // What cannot be true of any program.
        let of_places = report.places.iter().find_map(of_place);
        match of_places.or_else(|| report.processes.iter().find_map(of_process)) {
            Some(what) => Err(FileError::whole(origin, format!("it contradicts itself: {what}"))),
            None => Ok(report),
        }
    }
}

fn of_place(place: &WaitPlace) -> Option<String> {
    let is_ordered = place.median_ns <= place.longest_ns && place.longest_ns <= place.total_ns && place.count > 0;
    let is_part = place.steady.is_none_or(|own| own.count <= place.count && own.total_ns <= place.total_ns);
    (!is_ordered || !is_part).then(|| format!("the times of the place `{}` are not those of calls", place.name()))
}

/// The shares of a process's host and of each of its devices add up to its time.
fn of_process(process: &ProcessReport) -> Option<String> {
    let sum = |shares: &[HostShare], from: Option<u64>| {
        shares.iter().try_fold(from?, |sum: u64, share| sum.checked_add(share.ns))
    };
    let wrong = |what: String, sum: Option<u64>| {
        let (number, wall) = (process.process, process.wall_ns);
        (sum != Some(wall)).then(|| format!("the shares of {what} of process {number} do not add up to {wall} ns"))
    };
    wrong("the host".to_owned(), sum(&process.host, Some(0))).or_else(|| {
        process.devices.iter().find_map(|device| {
            let busy = device.kernels_ns.checked_add(device.copies_ns);
            wrong(format!("device {}", device.device), sum(&device.idle, busy))
        })
    })
}
