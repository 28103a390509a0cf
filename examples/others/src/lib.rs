//! How the programs end.

use std::process::ExitCode;

use syncscope::error::CaseError;

/// The exit code of a program, which says in one line what went wrong.
pub fn ended(outcome: Result<(), CaseError>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
