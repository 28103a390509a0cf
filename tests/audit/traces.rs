//! Traces: the audit's own read back, one of PyTorch's profiler, and what is none.

use std::fs;
use std::process::Command;

use serde_json::{Map, Value, json};
use syncscope_audit::{AuditReport, Reason};

use super::{Audited, SOURCES, adds_up, audit, json as read, native, places, said, train};

#[test]
fn the_audit_of_its_own_trace_finds_the_same_places() {
    let audited = Audited::of(&["python3", &train()], &["--stacks", "all", "--trace", "trace.json"], &[]);
    let folder = audited.folder.path();
    let output = audit(&["--from", "trace.json", "--json", "again.json"]).current_dir(folder).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let again: AuditReport = serde_json::from_value(read(&audited.file("again.json"))).unwrap();
    assert_eq!(places(&again), places(&audited.report));
    adds_up(&again);
    let of = |report: &AuditReport| -> Vec<_> {
        report.places.iter().map(|place| (place.range.clone(), place.thread)).collect()
    };
    assert_eq!(of(&again), of(&audited.report));
    assert_eq!(audited.report.places.iter().filter(|place| place.range == "step").count(), 1);
    // What holds for the run holds for its trace.
    for (budget, code) in [
        ("step: { range: step }\nmilliseconds: 2.5\n", 0),
        ("step: { range: step }\nmilliseconds: 1.5\n", 1),
        ("step: { range: step }\nskip_first: 3\nwaits: 0\n", 1),
    ] {
        fs::write(folder.join("budget.yaml"), budget).unwrap();
        let script = train();
        for of in [&["--from", "trace.json"][..], &["--stacks", "all", "--", "python3", &script]] {
            let output = audit(&[&["--budget", "budget.yaml"], of].concat()).current_dir(folder).output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{budget} {of:?}: {}", said(&output));
        }
    }
}

/// With `symbols` its places are lines, without they are functions; with neither, they are addresses.
#[test]
fn the_trace_of_a_native_program_has_its_places() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [&["-rdynamic"][..], &["-g0", "-s"]] {
        let program = native(folder.path(), "native.c", flags);
        let audited = Audited::of(&[&program], &["--stacks", "all", "--trace", "trace.json"], &[]);
        let trace = fs::read_to_string(audited.file("trace.json")).unwrap();
        let again = AuditReport::of_trace(&trace, "trace.json").unwrap();
        assert!(!audited.report.places[0].place.is_empty(), "{:?}", audited.report.places);
        assert_eq!(places(&again), places(&audited.report));
    }
}

/// Ranges of two threads, which overlap and cannot stand in one lane of a trace; and two threads that wait.
#[test]
fn the_threads_and_the_ranges_of_a_trace_are_those_of_its_program() {
    let script = "
import ctypes, threading
cuda, word = ctypes.CDLL('libcupti.so.13'), ctypes.c_uint64
cuda.cuInit(0)
cuda.fakeRange(1, b'outer')
cuda.fakeHost(word(1_000))
cuda.fakeRange(2, b'other')
cuda.fakeLaunch(b'forward', word(7), word(2_000_000))
cuda.cuStreamSynchronize(word(7))
cuda.fakeRange(1, None)
def wait():
    cuda.fakeLaunch(b'forward', word(8), word(1_000_000))
    cuda.cuStreamSynchronize(word(8))
thread = threading.Thread(target=wait)
thread.start()
thread.join()
cuda.fakeRange(2, None)
";
    let audited = Audited::of(&["python3", "-c", script], &["--stacks", "all", "--trace", "trace.json"], &[]);
    let again = AuditReport::of_trace(fs::read_to_string(audited.file("trace.json")).unwrap(), "t").unwrap();
    let of = |report: &AuditReport| -> Vec<_> {
        report.places.iter().map(|place| (place.place.clone(), place.range.clone(), place.thread)).collect()
    };
    let found = of(&audited.report);
    assert_eq!(found.iter().map(|(_, range, _)| range.as_str()).collect::<Vec<_>>(), ["other", "other"]);
    assert!(found[0].2.is_some() && found[0].2 != found[1].2, "{found:?}");
    assert_eq!(of(&again), found);
    let page = audited.report.to_html("");
    assert!(page.contains("in the range <em>other</em>; thread "), "{page}");
}

