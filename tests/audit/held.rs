//! What is no pass: where waits may be missing, where nothing was found to hold, and where a place is not known.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::{audit, compile, json as read, said, train};

const BUDGET: &str = "waits: 100\n";

/// A run of the command in a folder that has `budget.yaml`, and `old.json` with all places of the training loop.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("budget.yaml"), BUDGET).unwrap();
    let output = audit(&["--stacks", "all", "--json", "old.json", "--", "python3", &train()])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    folder
}

fn run(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = audit(arguments);
    command.current_dir(folder).envs(environment.iter().copied()).output().unwrap()
}

/// The errors that were said.
fn errors(output: &Output) -> Vec<String> {
    said(output).lines().filter(|line| line.starts_with("error: ")).map(str::to_owned).collect()
}

/// A program whose child is killed, and that ends well.
const KILLED: &str = "
import subprocess, sys
child = 'import ctypes, os; c = ctypes.CDLL(\"libcupti.so.13\"); c.cuInit(0); c.cuMemHostAlloc(); os.kill(os.getpid(), 9)'
subprocess.run([sys.executable, '-c', child])
";
/// A worker that ends as those of `multiprocessing` do.
const WORKER: &str = "
import multiprocessing
def work():
    import ctypes
    cuda = ctypes.CDLL('libcupti.so.13')
    cuda.cuInit(0)
    cuda.cuMemHostAlloc()
worker = multiprocessing.get_context('fork').Process(target=work)
worker.start()
worker.join()
";

#[test]
fn where_waits_may_be_missing_neither_a_budget_nor_a_baseline_holds() {
    let folder = folder();
    let script = train();
    let (loop_, killed, worker) = (["python3", &script], ["python3", "-c", KILLED], ["python3", "-c", WORKER]);
    let driver = folder.path().join("libfake.so");
    compile("fake.c", &["-shared", "-fPIC"], &driver);
    let load = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).cuInit(0)";
    let without = ["python3", "-c", load, driver.to_str().unwrap()];
    // A machine with a GPU may have a CUPTI where the program finds it.
    let has_none = "import ctypes; ctypes.CDLL('libcupti.so.13')";
    let found = Command::new("python3").args(["-c", has_none]).stderr(Stdio::null()).status().unwrap().success();
    let mut cases: Vec<(&[&str], (&str, &str), &str)> = vec![
        (&loop_, ("FAKE_TAKEN", "1"), "another profiler has CUPTI"),
        (&loop_, ("FAKE_REFUSED", "1"), "CUPTI refused to record"),
        (&loop_, ("SYNCSCOPE_AUDIT_BYTES", "5000"), "records lost"),
        (&loop_, ("SYNCSCOPE_AUDIT_ACTIVITY", "none"), "no work of a device"),
        (&killed, ("A", "1"), "it was killed"),
        (&worker, ("A", "1"), "`multiprocessing`"),
        (&["true"], ("A", "1"), "no use of CUDA was recorded"),
    ];
    if !found {
        cases.push((&without, ("LD_LIBRARY_PATH", ""), "CUPTI could not be used"));
    }
    for (program, environment, word) in cases {
        for (held, name) in [
            (&["--budget", "budget.yaml"][..], "the budget"),
            (&["--baseline", "old.json"], "the baseline"),
            (&["--budget", "budget.yaml", "--baseline", "old.json"], "the budget and the baseline"),
        ] {
            let output = run(folder.path(), &[held, &["--"], program].concat(), &[environment]);
            assert_eq!(output.status.code(), Some(1), "{word}: {}", said(&output));
            let is = if name.contains(" and ") { "are" } else { "is" };
            let error = format!("error: {name} {is} not held: ");
            let errors = errors(&output);
            assert!(errors.iter().all(|line| line.starts_with(&error)), "{word}: {errors:?}");
            assert!(errors.iter().any(|line| line.contains(word)), "{word}: {errors:?}");
        }
        // Without either the program's own end counts.
        let output = run(folder.path(), &[&["--"], program].concat(), &[environment]);
        assert_eq!(output.status.code(), Some(0), "{word}: {}", said(&output));
        assert_eq!(errors(&output), [""; 0]);
    }
    // Both hold of a recording that misses nothing.
    let held = ["--budget", "budget.yaml", "--baseline", "old.json", "--", "python3", &script];
    let output = run(folder.path(), &held, &[]);
    assert_eq!((output.status.code(), errors(&output)), (Some(0), vec![]), "{}", said(&output));
}

#[test]
fn an_empty_recording_shows_no_table_and_never_says_no_wait() {
    let output = audit(&["--", "python3", &train()]).env("FAKE_TAKEN", "1").output().unwrap();
    let words = said(&output);
    assert!(words.contains("Nothing was recorded of one process.") && !words.contains("in all"), "{words}");
    let output = audit(&["--", "true"]).output().unwrap();
    assert!(!said(&output).contains("no work of a device"), "{}", said(&output));
}

