//! `report serve`: shows a rendered book at an address of this machine.
//!
//! A program for one reader on the same machine, of files that may be anybody's: it answers nobody else, serves nothing
//! but the site, and holds no connection for longer than a reader needs it.

mod answer;
mod content;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::ending::{self, AskedBy};
use super::{End, UsageError, argument, program};
use answer::answer;

/// Connections at a time: far from the files that a process may open.
const MOST_CONNECTIONS: usize = 256;
/// How long a connection may take to send a request, and how long it may last.
const REQUEST: Duration = Duration::from_secs(5);
const CONNECTION: Duration = Duration::from_secs(120);
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
    listener.set_nonblocking(true)?;
    ending::listen(AskedBy::User, || std::process::exit(End::Well as i32))?;
    say!("{}: http://{}/ (Ctrl-C ends it)", site.display(), listener.local_addr()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { serve(tokio::net::TcpListener::from_std(listener)?, site.into()).await })
}

async fn serve(listener: tokio::net::TcpListener, site: Arc<Path>) -> anyhow::Result<End> {
    let mut open: VecDeque<JoinHandle<()>> = VecDeque::new();
    loop {
        let accepted = listener.accept().await;
        open.retain(|connection| !connection.is_finished());
        // The oldest gives its place up: callers that do not read what they asked for shut nobody out.
        let is_full = open.len() >= MOST_CONNECTIONS;
        if is_full || accepted.is_err() {
            open.pop_front().iter().for_each(JoinHandle::abort);
        }
        let Ok((stream, _)) = accepted else {
            // The machine is out of files or memory, or the caller has gone: others may be served later.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let site = Arc::clone(&site);
        open.push_back(tokio::spawn(async move {
            // What goes wrong on one connection ends that one.
            let _ = tokio::time::timeout(CONNECTION, connection(stream, &site)).await;
        }));
    }
}

async fn connection(stream: TcpStream, site: &Path) -> anyhow::Result<()> {
    // An answer is sent at once, not when the last one has been acknowledged.
    stream.set_nodelay(true)?;
    let answered = service_fn(|request: Request<Incoming>| async move {
        Ok::<_, Infallible>(answer(site, request.method(), request.uri(), request.headers()))
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(REQUEST);
    Ok(server.serve_connection(TokioIo::new(stream), answered).await?)
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
            let (program, folder, next) = (program(), argument(folder), port.checked_add(1).unwrap_or(0));
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
