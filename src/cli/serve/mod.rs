//! `report serve`: shows a rendered book at an address of this machine.
//!
//! A program for one reader on the same machine, of files that may be anybody's: it answers nobody else, serves nothing
//! but the site, and holds no connection for longer than a reader needs it.

mod answer;
mod connection;

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use rustix::process::{Resource, getrlimit};

use super::{End, UsageError, program};

/// Connections at a time, a thread each.
const MOST_CONNECTIONS: u64 = 64;
/// The open files of the process beside those of its connections.
const OTHER_FILES: u64 = 16;
/// How long to wait where no connection can be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// Show a rendered book at a local address, until Ctrl-C
#[derive(Args)]
#[command(after_help = "Example:\n  report serve target/report --port 8080")]
pub(super) struct Arguments {
    /// The folder that the book was rendered into, or a site's own
    #[arg(value_name = "DIR", default_value = "target/report")]
    folder: PathBuf,
    /// The port; 0 takes one that is free
    #[arg(long, default_value_t = 3000)]
    port: u16,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<End> {
    let site = site_in(&arguments.folder)?;
    // Reachable from this machine alone.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).map_err(|error| taken(arguments, error))?;
    ctrlc::set_handler(|| std::process::exit(End::Well as i32)).context("cannot listen for Ctrl-C")?;
    say!("{}: http://{}/ (Ctrl-C ends it)", site.display(), listener.local_addr()?);
    thread::scope(|scope| {
        for _ in 1..connections() {
            // Where the machine gives no more threads, those that there are serve.
            let _ = thread::Builder::new().spawn_scoped(scope, || serve(&listener, &site));
        }
        serve(&listener, &site)
    })
}

/// How many connections are served at a time: so many that each can open a file of the site beside its own.
fn connections() -> u64 {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (files.saturating_sub(OTHER_FILES) / 2).clamp(1, MOST_CONNECTIONS)
}

/// Serves one caller after the other, for as long as the program runs.
fn serve(listener: &TcpListener, site: &Path) -> ! {
    loop {
        match listener.accept() {
            // What goes wrong on one connection ends that one.
            Ok((stream, _)) => _ = connection::serve(&stream, site),
            // The machine is out of files or memory, or the caller has gone: others may be served later.
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// The site in a folder: its `site/`, or the folder itself.
fn site_in(folder: &Path) -> Result<PathBuf, UsageError> {
    let places = [folder.join("site"), folder.to_owned()];
    let found = places.into_iter().find(|place| place.join("index.html").is_file());
    found.ok_or_else(|| {
        let program = program();
        UsageError(format!("{}: no book is there; `{program}` and `{program} render` make one", folder.display()))
    })
}

fn taken(arguments: &Arguments, error: std::io::Error) -> anyhow::Error {
    let Arguments { folder, port } = arguments;
    match error.kind() {
        ErrorKind::AddrInUse => {
            let (program, folder, next) = (program(), folder.display(), port.checked_add(1).unwrap_or(0));
            UsageError(format!(
                "port {port} is taken by another program; name another: {program} serve {folder} --port {next}"
            ))
            .into()
        }
        ErrorKind::PermissionDenied => {
            UsageError(format!("port {port} is not free for every user; name one above 1023 by --port")).into()
        }
        _ => anyhow::Error::new(error).context(format!("cannot listen on port {port}")),
    }
}