/// Events of a trace, of which one has no time that can be read.
#[test]
fn a_budget_on_a_trace_that_leaves_events_out_does_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("budget.yaml"), BUDGET).unwrap();
    let mut trace: Value = serde_json::from_str(include_str!("kineto.json")).unwrap();
    let held = |trace: &Value, more: &[&str]| {
        fs::write(folder.path().join("t.json"), trace.to_string()).unwrap();
        run(folder.path(), &[&["--from", "t.json", "--budget", "budget.yaml"], more].concat(), &[])
    };
    assert_eq!(held(&trace, &[]).status.code(), Some(0));
    let late = json!({ "ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1e300, "dur": 1 });
    trace["traceEvents"].as_array_mut().unwrap().push(late);
    let output = held(&trace, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("no time that can be read"), "{}", said(&output));
}

#[test]
fn a_place_that_is_over_the_budget_and_new_fails_once() {
    let folder = folder();
    let mut old = read(&folder.path().join("old.json"));
    old["places"].as_array_mut().unwrap().clear();
    fs::write(folder.path().join("old.json"), old.to_string()).unwrap();
    fs::write(folder.path().join("budget.yaml"), "waits: 0\n").unwrap();
    let held = ["--budget", "budget.yaml", "--baseline", "old.json", "--", "python3", &train()];
    let output = run(folder.path(), &held, &[]);
    let failing = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let both = |line: &String| line.contains("waits 4 times") && line.contains("the baseline does not have it");
    assert!(failing.len() == 2 && failing.iter().all(both), "{failing:?}");
}

#[test]
fn what_asks_for_places_has_the_stack_of_each_call_taken_and_refuses_fewer() {
    let folder = folder();
    let (budget, script) = (folder.path().join("budget.yaml"), train());
    for (text, held, what) in [
        (
            "waits: 0\nallow:\n  - { place: train.py, reason: it is a test }\n",
            &["--budget", "budget.yaml"][..],
            "allow",
        ),
        (BUDGET, &["--baseline", "old.json"], "--baseline"),
    ] {
        fs::write(&budget, text).unwrap();
        let of = |stacks: &[&str]| run(folder.path(), &[held, stacks, &["--", "python3", &script]].concat(), &[]);
        assert_eq!(of(&[]).status.code(), Some(0), "{what}: {}", said(&of(&[])));
        assert_eq!(of(&["--stacks", "all"]).status.code(), Some(0), "{what}");
        for fewer in ["sample", "none"] {
            let output = of(&["--stacks", fewer]);
            assert_eq!(output.status.code(), Some(2), "{what}");
            assert!(said(&output).contains(&format!("by which `{what}` knows them")), "{}", said(&output));
        }
    }
    // A budget of numbers alone asks for no place.
    fs::write(&budget, BUDGET).unwrap();
    let arguments = ["--budget", "budget.yaml", "--stacks", "none", "--", "python3", &script];
    assert_eq!(run(folder.path(), &arguments, &[]).status.code(), Some(0));
}

#[test]
fn a_wait_without_a_stack_is_neither_known_nor_new_nor_allowed() {
    let folder = folder();
    let trace = |with_stacks: bool| {
        let mut trace: Value = serde_json::from_str(include_str!("kineto.json")).unwrap();
        trace["traceEvents"].as_array_mut().unwrap().retain(|event| with_stacks || event["cat"] != "python_function");
        fs::write(folder.path().join("t.json"), trace.to_string()).unwrap();
    };
    let of = |held: &[&str]| run(folder.path(), &[&["--from", "t.json"], held].concat(), &[]);
    let allow = |waits: u32| {
        let text = format!("waits: {waits}\nallow:\n  - {{ place: \"step, train.py\", reason: it is a test }}\n");
        fs::write(folder.path().join("budget.yaml"), text).unwrap();
    };
    let ends = |held: &[&str], code: i32, word: &str| {
        let output = of(held);
        assert_eq!(output.status.code(), Some(code), "{word}: {}", said(&output));
        assert!(said(&output).contains(word), "{word}: {}", said(&output));
    };
    // An audit without places, as a baseline of itself and of one with places.
    trace(false);
    assert_eq!(of(&["--json", "old.json"]).status.code(), Some(0));
    ends(&["--baseline", "old.json"], 1, "1 wait without a stack");
    allow(0);
    ends(&["--budget", "budget.yaml"], 1, "or if their places are allowed");
    // Where it is not over even with them, all the same.
    allow(1);
    ends(&["--budget", "budget.yaml"], 0, "");
    fs::write(folder.path().join("budget.yaml"), "step: { range: none }\nwaits: 9\n").unwrap();
    ends(&["--budget", "budget.yaml"], 1, "no step was found");
    trace(true);
    ends(
        &["--baseline", "old.json"],
        1,
        "step, train.py, from line 31 (cudaMemcpyAsync): the baseline does not have it",
    );
    allow(0);
    ends(&["--budget", "budget.yaml"], 0, "");
}