/// The trace of an audit as PyTorch's profiler writes the same run (`with_stack=True`), with its names and arguments.
pub(super) fn as_the_profiler_writes(trace: &Value) -> Value {
    let mut written = Vec::new();
    for event in trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X") {
        let (name, args) = (event["name"].as_str().unwrap(), &event["args"]);
        let mut put = |category: &str, name: &str, kept: &[&str]| {
            let kept = kept.iter().filter_map(|key| Some(((*key).to_owned(), args.get(key)?.clone())));
            let args: Map<String, Value> = kept.collect();
            let (ts, dur, tid) = (&event["ts"], &event["dur"], &event["tid"]);
            written.push(json!({
                "ph": "X", "cat": category, "name": name, "pid": 10, "tid": tid, "ts": ts, "dur": dur, "args": args,
            }));
        };
        match (event["cat"].as_str().unwrap(), name) {
            ("kernel", "memset") => put("gpu_memset", "Memset (Device)", &["stream", "correlation", "bytes"]),
            ("kernel", _) => put("kernel", name, &["stream", "correlation"]),
            ("copy", _) => {
                let memory = if name.contains("pageable") { "Pageable" } else { "Pinned" };
                let name = match name.contains("to the host") {
                    true => format!("Memcpy DtoH (Device -> {memory})"),
                    false => format!("Memcpy HtoD ({memory} -> Device)"),
                };
                put("gpu_memcpy", &name, &["stream", "correlation", "bytes"]);
            }
            _ => {
                let stream =
                    if name.contains("Synchronize") { &["correlation", "stream"][..] } else { &["correlation"] };
                put("cuda_driver", name, stream);
                if let Some((file, line)) = args["site"].as_str().and_then(|site| site.rsplit_once(':')) {
                    put("python_function", &format!("{file}({line}): f"), &[]);
                }
            }
        }
    }
    json!({ "schemaVersion": 1, "traceEvents": written })
}

#[test]
fn a_trace_of_pytorchs_profiler_has_the_places_of_the_audit_of_the_same_run() {
    let audited = Audited::of(&["python3", &train()], &["--stacks", "all", "--trace", "trace.json"], &[]);
    let trace = as_the_profiler_writes(&read(&audited.file("trace.json")));
    let imported = AuditReport::of_trace(trace.to_string(), "profiler.json").unwrap();
    // Of each place the function: the profiler tells no lines.
    let by_function = |(place, call, reason, count, total): (String, String, Reason, u64, u64)| {
        let line = place.rsplit_once(':').map(|(file, line)| format!("f, {file}, from line {line}"));
        (line.unwrap_or(place), call, reason, count, total)
    };
    let live: Vec<_> = places(&audited.report).into_iter().map(by_function).collect();
    assert_eq!(places(&imported), live);
    adds_up(&imported);
}

/// Not by a clock: what is looked for once for each other thing does not end within the time of a test.
#[test]
fn a_trace_of_many_steps_places_and_ranges_within_ranges_is_read_to_its_end() {
    const MANY: u64 = 20_000;
    let mut events = Vec::new();
    for number in 0..MANY {
        let at = 1_000.0 * number as f64;
        events.push(event("cuda_runtime", "cudaLaunchKernel", at, 4.0, 2 * number));
        events.push(event("kernel", "k", at + 5.0, 500.0, 2 * number));
        events.push(event("cuda_runtime", "cudaDeviceSynchronize", at + 6.0, 501.0, 2 * number + 1));
        events.push(event("python_function", &format!("train.py({}): step", number + 1), at, 900.0, 0));
        events.push(event("user_annotation", "step", at, 900.0, 0));
        events.push(event(
            "user_annotation",
            "around",
            at / MANY as f64,
            2.0 * 1_000.0 * MANY as f64 - at / MANY as f64,
            0,
        ));
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("b.yaml"), "step: { range: step }\nwaits: 0\n").unwrap();
    fs::write(folder.path().join("t.json"), trace_of(&events)).unwrap();
    let arguments = ["--from", "t.json", "--budget", "b.yaml"];
    let output = audit(&arguments).current_dir(folder.path()).output().unwrap();
    assert_eq!(said(&output).matches(": step ").count() as u64, MANY);
}

