//! One test for each kind of what a trace can say, and can fail to say.

use super::super::super::steps::{Allowed, Budget, Step};
use super::super::super::verdict::verdict;
use super::*;

/// A launch of a kernel of 30 ms, and a call that returns when it has ended.
fn waited_for(name: &str, at: f64, number: u64) -> Vec<Value> {
    vec![
        call("cudaLaunchKernel", (at, 5.0), number),
        kernel((at + 6.0, 30_000.0), number),
        call(name, (at + 10.0, 30_010.0), number + 1),
    ]
}

/// Whether a budget holds for a text, and what is said where it does not.
fn held(text: &str, budget: &Budget) -> (bool, String) {
    let (recording, report, judged) = read_text(text.as_bytes());
    let verdict = verdict((Some(budget), None), &recording, &judged, &report);
    let breaches = verdict.breaches.iter().map(|breach| breach.why.clone());
    (verdict.is_held(), breaches.chain(verdict.unheld_words()).collect::<Vec<_>>().join("\n"))
}

fn no_waits() -> Budget {
    Budget { waits: Some(0), ..Budget::default() }
}

#[test]
fn a_wait_is_in_the_function_of_its_source_and_has_no_line() {
    let read = |at, number| {
        vec![
            call("cudaLaunchKernel", (at, 5.0), number),
            kernel((at + 8.0, 900.0), number),
            call("cudaMemcpyAsync", (at + 10.0, 940.0), number + 1),
            copy("Memcpy DtoH (Device -> Pageable)", (at + 930.0, 2.0), number + 1, 4),
        ]
    };
    let mut events = vec![
        function("train.py(23): <module>", (0.0, 100_000.0)),
        function("train.py(13): main", (1.0, 99_000.0)),
        function("train.py(5): helper", (90.0, 1_100.0)),
        function("train.py(30): helper", (6_000.0, 1_100.0)),
    ];
    events.extend([read(100.0, 1), read(2_100.0, 3), read(4_100.0, 5), read(6_100.0, 7)].concat());
    let report = report_of(&events);
    let expected = [
        ("main, train.py", "cudaMemcpyAsync", Reason::Wait, 2, 1_796),
        ("helper, train.py, from line 30", "cudaMemcpyAsync", Reason::Wait, 1, 898),
        ("helper, train.py, from line 5", "cudaMemcpyAsync", Reason::Wait, 1, 898),
    ];
    assert_eq!(found(&report), expected);
    assert_eq!(report.places.iter().map(|place| place.bytes).collect::<Vec<_>>(), [8, 4, 4]);
    // A line that a budget allows may be that of any of its functions.
    let allowing = |place: &str| Budget {
        allow: vec![Allowed { place: place.to_owned(), reason: "logged".to_owned() }],
        waits: Some(3),
        ..Budget::default()
    };
    let text = trace_of(&events);
    for (place, is_held, says) in [
        ("train.py:8", false, "it is not known"),
        ("helper, train.py", true, ""),
        ("train.py", true, ""),
        ("other.py:8", false, "waits 4 times"),
    ] {
        let (held, said) = held(&text, &allowing(place));
        assert!(held == is_held && said.contains(says), "{place}: {said}");
    }
}

#[test]
fn a_live_audit_and_a_trace_know_each_others_functions() {
    let events = [vec![function("train.py(5): helper", (0.0, 50_000.0))], waited_for("cudaStreamSynchronize", 9.0, 1)];
    let (recording, trace, judged) = read_text(trace_of(&events.concat()).as_bytes());
    let live = |function: &str, call: &str| {
        let mut live = trace.clone();
        let place = &mut live.places[0];
        (place.place, place.function, place.call) = ("/home/a/train.py:8".into(), function.into(), call.into());
        place.stack[0] = super::super::super::recording::Frame {
            file: "/home/a/train.py".to_owned(),
            line: 8,
            function: function.to_owned(),
            ..Default::default()
        };
        live
    };
    for (function, call, is_held) in [
        ("helper", "cuStreamSynchronize", true),
        ("helper", "cuCtxSynchronize", false),
        ("other", "cuStreamSynchronize", false),
    ] {
        let verdict = verdict((None, Some(&live(function, call))), &recording, &judged, &trace);
        assert_eq!(verdict.is_held(), is_held, "{function} {call}");
    }
}

