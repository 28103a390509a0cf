//! The command line: measures where a host and a device wait for each other and publishes it as a book.

mod bench;
mod book;
mod check;
mod claims;
mod compare;
mod device;
mod devices;
mod experiments;
mod init;
mod interrupt;
mod job;
mod kernel;
mod peers;
mod progress;
mod render;
mod run;
mod schema;
mod serve;
mod suite;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use syncscope::error::{BookError, DeviceError, PeerError, ResultsError, SuiteError};

/// Measures where a host and a GPU wait for each other, and publishes the answer as a book.
///
/// Without a subcommand: runs the quick suite on the first GPU (on the CPU engine where there is none), prints a
/// summary and renders the book.
#[derive(Parser)]
#[command(version, after_help = "Example:\n  report --suite full --out target/full")]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    job: job::Arguments,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Arguments),
    Render(render::Arguments),
    Serve(serve::Arguments),
    Init(init::Arguments),
    Bench(bench::Arguments),
    Claims(claims::Arguments),
    Devices(devices::Arguments),
    Experiments(experiments::Arguments),
    Check(check::Arguments),
    Schema(schema::Arguments),
    Compare(compare::Arguments),
    Verify(verify::Arguments),
    Kernel(kernel::Arguments),
    Peers(peers::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse() {
        Cli { command: None, job } => job::execute(job),
        Cli { command: Some(command), .. } => match command {
            Command::Run(arguments) => run::execute(arguments),
            Command::Render(arguments) => render::execute(arguments),
            Command::Serve(arguments) => serve::execute(arguments),
            Command::Init(arguments) => init::execute(arguments),
            Command::Bench(arguments) => bench::execute(arguments),
            Command::Claims(arguments) => claims::execute(arguments),
            Command::Devices(arguments) => devices::execute(arguments),
            Command::Experiments(arguments) => experiments::execute(arguments),
            Command::Check(arguments) => check::execute(arguments),
            Command::Schema(arguments) => schema::execute(arguments),
            Command::Compare(arguments) => compare::execute(arguments),
            Command::Verify(arguments) => verify::execute(arguments),
            Command::Kernel(arguments) => kernel::execute(arguments),
            Command::Peers(arguments) => peers::execute(arguments),
        },
    };
    match outcome {
        Ok(end) => ExitCode::from(end as u8),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(code_of(&error) as u8)
        }
    }
}

/// How a command ended, as its exit code.
#[derive(Clone, Copy)]
enum End {
    /// All is well.
    Well = 0,
    /// Something failed on the way; what did not is there.
    Failed = 1,
    /// What the user gave is wrong; nothing was done.
    Refused = 2,
    /// The user stopped it: 128 + SIGINT, as shells have it.
    Interrupted = 130,
}

fn code_of(error: &anyhow::Error) -> End {
    let device = error.downcast_ref::<DeviceError>();
    let asked_wrongly = matches!(device, Some(DeviceError::NoSuchDevice { .. }))
        || error.is::<SuiteError>()
        || error.is::<ResultsError>()
        || error.is::<PeerError>()
        || error.is::<UsageError>()
        || matches!(error.downcast_ref(), Some(BookError::NotEmpty { .. } | BookError::Document(_)));
    if asked_wrongly { End::Refused } else { End::Failed }
}

/// A wrong argument that clap could not know to be wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct UsageError(String);