/// A trace with the names and arguments that PyTorch's profiler writes (`with_stack=True`), made by hand: a read of a scalar
/// behind a kernel of 1 ms, a copy from page-locked memory that does not block, and a kernel that ends during an allocation.
#[test]
fn a_trace_of_pytorchs_profiler_shows_its_waits_with_their_functions() {
    let folder = tempfile::tempdir().unwrap();
    let json_file = folder.path().join("a.json");
    let trace = format!("{SOURCES}/kineto.json");
    let output = audit(&["--from", &trace, "--json", json_file.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: AuditReport = serde_json::from_value(read(&json_file)).unwrap();
    let found = places(&report);
    assert_eq!(
        found[0],
        ("step, train.py, from line 31".to_owned(), "cudaMemcpyAsync".to_owned(), Reason::Wait, 1, 1_000_000),
        "{found:?}"
    );
    assert!(found[1..].iter().all(|(_, _, reason, ..)| *reason != Reason::Wait), "{found:?}");
    adds_up(&report);
}

/// An event of the thread, or of the stream, 7.
fn event(category: &str, name: &str, ts: f64, dur: f64, correlation: u64) -> Value {
    let args = json!({ "stream": 7, "correlation": correlation });
    json!({ "ph": "X", "cat": category, "name": name, "pid": 10, "tid": 7, "ts": ts, "dur": dur, "args": args })
}

fn trace_of(events: &[Value]) -> String {
    json!({ "schemaVersion": 1, "traceEvents": events }).to_string()
}

fn report_of(events: &[Value]) -> AuditReport {
    AuditReport::of_trace(trace_of(events), "trace.json").unwrap()
}

#[test]
fn a_trace_says_what_of_it_could_not_be_used() {
    let call = |time| event("cuda_runtime", "cudaFree", time, 1.0, 1);
    let kernel = |time| event("kernel", "k", time, 1.0, 1);
    for (events, expected) in [
        (vec![], &["no calls of CUDA"][..]),
        (vec![call(1e300)], &["1 of its events have no time", "no calls of CUDA"]),
        (vec![call(1.0)], &["no work of a device", "no stacks"]),
        (vec![call(1.0), kernel(2.0), kernel(1e300)], &["1 of its events have no time", "no stacks"]),
        (vec![kernel(1.0)], &["no calls of CUDA"]),
    ] {
        let warnings = report_of(&events).warnings;
        assert_eq!(warnings.len(), expected.len(), "{warnings:?}");
        assert!(warnings.iter().zip(expected).all(|(warning, part)| warning.contains(part)), "{warnings:?}");
    }
}

/// What such a call costs without a cause, 50 µs at most, is no part of it.
#[test]
fn a_call_of_unknown_cause_is_said_beside_the_waits_and_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let events = [
        event("kernel", "gemm", 10.0, 5.0, 1),
        event("cuda_runtime", "cudaDeviceSynchronize", 100.0, 900.0, 2),
        event("kernel", "gemm", 1_010.0, 500.0, 3),
        event("cuda_runtime", "cudaStreamSynchronize", 1_020.0, 491.0, 4),
    ];
    fs::write(folder.path().join("t.json"), trace_of(&events)).unwrap();
    let output = audit(&["--from", "t.json"]).current_dir(folder.path()).env("COLUMNS", "200").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 wait at 1 place took 490 µs of "), "{text}");
    assert!(text.contains(" 1 call took 850 µs for a cause that is not known."), "{text}");
}

/// The profiler cuts the folder of the packages off, so that the file of a package looks like one of the program's.
#[test]
fn a_wait_within_a_package_is_at_the_line_of_the_program_that_called_it() {
    for package in ["torch/cuda/__init__.py", "/venv/lib/python3.12/site-packages/other/sync.py", "contextlib.py"] {
        let events = [
            event("python_function", "train.py(31): step", 0.0, 3_000.0, 0),
            event("python_function", &format!("{package}(1152): synchronize"), 50.0, 2_000.0, 0),
            event("kernel", "gemm", 60.0, 900.0, 1),
            event("cuda_runtime", "cudaDeviceSynchronize", 100.0, 862.0, 2),
        ];
        let report = report_of(&events);
        assert_eq!(report.places[0].place, "step, train.py", "{package}: {:?}", report.places);
    }
}

/// A fill that is slower than its like, and work that ends meanwhile: less of it is left than the clocks may differ by.
#[test]
fn a_call_that_is_slow_by_less_than_the_clocks_differ_waited_for_nothing() {
    for (left, took, waits) in [(0.6, 1.7, false), (4.0, 5.0, false), (40.0, 41.0, true)] {
        let mut events =
            vec![event("kernel", "fill", 90.0, 10.0 + left, 1), event("cuda_runtime", "cudaMemset", 100.0, took, 2)];
        // Its like, with nothing pending.
        events.extend((3..8).map(|number| event("cuda_runtime", "cudaMemset", 1_000.0 * number as f64, 0.5, number)));
        let report = report_of(&events);
        let found = report.places.iter().any(|place| place.reason == Reason::Wait);
        assert_eq!(found, waits, "{left} µs left, {took} µs long: {:?}", report.places);
    }
}

/// The waits of all threads count, which may be more than the run is long.
#[test]
fn waits_of_two_threads_at_once_are_no_share_of_the_run() {
    let mut events = [
        event("kernel", "gemm", 50.0, 620.0, 1),
        event("cuda_runtime", "cudaDeviceSynchronize", 100.0, 600.0, 2),
        event("cuda_runtime", "cudaDeviceSynchronize", 100.0, 600.0, 3),
    ];
    events[2]["tid"] = json!(8);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.json"), trace_of(&events)).unwrap();
    let output = audit(&["--all", "--from", "t.json"]).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("several threads waited at once") && text.contains("above 100 %"), "{text}");
    let shares = text.split(" %").filter_map(|before| before.split([' ', '(']).next_back()?.parse::<f64>().ok());
    assert!(shares.fold(0.0, f64::max) <= 100.0, "{text}");
}