#[test]
fn what_a_synchronization_waits_for_is_what_the_trace_says_of_it() {
    let wait = |at: f64, number: u64, awaited: Value| {
        let mut args = json!({ "stream": -1, "correlation": number + 2, "device": 0, "context": 1 });
        args.as_object_mut().unwrap().extend(awaited.as_object().unwrap().clone());
        vec![
            call("cudaLaunchKernel", (at, 5.0), number),
            kernel((at + 6.0, 45.0), number),
            call("cudaEventRecord", (at + 7.0, 1.0), number + 1),
            call("cudaEventSynchronize", (at + 10.0, 45.0), number + 2),
            event("cuda_sync", "Event Sync", (at + 10.0, 44.0), &args),
        ]
    };
    let of_event = |number: u64| json!({ "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": number + 1 });
    let many = |awaited: &dyn Fn(u64) -> Value| {
        let all = (0..20_u64).flat_map(|step| wait(1_000.0 * step as f64, 3 * step + 1, awaited(3 * step + 1)));
        all.collect::<Vec<_>>()
    };
    let waits = [("", "cudaEventSynchronize", Reason::Wait, 20, 820)];
    assert_eq!(found(&report_of(&many(&of_event))), waits);
    assert_eq!(found(&report_of(&many(&|_| json!({ "wait_on_stream": 7 })))), waits);
    // An event of a stream with nothing pending is no reason to wait.
    let elsewhere = |number: u64| json!({ "wait_on_stream": 9, "wait_on_cuda_event_record_corr_id": number + 1 });
    assert_eq!(found(&report_of(&many(&elsewhere))), []);
    // Without the call that recorded it, its number tells when it was.
    let alone: Vec<Value> = many(&of_event).into_iter().filter(|event| event["name"] != "cudaEventRecord").collect();
    assert_eq!(found(&report_of(&alone)), waits);
    // With no such event at all there is but one stream, and the call returned when it was done.
    let silent: Vec<Value> = many(&of_event).into_iter().filter(|event| event["cat"] != "cuda_sync").collect();
    assert_eq!(found(&report_of(&silent)), waits);
    // With two, and a return that neither explains, it is open, and no budget holds.
    let other = event("kernel", "k", (0.0, 30_000.0), &json!({ "stream": 9, "correlation": 0, "context": 1 }));
    let mut late = silent.clone();
    late.push(other);
    late.iter_mut()
        .filter(|event| event["name"] == "cudaEventSynchronize")
        .for_each(|event| event["dur"] = json!(120.0));
    let report = report_of(&late);
    assert_eq!(found(&report)[0].2, Reason::Uncertain, "{:?}", report.places);
    assert!(!held(&trace_of(&late), &no_waits()).0);
}

#[test]
fn a_copy_behind_work_waits_until_that_ends_and_is_blocked_by_itself_after_it() {
    let events = [
        call("cudaLaunchKernel", (0.0, 5.0), 1),
        kernel((6.0, 24.0), 1),
        call("cudaMemcpyAsync", (10.0, 100_050.0), 2),
        copy("Memcpy HtoD (Pageable -> Device)", (40.0, 100_000.0), 2, 1 << 30),
    ];
    let (_, report, _) = read_text(trace_of(&events).as_bytes());
    let expected = [("", "cudaMemcpyAsync", Reason::Copy, 1, 100_010), ("", "cudaMemcpyAsync", Reason::Wait, 1, 20)];
    assert_eq!(found(&report), expected);
    assert!(super::super::super::tables::summary(&report).contains(" took 20.0 µs of "), "the headline");
    let waiting = report.processes[0].host.iter().find(|share| share.doing == super::super::super::Activity::Waiting);
    assert_eq!(waiting.unwrap().ns, 20_000);
    let budget = |milliseconds| Budget { milliseconds: Some(milliseconds), ..Budget::default() };
    assert!(held(&trace_of(&events), &budget(0.03)).0 && !held(&trace_of(&events), &budget(0.01)).0);
}

