//! Exports of Nsight Systems: the SQLite file that `nsys export --type sqlite` writes.
//!
//! # Method
//! The calls of CUDA are the rows of one table, and the work of the devices those of four. A synchronization has a row of its
//! own, with the number of its call, which names its stream or event; so does the recording of an event. A call can have a
//! chain of frames. Source: *SQLite Schema Reference*, a part of NVIDIA's user guide of Nsight Systems. Its tables are
//! written only where they have a row, and versions differ in columns: what is missing is said.
//!
//! # Limits
//! The schema has no lines of source: a place is a function and its module, and of a Python program one of the interpreter.
//! What the driver moves by itself for managed memory is not work that a call can wait for, and is left out.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::class::Class;
use super::database::{Database, Fields, Table};
use super::foreign::{MAX_DEEP, far, plausible};
use super::names::readable;
use super::record;
use super::recording::{Frame, Process, ProgramRecording, Range, RecordedCall, RecordedWork, WorkKind};

/// The most rows of an export, and different frames of its chains.
const MAX_ROWS: usize = 20_000_000;
const MAX_FRAMES: usize = 1 << 17;
/// The longest time that something may take, in nanoseconds: a year. And the farthest from zero.
const YEAR: u64 = 32_000_000_000_000_000;
const FARTHEST: i64 = 4_000_000_000_000_000_000;

const STRINGS: Table = Table { name: "StringIds", required: &["id", "value"], optional: &[] };
/// Some versions write the driver's calls beside those of the run-time library, others into the same table.
const CALLS: [&str; 2] = ["CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"];
const OF_CALLS: &[&str] = &["start", "end", "globalTid", "correlationId", "nameId"];
const SYNCHRONIZATIONS: Table = Table {
    name: "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    required: &["correlationId"],
    optional: &["globalPid", "contextId", "streamId", "eventId"],
};
const EVENTS: Table = Table { name: "CUPTI_ACTIVITY_KIND_CUDA_EVENT", ..SYNCHRONIZATIONS };
const OF_WORK: &[&str] = &["start", "end", "deviceId", "streamId", "correlationId"];
const KERNELS: Table = Table {
    name: "CUPTI_ACTIVITY_KIND_KERNEL",
    required: OF_WORK,
    optional: &["globalPid", "contextId", "demangledName", "shortName"],
};
/// A launch of a graph, where its nodes were not traced one by one.
const GRAPHS: Table = Table {
    name: "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    required: OF_WORK,
    optional: &["globalPid", "contextId", "graphId"],
};
const COPIES: Table = Table {
    name: "CUPTI_ACTIVITY_KIND_MEMCPY",
    required: OF_WORK,
    optional: &["globalPid", "contextId", "bytes", "copyKind", "srcKind", "dstKind"],
};
const FILLS: Table =
    Table { name: "CUPTI_ACTIVITY_KIND_MEMSET", required: OF_WORK, optional: &["globalPid", "contextId", "bytes"] };
const RANGES: Table =
    Table { name: "NVTX_EVENTS", required: &["start", "end", "globalTid"], optional: &["text", "textId", "eventType"] };
const CHAINS: Table =
    Table { name: "CUDA_CALLCHAINS", required: &["id", "symbol", "stackDepth"], optional: &["module"] };

/// The recording of an export.
///
/// # Errors
/// It is none, or lacks what the audit needs; the message says what.
pub(crate) fn recording(bytes: &[u8]) -> Result<ProgramRecording, String> {
    let database = Database::open(bytes, MAX_ROWS)?;
    let mut reading = Reading::default();
    let strings = database.read(&STRINGS, |row| {
        reading.strings.extend(row.number(0).zip(row.text(1)));
    })?;
    if strings.is_none() {
        return Err(format!(
            "this is an SQLite database and no export of nsys: it has no table `{}`; `nsys export --type sqlite` writes one",
            STRINGS.name
        ));
    }
    reading.calls(&database)?;
    reading.awaited(&database)?;
    reading.work(&database)?;
    reading.ranges(&database)?;
    reading.stacks(&database)?;
    Ok(reading.finish())
}

/// Where a call is by its number: in which process, and which of its calls.
type Numbered = HashMap<(u32, u64), usize>;

