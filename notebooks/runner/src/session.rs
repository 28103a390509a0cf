//! A process for cells with what they have defined, and what a cell came to.
//!
//! A cell that panics or returns an error fails and keeps the variables. A cell that ends its process loses them, and
//! says so. [`Control::end`] ends a cell from outside, with its process, and [`Control::interrupt`] asks it to end first: what
//! measures in it looks for a file that [`INTERRUPT`] names.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use crossbeam_channel::{Receiver, Select, TryRecvError};
use evcxr::{CommandContext, Error, EvalContext, EvalOutputs};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::cells::{self, marks};
use crate::diagnostics::{closure_kept, not_compiled, of_evcxr, unparsed};
use crate::file::{Failure, Left, panicked_at, said};
use crate::pictures::Bundle;
use crate::places;

/// The variable that names a file to the cells, which is there while the running one is asked to end.
pub(crate) const INTERRUPT: &str = "SYNCSCOPE_INTERRUPT";
/// How long a cell that is asked to end has for it.
const GRACE: Duration = Duration::from_secs(3);
/// What every cell is compiled with: a forgotten `?` is an error.
pub(crate) const ATTRIBUTES: &str = "#![deny(unused_must_use)]\n";

/// Where text of a running cell goes: the name of its stream, `stdout` or `stderr`, and the text.
pub(crate) type Sink = Box<dyn Fn(&'static str, &str) + Send>;

/// A process for cells, with what they have defined.
pub(crate) struct Session {
    pub(crate) context: CommandContext,
    /// evcxr's channels: the watcher's output, and its own words.
    channels: [Receiver<String>; 2],
    output: Arc<Mutex<Output>>,
    control: Arc<Control>,
    /// The names of all variables that cells have made.
    made: HashSet<String>,
}

/// What a running cell has said.
#[derive(Default)]
struct Output {
    texts: Vec<(&'static str, String)>,
    panicked: bool,
    returned: bool,
    /// Where in the generated source a `?` returned the error.
    returned_at: Option<String>,
    /// How the process ended, where it did.
    ended: Option<String>,
    sink: Option<Sink>,
}

/// Ends cells, from any thread.
pub(crate) struct Control {
    process: Arc<Mutex<Child>>,
    /// How many cells have begun, and what of the last one.
    cell: Mutex<(u64, Running)>,
    /// The file by which a cell is asked to end.
    asks: PathBuf,
}

/// Whether a cell runs.
enum Running {
    No,
    Yes,
    /// Asked to end.
    Asked,
    /// Ended from outside, and why.
    Ended(String),
}

/// Why an interrupted cell is no more.
const INTERRUPTED: &str = "The cell was interrupted";

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// A process whose cells have the texts that they write go to `sink` at once, too.
    pub(crate) fn new(sink: Option<Sink>) -> anyhow::Result<Self> {
        let folder = std::env::var_os("EVCXR_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let asks = folder.join(format!("interrupt-{}", std::process::id()));
        let mut command = cells::command()?;
        command.env(INTERRUPT, &asks);
        let (context, outputs) = EvalContext::with_subprocess_command(command)?;
        let channels = [outputs.stdout, outputs.stderr];
        let output = Arc::new(Mutex::new(Output { sink, ..Output::default() }));
        for (number, channel) in channels.iter().enumerate() {
            collect(number, channel.clone(), Arc::clone(&output));
        }
        let control = Control { process: context.process_handle(), cell: Mutex::new((0, Running::No)), asks };
        let context = CommandContext::with_eval_context(context);
        Ok(Self { context, channels, output, control: Arc::new(control), made: HashSet::new() })
    }

    /// What ends its cells.
    pub(crate) fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    /// Forgets all variables and dependencies, and has relative paths start from `folder`. What is compiled is kept.
    pub(crate) fn begin(&mut self, folder: &Path) -> anyhow::Result<()> {
        std::env::set_current_dir(folder).with_context(|| folder.display().to_string())?;
        self.context.execute(":clear")?;
        self.made.clear();
        self.context.execute(ATTRIBUTES)?;
        self.taken();
        Ok(())
    }

    /// Runs a cell, which may take as long as `timeout`.
    pub(crate) fn run_within(&mut self, timeout: Duration, code: &str) -> Left {
        let (done, waiting) = mpsc::channel::<()>();
        let control = self.control();
        let watchdog = std::thread::spawn(move || {
            if waiting.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
                control.end(&format!("the cell took longer than {} s", timeout.as_secs()));
            }
        });
        let left = self.run(code);
        drop(done);
        let _ = watchdog.join();
        left
    }

    /// Runs a cell.
    pub(crate) fn run(&mut self, code: &str) -> Left {
        if let Some(failure) = closure_kept(code) {
            return Left { failure: Some(failure), ..Left::default() };
        }
        let result = self.execute(code);
        self.came_to(code, result)
    }

    /// Executes a cell, which can be ended until [`Session::came_to`] has looked.
    pub(crate) fn execute(&mut self, code: &str) -> Result<EvalOutputs, Error> {
        self.control.begins();
        self.context.execute(code)
    }

    /// What a cell came to, which gave `result` and counts as ended where it was ended in the meantime, whatever it gave.
    pub(crate) fn came_to(&mut self, code: &str, result: Result<EvalOutputs, Error>) -> Left {
        let (asked, stopped) = match self.control.is_over() {
            Running::Ended(why) => (false, Some(why)),
            running => (matches!(running, Running::Asked), None),
        };
        if stopped.is_some() {
            // The end may have come while the cell was compiled or behind its last word, which evcxr does not see; the next
            // cell would fail of it. A statement of no effect lets evcxr find out and begin another process.
            let _ = self.context.execute("();");
        }
        let (texts, output) = self.taken();
        let errors: String =
            texts.iter().filter(|(name, _)| *name == "stderr").map(|(_, text)| text.as_str()).collect();
        let place = |place: Option<&str>| {
            places::told(code, &self.context.last_source().ok()?, places::line_in_source(place?)?)
        };
        let lost = "All variables are lost. Functions, types and dependencies are kept.";
        let mut left = Left { texts, ..Left::default() };
        let error = match result {
            Ok(outputs) => {
                // A statement shows nothing.
                let shown = outputs.content_by_mime_type.into_iter().map(numbered);
                let mut shown: Vec<_> = shown.filter(|(_, mime, text)| mime != "text/plain" || text != "()").collect();
                shown.sort_unstable();
                let blocks = |display: &[(usize, String, String)]| {
                    display.iter().map(|(_, mime, text)| (mime.clone(), text.clone())).collect()
                };
                left.shown = shown.chunk_by(|one, next| one.0 == next.0).map(blocks).collect();
                None
            }
            Err(error) => Some(error),
        };
        let failure = match (stopped, error) {
            (Some(why), _) => Some(Failure::new("Interrupted", format!("{why}\n{lost}"))),
            (_, Some(Error::CompilationErrors(errors))) => {
                let there: HashSet<&str> = self.context.variables_and_types().map(|(name, _)| name).collect();
                let gone = self.made.iter().map(String::as_str).filter(|name| !there.contains(name)).collect();
                Some(not_compiled(code, &errors, &gone))
            }
            (_, Some(Error::SubprocessTerminated(evcxr))) => {
                let how = output.ended.unwrap_or(evcxr);
                let errors = said(&errors);
                let text = format!("{errors}\nThe process of the cells ended ({how}).\n{lost}");
                Some(Failure::new("ProcessEnded", text.trim_start().to_owned()))
            }
            (_, Some(other)) => Some(Failure::new("CompileError", of_evcxr(&other.to_string()))),
            (_, None) if asked => {
                let kept = "The variables are kept, but for those that the cell took.";
                Some(Failure::new("Interrupted", format!("{INTERRUPTED}, and what measured ended early. {kept}")))
            }
            (_, None) if output.panicked => {
                let (at, message) = panic_message(&errors);
                Some(Failure { place: place(at), ..Failure::new("Panic", message) })
            }
            (_, None) if output.returned => {
                let at = place(output.returned_at.as_deref());
                Some(Failure { place: at, ..Failure::new("Error", said(&errors)) })
            }
            // evcxr drops what it cannot parse, and runs the rest.
            (_, None) => unparsed(code).or_else(|| error_shown(&mut left.shown)),
        };
        self.made.extend(self.context.variables_and_types().map(|(name, _)| name.to_owned()));
        Left { failure, ..left }
    }

    /// What was said since it was taken last.
    fn taken(&self) -> (Vec<(&'static str, String)>, Output) {
        let mut output = locked(&self.output);
        for (number, channel) in self.channels.iter().enumerate() {
            while let Ok(line) = channel.try_recv() {
                output.line(number, &line);
            }
        }
        let sink = output.sink.take();
        let mut said = std::mem::replace(&mut *output, Output { sink, ..Output::default() });
        (std::mem::take(&mut said.texts), said)
    }
}

impl Control {
    fn begins(&self) {
        let mut cell = locked(&self.cell);
        let _ = fs::remove_file(&self.asks);
        *cell = (cell.0 + 1, Running::Yes);
    }

    /// What the cell that is over was until then.
    fn is_over(&self) -> Running {
        std::mem::replace(&mut locked(&self.cell).1, Running::No)
    }

    /// Ends the running cell, with its process. Where none runs: nothing.
    pub(crate) fn end(&self, why: &str) {
        let mut cell = locked(&self.cell);
        if matches!(cell.1, Running::Yes | Running::Asked) {
            cell.1 = Running::Ended(why.to_owned());
            self.kill();
        }
    }

    /// Asks the running cell to end, and ends it where it does not, or is asked again.
    pub(crate) fn interrupt(self: &Arc<Self>) {
        let mut cell = locked(&self.cell);
        let asks = matches!(cell.1, Running::Yes) && File::create(&self.asks).is_ok();
        if !asks {
            drop(cell);
            return self.end(&format!("{INTERRUPTED}, which ends its process."));
        }
        cell.1 = Running::Asked;
        let (control, number) = (Arc::clone(self), cell.0);
        std::thread::spawn(move || {
            std::thread::sleep(GRACE);
            let is_running = matches!(&*locked(&control.cell), (last, Running::Asked) if *last == number);
            if is_running {
                control.end(&format!("{INTERRUPTED} and did not end, so its process did."));
            }
        });
    }

    /// Ends the process of the cells and what they started.
    pub(crate) fn kill(&self) {
        // evcxr holds the process only while it waits for the end of one that has ended.
        if let Ok(mut process) = self.process.try_lock()
            && let Ok(None) = process.try_wait()
        {
            let _ = kill_process_group(Pid::from_child(&process), Signal::KILL);
        }
    }
}

impl Output {
    fn line(&mut self, channel: usize, line: &str) {
        if channel == 1 {
            return self.text("stderr", format!("{line}\n"));
        }
        match line {
            marks::PANICKED => return self.panicked = true,
            marks::RETURNED => return self.returned = true,
            _ => {}
        }
        if let Some(how) = line.strip_prefix(marks::ENDED) {
            self.ended = Some(how.to_owned());
            return;
        }
        let (name, line) = match line.strip_prefix(marks::STDERR) {
            Some(line) => ("stderr", line),
            None => ("stdout", line),
        };
        let line = match line.rsplit_once(marks::AT) {
            Some((line, at)) if name == "stderr" => {
                self.returned_at = Some(at.to_owned());
                line
            }
            _ => line,
        };
        let text = line.strip_suffix(marks::UNENDED).map_or_else(|| format!("{line}\n"), str::to_owned);
        self.text(name, text);
    }

    fn text(&mut self, name: &'static str, text: String) {
        if let Some(sink) = &self.sink {
            sink(name, &text);
            // A cell may print without an end, and only its errors are asked for again.
            if name == "stdout" {
                return;
            }
        }
        self.texts.push((name, text));
    }
}

/// Moves lines from evcxr's channel, which it waits to see empty, to ours. A line is in one of the two at any time.
fn collect(number: usize, channel: Receiver<String>, output: Arc<Mutex<Output>>) {
    std::thread::spawn(move || {
        loop {
            let mut select = Select::new();
            select.recv(&channel);
            select.ready();
            let mut output = locked(&output);
            loop {
                match channel.try_recv() {
                    Ok(line) => output.line(number, &line),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
        }
    });
}

/// The message of the last panic in what the process wrote, and where in the generated source it was.
fn panic_message(errors: &str) -> (Option<&str>, String) {
    let lines = errors.lines().collect::<Vec<_>>();
    let start = lines.iter().rposition(|line| panicked_at(line).is_some());
    let message = said(&lines[start.map_or(0, |place| place + 1)..].join("\n"));
    (start.and_then(|place| panicked_at(lines[place])), message)
}

/// The number of the display that a block belongs to, its MIME type, and the block. Those of evcxr itself come first.
fn numbered((kind, block): (String, String)) -> (usize, String, String) {
    let number = |text: &str| text.parse::<usize>().ok();
    match kind.split_once(marks::DISPLAY).and_then(|(before, kind)| Some((number(before)?, kind))) {
        Some((number, kind)) => (number + 1, kind.to_owned(), block),
        None => (0, kind, block),
    }
}

/// The failure that a cell is whose value is an error, which then is not shown: only such a value has this debug text.
fn error_shown(shown: &mut Vec<Bundle>) -> Option<Failure> {
    let last = shown.last_mut()?;
    let is_error = |(mime, text): &(String, String)| mime == "text/plain" && text.starts_with("Err(");
    let (_, text) = last.remove(last.iter().position(is_error)?);
    shown.retain(|display| !display.is_empty());
    Some(Failure::new("Error", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_an_error_fails_and_another_is_shown() {
        let of = |kind: &str, text: &str| vec![(kind.to_owned(), text.to_owned())];
        let mut shown = vec![of("text/plain", "Err(Shape)")];
        assert!(error_shown(&mut shown).unwrap().value == "Err(Shape)" && shown.is_empty());
        // Behind what the cell displayed, or beside it.
        let displayed = of("image/png", "Err(");
        let beside = [displayed.clone(), of("text/plain", "Err(Shape)")];
        for mut shown in [beside.to_vec(), vec![beside.concat()]] {
            assert!(error_shown(&mut shown).is_some() && shown == [displayed.clone()]);
        }
        for other in [displayed, of("text/plain", "Ok(1)"), of("text/plain", "[Err(1)]")] {
            assert_eq!(error_shown(&mut vec![other.clone()]), None, "{other:?}");
        }
    }

    #[test]
    fn the_message_of_a_panic_is_what_it_says_without_its_place() {
        let written = "before\n\nthread 'main' (12) panicked at src/lib.rs:107:1:\nthe list\nis short\n\
                       note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        assert_eq!(panic_message(written), (Some("src/lib.rs:107:1"), "the list\nis short".to_owned()));
        assert_eq!(panic_message("a hook of one's own"), (None, "a hook of one's own".to_owned()));
    }
}