#[test]
fn the_calls_of_rocm_and_the_categories_of_older_versions_are_known() {
    let hip = |name: &str| {
        let text = trace_of(&waited_for(name, 0.0, 1)).replace("cudaLaunchKernel", "hipLaunchKernel");
        let report = read_text(text.as_bytes()).1;
        assert!(report.source.contains("ROCm"), "{}", report.source);
        report
    };
    for name in ["hipDeviceSynchronize", "hipStreamSynchronize", "hipEventSynchronize", "hipStreamSynchronize_spt"] {
        assert_eq!(found(&hip(name)), [("", name, Reason::Wait, 1, 29_996)]);
    }
    let mut events = waited_for("hipMemcpyWithStream", 0.0, 1);
    events.push(copy("Memcpy DtoH (Device -> Host)", (30_008.0, 2.0), 2, 4));
    assert_eq!(found(&report_of(&events)), [("", "hipMemcpyWithStream", Reason::Wait, 1, 29_996)]);
    let old = trace_of(&waited_for("cudaDeviceSynchronize", 0.0, 1))
        .replace("cuda_runtime", "Runtime")
        .replace("\"kernel\"", "\"Kernel\"");
    assert_eq!(found(&read_text(old.as_bytes()).1), [("", "cudaDeviceSynchronize", Reason::Wait, 1, 29_996)]);
}

/// As JAX writes: without categories, and with numbers in texts.
#[test]
fn calls_and_work_without_a_category_are_known_by_their_names_and_numbers() {
    let mut events = waited_for("cuStreamSynchronize", 0.0, 1);
    events.push(event("", "MemcpyD2H", (30_012.0, 2.0), &json!({ "correlation_id": "3" })));
    events.push(call("cuMemcpyDtoHAsync_v2", (30_021.0, 4.0), 3));
    events.push(event("", "a host's own", (30_030.0, 9.0), &json!({ "correlation_id": "77" })));
    for event in &mut events {
        event.as_object_mut().unwrap().remove("cat");
        let number = event["args"].get("correlation").map(|number| number.to_string());
        if let Some(number) = number {
            event["args"] = json!({ "correlation_id": number });
        }
        if !event["name"].as_str().unwrap().starts_with("cu") {
            event["pid"] = json!(1);
        }
    }
    let (recording, report, _) = read_text(trace_of(&events).as_bytes());
    assert_eq!(found(&report)[0], ("", "cuStreamSynchronize", Reason::Wait, 1, 29_996));
    assert_eq!((recording.processes.len(), recording.processes[0].work.len()), (1, 2));
}

#[test]
fn a_copy_that_blocked_for_what_no_record_shows_is_no_copy_without_a_wait() {
    let late = |copied: Value| {
        let launched = [call("cudaLaunchKernel", (0.0, 5.0), 1), kernel((6.0, 30_000.0), 1)];
        [launched.to_vec(), vec![call("cudaMemcpyAsync", (10.0, 30_020.0), 2), copied]].concat()
    };
    let copied = |name: &str, stream: u32| {
        let mut copied = copy(name, (30_010.0, 10.0), 2, 8);
        copied["args"]["stream"] = json!(stream);
        copied
    };
    let none = event("other", "no copy", (0.0, 1.0), &Value::Null);
    for event in [
        none,
        copied("Memcpy DtoH (Device -> Pageable)", 20),
        copied("Memcpy HtoD (Pinned -> Device)", 20),
        copied("Memcpy DtoD (Device -> Device)", 7),
    ] {
        let report = report_of(&late(event.clone()));
        assert!(report.places.iter().any(|place| place.is_wait()), "{event}: {:?}", report.places);
    }
}

