//! A process for cells with what they have defined, and what a cell came to.
//!
//! A cell that panics or returns an error fails and keeps the variables. A cell that ends its process loses them, and
//! says so. [`Control::end`] ends a cell from outside, with its process.

use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use crossbeam_channel::{Receiver, Select, TryRecvError};
use evcxr::{CommandContext, CompilationError, Error, EvalContext, EvalOutputs, Theme};
use rustix::process::{Pid, Signal, kill_process_group};
use syn::Block;
use syn::parse::Parser;

use crate::cells::{self, marks};
use crate::file::{Failure, Left, is_place, said};

/// Where text of a running cell goes: the name of its stream, `stdout` or `stderr`, and the text.
pub(crate) type Sink = Box<dyn Fn(&'static str, &str) + Send>;

/// A process for cells, with what they have defined.
pub(crate) struct Session {
    pub(crate) context: CommandContext,
    /// evcxr's channels: the watcher's output, and its own words.
    channels: [Receiver<String>; 2],
    output: Arc<Mutex<Output>>,
    control: Arc<Control>,
}

/// What a running cell has said.
#[derive(Default)]
struct Output {
    texts: Vec<(&'static str, String)>,
    panicked: bool,
    returned: bool,
    /// How the process ended, where it did.
    ended: Option<String>,
    sink: Option<Sink>,
}

/// Ends cells, from any thread.
pub(crate) struct Control {
    process: Arc<Mutex<Child>>,
    cell: Mutex<Running>,
}

/// Whether a cell runs.
enum Running {
    No,
    Yes,
    /// Ended from outside, and why.
    Ended(String),
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// A process whose cells have the texts that they write go to `sink` at once, too.
    pub(crate) fn new(sink: Option<Sink>) -> anyhow::Result<Self> {
        let (context, outputs) = EvalContext::with_subprocess_command(cells::command()?)?;
        let channels = [outputs.stdout, outputs.stderr];
        let output = Arc::new(Mutex::new(Output { sink, ..Output::default() }));
        for (number, channel) in channels.iter().enumerate() {
            collect(number, channel.clone(), Arc::clone(&output));
        }
        let control = Control { process: context.process_handle(), cell: Mutex::new(Running::No) };
        let context = CommandContext::with_eval_context(context);
        Ok(Self { context, channels, output, control: Arc::new(control) })
    }

    /// What ends its cells.
    pub(crate) fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    /// Forgets all variables and dependencies, and has relative paths start from `folder`. What is compiled is kept.
    pub(crate) fn begin(&mut self, folder: &Path) -> anyhow::Result<()> {
        std::env::set_current_dir(folder).with_context(|| folder.display().to_string())?;
        self.context.execute(":clear")?;
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
        let stopped = self.control.is_over();
        if stopped.is_some() {
            // The end may have come while the cell was compiled or behind its last word, which evcxr does not see; the next
            // cell would fail of it. A statement of no effect lets evcxr find out and begin another process.
            let _ = self.context.execute("();");
        }
        let (texts, output) = self.taken();
        let (shown, error) = match result {
            // evcxr drops what it cannot parse, and runs the rest.
            Ok(outputs) => {
                // A statement shows nothing.
                let shown = outputs.content_by_mime_type.into_iter();
                let shown = shown.filter(|(mime, text)| mime != "text/plain" || text != "()").collect();
                (shown, unparsed(code).map(Error::Message))
            }
            Err(error) => (Vec::new(), Some(error)),
        };
        let errors: String =
            texts.iter().filter(|(name, _)| *name == "stderr").map(|(_, text)| text.as_str()).collect();
        let lost = "All variables are lost. Functions, types and dependencies are kept.";
        let failure = match (stopped, error) {
            (Some(why), _) => Some(Failure::new("Interrupted", format!("{why}\n{lost}"))),
            (_, Some(Error::CompilationErrors(errors))) => Some(not_compiled(code, &errors)),
            (_, Some(Error::SubprocessTerminated(evcxr))) => {
                let how = output.ended.unwrap_or(evcxr);
                let errors = said(&errors);
                let text = format!("{errors}\nThe process of the cells ended ({how}).\n{lost}");
                Some(Failure::new("ProcessEnded", text.trim_start().to_owned()))
            }
            (_, Some(other)) => Some(Failure::new("CompileError", other.to_string())),
            (_, None) if output.panicked => Some(Failure::new("Panic", panic_message(&errors))),
            (_, None) if output.returned => Some(Failure::new("Error", said(&errors))),
            (_, None) => None,
        };
        Left { texts, shown, failure }
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
        *locked(&self.cell) = Running::Yes;
    }

    /// Why the cell that is over was ended from outside, where it was.
    fn is_over(&self) -> Option<String> {
        match std::mem::replace(&mut *locked(&self.cell), Running::No) {
            Running::Ended(why) => Some(why),
            _ => None,
        }
    }

    /// Ends the running cell, with its process. Where none runs: nothing.
    pub(crate) fn end(&self, why: &str) {
        let mut cell = locked(&self.cell);
        if matches!(*cell, Running::Yes) {
            *cell = Running::Ended(why.to_owned());
            self.kill();
        }
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

/// Why a cell's code is no Rust, if it is none.
fn unparsed(code: &str) -> Option<String> {
    // Commands, calls of a shell, and attributes of the whole, which evcxr knows.
    let own = |line: &&str| ![":", "!", "#!["].iter().any(|sign| line.trim_start().starts_with(sign));
    let code = code.lines().filter(own).collect::<Vec<_>>().join("\n");
    let error = Block::parse_within.parse_str(&code).err()?;
    Some(format!("the cell is not Rust: {error}"))
}

/// The message of the last panic in what the process wrote. Its place is a line of a file that evcxr generates.
fn panic_message(errors: &str) -> String {
    let last = errors.lines().collect::<Vec<_>>();
    let start = last.iter().rposition(|line| is_place(line)).map_or(0, |place| place + 1);
    said(&last[start..].join("\n"))
}

fn not_compiled(code: &str, errors: &[CompilationError]) -> Failure {
    let mut text = Vec::new();
    for error in errors {
        let report = error.build_report("cell".to_owned(), code.to_owned(), Theme::Light);
        let written = report.is_some_and(|report| {
            let source = ariadne::sources([("cell".to_owned(), code.to_owned())]);
            report.write(source, &mut text).is_ok()
        });
        if !written {
            // Code with letters outside of ASCII has no such report.
            text.extend(format!("{}\n", error.message()).bytes());
            for place in error.spanned_messages() {
                let lines = place.lines.join("\n");
                text.extend(format!("{lines}\n{}\n", place.label).bytes());
            }
        }
    }
    let first = errors.first().map(CompilationError::message).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    Failure { name: "CompileError", value: first, text: format!("the cell does not compile:\n{}", text.trim_end()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_is_no_rust_is_told_from_code_that_is() {
        assert!(unparsed("let = 7;").is_some());
        assert!(
            unparsed(":dep regex = \"1\"\n#![allow(unused)]\n// only words\n").is_none()
                && unparsed("let x = 1;\nx").is_none()
        );
    }

    #[test]
    fn the_message_of_a_panic_is_what_it_says_without_its_place() {
        let written = "before\n\nthread 'main' (12) panicked at src/lib.rs:107:1:\nthe list\nis short\n\
                       note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        assert_eq!(panic_message(written), "the list\nis short");
        assert_eq!(panic_message("a hook of one's own"), "a hook of one's own");
    }
}
