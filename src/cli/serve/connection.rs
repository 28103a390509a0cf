//! A connection: requests, one after the other, and their answers (HTTP/1.1, RFC 9112).
//!
//! A request is its head alone. One that announces content is answered, and ends the connection: what follows on it is
//! never taken for a request.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use super::answer::{Answer, Request, answer};

/// How long a connection may take to send a request, and how long it may last.
const REQUEST: Duration = Duration::from_secs(5);
const CONNECTION: Duration = Duration::from_secs(120);
/// The most bytes and headers of a request.
const MOST_BYTES: usize = 16 << 10;
const MOST_HEADERS: usize = 64;

/// What is to be done with the bytes that have come.
enum Head {
    /// They are no whole request yet.
    Partial,
    /// The first `bytes` are a request with this answer.
    Answered { bytes: usize, answer: Answer, with_content: bool, goes_on: bool },
}

/// Answers requests until the caller or the time ends it.
pub(super) fn serve(mut stream: &TcpStream, site: &Path) -> io::Result<()> {
    // An answer is sent at once, not when the last one has been acknowledged.
    stream.set_nodelay(true)?;
    let end = Instant::now() + CONNECTION;
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let asked_by = end.min(Instant::now() + REQUEST);
        let (taken, answer, with_content, goes_on) = loop {
            match head(&bytes, site) {
                Head::Answered { bytes, answer, with_content, goes_on } => {
                    break (bytes, answer, with_content, goes_on);
                }
                Head::Partial => {
                    stream.set_read_timeout(Some(left(asked_by)?))?;
                    match stream.read(&mut buffer)? {
                        0 => return Ok(()),
                        read => bytes.extend_from_slice(&buffer[..read]),
                    }
                }
            }
        };
        bytes.drain(..taken);
        write(stream, &written(&answer, with_content, goes_on), end)?;
        if !goes_on {
            return Ok(());
        }
    }
}

/// What the bytes that have come ask for.
fn head(bytes: &[u8], site: &Path) -> Head {
    let refused = |status, text| {
        let answer = Answer::refusal(status, text);
        Head::Answered { bytes: bytes.len(), answer, with_content: true, goes_on: false }
    };
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let bytes = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < MOST_BYTES => return Head::Partial,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return refused((431, "Request Header Fields Too Large"), "the request is too long\n");
        }
        Err(_) => return refused((400, "Bad Request"), "this is no request\n"),
    };
    let named = |name: &str| {
        let named = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| header.value).collect::<Vec<_>>()
    };
    let asks_to_close = named("connection").iter().any(|value| value.eq_ignore_ascii_case(b"close"));
    let has_content = !named("content-length").is_empty() || !named("transfer-encoding").is_empty();
    let goes_on = request.version == Some(1) && !asks_to_close && !has_content;
    let (method, path) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    let answer = answer(site, &Request { method, path, hosts: named("host") });
    Head::Answered { bytes, answer, with_content: method != "HEAD", goes_on }
}

/// An answer as it is sent.
fn written(answer: &Answer, with_content: bool, goes_on: bool) -> Vec<u8> {
    let (status, name) = answer.status;
    let mut text = format!("HTTP/1.1 {status} {name}\r\ncontent-length: {}\r\n", answer.content.len());
    let close = [("connection", "close")];
    for (name, value) in answer.headers.iter().chain(close.iter().filter(|_| !goes_on)) {
        text.extend([name, ": ", value, "\r\n"]);
    }
    let mut bytes = (text + "\r\n").into_bytes();
    if with_content {
        bytes.extend_from_slice(&answer.content);
    }
    bytes
}

/// Writes all, by `end` at the latest however slowly the caller reads.
fn write(mut stream: &TcpStream, mut bytes: &[u8], end: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(end)?))?;
        match stream.write(bytes)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => bytes = &bytes[written..],
        }
    }
    Ok(())
}

/// The time that is left; an error for none.
fn left(end: Instant) -> io::Result<Duration> {
    match end.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Option<(u16, usize, bool, bool)> {
        match head(text.as_bytes(), Path::new("/nowhere")) {
            Head::Partial => None,
            Head::Answered { bytes, answer, with_content, goes_on } => {
                Some((answer.status.0, bytes, with_content, goes_on))
            }
        }
    }

    #[test]
    fn a_request_is_whole_with_its_empty_line_and_the_next_may_follow() {
        let request = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";
        assert_eq!(asked(&request[..request.len() - 1]), None);
        assert_eq!(asked(&format!("{request}GET /y")), Some((404, request.len(), true, true)));
        assert_eq!(asked(&request.replace("GET", "HEAD")).map(|asked| asked.2), Some(false));
    }

    #[test]
    fn what_follows_an_announced_content_is_never_a_request() {
        for header in ["Content-Length: 5", "Transfer-Encoding: chunked", "Connection: close"] {
            let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n");
            assert_eq!(asked(&request).map(|asked| asked.3), Some(false), "{header}");
        }
        assert_eq!(asked("GET / HTTP/1.0\r\nHost: localhost\r\n\r\n").map(|asked| asked.3), Some(false));
    }

    #[test]
    fn what_is_no_request_or_too_long_is_refused_and_ends_the_connection() {
        assert_eq!(asked("\u{1}\u{2}\r\n\r\n").map(|asked| (asked.0, asked.3)), Some((400, false)));
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(MOST_BYTES));
        assert_eq!(asked(&long).map(|asked| (asked.0, asked.3)), Some((431, false)));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MOST_HEADERS + 1));
        assert_eq!(asked(&many).map(|asked| (asked.0, asked.3)), Some((431, false)));
    }

    #[test]
    fn an_answer_says_how_long_it_is_and_that_it_is_the_last() {
        let text = |with_content, goes_on| {
            String::from_utf8(written(&Answer::refusal((404, "Not Found"), "none\n"), with_content, goes_on)).unwrap()
        };
        let last = text(true, false);
        assert!(last.starts_with("HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n"), "{last}");
        assert!(last.contains("\r\nconnection: close\r\n") && last.ends_with("\r\n\r\nnone\n"), "{last}");
        let head = text(false, true);
        assert!(head.contains("content-length: 5") && head.ends_with("\r\n\r\n") && !head.contains("close"), "{head}");
    }
}
