//! An audit in tables and sentences, for the terminal, a page and the end of a cell of a notebook.

use super::class::Activity;
use super::idle::{IdleCause, IdlePlace};
use super::iterations::FEWEST;
use super::places::{Reason, SteadyCalls, WaitPlace};
use super::ranks;
use super::region::Region;
use super::report::{AuditReport, HostShare, ProcessReport, SteadyReport, is_by_iteration};
use crate::clean::{self, shortened};
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

/// The devices of those processes that have iterations, or of all where none has.
#[derive(Default)]
struct Devices {
    count: usize,
    /// How long they were idle in the part of the time that the shares are of, and how long that was.
    idle: u64,
    whole: u64,
    /// The iterations, each once for each device; 0 where they are not alike.
    iterations: u64,
}

impl Devices {
    fn of(report: &AuditReport) -> Self {
        let mut all = Self::default();
        let by_iteration = is_by_iteration(&report.processes);
        for process in report.processes.iter().filter(|own| !by_iteration || own.steady.is_some()) {
            for device in &process.devices {
                let outside = device.idle.iter().find(|share| share.doing == Activity::Outside);
                let whole = process.wall_ns.saturating_sub(outside.map_or(0, |share| share.ns));
                let busy = device.kernels_ns.saturating_add(device.copies_ns);
                all.count += 1;
                all.idle = all.idle.saturating_add(whole.saturating_sub(busy));
                all.whole = all.whole.saturating_add(whole);
                let iterations = process.steady.as_ref().map_or(0, |steady| steady.iterations);
                all.iterations = all.iterations.saturating_add(iterations);
            }
        }
        if !report.has_like_iterations() {
            all.iterations = 0;
        }
        all
    }

    /// A time of all devices, as one of them has it in an iteration, on average; as all have it together where there are no
    /// iterations.
    fn each(&self, ns: u64) -> String {
        time(ns / self.iterations.max(1))
    }

    /// How [`each`](Self::each) is to be read.
    fn way(&self) -> &'static str {
        match (self.count, self.iterations) {
            (0 | 1, _) => "",
            (_, 0) => " together",
            _ => " on average",
        }
    }
}

/// A name as part of a line: it may be anybody's, and of any length.
fn line(name: &str) -> String {
    const MOST: usize = 120;
    shortened(&clean::line(name), MOST).into_owned()
}

/// What the audit comes to, in one sentence: how much of the time a device is idle, and mostly why. None where none was used.
pub fn headline(report: &AuditReport) -> Option<String> {
    let devices = Devices::of(report);
    let Devices { count, idle, whole, iterations } = devices;
    if whole == 0 {
        return None;
    }
    let (gpu, it, its) = match count {
        1 => ("The GPU is".to_owned(), "it", "its"),
        _ => (format!("The {count} GPUs are"), "them", "their"),
    };
    let (part, of) = match iterations {
        0 if is_by_iteration(&report.processes) => (String::new(), format!("of {its} iterations")),
        0 => (String::new(), format!("of the time from {its} first work to {its} last")),
        _ => {
            let (part, way) = (devices.each(idle), devices.way());
            (format!(" ({part} of {}{way})", devices.each(whole)), "of an iteration".to_owned())
        }
    };
    let share_of = |ns: u64| share(ns, whole);
    let is_idle = idle.saturating_mul(20) >= whole;
    Some(match report.idle.first() {
        Some(first) if is_idle => {
            let how = if first.idle_ns.saturating_mul(2) >= idle { "mostly because" } else { "most of all because" };
            format!("{gpu} idle for {} {of}{part}, {how} {}.", share_of(idle), because(first))
        }
        _ if is_idle => format!("{gpu} idle for {} {of}{part}.", share_of(idle)),
        first => {
            let busy = share_of(whole - idle);
            let most = first
                .map(|first| format!(": no line leaves {it} idle for more than {} of it", share_of(first.idle_ns)));
            format!("{gpu} busy for {busy} {of}{}.", most.unwrap_or_default())
        }
    })
}