#[derive(Default)]
struct Reading {
    strings: HashMap<i64, String>,
    /// Names of work as they are shown.
    names: HashMap<i64, Arc<str>>,
    processes: BTreeMap<u32, Process>,
    /// Of each call of a process the number of its chain.
    chains: HashMap<u32, Vec<Option<i64>>>,
    /// Rows without a time, or of no process that is known.
    untimed: u64,
    homeless: u64,
    /// As of [`ProgramRecording`].
    missing: Vec<String>,
    warnings: Vec<String>,
}

/// When something began and ended; none where no clock says so. A time that could not be taken is 0.
fn times(row: &Fields<'_>) -> Option<(u64, u64)> {
    let (start, end) = row.number(0).zip(row.number(1))?;
    let in_range = (-FARTHEST..=FARTHEST).contains(&start) && (-FARTHEST..=FARTHEST).contains(&end);
    if !in_range || start > end || end.abs_diff(start) > YEAR || (start, end) == (0, 0) {
        return None;
    }
    // Before the session's begin is possible: the earliest is made the zero at the end.
    Some(((start + FARTHEST) as u64, (end + FARTHEST) as u64))
}

/// The process of a `globalPid` or `globalTid`: above 24 bits for the thread.
fn process_of(global: i64) -> u32 {
    (global >> 24) as u32 & 0xff_ffff
}

/// `cudaMemcpyAsync_v3020`: the version of the run-time library is no part of a name, as that of the driver's `_v2` is.
fn unversioned(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((before, version)) if version.len() > 3 && version.bytes().all(|digit| digit.is_ascii_digit()) => before,
        _ => name,
    }
}

/// A number of CUPTI, where it has one: all bits stand for none.
fn some(number: Option<u32>) -> Option<u32> {
    number.filter(|number| *number != u32::MAX)
}

impl Reading {
    fn calls(&mut self, database: &Database) -> Result<(), String> {
        for name in CALLS {
            let table = Table { name, required: OF_CALLS, optional: &["callchainId"] };
            database.read(&table, |row| {
                let Some((enter, exit)) = times(row) else {
                    self.untimed += 1;
                    return;
                };
                let global = row.number(2).unwrap_or(0);
                let number = process_of(global);
                let function = row.number(4).unwrap_or(-1);
                let name = match self.strings.get(&function) {
                    Some(name) => readable(unversioned(name)),
                    None => format!("function {function}"),
                };
                let process = self.processes.entry(number).or_default();
                process.calls.push(RecordedCall {
                    class: Class::of(&name),
                    name: name.into(),
                    enter,
                    exit,
                    correlation: row.number(3).unwrap_or(0),
                    thread: (global & 0xff_ffff) as u32,
                    ..RecordedCall::default()
                });
                self.chains.entry(number).or_default().push(row.number(5));
            })?;
        }
        Ok(())
    }

    /// The process of a row of the device: where the table does not say it, the only one.
    fn home(&self, global: Option<i64>) -> Option<u32> {
        global.map(process_of).or_else(|| match self.processes.len() {
            0 => Some(0),
            1 => self.processes.keys().next().copied(),
            _ => None,
        })
    }

    /// What synchronizations wait for, and where events were recorded.
    fn awaited(&mut self, database: &Database) -> Result<(), String> {
        let mut numbered = Numbered::new();
        for (number, process) in &self.processes {
            numbered.extend(process.calls.iter().enumerate().map(|(place, call)| ((*number, call.correlation), place)));
        }
        let has = |of: fn(Class) -> bool| {
            self.processes.values().flat_map(|process| &process.calls).any(|call| of(call.class))
        };
        let missing = [
            (SYNCHRONIZATIONS, has(Class::is_explicit), "which stream or event a synchronization waits for"),
            (EVENTS, has(|class| class == Class::Record), "on which stream an event was recorded"),
        ];
        for (table, is_asked, what) in missing {
            let lacking = database.read(&table, |row| {
                let Some(home) = self.home(row.number(1)) else { return };
                let place = row.number(0).and_then(|correlation| numbered.get(&(home, correlation)));
                let process = self.processes.get_mut(&home);
                let Some(call) = place.zip(process).and_then(|(place, process)| process.calls.get_mut(*place)) else {
                    return;
                };
                // A stream that waits for an event has such a row, too, and is no wait of the host.
                if call.class.is_explicit() || call.class == Class::Record {
                    (call.context, call.stream) = (some(row.number(2)), some(row.number(3)));
                    call.event = some(row.number(4)).map_or(0, |event| u64::from(event) + 1);
                }
            })?;
            if lacking.is_none() && is_asked {
                self.warnings.push(format!("it has no table `{}`, so {what} is not known", table.name));
            }
        }
        Ok(())
    }

