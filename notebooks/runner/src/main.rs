//! Executes the notebooks of syncscope without Jupyter and without Python, checks them, builds programs of them, and is
//! their Jupyter kernel, which it installs.
//!
//! | file | holds |
//! |---|---|
//! | `file` | a notebook on disk: its cells in, its outputs back |
//! | `session` | a process for cells, and what a cell came to |
//! | `cells` | that process and the one that watches it |
//! | `inside` | how it calls cells |
//! | `diagnostics` | why a cell does not compile |
//! | `places` | where in a cell something happened |
//! | `pictures` | the pictures of what a cell shows, as PNG, too |
//! | `library` | the library that a cell asks for |
//! | `kernel` | the Jupyter kernel |
//! | `execute` | notebooks, one after the other: executed, stored, checked |
//! | `program`, `record` | a notebook as a program, and its outputs on the way back |

mod cells;
mod diagnostics;
mod execute;
mod file;
mod inside;
mod kernel;
mod library;
mod pictures;
mod places;
mod program;
mod record;
mod session;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

/// Execute Rust notebooks; a cell that fails, panics, exits, overruns or does not compile fails the run
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:
  notebook-runner book/answers/*.ipynb
  notebook-runner --check --timeout 60 book/answers/00-quick-start.ipynb
  notebook-runner build book/answers/00-quick-start.ipynb
  notebook-runner install --prefix .venv")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// The notebooks; relative paths in them are those of their folder
    #[arg(required = true, value_name = "NOTEBOOK")]
    notebooks: Vec<PathBuf>,
    /// Store the outputs in the notebooks that ran to their end
    #[arg(long, conflicts_with = "check")]
    write: bool,
    /// Fail where a cell's outputs are of other kinds than those stored
    #[arg(long)]
    check: bool,
    /// The seconds that a cell may take, compilation included
    #[arg(long, value_name = "SECONDS", default_value = "180", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
}

#[derive(Subcommand)]
enum Command {
    /// Build a program of each notebook, for machines without a Rust toolchain; its standard output is the record
    Build {
        /// The notebooks
        #[arg(required = true, value_name = "NOTEBOOK")]
        notebooks: Vec<PathBuf>,
        /// The folder for the programs and what they are built in
        #[arg(long, value_name = "DIR", default_value = "target/notebooks")]
        out: PathBuf,
    },
    /// Install the Jupyter kernel "Rust (syncscope)"; `jupyter kernelspec` lists and uninstalls it
    #[command(after_help = "Examples:\n  notebook-runner install\n  notebook-runner install --prefix .venv")]
    Install {
        /// The environment of Python, such as .venv; without it, the user's own folder for Jupyter
        #[arg(long, value_name = "DIR")]
        prefix: Option<PathBuf>,
        /// The clone whose library cells get, instead of the one that this program was built from
        #[arg(long, value_name = "DIR")]
        library: Option<PathBuf>,
    },
    /// Be the kernel of Jupyter, from the folder in which it was installed
    Kernel {
        /// Jupyter's connection file
        connection: PathBuf,
    },
    /// Compile the library in the folder of a kernel, as the kernel does; the installation starts this
    #[command(hide = true)]
    Prepare {
        /// The kernel's folder
        folder: PathBuf,
    },
    /// Shorten what Cargo says of packages to those that rust-analyzer needs; the kernel's Cargo starts this
    #[command(hide = true)]
    Packages,
    /// Run cells, each also behind one that failed, and print as JSON what they came to; `report lab check` starts this
    #[command(hide = true)]
    Attempt {
        /// A file with the cells, as JSON
        cells: PathBuf,
    },
    /// Store in a notebook the outputs that its program recorded
    Store {
        /// The notebook
        notebook: PathBuf,
        /// What its program wrote on its standard output
        record: PathBuf,
        /// Write the notebook here instead
        #[arg(long, value_name = "NOTEBOOK")]
        out: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    if let Err(error) = cells::become_cells() {
        eprintln!("error: {error:#}");
        return ExitCode::FAILURE;
    }
    let outcome = match Cli::parse() {
        Cli { command: Some(Command::Build { notebooks, out }), .. } => program::build(&notebooks, &out).map(|()| true),
        Cli { command: Some(Command::Store { notebook, record, out }), .. } => {
            record::store(&notebook, &record, out.as_deref())
        }
        Cli { command: Some(Command::Install { prefix, library }), .. } => {
            kernel::install(prefix.as_deref(), library.as_deref()).map(|()| true)
        }
        Cli { command: Some(Command::Kernel { connection }), .. } => kernel::run(&connection).map(|()| true),
        Cli { command: Some(Command::Prepare { folder }), .. } => kernel::prepare(&folder).map(|()| true),
        Cli { command: Some(Command::Packages), .. } => kernel::shorten().map(|()| true),
        Cli { command: Some(Command::Attempt { cells }), .. } => kernel::attempt(&cells).map(|()| true),
        Cli { command: None, notebooks, write, check, timeout } => {
            let then = match (write, check) {
                (true, _) => execute::Then::Write,
                (_, true) => execute::Then::Check,
                _ => execute::Then::Nothing,
            };
            execute::all(&notebooks, then, Duration::from_secs(timeout))
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