/// Which rank the others wait for, and why it is late.
pub fn late(report: &AuditReport) -> Option<String> {
    let late = report.late.as_ref()?;
    let devices = Devices::of(report);
    let (count, idle, way) = (devices.count, devices.each(late.others_idle_ns), devices.way());
    let of = if devices.iterations > 0 { " of an iteration" } else { "" };
    let each = if is_by_iteration(&report.processes) { " an iteration" } else { "" };
    let last = share(late.last, late.collectives);
    let more = time(late.more_ns);
    let why = match late.cause {
        Some(cause) if late.place.is_empty() => format!("it {}, for {more}{each} more than the others", cause.words()),
        Some(cause) => format!("{} {}, for {more}{each} more than in the others", line(&late.place), cause.words()),
        None => format!("its GPU works for {more}{each} longer than those of the others"),
    };
    let (rank, all) = (line(&late.rank), counted(late.collectives, "collective"));
    Some(format!(
        "The others wait for {rank} (last at {last} of {all}), and the {count} GPUs are idle for {idle}{of}{way} because of that: \
         {why}."
    ))
}

/// `train.py:26 waits for its data loader`.
fn because(place: &IdlePlace) -> String {
    let subject = match (&*place.place, place.cause) {
        ("", IdleCause::Descheduled | IdleCause::Throttled) => "the process".to_owned(),
        ("", IdleCause::Pause) => "the GPU".to_owned(),
        ("", IdleCause::Audit) => "the audit".to_owned(),
        ("", IdleCause::Rank) => "another rank".to_owned(),
        ("", _) => "a line that is not known".to_owned(),
        (line_of, _) => line(line_of),
    };
    format!("{subject} {}", place.cause.words())
}

/// The heading of what an iteration would take without a place.
const WITHOUT: &str = "an iteration without it";

/// What can be done at a line that leaves a device idle.
pub fn advice(place: &IdlePlace) -> String {
    format!("{}: {}.", line(place.name()), place.cause.advice())
}

/// The lines at which a device was idle: in each iteration, where there are such; of several devices, on average.
pub fn idle(report: &AuditReport, most: usize) -> Table {
    let devices = Devices::of(report);
    let Devices { count, whole, iterations, .. } = devices;
    let title = match count {
        0 | 1 => "Why the GPU is idle".to_owned(),
        _ => format!("Why the {count} GPUs are idle,{}", devices.way()),
    };
    let heading = if iterations > 0 { "idle an iteration" } else { "idle" };
    let columns = || {
        let columns = [
            (Role::Label, "line"),
            (Role::Measured, heading),
            (Role::Measured, "share"),
            (Role::Measured, WITHOUT),
            (Role::Fact, "because it"),
            (Role::Measured, "waits there"),
        ];
        columns.into_iter()
    };
    let is_told = report.idle.iter().any(|place| place.without_ns.is_some());
    let is_shown = |name: &str| is_told || name != WITHOUT;
    let row = |name: String, idle: u64, [without, why, waits]: [String; 3]| {
        let cells = [devices.each(idle), share(idle, whole), without, why, waits];
        let shown = columns().skip(1).zip(cells).filter(|((_, name), _)| is_shown(name));
        TableRow::new(name, shown.map(|(_, cell)| Cell::Text(cell)).collect())
    };
    let of_place = |place: &IdlePlace| {
        row(line(place.name()), place.idle_ns, [without(place), why(report, place), waits_at(report, place)])
    };
    let mut rows: Vec<TableRow> = report.idle.iter().take(most).map(of_place).collect();
    let rest = report.idle.iter().skip(most);
    if rest.len() > 0 {
        rows.push(row("(the rest)".to_owned(), rest.map(|place| place.idle_ns).sum(), Default::default()));
    }
    let shown = columns().filter(|(_, name)| is_shown(name));
    Table::new(title, shown.map(|(role, name)| Column::new(role, name)).collect(), rows)
}

/// How long an iteration would take without a place.
fn without(place: &IdlePlace) -> String {
    match place.without_ns {
        Some([least, _]) if place.cause == IdleCause::Launch => format!("at best {}", time(least)),
        Some([least, most]) if time(least) == time(most) => time(least),
        Some([least, most]) => format!("{} to {}", time(least), time(most)),
        None => "not known".to_owned(),
    }
}

fn why(report: &AuditReport, place: &IdlePlace) -> String {
    let mut of_call = report.places.iter().filter(|wait| wait.place == place.place && wait.call == place.within);
    let operator = of_call.find(|wait| !wait.operator.is_empty()).map(|wait| format!(" of {}", line(&wait.operator)));
    let operator = operator.unwrap_or_default();
    let within = if place.within.is_empty() { String::new() } else { format!(": {}{operator}", line(&place.within)) };
    let behind =
        if place.behind.is_empty() { String::new() } else { format!(", behind the wait of {}", line(&place.behind)) };
    format!("{}{within}{behind}", place.cause.words())
}

