//! Cells that fail, fail.
//!
//! The kernel reports a cell as done even when it panicked or when a `?` returned an error: it prints the message and goes
//! on, so that a user keeps the variables. An unattended run must stop. [`strict`] ends the process of the cells, which the
//! kernel reports as an error of that cell.
//!
//! # Method
//! That process tells the kernel in a separate line on its standard output that a cell panicked or failed. A thread forwards
//! the output and ends the process at such a line.
//!
//! # Limits
//! The lines are those of evcxr 0.22. The last output of a program that calls `exit` itself may be lost.

use std::env;
use std::io;

/// The variable of the environment that asks for strictness.
const ASKED: &str = "SYNCSCOPE_STRICT";

/// Called in the first cell of a notebook. Makes the run [`strict`] where `SYNCSCOPE_STRICT` is set to anything but `0`, as
/// for unattended runs. Otherwise it does nothing, and a failed cell keeps the variables.
///
/// # Errors
/// As [`strict`].
pub fn begin() -> io::Result<()> {
    match env::var(ASKED) {
        Ok(value) if value != "0" => strict(),
        _ => Ok(()),
    }
}

/// From now on, ends this process with exit code 1 when a cell panics or a `?` returns an error from it.
///
/// # Errors
/// The standard output cannot be put behind a filter, as on systems other than Unix.
#[cfg(unix)]
pub fn strict() -> io::Result<()> {
    use std::os::fd::AsFd;

    let kernel = io::stdout().as_fd().try_clone_to_owned()?;
    let (output, cells) = io::pipe()?;
    rustix::stdio::dup2_stdout(&cells)?;
    let filter = move || match passes(io::BufReader::new(output), std::fs::File::from(kernel)) {
        Ok(None) => {}
        Ok(Some(failure)) => {
            eprintln!("{failure}");
            std::process::exit(1);
        }
        Err(error) => {
            eprintln!("the cell's output cannot be passed on: {error}");
            std::process::exit(1);
        }
    };
    std::thread::Builder::new().name("strict".to_owned()).spawn(filter)?;
    Ok(())
}

/// From now on, ends this process when a cell fails.
///
/// # Errors
/// Always: there is no such filter on this system.
#[cfg(not(unix))]
pub fn strict() -> io::Result<()> {
    Err(io::Error::other("strict runs of notebooks need a Unix system"))
}

/// Passes lines on until one says that a cell has failed, and says how. `None` where the output ended before.
#[cfg(unix)]
fn passes(mut output: impl io::BufRead, mut kernel: impl io::Write) -> io::Result<Option<&'static str>> {
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        match line.strip_suffix(b"\n").unwrap_or(&line) {
            b"EVCXR_PANIC_NOTIFICATION" => return Ok(Some("strict: the cell panicked")),
            b"EVCXR_ERROR_OCCURRED" => return Ok(Some("strict: the cell returned an error")),
            _ => kernel.write_all(&line)?,
        }
        line.clear();
    }
    Ok(None)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn passed(output: &str) -> (Option<&'static str>, String) {
        let mut kernel = Vec::new();
        let failure = passes(output.as_bytes(), &mut kernel).unwrap();
        (failure, String::from_utf8(kernel).unwrap())
    }

    #[test]
    fn what_cells_write_is_passed_on_as_it_is() {
        let output = "one\n\n  two EVCXR_ERROR_OCCURRED\nEVCXR_EXECUTION_COMPLETE\nno end";
        assert_eq!(passed(output), (None, output.to_owned()));
    }

    #[test]
    fn a_failure_ends_the_output_behind_what_came_before() {
        let (failure, kernel) = passed("before\nEVCXR_ERROR_OCCURRED\nEVCXR_EXECUTION_COMPLETE\n");
        assert_eq!((failure, kernel.as_str()), (Some("strict: the cell returned an error"), "before\n"));
        let (failure, _) = passed("EVCXR_PANIC_NOTIFICATION\n");
        assert_eq!(failure, Some("strict: the cell panicked"));
    }
}
