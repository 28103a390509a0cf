//! What a request for a file of the site is answered.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{HeaderMap, Method, Response, StatusCode, Uri};
use percent_encoding::percent_decode_str;

use super::content::Content;
use crate::files::open_inside;

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

/// The answer to a request for `uri`, as it stands in the request.
pub(super) fn answer(site: &Path, method: &Method, uri: &Uri, headers: &HeaderMap) -> Response<Content> {
    // Of two names, the caller may have meant the other. An address as a whole names a host, too.
    let mut hosts = headers.get_all(HOST).iter();
    let known = match (hosts.next(), hosts.next()) {
        (Some(host), None) => {
            host.to_str().is_ok_and(is_this_machine)
                && uri.authority().is_none_or(|host| is_this_machine(host.as_str()))
        }
        _ => false,
    };
    let found = match known {
        false => Err((StatusCode::MISDIRECTED_REQUEST, "this book is served to localhost alone\n")),
        true if method != Method::GET && method != Method::HEAD => {
            Err((StatusCode::METHOD_NOT_ALLOWED, "a book is only read\n"))
        }
        true => content(site, uri.path()),
    };
    let (status, kind, content) = match found {
        Ok((kind, content)) => (StatusCode::OK, kind, content),
        Err((status, text)) => (status, "text/plain; charset=utf-8", Content::text(text)),
    };
    let mut response = Response::new(content);
    *response.status_mut() = status;
    let out = response.headers_mut();
    out.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    out.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        out.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    for (name, value) in HEADERS {
        out.insert(name, HeaderValue::from_static(value));
    }
    if status == StatusCode::OK && !kind.starts_with("text/html") {
        out.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(OF_NO_PAGE));
    }
    response
}

/// Whether a `Host` is a name of this machine, on whatever port: it may be forwarded.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    HOSTS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

type Refusal = (StatusCode, &'static str);

fn content(site: &Path, path: &str) -> Result<(&'static str, Content), Refusal> {
    const NONE: Refusal = (StatusCode::NOT_FOUND, "there is no such page\n");
    let site = fs::canonicalize(site).map_err(|_| NONE)?;
    let file = place(&site, path).ok_or(NONE)?;
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    let kind = TYPES.iter().find(|(known, _)| *known == ending).map_or("application/octet-stream", |(_, kind)| kind);
    match open_inside(&site, &file).and_then(Content::file) {
        Ok(content) => Ok((kind, content)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => Err(NONE),
        Err(_) => Err((StatusCode::SERVICE_UNAVAILABLE, "the page cannot be read now\n")),
    }
}

/// The file of a path: one that lies in the site, whose own path has no links, links followed.
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
    let file = fs::canonicalize(file).ok()?;
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

    fn ask(folder: &Path, method: Method, path: &str, host: &str) -> Response<Content> {
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_str(host).unwrap())]);
        answer(&folder.join("site"), &method, &path.parse().unwrap(), &headers)
    }

    fn status(folder: &Path, path: &str) -> u16 {
        ask(folder, Method::GET, path, "localhost:3000").status().as_u16()
    }

    #[test]
    fn files_of_the_site_are_served_by_their_kind() {
        let folder = site();
        for (path, kind) in [("/", "text/html; charset=utf-8"), ("/data/a%20b.csv?x", "text/csv; charset=utf-8")] {
            let answer = ask(folder.path(), Method::GET, path, "127.0.0.1:3000");
            assert_eq!((answer.status().as_u16(), &answer.headers()[CONTENT_TYPE]), (200, &kind.parse().unwrap()));
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
            let answer = ask(folder.path(), Method::GET, path, "localhost");
            assert!(!answer.status().is_redirection() && !answer.headers().contains_key("location"), "{path}");
        }
    }

    #[test]
    fn only_this_machine_by_its_own_names_is_answered() {
        let folder = site();
        for host in ["evil.example", "evil.example:3000", "localhost.evil.example", "127.0.0.1.evil.example:3000"] {
            assert_eq!(ask(folder.path(), Method::GET, "/", host).status().as_u16(), 421, "{host}");
        }
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:3000", "[::1]:3000"] {
            assert_eq!(ask(folder.path(), Method::GET, "/", host).status().as_u16(), 200, "{host}");
        }
        let none = answer(&folder.path().join("site"), &Method::GET, &Uri::from_static("/"), &HeaderMap::new());
        assert_eq!(none.status().as_u16(), 421);
        for (uri, status) in
            [("http://evil.example/", 421), ("http://localhost@evil.example/", 421), ("http://localhost/", 200)]
        {
            assert_eq!(ask(folder.path(), Method::GET, uri, "localhost").status().as_u16(), status, "{uri}");
        }
    }

    #[test]
    fn a_request_with_two_hosts_is_not_answered() {
        let folder = site();
        let [one, other] = ["localhost", "evil.example"].map(HeaderValue::from_static);
        for hosts in [[&one, &other], [&other, &one], [&one, &one]] {
            let headers = HeaderMap::from_iter([]);
            let headers = hosts.into_iter().fold(headers, |mut headers, host| {
                headers.append(HOST, host.clone());
                headers
            });
            let both = answer(&folder.path().join("site"), &Method::GET, &Uri::from_static("/"), &headers);
            assert_eq!(both.status().as_u16(), 421);
        }
    }

    #[test]
    fn a_picture_that_is_opened_by_itself_runs_no_script() {
        let folder = site();
        fs::write(folder.path().join("site/picture.svg"), "<svg onload='alert(1)'/>").unwrap();
        let answer = ask(folder.path(), Method::GET, "/picture.svg", "localhost");
        let policy = answer.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"), "{policy}");
    }

    #[test]
    fn every_answer_says_what_a_browser_may_make_of_it_and_nothing_is_written() {
        let folder = site();
        for (method, path) in [(Method::GET, "/"), (Method::GET, "/none"), (Method::POST, "/"), (Method::DELETE, "/")] {
            let answer = ask(folder.path(), method.clone(), path, "localhost");
            assert!(HEADERS.iter().all(|(name, value)| answer.headers()[*name] == *value), "{method} {path}");
            assert_eq!(answer.status().as_u16() == 405, method != Method::GET);
        }
    }
}