/// The run-time library's call and the driver's within it are one; the device's part has the number of either.
#[test]
fn the_copy_of_a_call_within_a_call_is_found_by_either_number() {
    for copy in [1, 2] {
        let events = [
            event("cuda_runtime", "cudaMemcpyAsync", 100.0, 1_000.0, 1),
            event("cuda_driver", "cuMemcpyHtoDAsync_v2", 110.0, 980.0, 2),
            event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 300.0, 900.0, copy),
        ];
        let report = report_of(&events);
        let found: Vec<_> = report.places.iter().map(|place| (place.reason, place.count, place.total_ns)).collect();
        assert_eq!(found, [(Reason::Copy, 1, 1_000_000)], "{copy}");
    }
}

/// A blocking copy asks the driver for other things, too, and waits within.
#[test]
fn a_call_around_calls_of_other_kinds_is_listed_once() {
    let events = [
        event("kernel", "gemm", 50.0, 1_000.0, 1),
        event("cuda_runtime", "cudaMemcpy", 100.0, 1_100.0, 2),
        event("cuda_driver", "cuCtxGetCurrent", 101.0, 1.0, 3),
        event("cuda_driver", "cuMemcpyDtoHAsync_v2", 105.0, 50.0, 4),
        event("cuda_driver", "cuStreamSynchronize", 160.0, 1_030.0, 5),
        event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 1_050.0, 100.0, 4),
    ];
    let report = report_of(&events);
    let found: Vec<_> =
        report.places.iter().map(|place| (&*place.call, place.reason, place.count, place.total_ns)).collect();
    // Up to the end of the kernel, and the copy.
    let expected = [("cudaMemcpy", Reason::Wait, 1, 950_000), ("cudaMemcpy", Reason::Copy, 1, 100_000)];
    assert_eq!(found, expected, "{:?}", report.places);
    adds_up(&report);
}

/// The profiler numbers operators (`External id`) and calls apart: one is not the other.
#[test]
fn work_whose_call_is_not_known_is_waited_for_by_none() {
    let mut events = [event("kernel", "gemm", 50.0, 1_000.0, 1), event("cuda_runtime", "cudaFree", 100.0, 960.0, 7)];
    assert_eq!(report_of(&events).places[0].reason, Reason::Wait);
    events[0]["args"] = json!({ "External id": 1, "stream": 7 });
    let report = report_of(&events);
    assert!(report.places.iter().all(|place| place.reason == Reason::Allocate), "{:?}", report.places);
    assert!(
        report.warnings.iter().any(|warning| warning.contains("do not name their call: 1")),
        "{:?}",
        report.warnings
    );
}

