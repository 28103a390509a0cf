//! `report serve`, and who else asks it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::program;

struct Served {
    process: Child,
    address: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn serve(mut command: Command) -> Served {
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    Served { process, address }
}

fn site(folder: &Path) -> Command {
    std::fs::create_dir(folder.join("site")).unwrap();
    std::fs::write(folder.join("site/index.html"), "the book").unwrap();
    let mut command = program(folder);
    command.args(["serve", ".", "--port", "0"]);
    command
}

fn ask(served: &Served, request: &str) -> String {
    let mut stream = TcpStream::connect(&served.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

const ASK: &str = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

#[test]
fn the_book_is_served_to_this_machine_and_to_no_page_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let served = serve(site(folder.path()));
    let answer = ask(&served, ASK);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("the book"), "{answer}");
    for header in ["x-content-type-options: nosniff", "x-frame-options: SAMEORIGIN", "content-security-policy: "] {
        assert!(answer.contains(header), "{answer}");
    }
    let answer = ask(&served, &ASK.replace("localhost", "rebound.example"));
    assert!(answer.starts_with("HTTP/1.1 421") && !answer.contains("the book"), "{answer}");
    let answer = ask(&served, &ASK.replace("GET / ", "GET //example.org/.. "));
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}

#[test]
fn a_further_request_on_a_connection_is_answered_without_a_pause() {
    let folder = tempfile::tempdir().unwrap();
    let served = serve(site(folder.path()));
    let mut stream = TcpStream::connect(&served.address).unwrap();
    let times: Vec<Duration> = (0..21)
        .map(|_| {
            let begun = Instant::now();
            stream.write_all(ASK.replace("Connection: close\r\n", "").as_bytes()).unwrap();
            let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
            while !text.ends_with(b"the book") {
                let read = stream.read(&mut buffer).unwrap();
                text.extend(&buffer[..read]);
            }
            begun.elapsed()
        })
        .collect();
    // The pause was 40 ms, of the receiver's delayed acknowledgement, and every request had it. A busy machine delays some.
    assert!(times.iter().min() < Some(&Duration::from_millis(30)), "{times:?}");
}

#[test]
fn a_caller_that_sends_no_request_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let served = serve(site(folder.path()));
    let mut slow = TcpStream::connect(&served.address).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: loc").unwrap();
    let mut rest = Vec::new();
    // The end of the connection, or its reset.
    let _ = slow.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("the book"));
}

#[test]
fn the_limit_of_open_files_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let command = site(folder.path());
    let mut limited = Command::new("sh");
    limited.current_dir(folder.path()).arg0("sh").args(["-c", "ulimit -n 40; exec \"$0\" \"$@\""]);
    limited.arg(command.get_program()).args(command.get_args());
    let mut served = serve(limited);
    let idle: Vec<TcpStream> = (0..80).filter_map(|_| TcpStream::connect(&served.address).ok()).collect();
    // Neither the socket of a new caller nor the file that it asks for lacks its place.
    assert!(ask(&served, ASK).ends_with("the book"));
    assert!(served.process.try_wait().unwrap().is_none(), "it ended");
    drop(idle);
    assert!(ask(&served, ASK).ends_with("the book"));
}

#[test]
fn a_file_is_read_as_it_is_sent_and_its_length_is_told_without_reading_it() {
    let folder = tempfile::tempdir().unwrap();
    let command = site(folder.path());
    // Longer than any memory, and without a byte on the disk.
    let length: u64 = 1 << 38;
    std::fs::File::create(folder.path().join("site/huge.csv")).unwrap().set_len(length).unwrap();
    let served = serve(command);
    let answer = ask(&served, &ASK.replace("GET / ", "HEAD /huge.csv "));
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains(&format!("content-length: {length}\r\n")),
        "{answer}"
    );
    let mut stream = TcpStream::connect(&served.address).unwrap();
    stream.write_all(ASK.replace("GET / ", "GET /huge.csv ").as_bytes()).unwrap();
    let mut begin = vec![0; 1 << 20];
    stream.read_exact(&mut begin).unwrap();
    assert!(begin.starts_with(b"HTTP/1.1 200"));
    assert!(ask(&served, ASK).ends_with("the book"), "nobody waits for the one file");
}

/// A site with a file that no buffer holds.
fn with_a_long_file(folder: &Path) -> Command {
    let command = site(folder);
    std::fs::write(folder.join("site/long.csv"), vec![b'x'; 16 << 20]).unwrap();
    command
}

#[test]
fn of_an_answer_that_nobody_reads_little_is_sent_ahead() {
    let folder = tempfile::tempdir().unwrap();
    let served = serve(with_a_long_file(folder.path()));
    let mut deaf = TcpStream::connect(&served.address).unwrap();
    deaf.write_all(ASK.replace("GET / ", "GET /long.csv ").as_bytes()).unwrap();
    // Who asks later is answered when the first has been sent as much as the system takes.
    assert!(ask(&served, ASK).ends_with("the book"));
    let stopped = Command::new("kill").args(["-STOP", &served.process.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    deaf.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut sent = Vec::new();
    assert!(deaf.read_to_end(&mut sent).is_err(), "all of it was sent");
    assert!(sent.starts_with(b"HTTP/1.1 200") && sent.len() < 1 << 20, "{} bytes", sent.len());
}

#[test]
fn callers_that_do_not_read_shut_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let served = serve(with_a_long_file(folder.path()));
    let request = ASK.replace("GET / ", "GET /long.csv ");
    let deaf = (0..300).map(|_| {
        let mut stream = TcpStream::connect(&served.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    });
    let deaf: Vec<TcpStream> = deaf.collect();
    assert!(ask(&served, ASK).ends_with("the book"));
    drop(deaf);
}
