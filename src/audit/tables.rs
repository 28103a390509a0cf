//! An audit in tables and sentences, for the terminal, a page and the end of a cell of a notebook.

use super::places::{Reason, WaitPlace};
use super::region::Region;
use super::report::{AuditReport, HostShare, ProcessReport};
use crate::clean::line;
use crate::present::{Cell, Column, Page, Role, Show, Table, TableGroup, TableRow, displayed};
use crate::units::{Scale, Unit, counted};

fn time(ns: u64) -> String {
    Unit::Seconds.format(ns as f64 * 1e-9, 3)
}

fn share(part: u64, whole: u64) -> String {
    Scale::PERCENT.fixed(part as f64 / whole.max(1) as f64, 1)
}

impl Reason {
    /// In words, for a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::Wait => "waits for pending work",
            Self::Copy => "blocked by its own copy",
            Self::Load => "loads code",
            Self::Allocate => "allocates or frees",
            Self::PageLock => "page-locks",
            Self::Uncertain => "may have waited",
            Self::Unknown => "long, cause unknown",
        }
    }
}

/// How many calls at how many places lost time for a reason, and how much.
fn lost(report: &AuditReport, reason: Reason) -> (u64, usize, u64) {
    let places: Vec<&WaitPlace> = report.places.iter().filter(|place| place.reason == reason).collect();
    let sum = |of: fn(&WaitPlace) -> u64| places.iter().fold(0, |sum: u64, place| sum.saturating_add(of(place)));
    (sum(|place| place.count), places.len(), sum(|place| place.total_ns))
}

/// What the whole comes to.
pub fn summary(report: &AuditReport) -> String {
    let (count, _, total) = lost(report, Reason::Unknown);
    let unknown = match count {
        0 => String::new(),
        count => format!(" {} took {} for a cause that is not known.", counted(count, "call"), time(total)),
    };
    waits(report) + &unknown
}

fn waits(report: &AuditReport) -> String {
    let (count, places, total) = lost(report, Reason::Wait);
    let wall = report.wall_ns();
    let took = format!("{} at {} took {}", counted(count, "wait"), counted(places as u64, "place"), time(total));
    let (whole, processes) = (time(wall), of_processes(report.processes.len()));
    match (report.processes.len(), count) {
        (0, _) => "No use of CUDA was recorded.".to_owned(),
        _ if wall == 0 => format!("Nothing was recorded of {processes}."),
        // Each thread's waits count.
        _ if total > wall => {
            format!("{took}, more than the {whole} of the whole run, in {processes}: several threads waited at once.")
        }
        (_, 0) => format!("No wait in {whole} of {processes}."),
        _ => format!("{took} of {whole} ({}), in {processes}.", share(total, wall)),
    }
}

/// What the calls of a place lost, and why.
pub(crate) fn lost_at(place: &WaitPlace) -> String {
    let (why, calls) = (place.reason.words(), counted(place.count, "call"));
    let of = if place.operator.is_empty() { String::new() } else { format!(" of {}", place.operator) };
    let (call, total, longest) = (call(place), time(place.total_ns), time(place.longest_ns));
    format!("{call}{of}: {why}; {calls}, {total} in all, the longest {longest}")
}

/// `one process`, `3 processes`.
pub fn of_processes(count: usize) -> String {
    if count == 1 { "one process".to_owned() } else { format!("{count} processes") }
}

/// The places, the most time lost first.
pub fn places(report: &AuditReport, most: usize) -> Table {
    let columns = [
        (Role::Label, "place"),
        (Role::Fact, "operator"),
        (Role::Fact, "call"),
        (Role::Fact, "why"),
        (Role::Measured, "count"),
        (Role::Measured, "total"),
        (Role::Measured, "median"),
        (Role::Measured, "longest"),
        (Role::Measured, "of wall time"),
        (Role::Measured, "device idle after"),
    ];
    let has_operators = report.places.iter().any(|place| !place.operator.is_empty());
    let wall = report.wall_ns();
    let row = |place: &WaitPlace| {
        let cells = [
            line(&place.operator).into_owned(),
            call(place),
            place.reason.words().to_owned(),
            place.count.to_string(),
            time(place.total_ns),
            time(place.median_ns),
            time(place.longest_ns),
            if place.total_ns > wall { "above 100 %".to_owned() } else { share(place.total_ns, wall) },
            time(place.idle_after_ns),
        ];
        let cells = cells.into_iter().skip(usize::from(!has_operators)).map(Cell::Text).collect();
        TableRow::new(line(place.name()), cells)
    };
    let rows = report.places.iter().take(most).map(row).collect();
    let shown = columns.into_iter().filter(|(_, name)| has_operators || *name != "operator");
    Table::new("Places by time lost", shown.map(|(role, name)| Column::new(role, name)).collect(), rows)
}

/// The call of a place, with how much its calls copied.
fn call(place: &WaitPlace) -> String {
    let call = line(&place.call);
    let bytes = Unit::Bytes.format(place.bytes as f64, 3);
    if place.bytes == 0 { call.into_owned() } else { format!("{call}, {bytes}") }
}

/// Where the time of a process went.
pub fn time_of(process: &ProcessReport) -> Table {
    let wall = process.wall_ns;
    let row = |label: &str, ns| TableRow::new(label, vec![Cell::Text(time(ns)), Cell::Text(share(ns, wall))]);
    let listed =
        |shares: &[HostShare]| shares.iter().map(|share| row(share.doing.words(), share.ns)).collect::<Vec<_>>();
    let mut groups = vec![TableGroup { label: Some("Host".to_owned()), rows: listed(&process.host) }];
    for device in &process.devices {
        let busy = [row("kernels", device.kernels_ns), row("copies and fills alone", device.copies_ns)];
        groups.push(TableGroup { label: Some(format!("Device {}, busy", device.device)), rows: busy.to_vec() });
        let label = Some(format!("Device {}, idle, by what the host did", device.device));
        groups.push(TableGroup { label, rows: listed(&device.idle) });
    }
    let rank = process.rank.map(|rank| format!("Rank {rank}, process")).unwrap_or_else(|| "Process".to_owned());
    let title = format!("{rank} {}: {} in all", process.process, time(wall));
    let headings = [(Role::Label, "what"), (Role::Measured, "time"), (Role::Measured, "share")];
    Table { title, columns: headings.map(|(role, name)| Column::new(role, name)).to_vec(), groups }
}

/// What the audit cost a process.
pub fn overhead(process: &ProcessReport) -> Option<String> {
    let overhead = process.overhead.as_ref()?;
    Some(format!(
        "The audit took {} in {} of this process ({} of its time), measured in it; what CUPTI takes to record the \
         device's work comes on top.",
        time(overhead.own_ns),
        counted(overhead.calls, "call"),
        share(overhead.own_ns, process.wall_ns)
    ))
}

/// How many places a cell of a notebook lists.
const LISTED: usize = 20;

displayed!(AuditReport, Region);

impl Show for AuditReport {
    fn on(&self, page: Page) -> Page {
        let page = page.note(summary(self));
        let page = if self.places.is_empty() { page } else { page.show(&places(self, LISTED)) };
        let page = self.processes.iter().fold(page, |page, process| page.show(&time_of(process)));
        self.warnings.iter().fold(page, Page::note)
    }
}

impl Show for Region {
    fn on(&self, page: Page) -> Page {
        page.show(&self.report)
    }
}