/// The driver returns from a copy from pageable memory before the device has all of it. The host read that memory meanwhile.
#[test]
fn only_pageable_copies_block_the_host() {
    // The memory, when the call and the device's part begin and how long they take, and for how long the host was blocked.
    for (memory, call, device, blocked) in [
        ("Pageable", (100.0, 2_000.0), (600.0, 1_700.0), Some(2_000_000)),
        ("Pageable", (100.0, 2_000.0), (600.0, 900.0), Some(1_400_000)),
        ("Pageable", (100.0, 3.0), (200.0, 2.0), None),
        ("Pinned", (100.0, 20.0), (110.0, 1_700.0), None),
    ] {
        let events = [
            event("cuda_driver", "cuMemcpyHtoDAsync_v2", call.0, call.1, 1),
            event("gpu_memcpy", &format!("Memcpy HtoD ({memory} -> Device)"), device.0, device.1, 1),
        ];
        let report = report_of(&events);
        let found = report.places.iter().find(|place| place.reason == Reason::Copy).map(|place| place.total_ns);
        assert_eq!(found, blocked, "{memory} {device:?}: {:?}", report.places);
        adds_up(&report);
    }
}

/// The book's tests make a chapter of this audit.
#[test]
fn the_audit_of_that_trace_is_the_one_that_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let json_file = folder.path().join("a.json");
    let arguments = ["--from", "kineto.json", "--json", json_file.to_str().unwrap()];
    let output = audit(&arguments).current_dir(SOURCES).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(fs::read_to_string(&json_file).unwrap(), include_str!("kineto-audit.json"));
}

/// Audits of an H200: the book shows what is printed of them.
#[test]
fn the_audits_of_a_gpu_that_the_book_shows_are_printed_as_it_shows_them_and_add_up() {
    for (kept, shown) in [
        ("with", include_str!("../../book/src/listings/audit_with_waits.txt")),
        ("without", include_str!("../../book/src/listings/audit_without_waits.txt")),
        ("cudarc", include_str!("../../book/src/listings/audit_cudarc.txt")),
    ] {
        let file = format!("kept/{kept}.json");
        let text = fs::read_to_string(format!("{SOURCES}/{file}")).unwrap();
        adds_up(&AuditReport::parse(&text, &file).unwrap());
        let output = audit(&["--from", &file]).current_dir(SOURCES).env_remove("COLUMNS").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), shown.trim_end(), "{kept}");
    }
}

#[test]
fn a_kept_audit_is_printed_and_written_again_and_holds_no_budget() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.json"), include_str!("kineto-audit.json")).unwrap();
    fs::write(folder.path().join("budget.yaml"), "waits: 0\n").unwrap();
    let run = |more: &[&str]| {
        audit(&[&["--from", "a.json"], more].concat())
            .current_dir(folder.path())
            .env("COLUMNS", "150")
            .output()
            .unwrap()
    };
    let output = run(&["--json", "b.json", "--html", "b.html"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let arguments = ["--from", "kineto.json"];
    let of_trace = audit(&arguments).current_dir(SOURCES).env("COLUMNS", "150").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&of_trace.stdout));
    assert_eq!(fs::read_to_string(folder.path().join("b.json")).unwrap(), include_str!("kineto-audit.json"));
    assert!(fs::read_to_string(folder.path().join("b.html")).unwrap().contains("Where the host waits"));
    let output = run(&["--budget", "budget.yaml"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("it has no single calls"), "{}", said(&output));
}

#[test]
fn a_kept_audit_is_checked_and_is_refused_where_its_shares_do_not_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let check = |content: &str| {
        fs::write(folder.path().join("a.json"), content).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_report"));
        command.args(["check", "a.json"]).current_dir(folder.path()).output().unwrap()
    };
    let output = check(include_str!("kineto-audit.json"));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("of one process can be read"));
    let output = check(&include_str!("kineto-audit.json").replacen("\"wall_ns\": ", "\"wall_ns\": 1", 1));
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("a.json: it contradicts itself: the shares of the host"), "{}", said(&output));
}