#[test]
fn what_stands_behind_the_end_of_a_trace_is_said_to_be_missing() {
    let whole = trace_of(&waited_for("cudaStreamSynchronize", 0.0, 1));
    let (recording, report, _) = read_text(format!("\u{feff}{whole}\n{whole}").as_bytes());
    assert_eq!(found(&report)[0].3, 1);
    assert!(recording.missing.iter().any(|missing| missing.contains("behind its end")), "{:?}", recording.missing);
}

#[test]
fn a_trace_of_work_alone_says_so() {
    let report = report_of(&[kernel((1.0, 2.0), 1)]);
    assert!(
        report.warnings.iter().any(|warning| warning.contains("has work of a device and no calls")),
        "{:?}",
        report.warnings
    );
}

#[test]
fn the_profilers_own_synchronization_is_no_wait_of_the_program() {
    let within = |profiler: &str| {
        let stack =
            ["train.py(40): <module>", "train.py(31): main", profiler, "torch/cuda/__init__.py(975): synchronize"];
        let frames =
            (0..).zip(stack).map(|(deep, name)| function(name, (0.1 * f64::from(deep), 40_000.0 - f64::from(deep))));
        frames.chain(waited_for("cudaDeviceSynchronize", 9.0, 1)).collect::<Vec<_>>()
    };
    let of_profiler = ["torch/autograd/profiler.py(363): __exit__", "torch/profiler/profiler.py(811): step"];
    for profiler in
        of_profiler.into_iter().chain(["/venv/lib/python3.12/site-packages/torch/profiler/profiler.py(1): stop"])
    {
        let events = within(profiler);
        let report = report_of(&events);
        assert_eq!(found(&report), []);
        assert!(report.warnings.iter().any(|warning| warning.contains("profiler's own: 1 synchronization")));
        assert!(held(&trace_of(&events), &no_waits()).0);
    }
    // The program's own call, from a function that the profiler has called.
    assert_eq!(found(&report_of(&within("other.py(3): timed"))).len(), 1);
    // Without stacks, the last before the end that the trace states.
    let mut events =
        [waited_for("cudaDeviceSynchronize", 0.0, 1), waited_for("cudaDeviceSynchronize", 40_000.0, 3)].concat();
    assert_eq!(found(&report_of(&events))[0].3, 2);
    assert!(report_of(&events).warnings.iter().any(|warning| warning.contains("may be the profiler's own")));
    events.push(json!({ "ph": "i", "name": "Record Window End", "s": "g", "pid": "", "tid": "", "ts": 70_030.0 }));
    assert_eq!(found(&report_of(&events))[0].3, 1);
    events.push(event("cpu_op", "aten::add", (70_025.0, 1.0), &Value::Null));
    assert_eq!(found(&report_of(&events))[0].3, 2, "the program went on");
}

#[test]
fn rows_of_other_operators_are_other_rows() {
    let read = |at, number| {
        let mut events = waited_for("cudaMemcpyAsync", at, number);
        events.push(copy("Memcpy DtoH (Device -> Pageable)", (at + 30_010.0, 2.0), number + 1, 8));
        events
    };
    let mut events = [read(0.0, 1), read(50_000.0, 3), read(100_000.0, 5)].concat();
    events.push(event("cpu_op", "aten::nonzero", (8.0, 30_100.0), &Value::Null));
    events.push(function("<built-in method item of Tensor object at 0x7f00>", (50_001.0, 40_000.0)));
    events.push(event("cpu_op", "aten::item", (50_002.0, 30_200.0), &Value::Null));
    events.push(event("cpu_op", "aten::_local_scalar_dense", (50_003.0, 30_100.0), &Value::Null));
    events.push(function("<built-in method cpu of Tensor object at 0x7f20>", (100_001.0, 40_000.0)));
    let report = report_of(&events);
    let mut operators: Vec<_> =
        report.places.iter().map(|place| (&*place.operator, place.count, place.bytes)).collect();
    operators.sort_unstable();
    assert_eq!(operators, [("Tensor.cpu", 1, 8), ("aten::_local_scalar_dense", 1, 8), ("aten::nonzero", 1, 8)]);
    let table = super::super::super::tables::places(&report, 10).to_console();
    assert!(table.contains("operator") && table.contains("8.00 B"), "{table}");
}

