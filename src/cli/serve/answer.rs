//! What a request for a file of the site is answered.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

/// The names of this machine for itself. A page from elsewhere can give its own name this machine's address, and would read
/// the book under that name.
const HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// What each answer says beside its content. The pages' own policy is in them, and stricter.
const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'self' 'unsafe-inline' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "SAMEORIGIN"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// The same for what is no page: a picture that is opened by itself runs no script.
const OF_NO_PAGE: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";

const TYPES: [(&str, &str); 12] = [
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("ipynb", "application/json"),
    ("csv", "text/csv; charset=utf-8"),
    ("txt", "text/plain; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("ico", "image/x-icon"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
];

/// What is asked for.
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    /// As it stands in the request.
    pub(super) path: &'a str,
    /// The values of each header `Host`: of two names, the caller may have meant the other.
    pub(super) hosts: Vec<&'a [u8]>,
}

/// The status of an answer: its number and its name.
pub(super) type Status = (u16, &'static str);

const OK: Status = (200, "OK");
const NOT_FOUND: Status = (404, "Not Found");
const METHOD_NOT_ALLOWED: Status = (405, "Method Not Allowed");
const MISDIRECTED: Status = (421, "Misdirected Request");
const UNAVAILABLE: Status = (503, "Service Unavailable");

/// An answer to a request.
pub(super) struct Answer {
    pub(super) status: Status,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) content: Vec<u8>,
}

impl Answer {
    /// An answer in words.
    pub(super) fn refusal(status: Status, text: &str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", text.as_bytes().to_vec())
    }

    fn new(status: Status, kind: &'static str, content: Vec<u8>) -> Self {
        let mut headers = vec![("content-type", kind), ("cache-control", "no-cache")];
        if status == METHOD_NOT_ALLOWED {
            headers.push(("allow", "GET, HEAD"));
        }
        let is_page = status != OK || kind.starts_with("text/html");
        headers.extend(HEADERS.map(|(name, value)| match name {
            "content-security-policy" if !is_page => (name, OF_NO_PAGE),
            _ => (name, value),
        }));
        Self { status, headers, content }
    }
}

/// The answer to a request.
pub(super) fn answer(site: &Path, request: &Request<'_>) -> Answer {
    let known = match request.hosts.as_slice() {
        [host] => std::str::from_utf8(host).is_ok_and(is_this_machine),
        _ => false,
    };
    if !known {
        return Answer::refusal(MISDIRECTED, "this book is served to localhost alone\n");
    }
    if !matches!(request.method, "GET" | "HEAD") {
        return Answer::refusal(METHOD_NOT_ALLOWED, "a book is only read\n");
    }
    match content(site, request.path) {
        Ok((kind, content)) => Answer::new(OK, kind, content),
        Err((status, text)) => Answer::refusal(status, text),
    }
}

/// Whether a `Host` is a name of this machine, on whatever port: it may be forwarded.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    HOSTS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

