//! The command line of the library with its own experiments and book.

use std::process::ExitCode;

fn main() -> ExitCode {
    syncscope_report::App::new().main()
}