/// How often, and for how long, calls of a line wait in each iteration, and how much they copy.
fn waits_at(report: &AuditReport, place: &IdlePlace) -> String {
    let waits =
        report.places.iter().filter(|wait| !wait.place.is_empty() && wait.place == place.place && wait.is_wait());
    let (mut count, mut total, mut bytes) = (0_u64, 0_u64, 0.0);
    for wait in waits {
        let own = wait.steady.unwrap_or(SteadyCalls { count: wait.count, total_ns: wait.total_ns });
        (count, total) = (count + own.count, total.saturating_add(own.total_ns));
        bytes += wait.bytes as f64 * own.count as f64 / wait.count.max(1) as f64;
    }
    let iterations = report.iterations();
    let copied = match bytes / iterations.max(1) as f64 {
        0.0 => String::new(),
        bytes => format!(", {}", Unit::Bytes.format(bytes, 3)),
    };
    match (count, iterations) {
        (0, _) => String::new(),
        (count, 0) => format!("{count}, {}{copied}", time(total)),
        (count, many) => format!("{:.1}, {}{copied}", count as f64 / many as f64, time(total / many)),
    }
}

/// What came before the steady state, and is not counted.
pub fn start_up(report: &AuditReport) -> Option<String> {
    let longest =
        report.processes.iter().filter_map(|process| process.steady.as_ref()).map(|steady| steady.start_up_ns).max()?;
    let outside = |reason: Reason| {
        let of = report.places.iter().filter(|place| place.reason == reason);
        of.fold((0, 0), |(count, total): (u64, u64), place| {
            let steady = place.steady.unwrap_or_default();
            (count + place.count.saturating_sub(steady.count), total + place.total_ns.saturating_sub(steady.total_ns))
        })
    };
    let parts = [
        (Reason::Load, "loading code"),
        (Reason::Allocate, "allocating"),
        (Reason::PageLock, "page-locking"),
        (Reason::Wait, "waiting"),
    ];
    let parts = parts.into_iter().map(|(reason, words)| (outside(reason), words)).filter(|((count, _), _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|((count, total), words)| format!("{} {words} for {}", counted(count, "call"), time(total)))
        .collect();
    let with =
        if parts.is_empty() { String::new() } else { format!("; outside of the iterations: {}", parts.join(", ")) };
    Some(format!("Start-up took {} and is not counted{with}.", time(longest)))
}

/// How many processes are told one by one whose iterations differ.
const DIFFERENT: usize = 4;

/// What the iterations are, or that there are none.
pub fn iterations(report: &AuditReport) -> Option<String> {
    let Some((longest, first)) = report.steady().max_by_key(|(_, steady)| steady.iterations) else {
        let is_used = report.processes.iter().any(|process| !process.devices.is_empty());
        return is_used.then(|| {
            format!("No iterations were found: it takes {FEWEST} that are alike. All that was recorded is counted.")
        });
    };
    let each = |process: &ProcessReport, steady: &SteadyReport| time(process.wall_ns / steady.iterations.max(1));
    let by = line(&first.by);
    let count = report.steady().count();
    if !report.has_like_iterations() {
        let of = |(process, steady): (&ProcessReport, &SteadyReport)| {
            let name = ranks::name(process.rank, process.process);
            format!("{} of {} in {name}", counted(steady.iterations, "iteration"), each(process, steady))
        };
        let told: Vec<String> = report.steady().take(DIFFERENT).map(of).collect();
        let rest = match count.saturating_sub(DIFFERENT) {
            0 => String::new(),
            more => format!(", and others in {more} more"),
        };
        return Some(format!("Processes differ: {}{rest}; told by {by}.", told.join(", ")));
    }
    let least = report.steady().map(|(_, steady)| steady.iterations).min()?;
    let range = if least < first.iterations { format!("{least} to ") } else { String::new() };
    let ranks = if report.steady().all(|(process, _)| process.rank.is_some()) { "ranks" } else { "processes" };
    let of = if count > 1 { format!(" in each of {count} {ranks}") } else { String::new() };
    Some(format!("{range}{} of {}{of}, told by {by}.", counted(first.iterations, "iteration"), each(longest, first)))
}

/// How many calls at how many places lost time for a reason, and how much, in the steady state.
fn lost(report: &AuditReport, reason: Reason) -> (u64, usize, u64) {
    let count = |place: &WaitPlace| place.steady.map_or(place.count, |steady| steady.count);
    let of = |place: &&WaitPlace| place.reason == reason && count(place) > 0;
    let places: Vec<&WaitPlace> = report.places.iter().filter(of).collect();
    let sum = |of: &dyn Fn(&WaitPlace) -> u64| places.iter().fold(0, |sum: u64, place| sum.saturating_add(of(place)));
    (sum(&count), places.len(), sum(&WaitPlace::lost_ns))
}

/// What the waits come to.
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
        _ if report.processes.iter().all(|process| process.calls == 0 && process.devices.is_empty()) => {
            "No use of CUDA was recorded.".to_owned()
        }
        // Each thread's waits count.
        _ if total > wall => {
            format!("{took}, more than the {whole} of the whole run, in {processes}: several threads waited at once.")
        }
        (_, 0) => format!("No call waited for pending work in {whole} of {processes}."),
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
    let average = if report.steady().count() > 1 { "an iteration, on average" } else { "an iteration" };
    let columns = [
        (Role::Label, "place"),
        (Role::Fact, "operator"),
        (Role::Fact, "call"),
        (Role::Fact, "why"),
        (Role::Measured, "count"),
        (Role::Measured, "total"),
        (Role::Measured, "median"),
        (Role::Measured, "longest"),
        (Role::Measured, average),
        (Role::Measured, "of wall time"),
        (Role::Measured, "device idle after"),
    ];
    let iterations = report.iterations();
    let has_operators = report.places.iter().any(|place| !place.operator.is_empty());
    let wall = report.wall_ns();
    let is_shown = |name: &str| match name {
        "operator" => has_operators,
        name if name == average => iterations > 0,
        _ => true,
    };
    let each = |place: &WaitPlace| {
        let SteadyCalls { count, total_ns } = place.steady.unwrap_or_default();
        format!("{:.1}, {}", count as f64 / iterations.max(1) as f64, time(total_ns / iterations.max(1)))
    };
    let row = |place: &WaitPlace| {
        let cells = [
            line(&place.operator),
            call(place),
            place.reason.words().to_owned(),
            place.count.to_string(),
            time(place.total_ns),
            time(place.median_ns),
            time(place.longest_ns),
            each(place),
            if place.lost_ns() > wall { "above 100 %".to_owned() } else { share(place.lost_ns(), wall) },
            time(place.idle_after_ns),
        ];
        let shown = columns.iter().skip(1).zip(cells).filter(|((_, name), _)| is_shown(name));
        let cells = shown.map(|(_, cell)| Cell::Text(cell)).collect();
        TableRow::new(line(place.name()), cells)
    };
    let rows = report.places.iter().take(most).map(row).collect();
    let shown = columns.into_iter().filter(|(_, name)| is_shown(name));
    Table::new("Places by time lost", shown.map(|(role, name)| Column::new(role, name)).collect(), rows)
}