    fn work(&mut self, database: &Database) -> Result<(), String> {
        for table in [KERNELS, GRAPHS, COPIES, FILLS] {
            let lacking = database.read(&table, |row| {
                let Some((start, end)) = times(row) else {
                    self.untimed += 1;
                    return;
                };
                let Some(home) = self.home(row.number(5)) else {
                    self.homeless += 1;
                    return;
                };
                let (kind, name, bytes) = self.kind(table.name, row);
                self.processes.entry(home).or_default().work.push(RecordedWork {
                    name,
                    kind,
                    start,
                    end,
                    correlation: row.number(4).unwrap_or(0),
                    context: row.number(6).unwrap_or(0),
                    stream: row.number(3).unwrap_or(0),
                    device: row.number(2).unwrap_or(0),
                    bytes,
                    ..RecordedWork::default()
                });
            })?;
            if lacking
                .is_some_and(|lacking| ["copyKind", "srcKind", "dstKind"].iter().any(|kind| lacking.contains(kind)))
            {
                self.warnings.push("it does not say from and to which memory a copy went".to_owned());
            }
        }
        Ok(())
    }

    /// What a row of a table of work is: its kind, its name and its bytes.
    fn kind(&mut self, table: &str, row: &Fields<'_>) -> (WorkKind, Arc<str>, u64) {
        match table {
            name if name == COPIES.name => {
                // CUPTI's numbers for memory are those of nsys and one, so that its 0 is a memory that is not known.
                let small = |place, more| {
                    row.number::<u32>(place).and_then(|kind| u8::try_from(kind.saturating_add(more)).ok()).unwrap_or(0)
                };
                let kind = record::copy(small(8, 0), small(9, 1), small(10, 1));
                (kind, kind.words().into(), row.number(7).unwrap_or(0))
            }
            name if name == FILLS.name => (WorkKind::Fill, WorkKind::Fill.words().into(), row.number(7).unwrap_or(0)),
            name if name == GRAPHS.name => {
                (WorkKind::Kernel, format!("graph {}", row.number::<i64>(7).unwrap_or(0)).into(), 0)
            }
            _ => {
                let named = [7, 8].into_iter().filter_map(|place| row.number(place));
                let found = named.into_iter().find(|name| self.strings.contains_key(name));
                let name = found.and_then(|name| Some((name, self.strings.get(&name)?)));
                let name = name.map(|(id, name)| self.names.entry(id).or_insert_with(|| readable(name).into()).clone());
                (WorkKind::Kernel, name.unwrap_or_else(|| "a kernel".into()), 0)
            }
        }
    }

    fn ranges(&mut self, database: &Database) -> Result<(), String> {
        /// Of a thread, and from any to any; the others are marks and names.
        const RANGE: [i64; 2] = [59, 60];
        database.read(&RANGES, |row| {
            let Some(((start, end), global)) = times(row).zip(row.number(2)) else { return };
            let is_range = row.number(5).is_none_or(|kind| RANGE.contains(&kind));
            // Older versions write an empty text where the name is among the strings.
            let own = row.text(3).filter(|text| !text.is_empty());
            let name = own.or_else(|| self.strings.get(&row.number(4)?).cloned());
            if let Some((name, process)) = name.zip(self.processes.get_mut(&process_of(global))).filter(|_| is_range) {
                process.ranges.push(Range { name: readable(&name).into(), start, end });
            }
        })?;
        Ok(())
    }

