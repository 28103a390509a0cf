//! What is no pass: where waits may be missing, where nothing was found to hold, and where a place is not known.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::{at, audit, compile, json as read, said, train};

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
    let written = ["--junit", "j.xml", "--sarif", "s.json"];
    let mut command = audit(&[&written[..], arguments].concat());
    command.current_dir(folder).envs(environment.iter().copied()).output().unwrap()
}

/// The rules of the results, and the testcases that fail.
fn written(folder: &Path) -> (Vec<String>, Vec<String>) {
    let sarif = read(&folder.join("s.json"));
    let rules = sarif["runs"][0]["results"].as_array().unwrap().iter();
    let junit = fs::read_to_string(folder.join("j.xml")).unwrap();
    let failing: Vec<String> = junit.lines().filter(|line| line.contains("<failure")).map(str::to_owned).collect();
    assert!(junit.contains(&format!("failures=\"{}\"", failing.len())), "{junit}");
    assert!(failing.iter().all(|line| line.matches("<failure").count() == 1), "{junit}");
    (rules.map(|result| result["ruleId"].as_str().unwrap().to_owned()).collect(), failing)
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
            assert!(
                said(&output).lines().any(|line| line.starts_with(&error) && line.contains(word)),
                "{}",
                said(&output)
            );
            let (rules, failing) = written(folder.path());
            assert!(rules.iter().all(|rule| rule == "not-held") && !rules.is_empty(), "{word}: {rules:?}");
            assert!(failing.len() == 1 && failing[0].contains(&format!("name=\"{name}\"")), "{word}: {failing:?}");
        }
        // Without either the program's own end counts, and no test says that it had no wait.
        let output = run(folder.path(), &[&["--"], program].concat(), &[environment]);
        assert_eq!(output.status.code(), Some(0), "{word}: {}", said(&output));
        let junit = fs::read_to_string(folder.path().join("j.xml")).unwrap();
        assert!(junit.contains("<skipped") || word == "no use of CUDA was recorded", "{junit}");
        assert_eq!(written(folder.path()).1, [""; 0]);
    }
    // Both hold of a recording that misses nothing.
    let held = ["--budget", "budget.yaml", "--baseline", "old.json", "--", "python3", &script];
    let output = run(folder.path(), &held, &[]);
    assert_eq!((output.status.code(), written(folder.path())), (Some(0), (vec![], vec![])), "{}", said(&output));
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
fn a_place_that_is_over_the_budget_and_new_fails_one_test_once() {
    let folder = folder();
    let mut old = read(&folder.path().join("old.json"));
    old["places"].as_array_mut().unwrap().clear();
    fs::write(folder.path().join("old.json"), old.to_string()).unwrap();
    fs::write(folder.path().join("budget.yaml"), "waits: 0\n").unwrap();
    let held = ["--budget", "budget.yaml", "--baseline", "old.json", "--", "python3", &train()];
    let output = run(folder.path(), &held, &[]);
    let (rules, failing) = written(folder.path());
    assert_eq!((output.status.code(), rules), (Some(1), vec!["wait".to_owned(); 2]), "{}", said(&output));
    let both = |line: &String| line.contains("waits 4 times") && line.contains("the baseline does not have it");
    assert!(failing.len() == 2 && failing.iter().all(both), "{failing:?}");
}

