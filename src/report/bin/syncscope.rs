//! The same program as `report`, by the name of the project.

use std::process::ExitCode;

fn main() -> ExitCode {
    syncscope_report::App::new().main()
}
