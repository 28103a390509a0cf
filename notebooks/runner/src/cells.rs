//! The processes that cells run in, seen from inside: a watcher, which evcxr starts, and the cells below it.
//!
//! evcxr reports a cell as done when it panicked or when a `?` returned an error from it, and it passes the standard
//! error on by a thread of its own, so that a message can arrive under the next cell. The watcher makes one ordered
//! stream of both outputs, on its standard output, and says in it that a cell failed.
//!
//! # Method
//! The cells' process says in lines of its standard output that a cell panicked, failed or is complete. Before the
//! watcher passes on such a line, it reads what the standard error holds: all that the cell wrote to it is there by then.
//! When the process ends, both outputs are read to their end, so the last words of an abort arrive, too.
//!
//! evcxr keeps one block of each MIME type, so that of two displays it would show the last alone: the watcher puts the number of
//! the display before the type.
//!
//! # Limits
//! Unix. The lines are those of evcxr 0.22. Lines of both outputs within a cell come in the order in which they are found.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};

use crate::file::begins_another;
use crate::inside;
use marks::{CONTENT, CONTENT_END, EVCXR_COMPLETE, EVCXR_PANICKED, EVCXR_RETURNED};

/// The variable that tells a process of this program what it is, and its values.
const PROCESS: &str = "NOTEBOOK_RUNNER_PROCESS";
const WATCHER: &str = "watcher";
const CELLS: &str = "cells";

/// The variable that keeps memory that is given back in one pool (glibc).
pub(crate) const ARENAS: &str = "MALLOC_ARENA_MAX";

/// What the watcher's output says besides what cells wrote, and evcxr's lines.
pub(crate) mod marks {
    /// Begins a line of the standard error.
    pub(crate) const STDERR: &str = "\u{1}stderr ";
    /// Ends a line that the cell left without its end.
    pub(crate) const UNENDED: &str = "\u{1}unended";
    /// The cell panicked.
    pub(crate) const PANICKED: &str = "\u{1}panicked";
    /// A `?` returned an error from the cell.
    pub(crate) const RETURNED: &str = "\u{1}returned";
    /// Ends an error that a `?` returned; where in the generated source stands behind it.
    pub(crate) const AT: &str = "\u{1}at ";
    /// The process of the cells ended; how stands behind it.
    pub(crate) const ENDED: &str = "\u{1}ended ";

    pub(super) const EVCXR_PANICKED: &str = "EVCXR_PANIC_NOTIFICATION";
    pub(super) const EVCXR_RETURNED: &str = "EVCXR_ERROR_OCCURRED";
    pub(crate) const EVCXR_COMPLETE: &str = "EVCXR_EXECUTION_COMPLETE";
    /// Behind the number of a display, before its type.
    pub(crate) const DISPLAY: char = ';';
    pub(super) const CONTENT: &str = "EVCXR_BEGIN_CONTENT ";
    pub(super) const CONTENT_END: &str = "EVCXR_END_CONTENT";
}

/// The command by which evcxr starts the watcher: the leader of a group of processes, so that the end of the group is
/// the end of the cells and of what they started.
pub(crate) fn command() -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(PROCESS, WATCHER).env_remove(ARENAS).process_group(0);
    Ok(command)
}

/// In a process for cells: does its work and never returns. Elsewhere: nothing.
pub(crate) fn become_cells() -> anyhow::Result<()> {
    match std::env::var_os(PROCESS) {
        Some(process) if process == WATCHER => {
            let mut command = Command::new(std::env::current_exe()?);
            // A backtrace shows evcxr's functions only.
            command.env(PROCESS, CELLS).env_remove("RUST_BACKTRACE").args(std::env::args_os().skip(1));
            let cells = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
            watch(cells.context("cells cannot be started")?)?;
        }
        Some(_) => inside::run()?,
        None => {
            // For the compiler, which evcxr starts through this program.
            evcxr::runtime_hook();
            return Ok(());
        }
    }
    std::process::exit(0)
}

