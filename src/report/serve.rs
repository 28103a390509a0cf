//! `report serve`: shows a rendered book at an address of this machine.
//!
//! A preview for one reader on the same machine, of files that may be anybody's: it listens on the loopback address alone,
//! answers to the names of this machine alone, and serves nothing but the site. It limits neither how many connections there
//! are nor how long they last.

use std::fs;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use clap::Args;
use percent_encoding::percent_decode_str;
use tokio::net::TcpListener;

use super::interrupt::{self, AskedBy};
use super::{End, UsageError, argument, invocation};
use crate::error::at;
use crate::files::kind_of;

/// The names of this machine for itself. A page from elsewhere can give its own name this machine's address, and would read
/// the book under that name.
const HOSTS: [&str; 2] = ["localhost", "127.0.0.1"];

/// The page of a folder.
const PAGE: &str = "index.html";

/// What each answer says beside its content. The pages' own policy is in them, and stricter.
const HEADERS: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'self' 'unsafe-inline' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "SAMEORIGIN"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-cache"),
];

/// The policy of what is no page: a picture that is opened by itself runs no script.
const OF_NO_PAGE: HeaderValue =
    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox");

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
    if !is_dated(SystemTime::now()) {
        let message =
            "the clock of this machine is before 1970 or after 9999, and each answer says its time: set the clock";
        return Err(UsageError(message.to_owned()).into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await;
        let listener = listener.map_err(|error| taken(arguments, error))?;
        interrupt::listen(AskedBy::User, || std::process::exit(End::Well as i32))?;
        say!("{}: http://{}/ (Ctrl-C ends it)", site.display(), listener.local_addr()?);
        // An answer is sent at once, not when the last one has been acknowledged.
        let listener = listener.tap_io(|stream| _ = stream.set_nodelay(true));
        axum::serve(listener, app(&site)?).await?;
        Ok(End::Well)
    })
}

/// The files of a site.
fn app(site: &Path) -> std::io::Result<Router> {
    Ok(Router::new().fallback(answered).with_state(fs::canonicalize(site)?))
}

/// Answers a request by a name of this machine for what lies in the site, links followed.
async fn answered(State(root): State<PathBuf>, request: Request) -> Response {
    // Of two names, the caller may have meant the other. An address as a whole names a host, too.
    let hosts: Vec<&str> = request.headers().get_all(HOST).iter().filter_map(|host| host.to_str().ok()).collect();
    let is_known = hosts.len() == 1 && hosts.into_iter().chain(request.uri().host()).all(is_this_machine);
    let file = inside(&root, request.uri().path());
    let mut response = match file {
        _ if !is_known => (StatusCode::MISDIRECTED_REQUEST, "this book is served to localhost alone\n").into_response(),
        _ if ![Method::GET, Method::HEAD].contains(request.method()) => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        Some(file) => content(&file),
        None => (StatusCode::NOT_FOUND, "there is no such page\n").into_response(),
    };
    let is_page = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if response.status().is_success() && !is_page {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, OF_NO_PAGE);
    }
    response
}

/// Whether a `Host` is a name of this machine, on whatever port: it may be forwarded.
fn is_this_machine(host: &str) -> bool {
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    HOSTS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The file that a path leads to, of a folder with `/` behind it its page, where that lies in the site and is not hidden.
fn inside(root: &Path, path: &str) -> Option<PathBuf> {
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let page = decoded.ends_with('/').then_some(PAGE);
    let parts: Vec<&str> = decoded.split('/').filter(|part| !part.is_empty()).chain(page).collect();
    let there = fs::canonicalize(parts.iter().fold(root.to_owned(), |path, part| path.join(part))).ok()?;
    (!parts.iter().any(|part| part.starts_with('.')) && there.starts_with(root) && there.is_file()).then_some(there)
}

/// Whether a time is of the years 1970 to 9999, which an answer can say.
fn is_dated(time: SystemTime) -> bool {
    const END: Duration = Duration::from_secs(253_402_300_800);
    time.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|since| since < END)
}