#[test]
fn what_costs_no_more_than_a_call_is_not_listed_and_loading_is_one_row() {
    let loads = (0..50_u64).map(|n| call("cudaFuncGetAttributes", (200.0 + 10.0 * n as f64, 2.0), 10 + n));
    let long = (0..3_u64).map(|n| {
        call(
            ["cuModuleLoadData", "cuLibraryLoadData", "cudaFuncGetAttributes"][n as usize],
            (1_000.0 + 500.0 * n as f64, 90.0),
            90 + n,
        )
    });
    let mut events = vec![
        call("cudaLaunchKernel", (0.0, 5.0), 1),
        kernel((6.0, 94.0), 1),
        call("cudaPeekAtLastError", (97.0, 0.0), 2),
        call("cudaDeviceSynchronize", (96.0, 0.0), 4),
        call("cudaFree", (96.5, 1.0), 5),
        call("cudaMalloc", (98.0, 1.0), 3),
    ];
    events.extend(loads.chain(long));
    let report = report_of(&events);
    assert_eq!(found(&report), [("", "loading code", Reason::Load, 3, 270)]);
    assert_eq!(report.places[0].name(), "(wherever code is loaded)");
}

#[test]
fn numbers_of_calls_are_those_of_a_process_and_its_device() {
    let rank = |process: u64, device: u64| {
        let mut events =
            [waited_for("cudaDeviceSynchronize", 0.0, 1), waited_for("cudaDeviceSynchronize", 40_000.0, 3)].concat();
        for event in &mut events {
            event["pid"] = json!(if event["cat"] == "kernel" { device } else { process });
            if event["cat"] == "kernel" {
                event["args"]["device"] = json!(device);
            }
        }
        events
    };
    let merged = [rank(5_000, 0), rank(5_001, 1), rank(5_002, 2)].concat();
    let report = report_of(&merged);
    assert_eq!(found(&report), [("", "cudaDeviceSynchronize", Reason::Wait, 6, 6 * 29_996)]);
    assert!(report.processes.iter().all(|process| process.devices.len() == 1), "{:?}", report.processes);
    // Ranks that begin one a little after the other still have their own devices.
    let later = |mut events: Vec<Value>, by: f64| {
        events.iter_mut().for_each(|event| event["ts"] = json!(event["ts"].as_f64().unwrap() + by));
        events
    };
    let staggered = [rank(5_000, 0), later(rank(5_001, 1), 2.0), later(rank(5_002, 2), 40.0)].concat();
    assert_eq!(found(&report_of(&staggered)), [("", "cudaDeviceSynchronize", Reason::Wait, 6, 6 * 29_996)]);
    // Of two processes on one device it is not known.
    let report = report_of(&[rank(5_000, 0), rank(5_001, 0)].concat());
    assert!(report.warnings.iter().any(|warning| warning.contains("several of its processes may have made")));
}

