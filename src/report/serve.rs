//! `report serve`: shows a rendered book at an address of this machine.
//!
//! A preview for one reader on the same machine, of files that may be anybody's: it listens on the loopback address alone,
//! answers to the names of this machine alone, and serves nothing but the site. It limits neither how many connections there
//! are nor how long they last.

use std::fs;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use clap::Args;
use percent_encoding::percent_decode_str;
use tokio::net::TcpListener;
use tower_http::services::ServeDir;

use super::interrupt::{self, AskedBy};
use super::{End, UsageError, argument, invocation};

/// The names of this machine for itself. A page from elsewhere can give its own name this machine's address, and would read
/// the book under that name.
const HOSTS: [&str; 2] = ["localhost", "127.0.0.1"];

/// What each answer says beside its content. The pages' own policy is in them, and stricter.
const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'self' 'unsafe-inline' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "SAMEORIGIN"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
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

/// The files of a site behind what guards them.
fn app(site: &Path) -> std::io::Result<Router> {
    let root = fs::canonicalize(site)?;
    Ok(Router::new().fallback_service(ServeDir::new(&root)).layer(from_fn_with_state(root, guarded)))
}

/// Answers a request by a name of this machine for what lies in the site, links followed.
async fn guarded(State(root): State<PathBuf>, request: Request, next: Next) -> Response {
    // Of two names, the caller may have meant the other. An address as a whole names a host, too.
    let hosts: Vec<&str> = request.headers().get_all(HOST).iter().filter_map(|host| host.to_str().ok()).collect();
    let is_known = hosts.len() == 1 && hosts.into_iter().chain(request.uri().host()).all(is_this_machine);
    let mut response = match is_known {
        false => (StatusCode::MISDIRECTED_REQUEST, "this book is served to localhost alone\n").into_response(),
        true if !is_inside(&root, request.uri().path()) => {
            (StatusCode::NOT_FOUND, "there is no such page\n").into_response()
        }
        true => next.run(request).await,
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

/// Whether a path leads to what is there, lies in the site and is not hidden.
fn is_inside(root: &Path, path: &str) -> bool {
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let parts: Vec<&str> = decoded.split('/').filter(|part| !part.is_empty()).collect();
    let there = fs::canonicalize(parts.iter().fold(root.to_owned(), |path, part| path.join(part)));
    !parts.iter().any(|part| part.starts_with('.')) && there.is_ok_and(|there| there.starts_with(root))
}

/// The site in a folder: its `site/`, or the folder itself.
fn site_in(folder: &Path) -> Result<PathBuf, UsageError> {
    let places = [folder.join("site"), folder.to_owned()];
    let found = places.into_iter().find(|place| place.join("index.html").is_file());
    found.ok_or_else(|| {
        let program = invocation();
        UsageError(format!("{}: no book is there; `{program}` and `{program} render` make one", folder.display()))
    })
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
        ErrorKind::PermissionDenied => {
            UsageError(format!("port {port} is not free for every user; name one above 1023 by --port")).into()
        }
        _ => anyhow::Error::new(error).context(format!("cannot listen on port {port}")),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Method;
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
    fn no_answer_leads_to_another_host() {
        let folder = site();
        for path in ["//example.org", "//example.org/..", "/data", "/%2f%2fexample.org", "http://example.org/"] {
            let answer = ask(folder.path(), Method::GET, path, &["localhost"]);
            let to = answer.headers().get("location").map(|to| to.to_str().unwrap());
            assert!(to.is_none_or(|to| to == "/data/"), "{path}: {to:?}");
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