/// Passes on what cells write until their process ends.
fn watch(mut cells: Child) -> anyhow::Result<()> {
    let output = cells.stdout.take().context("no standard output")?;
    let errors = cells.stderr.take().context("no standard error")?;
    rustix::io::ioctl_fionbio(&output, true)?;
    rustix::io::ioctl_fionbio(&errors, true)?;
    // A pipe that closes tells the end of the process: what it started may hold its outputs open.
    let (ended, notice) = io::pipe()?;
    let process = rustix::process::Pid::from_child(&cells);
    let waiter = std::thread::spawn(move || {
        let status = cells.wait();
        drop(notice);
        status
    });
    let mut passing = Passing::to(io::stdout());
    let mut sources = Sources { output: Some(output), errors: Some(errors) };
    loop {
        match step(&mut passing, &mut sources, &ended) {
            Ok(true) => {}
            Ok(false) => break,
            // Nobody reads any more: the cells are nobody's.
            Err(error) => {
                let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
                return Err(error).context("what cells write cannot be passed on");
            }
        }
    }
    let how = waiter.join().map_err(|_| anyhow::anyhow!("the process of the cells cannot be waited for"))??;
    passing.end(&format!("{how}"))?;
    Ok(())
}

/// The outputs of the cells' process, as long as they are open.
struct Sources {
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
}