#[test]
fn what_asks_for_places_has_the_stack_of_each_call_taken_and_refuses_fewer() {
    let folder = folder();
    let (budget, script) = (folder.path().join("budget.yaml"), train());
    let planted = at("item()  # the planted wait");
    let line = format!("step: {{ line: \"train.py:{}\" }}\nwaits: 2\n", planted.rsplit(':').next().unwrap());
    for (text, held, what) in [
        (
            "waits: 0\nallow:\n  - { place: train.py, reason: it is a test }\n",
            &["--budget", "budget.yaml"][..],
            "allow",
        ),
        (&line, &["--budget", "budget.yaml"], "step.line"),
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
        let text = format!("waits: {waits}\nallow:\n  - {{ place: \"train.py:31\", reason: it is a test }}\n");
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
    ends(&["--budget", "budget.yaml"], 1, "not known if their places are allowed");
    // Where it is not over even with them, all the same.
    allow(1);
    ends(&["--budget", "budget.yaml"], 0, "");
    let line = "step: { line: \"train.py:31\" }\nwaits: 9\n";
    fs::write(folder.path().join("budget.yaml"), line).unwrap();
    ends(&["--budget", "budget.yaml"], 1, "no step was found");
    trace(true);
    ends(&["--baseline", "old.json"], 1, "train.py:31 (cudaMemcpyAsync): the baseline does not have it");
    allow(0);
    ends(&["--budget", "budget.yaml"], 0, "");
}

/// Each line of the training loop as the one at which a step begins: it finds the three iterations, or says why it does not.
#[test]
fn a_line_finds_each_iteration_or_is_refused_with_what_to_name_instead() {
    let folder = folder();
    let number = |text: &str| at(text).rsplit(':').next().unwrap().to_owned();
    let held = |text: &str, more: &str| {
        let budget = format!("step: {{ line: \"train.py:{}\" }}\n{more}", number(text));
        fs::write(folder.path().join("budget.yaml"), budget).unwrap();
        run(folder.path(), &["--budget", "budget.yaml", "--", "python3", &train()], &[])
    };
    for line in [
        "item()  # the planted wait",
        "cuda.cuMemcpyDtoHAsync_v2(PAGEABLE",
        "cuda.cuStreamSynchronize(word(7))",
        "cuda.cuMemcpyHtoDAsync_v2(word(0), PINNED",
    ] {
        assert_eq!(held(line, "skip_first: 2\nwaits: 9\n").status.code(), Some(0), "{line}");
        let output = held(line, "skip_first: 3\nwaits: 9\n");
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(said(&output).contains("`skip_first` leaves none of 3 steps"), "{line}: {}", said(&output));
    }
    for (line, word) in [
        ("    step(number)", "iterations cannot be told apart: name a line that itself makes one call"),
        ("    forward()", "no step was found"),
        ("cuda.fakeHost", "no step was found"),
    ] {
        for more in ["waits: 9\n", "skip_first: 1\nwaits: 9\n"] {
            let output = held(line, more);
            assert_eq!(output.status.code(), Some(1), "{line}: {}", said(&output));
            assert!(said(&output).contains(word), "{line}: {}", said(&output));
        }
    }
    let last = std::fs::read_to_string(train()).unwrap().lines().position(|line| line == "main()").unwrap() + 1;
    fs::write(folder.path().join("budget.yaml"), format!("step: {{ line: \"train.py:{last}\" }}\nwaits: 9\n")).unwrap();
    let output = run(folder.path(), &["--budget", "budget.yaml", "--", "python3", &train()], &[]);
    assert!(output.status.code() == Some(1) && said(&output).contains("cannot be told apart"), "{}", said(&output));
}

/// Calls of another thread between those of the loop begin no step, and end none.
#[test]
fn another_threads_calls_say_nothing_of_a_line() {
    let folder = folder();
    let event = |category: &str, name: &str, thread: u32, ts: u32, dur: u32| json!({ "ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": ts, "dur": dur, "args": {} });
    let mut events = vec![
        event("python_function", "train.py(1): main", 1, 0, 1000),
        event("python_function", "other.py(5): beside", 2, 0, 1000),
        event("kernel", "k", 9, 900, 5),
    ];
    for at in [100, 200, 300] {
        events.push(event("python_function", "train.py(7): step", 1, at, 50));
        events.push(event("cuda_runtime", "cudaMemcpyAsync", 1, at + 5, 2));
        events.push(event("cuda_runtime", "cudaMalloc", 2, at + 10, 2));
        events.push(event("cuda_runtime", "cudaStreamSynchronize", 1, at + 20, 2));
        events.push(event("cuda_runtime", "cudaHostAlloc", 1, at + 60, 2));
    }
    fs::write(folder.path().join("t.json"), json!({ "traceEvents": events }).to_string()).unwrap();
    fs::write(folder.path().join("budget.yaml"), "step: { line: \"train.py:7\" }\nskip_first: 9\nwaits: 9\n").unwrap();
    let output = run(folder.path(), &["--from", "t.json", "--budget", "budget.yaml"], &[]);
    assert!(said(&output).contains("leaves none of 3 steps"), "{}", said(&output));
}
