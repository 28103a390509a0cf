//! What a process that measures a run sends to the one that started it, by the pipe that its standard output was: pieces of the
//! run, a line each, and at its end an empty line and all results, as in a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context;

use crate::results::{Piece, Results, Row, Run};

/// The end of the pipe that it sends into.
pub(super) struct Sender(Mutex<State>);

struct State {
    pipe: File,
    /// The run, until all is sent, and the rows of the experiment that is running.
    run: Option<Run>,
    running: Vec<Row>,
}

impl Sender {
    /// Takes standard output, which no library may write into: what is printed there from now on goes to standard error.
    pub(super) fn new() -> anyhow::Result<Self> {
        let pipe = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3).map(File::from);
        let pipe = pipe.context("cannot take the pipe to the process that started this one")?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr()).context("cannot lead standard output elsewhere")?;
        Ok(Self(Mutex::new(State { pipe, run: None, running: Vec::new() })))
    }

    /// Remembers the rows of the experiment that is running.
    pub(super) fn measured(&self, rows: &[Row]) {
        self.state().running = rows.to_vec();
    }

    /// Sends what the run left.
    pub(super) fn piece(&self, piece: &Piece) {
        let mut state = self.state();
        state.running.clear();
        state.run = Some(Run { telemetry: Vec::new(), ..piece.run.clone() });
        // What is sent at the end holds it, too. Where nobody reads, the run ends as its standard input does.
        let _ = state.send(piece);
    }

    /// Sends all results, at the end.
    pub(super) fn whole(&self, results: &Results) -> anyhow::Result<()> {
        let mut state = self.state();
        state.run = None;
        let content = results.to_content(Path::new(""))?;
        let sent = state.pipe.write_all(b"\n").and_then(|()| state.pipe.write_all(&content));
        sent.context("cannot send what was measured")
    }

    /// Sends what there is, where the run itself cannot: the program is about to end. Whether there was anything to do.
    pub(super) fn rescue(&self) -> bool {
        let mut state = self.state();
        let Some(run) = state.run.take() else { return false };
        let rows = std::mem::take(&mut state.running);
        // Where nobody reads, nobody is left to tell.
        let _ = state.send(&Piece { run, rows, timelines: Vec::new() });
        alert!("interrupted within a sample");
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn send(&mut self, piece: &Piece) -> io::Result<()> {
        self.pipe.write_all(piece.to_line()?.as_bytes())
    }
}
