//! `report serve`: the book at a local address.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use super::{code, report, stderr};

/// A server that ends with the test.
struct Server(std::process::Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves `site` and says at which address.
fn serve(folder: &Path) -> (Server, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_report"));
    command.args(["serve", ".", "--port", "0"]).current_dir(folder).stdout(std::process::Stdio::piped());
    let mut server = Server(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    let address = address.unwrap_or_else(|| panic!("{line} names no address")).to_owned();
    (server, address)
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn folder_with_a_site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("site")).unwrap();
    std::fs::write(folder.path().join("site/index.html"), "<p>the book</p>").unwrap();
    std::fs::write(folder.path().join("secret.txt"), "not of the site").unwrap();
    folder
}

#[test]
fn a_book_is_served_to_this_machine_and_nothing_beside_it() {
    let folder = folder_with_a_site();
    let (_server, address) = serve(folder.path());
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let page = get(&address, "/");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("text/html") && page.contains("the book"), "{page}");
    for path in ["/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/nothing.html"] {
        let answer = get(&address, path);
        assert!(answer.starts_with("HTTP/1.1 404") && !answer.contains("not of the site"), "{path}: {answer}");
    }
}

#[test]
fn a_port_that_is_taken_is_named_with_another() {
    let folder = folder_with_a_site();
    let (_server, address) = serve(folder.path());
    let port = address.split(':').nth(1).unwrap();
    let output = report(&["serve", ".", "--port", port], folder.path());
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains(&format!("port {port} is taken")), "{}", stderr(&output));
    assert!(stderr(&output).contains("report serve . --port"), "{}", stderr(&output));
}

#[test]
fn a_folder_without_a_book_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let output = report(&["serve", "."], folder.path());
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("no book is there"), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_serving_without_a_word() {
    super::signals::hear();
    let folder = folder_with_a_site();
    let (mut server, _) = serve(folder.path());
    let killed = Command::new("kill").args(["-INT", &server.0.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
}