    /// Gives each call the stack of its chain.
    fn stacks(&mut self, database: &Database) -> Result<(), String> {
        let mut frames: Vec<Frame> = Vec::new();
        let mut known: HashMap<(i64, i64), u32> = HashMap::new();
        // By chain: how deep, and which frame.
        let mut chains: HashMap<i64, Vec<(i64, u32)>> = HashMap::new();
        database.read(&CHAINS, |row| {
            let (Some(id), Some(symbol), Some(depth)) = (row.number(0), row.number(1), row.number(2)) else { return };
            let module = row.number(3).unwrap_or(-1);
            let text = |id| self.strings.get(&id).map(String::as_str).unwrap_or_default();
            // `[Unknown]`, `[Broken backtraces]`: no frame of a program.
            if text(symbol).is_empty() || text(symbol).starts_with('[') || text(module).starts_with('[') {
                return;
            }
            let frame = match known.get(&(symbol, module)) {
                Some(frame) => *frame,
                None if frames.len() == MAX_FRAMES => return,
                None => {
                    let (file, function) = (text(module).to_owned(), readable(text(symbol)));
                    frames.push(Frame { file, line: 0, function, offset: None, is_function: false });
                    known.insert((symbol, module), frames.len() as u32 - 1);
                    frames.len() as u32 - 1
                }
            };
            chains.entry(id).or_default().push((depth, frame));
        })?;
        for (number, process) in &mut self.processes {
            let mut stacks: HashMap<i64, u32> = HashMap::new();
            let mut own: HashMap<u32, u32> = HashMap::new();
            let of_calls = self.chains.get(number).map(Vec::as_slice).unwrap_or_default();
            for (call, chain) in process.calls.iter_mut().zip(of_calls) {
                let Some((id, chain)) = chain.and_then(|id| Some((id, chains.get_mut(&id)?))) else { continue };
                call.stack = Some(*stacks.entry(id).or_insert_with(|| {
                    chain.sort_unstable();
                    let places = chain.iter().take(MAX_DEEP).map(|(_, frame)| {
                        *own.entry(*frame).or_insert_with(|| {
                            process.frames.push(frames[*frame as usize].clone());
                            process.frames.len() as u32 - 1
                        })
                    });
                    process.stacks.push(places.collect());
                    process.stacks.len() as u32 - 1
                }));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> ProgramRecording {
        let Self { untimed, homeless, .. } = self;
        let untimed =
            (untimed > 0).then(|| format!("{untimed} of its rows have no time that can be read, and are left out"));
        let homeless = (homeless > 0).then(|| {
            format!("{homeless} pieces of work are of no process that it names (column `globalPid`), and are left out")
        });
        self.missing.extend(untimed.into_iter().chain(homeless));
        let starts = self.processes.values_mut().flat_map(Process::times).map(|[start, _]| *start as i64);
        let plausible = plausible(starts.collect());
        let is_near = |start: u64, end: u64| plausible.contains(&(start as i64)) && plausible.contains(&(end as i64));
        let mut left_out = 0;
        for process in self.processes.values_mut() {
            let all = process.times().count();
            process.calls.retain(|call| is_near(call.enter, call.exit));
            process.work.retain(|work| is_near(work.start, work.end));
            process.ranges.retain(|range| is_near(range.start, range.end));
            left_out += all - process.times().count();
        }
        self.missing.extend(far(left_out, "row"));
        let first = self.processes.values_mut().flat_map(Process::times).map(|[start, _]| *start).min().unwrap_or(0);
        for (number, process) in &mut self.processes {
            (process.number, process.complete) = (*number, true);
            process.times().flatten().for_each(|time| *time -= first);
            process.settle();
        }
        let without_work = self.processes.values().find_map(Process::without_work);
        self.missing.extend(without_work.map(str::to_owned));
        let mut recording = ProgramRecording {
            source: "an export of Nsight Systems. Calls that it leaves out count as the program's own time".to_owned(),
            processes: self.processes.into_values().collect(),
            missing: self.missing,
            warnings: self.warnings,
            ..ProgramRecording::default()
        };
        recording.say_what_lacks("export", "--cudabacktrace=all");
        recording
    }
}

impl Process {
    /// The times of all that it holds: from, to.
    fn times(&mut self) -> impl Iterator<Item = [&mut u64; 2]> {
        let calls = self.calls.iter_mut().map(|call| [&mut call.enter, &mut call.exit]);
        let work = self.work.iter_mut().map(|work| [&mut work.start, &mut work.end]);
        calls.chain(work).chain(self.ranges.iter_mut().map(|range| [&mut range.start, &mut range.end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_loses_the_version_of_the_run_time_library_and_keeps_that_of_the_driver() {
        for (name, expected) in [
            ("cudaMemcpyAsync_v3020", "cudaMemcpyAsync"),
            ("cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync_ptsz"),
            ("cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC"),
            ("cuMemFree_v2", "cuMemFree_v2"),
            ("cuStreamSynchronize", "cuStreamSynchronize"),
        ] {
            assert_eq!(unversioned(name), expected);
        }
    }

    #[test]
    fn the_process_and_the_thread_of_a_number_are_24_bits_each() {
        assert_eq!(process_of((1 << 48) | (10 << 24) | 7), 10);
        assert_eq!(process_of(-1), 0xff_ffff);
    }
}