/// Waits for something to pass on, and passes it on. Whether there may be more.
fn step<W: Write + AsFd>(passing: &mut Passing<W>, sources: &mut Sources, ended: &io::PipeReader) -> io::Result<bool> {
    let (over, gone) = {
        let mut waited = vec![PollFd::new(ended, PollFlags::IN), PollFd::new(&passing.to, PollFlags::empty())];
        waited.extend(sources.output.iter().map(|output| PollFd::new(output, PollFlags::IN)));
        waited.extend(sources.errors.iter().map(|errors| PollFd::new(errors, PollFlags::IN)));
        match poll(&mut waited, None) {
            Err(rustix::io::Errno::INTR) => return Ok(true),
            other => other?,
        };
        (!waited[0].revents().is_empty(), waited[1].revents().intersects(PollFlags::ERR | PollFlags::HUP))
    };
    if gone {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    loop {
        let errors = available(&mut sources.errors)?;
        passing.errors(&errors)?;
        let output = available(&mut sources.output)?;
        if output.is_empty() {
            break;
        }
        passing.output(&output, || available(&mut sources.errors))?;
    }
    Ok(!over)
}

/// What can be read now, up to some size. An output that has ended is closed.
fn available(source: &mut Option<impl Read>) -> io::Result<Vec<u8>> {
    let Some(open) = source else { return Ok(Vec::new()) };
    let mut buffer = vec![0; 1 << 16];
    loop {
        match open.read(&mut buffer) {
            Ok(0) => {
                *source = None;
                return Ok(Vec::new());
            }
            Ok(count) => {
                buffer.truncate(count);
                return Ok(buffer);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
    }
}

/// Both outputs on their way into one.
struct Passing<W> {
    to: W,
    /// Lines that have not ended yet.
    rest: Vec<u8>,
    errors_rest: Vec<u8>,
    /// Between the marks of a block that a cell shows, where no line may be put in.
    in_content: bool,
    /// How many displays of the cell are whole, and the types of the one after them.
    displays: usize,
    types: HashSet<String>,
}

impl<W: Write> Passing<W> {
    fn to(to: W) -> Self {
        let (rest, errors_rest) = (Vec::new(), Vec::new());
        Self { to, rest, errors_rest, in_content: false, displays: 0, types: HashSet::new() }
    }

    /// Passes on what came on the standard output; `errors` reads what the standard error holds.
    fn output(&mut self, bytes: &[u8], mut errors: impl FnMut() -> io::Result<Vec<u8>>) -> io::Result<()> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(piece);
            if self.rest.ends_with(b"\n") {
                let line = std::mem::take(&mut self.rest);
                self.line(&line[..line.len() - 1], &mut errors)?;
            }
        }
        self.to.flush()
    }

    fn line(&mut self, line: &[u8], errors: &mut impl FnMut() -> io::Result<Vec<u8>>) -> io::Result<()> {
        let mark =
            [EVCXR_COMPLETE, EVCXR_PANICKED, EVCXR_RETURNED].into_iter().find(|mark| line.ends_with(mark.as_bytes()));
        if let Some(mark) = mark {
            self.unended(&line[..line.len() - mark.len()])?;
            loop {
                let read = errors()?;
                if read.is_empty() {
                    break;
                }
                self.errors_rest.extend(read);
            }
            self.content_end()?;
            self.errors(b"")?;
            self.errors_end()?;
            if mark == EVCXR_COMPLETE {
                (self.displays, self.types) = (0, HashSet::new());
            }
            match mark {
                EVCXR_PANICKED => writeln!(self.to, "{}", marks::PANICKED)?,
                EVCXR_RETURNED => writeln!(self.to, "{}", marks::RETURNED)?,
                _ => {}
            }
            return writeln!(self.to, "{mark}");
        }
        let start =
            line.windows(CONTENT.len()).position(|part| part == CONTENT.as_bytes()).filter(|_| !self.in_content);
        let line = match start {
            Some(start) => {
                self.unended(&line[..start])?;
                self.in_content = true;
                let kind = String::from_utf8_lossy(&line[start + CONTENT.len()..]).into_owned();
                if begins_another(self.types.iter(), &kind) {
                    self.types.clear();
                    self.displays += 1;
                }
                writeln!(self.to, "{CONTENT}{}{}{kind}", self.displays, marks::DISPLAY)?;
                self.types.insert(kind);
                return Ok(());
            }
            None => line,
        };
        self.in_content &= line != CONTENT_END.as_bytes();
        self.text(line)?;
        self.to.write_all(b"\n")
    }

    /// Passes on what came on the standard error.
    fn errors(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.errors_rest.extend_from_slice(bytes);
        if self.in_content {
            return Ok(());
        }
        let Some(end) = self.errors_rest.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let rest = self.errors_rest.split_off(end + 1);
        for line in std::mem::replace(&mut self.errors_rest, rest).split_inclusive(|byte| *byte == b'\n') {
            self.to.write_all(marks::STDERR.as_bytes())?;
            self.text(line)?;
        }
        self.to.flush()
    }

    /// Passes on a line of the standard error that has no end.
    fn errors_end(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.errors_rest);
        if rest.is_empty() {
            return Ok(());
        }
        self.to.write_all(marks::STDERR.as_bytes())?;
        self.unended(&rest)
    }

    fn unended(&mut self, part: &[u8]) -> io::Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        self.text(part)?;
        writeln!(self.to, "{}", marks::UNENDED)
    }

    /// Passes on what a cell wrote. Of bytes that are no text evcxr would read nothing further, and take the end of this cell
    /// for that of the next one.
    fn text(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(String::from_utf8_lossy(bytes).as_bytes())
    }

    /// Ends a block that the cell does not end any more: evcxr would take all that comes for what it shows.
    fn content_end(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.in_content) { writeln!(self.to, "{CONTENT_END}") } else { Ok(()) }
    }

    /// Passes on what is left, and how the process ended.
    fn end(&mut self, how: &str) -> io::Result<()> {
        self.content_end()?;
        self.errors(b"")?;
        self.errors_end()?;
        let rest = std::mem::take(&mut self.rest);
        self.unended(&rest)?;
        writeln!(self.to, "{}{how}", marks::ENDED)?;
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What arrives of `output`, written after all of `errors`.
    fn passed(output: &str, errors: &str) -> String {
        let mut held = Some(errors.as_bytes().to_vec());
        let mut passing = Passing::to(Vec::new());
        for part in output.as_bytes().chunks(3) {
            passing.output(part, || Ok(held.take().unwrap_or_default())).unwrap();
        }
        String::from_utf8(passing.to).unwrap()
    }

    #[test]
    fn what_stands_on_the_standard_error_arrives_before_the_word_that_the_cell_failed() {
        let arrived = passed("one\nEVCXR_ERROR_OCCURRED\nEVCXR_EXECUTION_COMPLETE\n", "no such\nreading");
        let expected = format!(
            "one\n{0}no such\n{0}reading{1}\n{2}\nEVCXR_ERROR_OCCURRED\nEVCXR_EXECUTION_COMPLETE\n",
            marks::STDERR,
            marks::UNENDED,
            marks::RETURNED
        );
        assert_eq!(arrived, expected);
        assert!(passed("EVCXR_PANIC_NOTIFICATION\n", "").starts_with(marks::PANICKED));
    }

    #[test]
    fn a_line_without_its_end_does_not_hide_the_end_of_the_cell() {
        let arrived = passed("50 %EVCXR_EXECUTION_COMPLETE\n", "");
        assert_eq!(arrived, format!("50 %{}\nEVCXR_EXECUTION_COMPLETE\n", marks::UNENDED));
        let arrived = passed("50 %EVCXR_BEGIN_CONTENT text/plain\nx\nEVCXR_END_CONTENT\n", "");
        assert_eq!(
            arrived,
            format!("50 %{}\nEVCXR_BEGIN_CONTENT 0;text/plain\nx\nEVCXR_END_CONTENT\n", marks::UNENDED)
        );
    }

    #[test]
    fn bytes_that_are_no_text_arrive_as_such_that_are() {
        let mut passing = Passing::to(Vec::new());
        passing.errors(b"\xf0\nlast \x80").unwrap();
        passing.output(b"a\xffb\n50 \xfe%EVCXR_EXECUTION_COMPLETE\n", || Ok(Vec::new())).unwrap();
        let text = String::from_utf8(passing.to).unwrap();
        let replaced = ["\u{fffd}\n", "a\u{fffd}b\n", "50 \u{fffd}%", "last \u{fffd}", "\nEVCXR_EXECUTION_COMPLETE\n"];
        assert!(replaced.iter().all(|part| text.contains(part)), "{text}");
    }

    #[test]
    fn no_line_is_put_into_what_a_cell_shows() {
        let mut passing = Passing::to(Vec::new());
        passing.output(b"EVCXR_BEGIN_CONTENT text/plain\n1\n", || Ok(Vec::new())).unwrap();
        passing.errors(b"warning\n").unwrap();
        passing.output(b"2\nEVCXR_END_CONTENT\n", || Ok(Vec::new())).unwrap();
        passing.errors(b"").unwrap();
        let text = String::from_utf8(passing.to).unwrap();
        assert_eq!(
            text,
            format!("EVCXR_BEGIN_CONTENT 0;text/plain\n1\n2\nEVCXR_END_CONTENT\n{}warning\n", marks::STDERR)
        );
    }

    #[test]
    fn a_display_has_a_number_and_the_next_cell_begins_anew() {
        let block = |kind: &str| format!("EVCXR_BEGIN_CONTENT {kind}\nx\nEVCXR_END_CONTENT\n");
        let written = ["text/html", "text/plain", "text/html", "text/plain", "text/plain"].map(block).concat();
        let whole = format!("{written}{EVCXR_COMPLETE}\n{}", block("text/plain") + &block("text/html"));
        let arrived = passed(&whole, "");
        let numbers: Vec<&str> = arrived.lines().filter_map(|line| line.strip_prefix(CONTENT)).collect();
        let expected = [
            "0;text/html",
            "0;text/plain",
            "1;text/html",
            "1;text/plain",
            "2;text/plain",
            "0;text/plain",
            "1;text/html",
        ];
        assert_eq!(numbers, expected);
    }

    #[test]
    fn a_cell_that_fails_within_what_it_shows_ends_that() {
        let arrived = passed("EVCXR_BEGIN_CONTENT text/html\nx\nEVCXR_ERROR_OCCURRED\n", "no such reading\n");
        let expected = format!(
            "EVCXR_BEGIN_CONTENT 0;text/html\nx\nEVCXR_END_CONTENT\n{}no such reading\n{}\nEVCXR_ERROR_OCCURRED\n",
            marks::STDERR,
            marks::RETURNED
        );
        assert_eq!(arrived, expected);
    }
}