/// Answers with a file as a whole.
fn content(file: &Path) -> Response {
    match fs::read(file) {
        Ok(content) => {
            ([(CONTENT_TYPE, mime_guess::from_path(file).first_or_octet_stream().as_ref())], content).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

/// The site in a folder: its `site/`, or the folder itself.
fn site_in(folder: &Path) -> anyhow::Result<PathBuf> {
    for place in [folder.join("site"), folder.to_owned()] {
        if kind_of(&place.join(PAGE)).map_err(at(&place))?.is_some() {
            return Ok(place);
        }
    }
    let program = invocation();
    Err(UsageError(format!("{}: no book is there; `{program}` and `{program} render` make one", folder.display()))
        .into())
}

fn taken(arguments: &Arguments, error: std::io::Error) -> anyhow::Error {
    let Arguments { folder, port } = arguments;
    match error.kind() {
        ErrorKind::AddrInUse => {
            let (program, folder, next) = (invocation(), argument(folder), port.checked_add(1).unwrap_or(0));
            UsageError(format!(
                "port {port} is taken by another program; name another: {program} serve {folder} --port {next}"
            ))
            .into()
        }
        _ => anyhow::Error::new(error).context(format!("cannot listen on port {port}")),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tower::ServiceExt;

    use super::*;

    fn site() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("site/data")).unwrap();
        fs::write(folder.path().join("site/index.html"), "the book").unwrap();
        fs::write(folder.path().join("site/data/a b.csv"), "a,b").unwrap();
        fs::write(folder.path().join("site/.hidden"), "hidden").unwrap();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        folder
    }

    fn ask(folder: &Path, method: Method, path: &str, hosts: &[&str]) -> Response {
        let request = hosts.iter().fold(Request::builder().method(method).uri(path), |to, host| to.header(HOST, *host));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let answered = app(&folder.join("site")).unwrap().oneshot(request.body(Body::empty()).unwrap());
        runtime.block_on(answered).unwrap()
    }

    fn status(folder: &Path, path: &str) -> u16 {
        ask(folder, Method::GET, path, &["localhost:3000"]).status().as_u16()
    }

    #[test]
    fn files_of_the_site_are_served_by_their_kind() {
        let folder = site();
        for (path, kind) in [("/", "text/html"), ("/data/a%20b.csv?x", "text/csv")] {
            let answer = ask(folder.path(), Method::GET, path, &["127.0.0.1:3000"]);
            assert_eq!((answer.status().as_u16(), &answer.headers()[CONTENT_TYPE]), (200, &kind.parse().unwrap()));
        }
    }

    #[test]
    fn nothing_outside_of_the_site_is_served() {
        let folder = site();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("site/link.txt")).unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("site/root")).unwrap();
        for path in [
            "/link.txt",
            "/root/etc/passwd",
            "/../secret",
            "/%2e%2e/secret",
            "/..%2fsecret",
            "/data/../../secret",
            "//etc/passwd",
            "/.hidden",
        ] {
            assert_eq!(status(folder.path(), path), 404, "{path}");
        }
    }

    #[test]
    fn the_page_of_a_folder_that_lies_elsewhere_is_not_served() {
        let folder = site();
        std::os::unix::fs::symlink(folder.path().join("secret"), folder.path().join("site/data/index.html")).unwrap();
        assert_eq!(status(folder.path(), "/data/"), 404);
    }

    #[test]
    fn no_answer_leads_to_another_host() {
        let folder = site();
        for path in ["//example.org", "//example.org/..", "/data", "/%2f%2fexample.org", "http://example.org/"] {
            let answer = ask(folder.path(), Method::GET, path, &["localhost"]);
            let to = answer.headers().get("location").map(|to| to.to_str().unwrap());
            assert!(to.is_none(), "{path}: {to:?}");
        }
    }

    #[test]
    fn only_this_machine_by_its_own_names_is_answered() {
        let folder = site();
        let of = |hosts: &[&str]| ask(folder.path(), Method::GET, "/", hosts).status().as_u16();
        for host in ["evil.example", "evil.example:3000", "localhost.evil.example", "127.0.0.1.evil.example:3000"] {
            assert_eq!(of(&[host]), 421, "{host}");
        }
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:3000"] {
            assert_eq!(of(&[host]), 200, "{host}");
        }
        for hosts in [&[][..], &["localhost", "evil.example"], &["evil.example", "localhost"]] {
            assert_eq!(of(hosts), 421, "{hosts:?}");
        }
        for (uri, status) in
            [("http://evil.example/", 421), ("http://localhost@evil.example/", 421), ("http://localhost/", 200)]
        {
            assert_eq!(super::tests::status(folder.path(), uri), status, "{uri}");
        }
    }

    #[test]
    fn a_picture_that_is_opened_by_itself_runs_no_script() {
        let folder = site();
        fs::write(folder.path().join("site/picture.svg"), "<svg onload='alert(1)'/>").unwrap();
        let answer = ask(folder.path(), Method::GET, "/picture.svg", &["localhost"]);
        assert_eq!(answer.headers()[CONTENT_SECURITY_POLICY], OF_NO_PAGE);
    }

    #[test]
    fn every_answer_says_what_a_browser_may_make_of_it_and_nothing_is_written() {
        let folder = site();
        for (method, path) in [(Method::GET, "/"), (Method::GET, "/none"), (Method::POST, "/"), (Method::DELETE, "/")] {
            let answer = ask(folder.path(), method.clone(), path, &["localhost"]);
            assert!(HEADERS.iter().all(|(name, value)| answer.headers()[*name] == *value), "{method} {path}");
            assert_eq!(answer.status().as_u16() == 405, method != Method::GET);
        }
    }
}