/// The call of a place, with how much its calls copied.
fn call(place: &WaitPlace) -> String {
    let call = line(&place.call);
    let bytes = Unit::Bytes.format(place.bytes as f64, 3);
    if place.bytes == 0 { call } else { format!("{call}, {bytes}") }
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
    let part = if process.steady.is_some() { "in its steady state" } else { "in all" };
    let title = format!("{rank} {}: {} {part}", process.process, time(wall));
    let headings = [(Role::Label, "what"), (Role::Measured, "time"), (Role::Measured, "share")];
    Table { title, columns: headings.map(|(role, name)| Column::new(role, name)).to_vec(), groups }
}

/// What the audit cost a process.
pub fn overhead(process: &ProcessReport) -> Option<String> {
    let overhead = process.overhead.as_ref()?;
    let begin = match overhead.begin_ns {
        0 => String::new(),
        begin => format!(" To begin it took {}, for which calls of the driver may have waited.", time(begin)),
    };
    Some(format!(
        "The audit took {} in {} of this process ({} of its time), measured in it; what CUPTI takes to record the \
         device's work comes on top.{begin}",
        time(overhead.own_ns),
        counted(overhead.calls, "call"),
        Scale::PERCENT.fixed(overhead.share, 1)
    ))
}

/// How many places a cell of a notebook lists.
const LISTED: usize = 20;

displayed!(AuditReport, Region);

impl Show for AuditReport {
    fn on(&self, page: Page) -> Page {
        let page = headline(self).into_iter().fold(page, Page::note).note(summary(self));
        let page = if self.idle.is_empty() { page } else { page.show(&idle(self, LISTED)) };
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
