//! The process that cells run in, and what a cell came to.
//!
//! Cells run in a child of this process, which is this program again. It is strict (see `syncscope::notebook::strict`):
//! a panic or a failed `?` ends it, as an exit does, and evcxr says so. A watchdog ends it when a cell takes too long.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use crossbeam_channel::{Receiver, Select};
use evcxr::{CommandContext, Error, EvalContext};

use crate::file::Left;

/// Set for the child.
const CELLS: &str = "NOTEBOOK_RUNNER_CELLS";
/// For what a cell wrote on its standard error and is still on its way when the cell is over.
const GRACE: Duration = Duration::from_millis(30);

/// In the process for cells: runs them and never returns. Elsewhere: nothing.
pub(crate) fn become_cells() -> anyhow::Result<()> {
    if std::env::var_os(CELLS).is_some() {
        syncscope::notebook::strict().context("cells cannot be made strict")?;
    }
    evcxr::runtime_hook();
    Ok(())
}

type Lines = Arc<Mutex<Vec<(&'static str, String)>>>;

/// A process for cells, with what they have defined.
pub(crate) struct Session {
    context: CommandContext,
    lines: Lines,
    timeout: Duration,
}

impl Session {
    pub(crate) fn new(timeout: Duration) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(CELLS, "1").env_remove("SYNCSCOPE_STRICT");
        let (context, outputs) = EvalContext::with_subprocess_command(command)?;
        let lines = Lines::default();
        collect("stdout", outputs.stdout, Arc::clone(&lines));
        collect("stderr", outputs.stderr, Arc::clone(&lines));
        Ok(Self { context: CommandContext::with_eval_context(context), lines, timeout })
    }

    /// Forgets all variables and dependencies, and has relative paths start from `folder`. What is compiled is kept.
    pub(crate) fn begin(&mut self, folder: &Path) -> anyhow::Result<()> {
        std::env::set_current_dir(folder).with_context(|| folder.display().to_string())?;
        self.context.execute(":clear")?;
        self.taken();
        Ok(())
    }

    /// Runs a cell.
    pub(crate) fn run(&mut self, code: &str) -> Left {
        let (done, waiting) = mpsc::channel::<()>();
        let (child, overran) = (self.context.process_handle(), Arc::new(AtomicBool::new(false)));
        let (noted, timeout) = (Arc::clone(&overran), self.timeout);
        let watchdog = std::thread::spawn(move || {
            if waiting.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
                noted.store(true, Ordering::SeqCst);
                // One that has ended by itself needs no end.
                let _ = child.lock().unwrap_or_else(PoisonError::into_inner).kill();
            }
        });
        let result = self.context.execute(code);
        drop(done);
        let _ = watchdog.join();
        std::thread::sleep(GRACE);
        let lines = self.taken();
        let (shown, failure) = match result {
            Ok(outputs) => (outputs.content_by_mime_type.into_iter().collect(), None),
            Err(error) => (Vec::new(), Some(message(&error, &lines))),
        };
        let failure = match overran.load(Ordering::SeqCst) {
            true => Some(format!("the cell took longer than {} s", self.timeout.as_secs())),
            false => failure,
        };
        Left { lines, shown, failure }
    }

    fn taken(&self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Moves lines from evcxr's channel, which it waits to see empty, to ours. A line is in one of the two at any time.
fn collect(name: &'static str, channel: Receiver<String>, lines: Lines) {
    std::thread::spawn(move || {
        loop {
            let mut select = Select::new();
            select.recv(&channel);
            select.ready();
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                match channel.try_recv() {
                    Ok(line) => lines.push((name, line)),
                    Err(crossbeam_channel::TryRecvError::Empty) => break,
                    Err(crossbeam_channel::TryRecvError::Disconnected) => return,
                }
            }
        }
    });
}

/// What went wrong, with what the process said of it.
fn message(error: &Error, lines: &[(&'static str, String)]) -> String {
    match error {
        Error::CompilationErrors(errors) => {
            let text = errors.iter().map(|error| match error.rendered() {
                rendered if rendered.is_empty() => error.message(),
                rendered => rendered,
            });
            format!("the cell does not compile:\n{}", text.collect::<Vec<_>>().join("\n"))
        }
        Error::SubprocessTerminated(how) => {
            let said = lines.iter().filter(|(name, _)| *name == "stderr").map(|(_, line)| line.as_str());
            said.chain(how.lines()).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}