#[test]
fn several_files_are_the_ranks_of_a_job() {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<_> = [1, 0].map(|rank| {
        let path = folder.path().join(format!("{rank}.json"));
        let trace = json!({ "distributedInfo": { "rank": rank }, "traceEvents": waited_for("cudaStreamSynchronize", 0.0, 1) });
        fs::write(&path, trace.to_string()).unwrap();
        path
    })
    .to_vec();
    let (report, _) = AuditReport::of(&read(&files).unwrap(), "job", None);
    assert_eq!(report.processes.iter().map(|process| process.rank).collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert_eq!(found(&report), [("", "cudaStreamSynchronize", Reason::Wait, 2, 2 * 29_996)]);
    fs::write(&files[0], "{\"traceEvents\": [").unwrap();
    let recording = read(&files).unwrap();
    assert!(
        recording.missing.iter().any(|missing| missing.contains("1.json: it is cut off")),
        "{:?}",
        recording.missing
    );
}

#[test]
fn a_recording_that_is_given_twice_is_refused_by_whatever_name() {
    let folder = tempfile::tempdir().unwrap();
    let [first, copy, linked, packed, other] =
        ["a.json", "copy.json", "linked.json", "a.json.gz", "b.json"].map(|name| folder.path().join(name));
    fs::write(&first, trace_of(&waited_for("cudaStreamSynchronize", 0.0, 1))).unwrap();
    fs::copy(&first, &copy).unwrap();
    std::os::unix::fs::symlink(&first, &linked).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(fs::File::create(&packed).unwrap(), flate2::Compression::fast());
    gzip.write_all(&fs::read(&first).unwrap()).unwrap();
    gzip.finish().unwrap();
    fs::write(&other, trace_of(&waited_for("cudaEventSynchronize", 0.0, 1)[..2])).unwrap();
    for twice in [&first, &copy, &linked, &packed] {
        let message = read(&[&first, &other, twice]).unwrap_err().to_string();
        let reason = format!("{}: it holds a recording that {} holds, too", twice.display(), first.display());
        assert!(message.contains(&reason), "{message}");
    }
    assert_eq!(read(&[&first, &other]).unwrap().processes.len(), 2);
}

#[test]
fn what_can_be_read_of_a_damaged_trace_is_read_and_the_rest_is_counted() {
    let events = waited_for("cudaStreamSynchronize", 0.0, 1);
    let whole = trace_of(&[events, vec![function("X", (0.0, 1.0))]].concat());
    let wait = [("", "cudaStreamSynchronize", Reason::Wait, 1, 29_996)];
    let damaged = |from: &str, to: &[u8]| {
        let at = whole.rfind(from).unwrap();
        [&whole.as_bytes()[..at], to, &whole.as_bytes()[at + from.len()..]].concat()
    };
    for name in [&b"\"torch\\cuda\\__init__.py(3): f\""[..], b"\"\xff\xfe(0): g\"", b"\"\\ud800\"", b"\"a\x01b\""] {
        let text = damaged("\"X\",\"ph\"", &[name, b",\"ph\""].concat());
        let (recording, report, _) = read_text(&text);
        assert_eq!(found(&report), wait);
        assert!(recording.missing.is_empty() && recording.warnings[0].contains("1 event had"), "{recording:?}");
    }
    for (dur, count) in [("Infinity", 1), ("NaN", 1), ("1e999", 1), ("-5", 1), ("\"x\"", 1)] {
        let (recording, report, _) = read_text(&damaged("\"dur\":1.0", format!("\"dur\":{dur}").as_bytes()));
        assert_eq!(found(&report), wait, "{dur}");
        assert!(recording.missing[0].starts_with(&count.to_string()), "{:?}", recording.missing);
    }
    let (recording, report, _) = read_text(&damaged("\"dur\":1.0", b"\"dur\" 1.0"));
    assert_eq!(found(&report), wait);
    assert!(recording.missing[0].contains("1 event could not be read"), "{:?}", recording.missing);
    // Cut off anywhere, no budget holds.
    for end in (whole.find('[').unwrap() + 1..whole.len() - 2).step_by(7) {
        let recording = of_reader(&whole.as_bytes()[..end], "trace.json").unwrap().0;
        assert!(recording.missing.iter().any(|missing| missing.contains("cut off")), "{end}: {:?}", recording.missing);
    }
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, whole.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(found(&read_text(&packed).1), wait);
    let cut = of_reader(&packed[..packed.len() - 30], "trace.json.gz").unwrap().0;
    assert!(cut.missing.iter().any(|missing| missing.contains("to its end")), "{:?}", cut.missing);
    for other in ["", "7", "{}", "{\"traceEvents\": 7}", "text"] {
        assert!(of_reader(other.as_bytes(), "trace.json").is_err(), "{other}");
    }
}

#[test]
fn the_steps_of_a_budget_are_a_name_a_pattern_or_the_profilers_own() {
    let step = |n: u64| {
        let at = 50_000.0 * n as f64;
        let mut events = waited_for("cudaStreamSynchronize", at, 2 * n + 1);
        events.push(event("user_annotation", &format!("ProfilerStep#{n}"), (at, 45_000.0), &Value::Null));
        events
    };
    let text = trace_of(&(0..5).flat_map(step).collect::<Vec<_>>());
    let of = |range: Option<&str>, waits| {
        let step = range.map(|range| Step::Range(range.to_owned()));
        held(&text, &Budget { step, waits: Some(waits), ..Budget::default() }).0
    };
    for range in [None, Some("ProfilerStep#*"), Some("*Step*"), Some("*"), Some("ProfilerStep#3")] {
        assert!(of(range, 1) && !of(range, 0), "{range:?}");
    }
    assert!(!of(Some("ProfilerStep"), 1) && !of(Some("Step*"), 1), "no step is found");
    let without_number = Budget { milliseconds: Some(f64::NAN), ..Budget::default() };
    assert!(without_number.checked().is_err());
    // A process with waits and without a step is held to nothing.
    let mut other = waited_for("cudaStreamSynchronize", 0.0, 101);
    other.iter_mut().filter(|event| event["cat"] != "kernel").for_each(|event| event["pid"] = json!(11));
    let both = trace_of(&[(0..5).flat_map(step).collect::<Vec<_>>(), other].concat());
    let budget = Budget { step: Some(Step::Range("Profiler*".to_owned())), waits: Some(1), ..Budget::default() };
    assert!(held(&both, &budget).1.contains("no step in process 11"), "{}", held(&both, &budget).1);
}

#[test]
fn events_that_begin_and_end_are_events_with_a_length() {
    let mut events = Vec::new();
    for whole in
        [waited_for("cudaStreamSynchronize", 0.0, 1), vec![event("other", "b", (12.0, 9.0), &Value::Null)]].concat()
    {
        let (mut begin, mut end) = (whole.clone(), whole.clone());
        begin["ph"] = json!("B");
        end["ph"] = json!("E");
        end["ts"] = json!(whole["ts"].as_f64().unwrap() + whole["dur"].as_f64().unwrap());
        if whole["cat"] == "kernel" {
            (begin["tid"], end["tid"]) = (json!(99), json!(99));
        }
        events.extend([begin, end]);
    }
    events.sort_by(|a, b| a["ts"].as_f64().unwrap().total_cmp(&b["ts"].as_f64().unwrap()));
    assert_eq!(found(&report_of(&events)), [("", "cudaStreamSynchronize", Reason::Wait, 1, 29_996)]);
    events.pop();
    let report = report_of(&events);
    assert!(
        report.warnings.iter().any(|warning| warning.contains("1 event began and did not end")),
        "{:?}",
        report.warnings
    );
}

#[test]
fn a_days_clock_is_read_to_the_nanosecond() {
    let text = |begin: &str| {
        trace_of(&waited_for("cudaStreamSynchronize", 1.0, 1))
            .replace("\"ts\":7.0", &format!("\"ts\":{begin}7.001"))
            .replace("\"ts\":1.0", &format!("\"ts\":{begin}1.0"))
            .replace("\"ts\":11.0", &format!("\"ts\":{begin}1.011"))
    };
    let wait = |begin| read_text(text(begin).as_bytes()).1.places[0].total_ns;
    assert_eq!(wait("173100000000000"), wait(""));
    assert_eq!(wait(""), 30_005_990);
}
