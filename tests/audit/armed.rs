//! Programs that run armed, and are recorded while they go on.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use syncscope_audit::AuditReport;
use tempfile::tempdir;

use super::{SOURCES, audit, said};

/// A program that has begun to use CUDA, and the number of its process.
struct Armed {
    report: Child,
    output: BufReader<ChildStdout>,
    number: String,
}

impl Armed {
    fn begin(program: &[&str]) -> Self {
        Self::begin_with(program, &[])
    }

    fn begin_with(program: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = audit(&[&["--armed", "--"], program].concat());
        command.envs(variables.iter().copied());
        let mut report = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(report.stdout.take().unwrap());
        let mut number = String::new();
        output.read_line(&mut number).unwrap();
        Self { report, output, number: number.trim().to_owned() }
    }

    fn end(mut self) -> (String, String, Option<i32>) {
        drop(self.report.stdin.take());
        let (mut output, mut errors) = (String::new(), String::new());
        self.output.read_to_string(&mut output).unwrap();
        self.report.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (output, errors, self.report.wait().unwrap().code())
    }
}

fn now(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_report"));
    command.args(["audit", "now"]).args(arguments);
    command
}

fn script() -> String {
    format!("{SOURCES}/armed.py")
}

/// The audit of a window, which is whole: it has the place of each wait, and the names of all that it holds.
fn window(number: &str, more: &[&str]) -> AuditReport {
    let folder = tempdir().unwrap();
    let json = folder.path().join("audit.json");
    let output = now(&[&[number, "--json", json.to_str().unwrap()], more].concat()).output().unwrap();
    let text = fs::read_to_string(&json).unwrap_or_else(|_| panic!("{}", said(&output)));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_program_that_runs_armed_is_recorded_as_often_as_it_is_asked() {
    let line = fs::read_to_string(script()).unwrap();
    let line = line.lines().position(|line| line.ends_with("# the planted wait")).unwrap() + 1;
    let armed = Armed::begin(&["python3", &script()]);
    for more in [["--for", "300ms"], ["--iterations", "20"]] {
        let report = window(&armed.number, &[&more[..], &["--stacks", "all"]].concat());
        assert_eq!(report.warnings, [""; 0]);
        let [process] = &report.processes[..] else { panic!("{:?}", report.processes) };
        assert!(process.complete && process.overhead.as_ref().unwrap().begin_ns > 0, "{process:?}");
        let place = &report.places[0];
        assert_eq!((&*place.place, &*place.function), (&*format!("{}:{line}", script()), "step"));
        assert_eq!(&*place.waited_for, "kernel forward on stream 7");
        if more[0] == "--iterations" {
            assert!(process.steady.as_ref().is_some_and(|steady| steady.iterations >= 20), "{:?}", process.steady);
        }
    }
    let number = armed.number.clone();
    let (output, errors, code) = armed.end();
    assert_eq!((&*output, code), ("over\n", Some(0)));
    assert!(errors.contains(&format!("audit now {number}")), "{errors}");
}

#[test]
fn all_that_a_process_started_are_recorded_together() {
    let two = format!("for number in 1 2; do python3 {} <&3 & done 3<&0; wait", script());
    let mut armed = Armed::begin(&["sh", "-c", &two]);
    // Both have begun.
    armed.output.read_line(&mut String::new()).unwrap();
    let parent = fs::read_to_string(format!("/proc/{}/stat", armed.number)).unwrap();
    let parent = parent.split_whitespace().nth(3).unwrap();
    let report = window(parent, &["--for", "300ms"]);
    assert_eq!(report.processes.len(), 2, "{:?}", report.processes);
    assert!(report.processes.iter().all(|process| process.complete && process.calls > 0), "{:?}", report.processes);
    armed.end();
}

#[test]
fn a_process_that_is_not_armed_or_has_ended_meanwhile_gets_a_clear_word() {
    let mut sleeping = Command::new("sleep").arg("600").spawn().unwrap();
    let output = now(&[&sleeping.id().to_string()]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("is not armed"), "{}", said(&output));
    sleeping.kill().unwrap();
    sleeping.wait().unwrap();
    let armed = Armed::begin(&["python3", &script()]);
    let folder = tempdir().unwrap();
    let json = folder.path().join("audit.json");
    let asking = now(&[&armed.number, "--for", "60s", "--json", json.to_str().unwrap()]).stderr(Stdio::piped()).spawn();
    let asking = asking.unwrap();
    // It ends while it is recorded, or before that.
    armed.end();
    let output = asking.wait_with_output().unwrap();
    assert!(output.status.code().is_some(), "{}", said(&output));
}

#[test]
fn a_program_in_which_no_iterations_are_found_is_not_waited_for() {
    let script = "
import ctypes, itertools, os, select, sys
cuda, word = ctypes.CDLL('libcupti.so.13'), ctypes.c_uint64
cuda.cuInit(0)
print(os.getpid(), flush=True)
for number in itertools.count():
    if select.select([sys.stdin], [], [], 0.001)[0]:
        break
    cuda.fakeLaunch(b'%d' % number, word(7), word(1_000))
";
    let armed = Armed::begin(&["python3", "-c", script]);
    let output = now(&[&armed.number, "--iterations", "20", "--for", "300ms"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("warning: no iterations were found in "), "{}", said(&output));
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("No iterations were found: it takes 5 that are alike"), "{report}");
    armed.end();
}

#[test]
fn a_number_that_is_no_programs_is_refused_in_words() {
    for (number, words) in [
        ("0", "no program has the number 0"),
        ("1", "the system's first process"),
        ("-5", "expected the number of a process"),
        ("python", "expected the number of a process"),
        ("4294967294", "process 4294967294 does not exist"),
    ] {
        let output = now(&[number]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{number}: {}", said(&output));
        assert!(said(&output).contains(words), "{number}: {}", said(&output));
    }
}

/// Where a process is asked.
fn asked_in(number: &str) -> PathBuf {
    let environment = fs::read(format!("/proc/{number}/environ")).unwrap();
    let text = String::from_utf8_lossy(&environment).into_owned();
    let folder = text.split('\0').find_map(|variable| variable.strip_prefix("SYNCSCOPE_AUDIT_FOLDER=")).unwrap();
    PathBuf::from(folder)
}

/// Waits until a process says of a recording what is waited for.
fn wait_for(number: &str, answer: &str) {
    let file = asked_in(number).join(format!("{number}.armed"));
    while !fs::read_to_string(&file).unwrap().ends_with(&format!("\n{answer}\n")) {
        std::thread::yield_now();
    }
}

fn kill(signal: &str, asking: &Child) {
    let status = Command::new("kill").args([signal, &asking.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// One that records a program for ten minutes, and has begun.
fn asking(number: &str, more: &[&str]) -> Child {
    let mut command = now(&[&[number, "--for", "10m"], more].concat());
    let asking = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    wait_for(number, "begun");
    asking
}

#[test]
fn a_recording_is_ended_by_ctrl_c_and_what_was_recorded_is_said() {
    let armed = Armed::begin(&["python3", &script()]);
    let folder = tempdir().unwrap();
    let json = folder.path().join("audit.json");
    let asking = asking(&armed.number, &["--json", json.to_str().unwrap()]);
    kill("-INT", &asking);
    let output = asking.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(json.exists());
    armed.end();
}

#[test]
fn a_second_one_that_asks_is_refused_and_the_first_goes_on() {
    let armed = Armed::begin(&["python3", &script()]);
    let first = asking(&armed.number, &[]);
    let second = now(&[&armed.number]).output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(said(&second).contains(&format!("another program records process {} now", armed.number)));
    wait_for(&armed.number, "begun");
    kill("-INT", &first);
    assert_eq!(first.wait_with_output().unwrap().status.code(), Some(0));
    armed.end();
}

#[test]
fn a_recording_ends_with_whoever_asked_for_it_and_the_next_one_is_whole() {
    let armed = Armed::begin(&["python3", &script()]);
    let mut first = asking(&armed.number, &[]);
    kill("-KILL", &first);
    first.wait().unwrap();
    wait_for(&armed.number, "ended");
    assert_eq!(window(&armed.number, &["--for", "300ms"]).warnings, [""; 0]);
    armed.end();
}

/// A stopped process is asked and does not see it.
#[test]
fn what_was_not_begun_is_not_recorded_once_nobody_asks_for_it() {
    let armed = Armed::begin(&["python3", &script()]);
    assert!(Command::new("kill").args(["-STOP", &armed.number]).status().unwrap().success());
    let asking = now(&[&armed.number, "--for", "10m"]).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let ask = asked_in(&armed.number).join(format!("{}.ask", armed.number));
    while fs::read_to_string(&ask).map_or(true, |text| text.is_empty()) {
        std::thread::yield_now();
    }
    kill("-INT", &asking);
    let output = asking.wait_with_output().unwrap();
    assert!(said(&output).contains("did not answer"), "{}", said(&output));
    assert!(Command::new("kill").args(["-CONT", &armed.number]).status().unwrap().success());
    // The next is not that one.
    assert_eq!(window(&armed.number, &["--for", "300ms"]).warnings, [""; 0]);
    armed.end();
}

#[test]
fn what_ran_when_a_window_began_is_left_out_of_it() {
    let armed = Armed::begin_with(&["python3", &script()], &[("FAKE_RUNNING", "1")]);
    for _ in 0..2 {
        let report = window(&armed.number, &["--for", "300ms"]);
        assert_eq!(report.warnings, [""; 0]);
        let [process] = &report.processes[..] else { panic!("{:?}", report.processes) };
        assert!(process.steady.as_ref().is_some_and(|steady| steady.start_up_ns < process.recorded_ns), "{process:?}");
    }
    armed.end();
}

/// Such as one that only starts the ranks of a job.
#[test]
fn a_process_that_does_not_use_the_driver_is_none_of_which_records_are_missing() {
    let armed = Armed::begin_with(&["python3", &script()], &[("FAKE_REFUSED", "15")]);
    let report = window(&armed.number, &["--for", "300ms"]);
    assert!(report.warnings.iter().all(|warning| !warning.contains("refused")), "{:?}", report.warnings);
    let [process] = &report.processes[..] else { panic!("{:?}", report.processes) };
    assert!(process.complete && process.calls == 0 && process.devices.is_empty(), "{process:?}");
    armed.end();
}

#[test]
fn a_program_whose_audit_was_killed_is_recorded_nevertheless() {
    let mut armed = Armed::begin(&["python3", &script()]);
    // It holds its folder since it looked for the first ask; whoever makes another would remove it else.
    window(&armed.number, &["--for", "100ms"]);
    // The program ends with its input, which waiting for its audit would close.
    let input = armed.report.stdin.take();
    kill("-KILL", &armed.report);
    armed.report.wait().unwrap();
    assert_eq!(window(&armed.number, &["--for", "300ms"]).warnings, [""; 0]);
    drop(input);
}