type Refusal = (Status, &'static str);

fn content(site: &Path, path: &str) -> Result<(&'static str, Vec<u8>), Refusal> {
    let file = place(site, path).ok_or((NOT_FOUND, "there is no such page\n"))?;
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    let kind = TYPES.iter().find(|(known, _)| *known == ending).map_or("application/octet-stream", |(_, kind)| kind);
    match fs::read(&file) {
        Ok(content) => Ok((kind, content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Err((NOT_FOUND, "there is no such page\n")),
        Err(_) => Err((UNAVAILABLE, "the page cannot be read now\n")),
    }
}

/// The file of a path: one that lies in the site, links followed.
fn place(site: &Path, path: &str) -> Option<PathBuf> {
    let decoded = percent_decode_str(path.split(['?', '#']).next()?).decode_utf8().ok()?;
    let mut file = site.to_owned();
    for part in decoded.strip_prefix('/')?.split('/') {
        // No `..`, no drive, no hidden file.
        if part.starts_with('.') || part.contains(['\\', ':', '\0']) {
            return None;
        }
        file.push(part);
    }
    if decoded.ends_with('/') {
        file.push("index.html");
    }
    let (file, site) = (fs::canonicalize(file).ok()?, fs::canonicalize(site).ok()?);
    (file.starts_with(site) && file.is_file()).then_some(file)
}

#[cfg(test)]
mod tests {
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

    fn ask(folder: &Path, method: &str, path: &str, hosts: &[&str]) -> Answer {
        let hosts = hosts.iter().map(|host| host.as_bytes()).collect();
        answer(&folder.join("site"), &Request { method, path, hosts })
    }

    fn status(folder: &Path, path: &str) -> u16 {
        ask(folder, "GET", path, &["localhost:3000"]).status.0
    }

    fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
        answer.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    #[test]
    fn files_of_the_site_are_served_by_their_kind() {
        let folder = site();
        for (path, kind) in [("/", "text/html; charset=utf-8"), ("/data/a%20b.csv?x", "text/csv; charset=utf-8")] {
            let answer = ask(folder.path(), "GET", path, &["127.0.0.1:3000"]);
            assert_eq!((answer.status.0, header(&answer, "content-type")), (200, Some(kind)));
        }
    }

    #[test]
    fn nothing_outside_of_the_site_is_served() {
        let folder = site();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/etc/passwd", folder.path().join("site/link.txt")).unwrap();
            std::os::unix::fs::symlink("/", folder.path().join("site/root")).unwrap();
            assert_eq!((status(folder.path(), "/link.txt"), status(folder.path(), "/root/etc/passwd")), (404, 404));
        }
        for path in ["/../secret", "/%2e%2e/secret", "/..%2fsecret", "/data/../../secret", "//etc/passwd", "/.hidden"] {
            assert_eq!(status(folder.path(), path), 404, "{path}");
        }
    }

    #[test]
    fn no_answer_leads_to_another_host() {
        let folder = site();
        for path in ["//example.org", "//example.org/..", "/data", "/%2f%2fexample.org", "http://example.org/"] {
            let answer = ask(folder.path(), "GET", path, &["localhost"]);
            assert!(!(300..400).contains(&answer.status.0) && header(&answer, "location").is_none(), "{path}");
        }
    }

    #[test]
    fn only_this_machine_by_its_own_names_is_answered() {
        let folder = site();
        for host in ["evil.example", "evil.example:3000", "localhost.evil.example", "127.0.0.1.evil.example:3000"] {
            assert_eq!(ask(folder.path(), "GET", "/", &[host]).status.0, 421, "{host}");
        }
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:3000", "[::1]:3000"] {
            assert_eq!(ask(folder.path(), "GET", "/", &[host]).status.0, 200, "{host}");
        }
        assert_eq!(ask(folder.path(), "GET", "/", &[]).status.0, 421);
    }

    #[test]
    fn a_request_with_two_hosts_is_not_answered() {
        let folder = site();
        let (one, other) = ("localhost", "evil.example");
        for hosts in [[one, other], [other, one], [one, one]] {
            assert_eq!(ask(folder.path(), "GET", "/", &hosts).status.0, 421);
        }
    }

    #[test]
    fn a_picture_that_is_opened_by_itself_runs_no_script() {
        let folder = site();
        fs::write(folder.path().join("site/picture.svg"), "<svg onload='alert(1)'/>").unwrap();
        let answer = ask(folder.path(), "GET", "/picture.svg", &["localhost"]);
        let policy = header(&answer, "content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"), "{policy}");
    }

    #[test]
    fn every_answer_says_what_a_browser_may_make_of_it_and_nothing_is_written() {
        let folder = site();
        for (method, path) in [("GET", "/"), ("GET", "/none"), ("POST", "/"), ("DELETE", "/")] {
            let answer = ask(folder.path(), method, path, &["localhost"]);
            assert!(HEADERS.iter().all(|(name, value)| header(&answer, name) == Some(*value)), "{method} {path}");
            assert_eq!(answer.status.0 == 405, method != "GET");
        }
    }
}
