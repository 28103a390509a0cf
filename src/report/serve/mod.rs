//! `report serve`: shows a rendered book at an address of this machine.
//!
//! A program for one reader on the same machine, of files that may be anybody's: it answers nobody else, serves nothing
//! but the site, and holds no connection for longer than a reader needs it.

mod answer;
mod content;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use super::ending::{self, AskedBy};
use super::{End, UsageError, argument, program};
use answer::answer;

/// The most connections at a time. Each has a socket and a file open, and the program has some files of its own.
const MOST_CONNECTIONS: u64 = 256;
const OWN_FILES: u64 = 16;
/// How long a connection may take to send a request, and how long it may last.
const REQUEST: Duration = Duration::from_secs(5);
const CONNECTION: Duration = Duration::from_secs(120);
/// How long to wait where no connection can be taken, and none of those that are open can be ended for it.
const PAUSE: Duration = Duration::from_millis(100);
/// The most bytes that the system keeps of an answer for a caller that does not read it. By itself it keeps megabytes, and of
/// many such callers the copying of them keeps a new one waiting.
const SENT_AHEAD: u32 = 128 << 10;
/// Callers that the system keeps until they are taken.
const BACKLOG: u32 = 1024;

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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = listen(arguments.port).map_err(|error| taken(arguments, error))?;
        ending::listen(AskedBy::User, || std::process::exit(End::Well as i32))?;
        say!("{}: http://{}/ (Ctrl-C ends it)", site.display(), listener.local_addr()?);
        serve(listener, site.into()).await
    })
}

/// Listens on a port, reachable from this machine alone.
fn listen(port: u16) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    // As the standard library has it: a port whose last program has ended is free.
    socket.set_reuseaddr(true)?;
    // The connections have what the socket has that they come from.
    socket.set_send_buffer_size(SENT_AHEAD)?;
    socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
    socket.listen(BACKLOG)
}

async fn serve(listener: TcpListener, site: Arc<Path>) -> anyhow::Result<End> {
    let mut open: VecDeque<JoinHandle<()>> = VecDeque::new();
    let most = most_connections();
    loop {
        let accepted = listener.accept().await;
        if accepted.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionAborted) {
            continue;
        }
        open.retain(|connection| !connection.is_finished());
        // The oldest gives its place up: callers that do not read what they asked for shut nobody out.
        let is_full = open.len() >= most;
        let oldest = if is_full || accepted.is_err() { open.pop_front() } else { None };
        let was_open = oldest.is_some();
        if let Some(oldest) = oldest {
            oldest.abort();
            // Its files are closed then.
            let _ = oldest.await;
        }
        let Ok((stream, _)) = accepted else {
            // The machine is out of files or memory: others may be served later.
            if !was_open {
                tokio::time::sleep(PAUSE).await;
            }
            continue;
        };
        let site = Arc::clone(&site);
        open.push_back(tokio::spawn(async move {
            // What goes wrong on one connection ends that one.
            let _ = tokio::time::timeout(CONNECTION, connection(stream, &site)).await;
        }));
    }
}

/// How many connections there may be, of the files that a process may open here.
fn most_connections() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = (files.saturating_sub(OWN_FILES) / 2).clamp(1, MOST_CONNECTIONS);
    usize::try_from(most).unwrap_or(1)
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
