//! Signals of the command are the program's, and its end is the command's.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use super::{audit, hearing, json};

/// Each that ends a process which does not listen, but for faults and real-time signals.
const SIGNALS: [&str; 18] = [
    "HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "ALRM", "VTALRM", "PROF", "IO", "XCPU", "XFSZ", "PIPE", "ABRT",
    "TRAP", "SYS", "STKFLT", "PWR",
];

/// Counts each signal, by its number. It ends at one byte of its input.
const COUNTS: &str = "
import signal, sys
counts = {}
def count(number, _):
    counts[number] = counts.get(number, 0) + 1
    print(number, flush=True)
for name in sys.argv[1].split():
    signal.signal(getattr(signal, 'SIG' + name, None) or 16, count)
print('ready', flush=True)
sys.stdin.read(1)
print(counts, flush=True)
";

/// The command with a program that has said that it is ready, and what that says next.
fn begun(command: &mut Command) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "ready");
    (child, lines)
}

/// Sends a signal to a process by its number.
fn send(signal: &str, to: &str) {
    assert!(
        Command::new("kill").args([&format!("-{}", numbered(signal)), "--", to]).status().unwrap().success(),
        "{signal}"
    );
}

fn numbered(name: &str) -> i32 {
    let place = |all: &[&str]| all.iter().position(|known| *known == name);
    let low =
        ["HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM"];
    let high =
        ["TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF"];
    let last = ["WINCH", "IO", "PWR", "SYS"];
    let found = place(&low).or(place(&high).map(|at| at + 14)).or(place(&last).map(|at| at + 27));
    found.unwrap() as i32 + 1
}

#[test]
fn each_signal_that_a_process_sends_to_the_command_reaches_the_program_once() {
    let (mut child, mut lines) = begun(&mut audit(&["--", "python3", "-c", COUNTS, &SIGNALS.join(" ")]));
    for signal in SIGNALS {
        send(signal, &child.id().to_string());
        // Its number, once it has arrived: the next does not overtake it.
        assert_eq!(lines.next().unwrap(), numbered(signal).to_string(), "{signal}");
    }
    drop(child.stdin.take());
    let counts = lines.next().unwrap();
    assert_eq!(counts.matches(": 1").count(), SIGNALS.len(), "{counts}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Where a terminal sends Ctrl-C to the group of both, the program has it already.
#[test]
fn a_key_of_the_terminal_reaches_the_program_once() {
    let script = "
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
text = b''
def until(word):
    global text
    while word not in text:
        text += os.read(terminal, 4096)
until(b'ready')
os.write(terminal, b'\\x03')
until(b'2\\r')
os.write(terminal, b'\\x1c')
until(b'3\\r')
os.write(terminal, b'x\\n')
until(b'}')
print(text.decode())
while True:
    try:
        os.read(terminal, 4096)
    except OSError:
        break
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";
    hearing::hear();
    let output = Command::new("python3")
        .args(["-c", script, env!("CARGO_BIN_EXE_report"), "audit", "--", "python3", "-c", COUNTS, "INT QUIT"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("{2: 1, 3: 1}"), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
}

/// A program that a signal ends, and one that ends itself by it.
#[test]
fn a_program_that_ends_by_a_signal_is_reported_and_the_command_ends_by_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let script = "import ctypes, os, sys
cuda = ctypes.CDLL('libcupti.so.13')
cuda.cuInit(0)
cuda.cuLibraryLoadData()
print('ready', flush=True)
os.read(0, 1)
";
    let end_of = |status: ExitStatus| (status.signal(), status.core_dumped());
    for signal in SIGNALS {
        let json_file = folder.path().join(format!("{signal}.json"));
        let arguments = ["--json", json_file.to_str().unwrap(), "--", "python3", "-c"];
        // The interpreter listens for Ctrl-C, and ignores closed pipes and files that are too long.
        let script = format!(
            "import signal\nfor name in ('INT', 'PIPE', 'XFSZ'):\n    signal.signal(getattr(signal, 'SIG' + name), signal.SIG_DFL)\n{script}"
        );
        let (mut child, _lines) = begun(audit(&[&arguments[..], &[&script]].concat()).current_dir(folder.path()));
        // Waiting closes what is left of it, and the program would end by that.
        let input = child.stdin.take();
        send(signal, &child.id().to_string());
        let status = child.wait().unwrap();
        drop(input);
        match signal {
            // A shell tells these by the same code.
            "IO" | "STKFLT" | "PWR" => assert_eq!(status.code(), Some(128 + numbered(signal)), "{signal}"),
            _ => assert_eq!(end_of(status), (Some(numbered(signal)), false), "{signal}"),
        }
        assert_eq!(json(&json_file)["processes"][0]["calls"], 1, "{signal}");
    }
}

#[test]
fn the_program_begins_with_the_signals_that_the_command_was_started_with() {
    let folder = tempfile::tempdir().unwrap();
    let (mine, its) = (folder.path().join("mine"), folder.path().join("its"));
    let copy = |out: &std::path::Path| format!("grep -E '^Sig(Ign|Cgt|Blk)' /proc/self/status > {}", out.display());
    let script = format!("trap '' HUP USR2 PROF; {}; exec \"$@\"", copy(&mine));
    let its_script = copy(&its);
    hearing::hear();
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_report"), "audit", "--", "sh", "-c", &its_script]);
    assert!(command.process_group(0).stderr(Stdio::null()).status().unwrap().success());
    let (mine, its) = (fs::read_to_string(mine).unwrap(), fs::read_to_string(its).unwrap());
    assert!(mine.contains("Sig") && mine == its, "{mine}{its}");
}