#[test]
fn two_audits_of_one_name_for_one_book_are_refused_and_so_is_what_is_none() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("b")).unwrap();
    for file in ["a.json", "b/a.json"] {
        fs::write(folder.path().join(file), include_str!("kineto-audit.json")).unwrap();
    }
    fs::write(folder.path().join("none.json"), "{}").unwrap();
    for (audits, why) in [(["a.json", "b/a.json"], "two audits are called `a`"), (["a.json", "none.json"], "none.json")]
    {
        let [one, two] = audits;
        let arguments = ["render", "results.json", "--audit", one, "--audit", two];
        let mut command = Command::new(env!("CARGO_BIN_EXE_report"));
        let output = command.args(arguments).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(why), "{}", said(&output));
    }
}

#[test]
fn what_is_no_trace_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    for (content, word) in [
        ("SQLite format 3\0more", if cfg!(feature = "nsys") { "cut off" } else { "build it with `--features nsys`" }),
        ("text", "neither an object nor a list"),
        ("{}", "traceEvents"),
    ] {
        fs::write(folder.path().join("t.json"), content).unwrap();
        let output = audit(&["--from", "t.json"]).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(word), "{word}: {}", said(&output));
    }
}

#[test]
fn a_trace_may_be_packed_or_the_list_of_events_alone() {
    let folder = tempfile::tempdir().unwrap();
    let trace = include_str!("kineto.json");
    fs::write(folder.path().join("a.json"), trace).unwrap();
    let list = serde_json::from_str::<Value>(trace).unwrap()["traceEvents"].to_string();
    fs::write(folder.path().join("list.json"), list).unwrap();
    assert!(Command::new("gzip").arg("-k").arg("a.json").current_dir(folder.path()).status().unwrap().success());
    let of = |file: &str| {
        let output = audit(&["--from", file]).current_dir(folder.path()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), said(&output))
    };
    let plain = of("a.json");
    assert!(plain.0 == Some(0) && plain.1.contains("step, train.py, from line 31"), "{plain:?}");
    assert_eq!((of("a.json.gz"), of("list.json")), (plain.clone(), plain));
    fs::write(folder.path().join("cut.json.gz"), &fs::read(folder.path().join("a.json.gz")).unwrap()[..100]).unwrap();
    let (code, _, words) = of("cut.json.gz");
    assert!(code == Some(2) && words.contains("cut.json.gz"), "{words}");
}

/// Numbers that no clock has, names that a terminal or a page acts on, and more nesting than a stack has.
#[test]
fn a_hostile_trace_ends_in_a_report_without_what_acts_on_a_terminal_or_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let mut events = vec![
        r#"{"ph":"X","cat":"kernel","name":"<script>\u001b[2J","pid":0,"tid":7,"ts":0,"dur":900,"args":{"correlation":1,"stream":7}}"#.to_owned(),
        r#"{"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize<b>\u001b[31m","pid":1,"tid":1,"ts":1,"dur":1e300}"#.to_owned(),
        r#"{"ph":"X","cat":"cuda_runtime","name":"cudaDeviceSynchronize","pid":1,"tid":1,"ts":100,"dur":900,"args":{"correlation":18446744073709551615}}"#.to_owned(),
        r#"{"ph":"X","cat":"kernel","name":"far","pid":0,"tid":7,"ts":-1e18,"dur":-5}"#.to_owned(),
        r#"{"ph":"X","cat":"gpu_memcpy","name":"x","pid":0,"tid":7,"ts":3,"dur":-5,"args":{"correlation":18446744073709551615}}"#.to_owned(),
        r#"{"ph":"X","cat":"cuda_runtime","name":"cudaMemcpy","pid":1,"tid":1,"ts":2000,"dur":3.1e13,"args":{"correlation":18446744073709551615}}"#.to_owned(),
    ];
    for depth in 0..600 {
        let name = format!("<img src=x>\\u001b]0;.py({depth}): f");
        events.push(format!(
            r#"{{"ph":"X","cat":"python_function","name":"{name}","pid":1,"tid":1,"ts":{}.5,"dur":99999}}"#,
            depth / 10
        ));
    }
    fs::write(folder.path().join("t.json"), format!("{{\"traceEvents\":[{}]}}", events.join(","))).unwrap();
    let output = audit(&["--from", "t.json", "--html", "a.html", "--trace", "b.json"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!output.stdout.contains(&0x1b));
    let page = fs::read_to_string(folder.path().join("a.html")).unwrap();
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains('\u{1b}'));
    assert!(read(&folder.path().join("b.json"))["traceEvents"].is_array());
}

