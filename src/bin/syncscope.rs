//! The same program as `report`, by the name of the project.

use std::process::ExitCode;

fn main() -> ExitCode {
    syncscope::cli::App::new().main()
}
