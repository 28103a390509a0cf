//! `report serve`, and who else asks it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
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
#[cfg(target_os = "linux")]
fn a_clock_whose_time_no_answer_can_say_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = site(folder.path());
    command.env("LD_PRELOAD", super::faults::library());
    for seconds in ["-86400", "300000000000"] {
        let output = command.env("FAULT_CLOCK", seconds).output().unwrap();
        assert_eq!(super::code(&output), 2, "{}", super::stderr(&output));
        assert!(
            super::stderr(&output).contains("the clock of this machine is before 1970"),
            "{}",
            super::stderr(&output)
        );
    }
    command.env("FAULT_CLOCK", "0");
    assert!(ask(&serve(command), ASK).starts_with("HTTP/1.1 200"));
}

/// A site with a file that no buffer holds.
fn with_a_long_file(folder: &Path) -> Command {
    let command = site(folder);
    std::fs::write(folder.join("site/long.csv"), vec![b'x'; 16 << 20]).unwrap();
    command
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