#[test]
fn events_at_times_of_no_clock_are_left_out_and_counted_and_the_rest_is_as_without_them() {
    let plain = AuditReport::of_trace(include_str!("kineto.json"), "t").unwrap();
    for (far, words) in [
        (vec![event("kernel", "far", -1e15, 5.0, 1)], "the others: 1 event"),
        (
            vec![
                event("python_function", "train.py(3): f", -1e15, 5.0, 0),
                event("cuda_runtime", "cudaMalloc", 1e15, 5.0, 9_000),
                event("cuda_runtime", "cudaDeviceSynchronize", 4_294_967_296_500.0, 1e12, 9_001),
            ],
            "the others: 3 events",
        ),
    ] {
        let mut trace: Value = serde_json::from_str(include_str!("kineto.json")).unwrap();
        trace["traceEvents"].as_array_mut().unwrap().extend(far);
        let report = AuditReport::of_trace(trace.to_string(), "t").unwrap();
        assert!(report.warnings[0].contains(words), "{:?}", report.warnings);
        assert_eq!(report.warnings[1..], plain.warnings);
        let processes = |report: &AuditReport| serde_json::to_value(&report.processes).unwrap();
        assert_eq!((places(&report), processes(&report)), (places(&plain), processes(&plain)));
    }
}

/// Each process is a part of what is printed.
#[test]
fn many_processes_are_cut_when_printed_and_too_many_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let of = |count: u64| {
        let process = |number: u64| {
            let mut call = event("cuda_runtime", "cudaMalloc", 0.0, 4.0, number);
            call["pid"] = json!(number);
            call
        };
        fs::write(folder.path().join("t.json"), trace_of(&(1..=count).map(process).collect::<Vec<_>>())).unwrap();
        audit(&["--all", "--from", "t.json"]).current_dir(folder.path()).output().unwrap()
    };
    let output = of(30);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.matches(" in all\n").count(), 20, "{text}");
    assert!(text.contains("and 10 more processes (--json has all)"), "{text}");
    let output = of(4097);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("t.json: it has more than 4096 processes"), "{}", said(&output));
}

#[test]
fn the_page_of_an_audit_has_the_first_of_many_warnings() {
    let mut kept: Value = serde_json::from_str(include_str!("kineto-audit.json")).unwrap();
    kept["warnings"] = json!(vec!["lost"; 1_000]);
    let page = AuditReport::parse(&kept.to_string(), "a.json").unwrap().to_html("");
    assert_eq!(page.matches("<strong>lost</strong>").count(), 100);
    assert!(page.contains("And 900 more warnings"));
}

#[test]
fn what_a_terminal_is_told_is_short_whatever_the_names_and_however_many_the_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    let mut kept: Value = serde_json::from_str(include_str!("kept/with.json")).unwrap();
    kept["warnings"] = json!(vec!["lost"; 1_000]);
    for place in kept["idle"].as_array_mut().unwrap() {
        place["within"] = json!(format!("{}{}", place["within"].as_str().unwrap_or_default(), "n".repeat(3_000)));
        place["place"] = json!(format!("/{}{}", "folder/".repeat(500), place["place"].as_str().unwrap_or_default()));
    }
    fs::write(&file, kept.to_string()).unwrap();
    let of = |more: &[&str]| {
        let output = audit(&[&["--from", file.to_str().unwrap()], more].concat()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output)
    };
    let text = of(&[]);
    assert!(text.lines().count() <= 25 && text.lines().all(|line| line.chars().count() < 500), "{text}");
    assert!(text.contains("996 more warnings (--all has them)"), "{text}");
    assert!(of(&["--all"]).matches("lost").count() >= 1_000);
}

/// The style of the book names the light colours once more: what stands behind it holds.
#[test]
fn the_page_has_its_dark_colours_behind_the_style() {
    let page = AuditReport::of_trace(include_str!("kineto.json"), "kineto.json").unwrap().to_html("LIGHT");
    let (dark, light) = (page.find("prefers-color-scheme:dark").unwrap(), page.find("LIGHT").unwrap());
    assert!(dark > light, "{dark} {light}");
}
