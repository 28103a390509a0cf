//! Programs with the library in them.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use syncscope_audit::{Activity, Reason};

use super::{Audited, adds_up, at, audit, compile, native, of_frame, places, said, stand_in, train};

/// What the training loop loses, place by place: the times are those of the stand-in.
fn expected() -> Vec<(String, String, Reason, u64, u64)> {
    let place = |text: &str, call: &str, reason, count, total| (at(text), call.to_owned(), reason, count, total);
    vec![
        (String::new(), "loading code".to_owned(), Reason::Load, 1, 6_000_000),
        place("cuda.cuMemcpyDtoHAsync_v2(PAGEABLE", "cuMemcpyDtoHAsync_v2", Reason::Wait, 3, 6_000_000),
        place("cuda.cuMemFree_v2()", "cuMemFree_v2", Reason::Wait, 1, 2_000_000),
        place("cuda.cuMemHostAlloc()", "cuMemHostAlloc", Reason::PageLock, 1, 500_000),
    ]
}

#[test]
fn each_planted_wait_is_found_at_its_line_and_nothing_else_is() {
    // Once the interpreter's lock is let go of in each call, once it is held.
    for lock in ["", "1"] {
        let audited = Audited::of(&["python3", &train()], &["--stacks", "all"], &[("FAKE_HOLDS_LOCK", lock)]);
        let mut expected = expected();
        expected.sort_by_key(|(_, _, _, _, total)| std::cmp::Reverse(*total));
        assert_eq!(places(&audited.report), expected, "{}", said(&audited.output));
        let wait = &audited.report.places[1];
        assert_eq!((&*wait.function, &*wait.waited_for), ("item", "kernel forward on stream 7"));
        let functions: Vec<&str> = wait.stack.iter().map(|frame| &*frame.function).collect();
        assert_eq!(functions, ["item", "step", "main", "<module>"]);
        assert_eq!(audited.report.warnings, [""; 0]);
        adds_up(&audited.report);
    }
}

#[test]
fn the_time_of_the_host_and_of_the_device_is_told_apart() {
    let audited = Audited::of(&["python3", &train()], &["--stacks", "none"], &[]);
    let process = &audited.report.processes[0];
    let host = |doing| process.host.iter().find(|share| share.doing == doing).map_or(0, |share| share.ns);
    assert_eq!(host(Activity::Waiting), 4 * 2_000_000);
    assert_eq!((host(Activity::Loading), host(Activity::PageLocking)), (6_000_000, 500_000));
    assert_eq!(host(Activity::Unknown), 0);
    // Four kernels of 2 ms; copies go on beside them.
    assert_eq!(process.devices[0].kernels_ns, 8_000_000);
    assert!(process.complete && process.overhead.as_ref().unwrap().calls > 10);
    assert!(audited.report.places.iter().all(|place| place.place.is_empty()), "no stack was taken");
}

#[test]
fn the_programs_input_output_and_exit_code_are_its_own() {
    let mut child = audit(&["--", "python3", &train()])
        .env("FAKE_EXIT", "7")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a line\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(7), &b"a line\n"[..]));
    assert!(said(&output).contains("waits at"), "{}", said(&output));
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_the_program_runs() {
    let folder = tempfile::tempdir().unwrap();
    for full in ["--json", "--html", "--trace"] {
        let output = audit(&[full, "/dev/full", "--", "touch", "ran"]).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{full}: {}", said(&output));
        assert!(said(&output).contains("error: /dev/full: "), "{full}: {}", said(&output));
        assert!(!folder.path().join("ran").exists(), "{full}");
    }
}

#[test]
fn a_program_without_cuda_and_one_that_is_not_there_get_a_clear_word() {
    let output = audit(&["--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(said(&output).matches("No use of CUDA was recorded").count(), 1, "{}", said(&output));
    let output = audit(&["--", "no-such-program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("there is no such program"), "{}", said(&output));
}

#[test]
fn another_profiler_or_no_cupti_is_said_and_the_program_runs_on() {
    let audited = Audited::of(&["python3", &train()], &[], &[("FAKE_TAKEN", "1")]);
    assert_eq!(audited.output.status.code(), Some(0));
    assert!(audited.report.warnings[0].contains("another profiler has CUPTI"), "{:?}", audited.report.warnings);
    // A driver whose CUPTI lies nowhere; a machine with a GPU may have one.
    let script = "import ctypes; ctypes.CDLL('libcupti.so.13')";
    if Command::new("python3").args(["-c", script]).stderr(Stdio::null()).status().unwrap().success() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let driver = folder.path().join("libfake.so");
    compile("fake.c", &["-shared", "-fPIC"], &driver);
    let script = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).cuInit(0)";
    let mut command = audit(&["--", "python3", "-c", script, driver.to_str().unwrap()]);
    let output = command.env_remove("LD_LIBRARY_PATH").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(said(&output).contains("CUPTI could not be used"), "{}", said(&output));
}

const KILLED: &str = "
import ctypes, os, signal, sys
cuda = ctypes.CDLL('libcupti.so.13')
cuda.cuInit(0)
cuda.cuLibraryLoadData()
";

#[test]
fn what_was_recorded_outlasts_a_kill_and_an_exec() {
    for end in ["os.kill(os.getpid(), signal.SIGKILL)", "os.execv('/bin/true', ['true'])", "os.abort()"] {
        let audited = Audited::of(&["python3", "-c", &format!("{KILLED}{end}")], &["--stacks", "all"], &[]);
        let process = &audited.report.processes[0];
        assert!(!process.complete && process.calls == 1, "{end}: {process:?}");
        assert!(audited.report.warnings[0].contains("killed, crashed"), "{:?}", audited.report.warnings);
        let ended = match end {
            _ if end.contains("exec") => (Some(0), None),
            _ if end.contains("abort") => (None, Some(6)),
            _ => (None, Some(9)),
        };
        let status = audited.output.status;
        assert_eq!((status.code(), status.signal()), ended, "{end}");
    }
}

#[test]
fn children_are_followed_and_a_fork_of_a_process_with_cuda_is_left_alone() {
    let script = format!(
        "{KILLED}
import subprocess
if os.fork() == 0:
    sys.exit(3)
os.wait()
subprocess.run([sys.executable, '-c', 'import ctypes; c = ctypes.CDLL(\"libcupti.so.13\"); c.cuInit(0); c.cuMemHostAlloc()'])
"
    );
    let audited = Audited::of(&["python3", "-c", &script], &[], &[]);
    let calls: Vec<(u64, bool)> =
        audited.report.processes.iter().map(|process| (process.calls, process.complete)).collect();
    assert_eq!(calls, [(1, true), (1, true)]);
    assert!(
        audited
            .report
            .processes
            .iter()
            .any(|process| { audited.report.processes.iter().any(|parent| parent.process == process.parent) })
    );
}

/// The records of 15,000 calls take more than one part of their file.
#[test]
fn a_program_that_closes_all_descriptors_keeps_its_own_files_and_all_records() {
    let script = "
import ctypes, os
cuda, word = ctypes.CDLL('libcupti.so.13'), ctypes.c_uint64
before = os.open('/dev/null', os.O_RDONLY)
cuda.cuInit(0)
print(os.open('/dev/null', os.O_RDONLY) - before)
os.closerange(3, 100)
own = [open(f'own-{number}', 'w+b') for number in range(8)]
for _ in range(15_000):
    cuda.cuStreamSynchronize(word(1))
print([os.path.getsize(f'own-{number}') for number in range(8)])
";
    let audited = Audited::of(&["python3", "-c", script], &["--stacks", "none"], &[]);
    assert_eq!(String::from_utf8_lossy(&audited.output.stdout), "1\n[0, 0, 0, 0, 0, 0, 0, 0]\n");
    assert_eq!(audited.report.processes[0].calls, 15_000);
}

/// By `_Fork`, of which nothing is told that asked to be told of a fork. The interpreter's lock is held on the way: in the child
/// there is no other thread that would give it back.
#[test]
fn a_child_of_a_fork_that_nobody_is_told_of_does_not_end_its_parents_recording() {
    let script = format!(
        "{KILLED}
libc = ctypes.PyDLL(None)
if libc._Fork() == 0:
    libc.exit(3)
os.wait()
os.kill(os.getpid(), signal.SIGKILL)
"
    );
    let audited = Audited::of(&["python3", "-c", &script], &[], &[]);
    assert!(!audited.report.processes[0].complete);
    assert!(audited.report.warnings[0].contains("killed, crashed"), "{:?}", audited.report.warnings);
}

/// A wait that is too short to be found by anything else than its stream.
#[test]
fn a_stream_at_the_place_of_one_that_has_ended_is_another() {
    let script = "
import ctypes
cuda, word = ctypes.CDLL('libcupti.so.13'), ctypes.c_uint64
cuda.cuInit(0)
for end in (True, False):
    cuda.fakeLaunch(b'forward', word(7), word(20_000))
    cuda.cuStreamSynchronize(word(7))
    if end:
        cuda.cuStreamDestroy_v2(word(7))
";
    let audited = Audited::of(&["python3", "-c", script], &["--stacks", "all"], &[]);
    let [place] = &*audited.report.places else { panic!("{:?}", audited.report.places) };
    assert_eq!((place.count, place.reason), (2, Reason::Wait));
    assert_eq!(place.total_ns, 2 * 20_000);
}

#[test]
fn without_the_devices_activity_calls_are_recorded_alone() {
    let audited = Audited::of(&["python3", &train()], &[], &[("SYNCSCOPE_AUDIT_ACTIVITY", "none")]);
    assert_eq!(audited.output.status.code(), Some(0), "{}", said(&audited.output));
    let process = &audited.report.processes[0];
    assert!(process.calls > 10 && process.devices.is_empty(), "{process:?}");
}

/// The thread that holds the interpreter's lock waits for a lock that the calling thread holds: no stack, and no deadlock.
#[test]
fn a_call_goes_on_without_a_stack_where_the_interpreters_lock_cannot_be_had() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libcross.so");
    compile("cross.c", &["-shared", "-fPIC"], &library);
    let script = "
import ctypes, sys, threading
cuda = ctypes.CDLL('libcupti.so.13')
cuda.cuInit(0)
free, held = ctypes.CDLL(sys.argv[1]), ctypes.PyDLL(sys.argv[1])
call = ctypes.cast(cuda.cuMemHostAlloc, ctypes.c_void_p)
other = threading.Thread(target=free.call_with_the_lock, args=(call,))
other.start()
free.wait_until_locked()
held.take_the_lock()
other.join()
";
    let patience = [("SYNCSCOPE_AUDIT_PATIENCE", "20")];
    let audited = Audited::of(&["python3", "-c", script, library.to_str().unwrap()], &["--stacks", "all"], &patience);
    assert_eq!(audited.output.status.code(), Some(0), "{}", said(&audited.output));
    assert_eq!(audited.report.processes[0].overhead.as_ref().unwrap().missed_stacks, 1);
    assert!(audited.report.warnings[0].contains("1 call without a place"), "{:?}", audited.report.warnings);
}

#[test]
fn a_line_of_the_program_behind_many_frames_of_packages_is_the_place_and_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("site-packages");
    std::fs::create_dir(&package).unwrap();
    std::fs::write(
        package.join("deep.py"),
        "def deep(call, frames):\n    return deep(call, frames - 1) if frames else call()\n",
    )
    .unwrap();
    let script = folder.path().join("train.py");
    std::fs::write(
        &script,
        // The call is the package's: a lambda here would be the place.
        "import ctypes, sys
sys.path.insert(0, sys.argv[1])
from deep import deep
cuda, word = ctypes.CDLL('libcupti.so.13'), ctypes.c_uint64
cuda.cuInit(0)
cuda.fakeLaunch(b'forward', word(7), word(2_000_000))
deep(cuda.cuCtxSynchronize, int(sys.argv[2]))
",
    )
    .unwrap();
    std::fs::write(folder.path().join("budget.yaml"), "waits: 0\n").unwrap();
    let budget = folder.path().join("budget.yaml");
    for frames in ["15", "60", "200"] {
        let arguments = ["--stacks", "all", "--budget", budget.to_str().unwrap()];
        let program = ["python3", script.to_str().unwrap(), package.to_str().unwrap(), frames];
        let audited = Audited::of(&program, &arguments, &[]);
        let found = &audited.report.places[0];
        assert_eq!(found.place, format!("{}:7", script.display()), "{frames}: {:?}", found.stack);
        assert_eq!(of_frame(found.stack.last().unwrap()), found.place, "{frames}");
    }
}

#[test]
fn native_programs_have_functions_as_places_or_a_hint_at_symbols() {
    let folder = tempfile::tempdir().unwrap();
    // As linkers leave it, so that the program's own table names its functions.
    let program = native(folder.path(), "native.c", &["-rdynamic"]);
    let audited = Audited::of(&[&program], &["--stacks", "all", "--html", "audit.html"], &[]);
    let (found, told) = (&audited.report.places[0], said(&audited.output));
    assert_eq!((&*found.call, found.total_ns), ("cuStreamSynchronize", 3_000_000));
    assert_eq!(found.place == "main (native)", !cfg!(feature = "symbols"), "{found:?}");
    let page = std::fs::read_to_string(audited.file("audit.html")).unwrap();
    for text in [&told, &page, &audited.report.warnings.join("\n")] {
        assert_eq!(
            text.matches("was built without symbols").count(),
            usize::from(!cfg!(feature = "symbols")),
            "{text}"
        );
    }
    // Of a Python program no frame is native.
    assert!(!said(&Audited::of(&["python3", &train()], &[], &[]).output).contains("symbols"));
}

/// What is longer ends a process by a signal.
#[test]
fn a_program_that_may_write_no_long_files_runs_on() {
    let folder = tempfile::tempdir().unwrap();
    let program = native(folder.path(), "native.c", &[]);
    for (blocks, recorded) in [("1", false), ("100000", true)] {
        let output =
            audit(&["--", "sh", "-c", &format!("ulimit -f {blocks}; exec \"$0\""), &program]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert_eq!(said(&output).contains("nothing was recorded of a process"), !recorded, "{}", said(&output));
    }
}

#[test]
fn a_folder_for_temporary_files_from_which_no_library_is_loaded_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mount = |then: &str| {
        let script = format!("mount -t tmpfs -o noexec none \"$0\" && {then}");
        Command::new("unshare").args(["-rm", "sh", "-c", &script]).arg(folder.path()).output().unwrap()
    };
    // Not each system lets a test mount something.
    if !mount("true").status.success() {
        return;
    }
    let output = mount(&format!("TMPDIR=$0 exec {} audit -- true", env!("CARGO_BIN_EXE_report")));
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("mounted `noexec`") && said(&output).contains("TMPDIR"), "{}", said(&output));
}

#[test]
fn a_function_of_python_has_its_own_name_whatever_it_is_to_another_compiler() {
    let script = "
import ctypes
cuda, word = ctypes.CDLL('libcupti.so.13'), ctypes.c_uint64
cuda.cuInit(0)
def f():
    cuda.fakeLaunch(b'k', word(7), word(2_000_000))
    cuda.cuCtxSynchronize()
f()
";
    let audited = Audited::of(&["python3", "-c", script], &["--stacks", "all"], &[]);
    let place = &audited.report.places[0];
    assert_eq!((&*place.function, &*place.waited_for), ("f", "kernel k on stream 7"), "{place:?}");
}

/// The main thread stands in the line that the other works for.
#[test]
fn a_thread_that_runs_no_python_has_the_line_of_the_main_thread_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libcross.so");
    compile("cross.c", &["-shared", "-fPIC"], &library);
    let script = "
import ctypes, sys
cuda, other = ctypes.CDLL('libcupti.so.13'), ctypes.CDLL(sys.argv[1])
cuda.cuInit(0)
cuda.cuMemAlloc_v2()
def backward():
    other.call_in_a_thread(cuda.cuMemHostAlloc)
backward()
";
    let audited = Audited::of(&["python3", "-c", script, library.to_str().unwrap()], &["--stacks", "all"], &[]);
    let find = |call: &str| audited.report.places.iter().find(|place| place.call == call).unwrap();
    let (lock, other) = (find("cuMemHostAlloc"), find("cuMemAlloc_v2"));
    assert_eq!((&*lock.place, &*lock.function, &*other.place), ("<string>:7", "backward", "<string>:5"), "{lock:?}");
    assert_eq!(lock.stack[0].file, "<another thread>");
    assert!(lock.thread.is_some() && other.thread.is_some() && lock.thread != other.thread, "{lock:?}");
}

/// Each case goes on until a sample says it, or for a minute: it takes no certain time.
#[test]
fn samples_say_at_which_line_and_why_a_thread_that_feeds_the_device_does_not_run() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/audit/samples.py");
    let audited = Audited::of(&["python3", script], &[], &[]);
    let printed = String::from_utf8_lossy(&audited.output.stdout).into_owned();
    // A system that does not say what threads do.
    if printed.starts_with("unknown") {
        return;
    }
    let expected = "sleeps 2\nreads 3\ngets 4\nwants_to_run 5\ncomputes 1\nfeeds 4\n";
    assert_eq!(printed, expected, "{}", said(&audited.output));
    assert_eq!(audited.report.warnings, [""; 0]);
}

/// A program without Python, whose samples have no lines: it goes on until there is such a launch, or for a minute.
#[test]
fn launches_of_a_native_program_are_recorded_within_windows() {
    let folder = tempfile::tempdir().unwrap();
    let program = native(folder.path(), "launches.c", &[]);
    let audited = Audited::of(&[&program], &[], &[]);
    assert_eq!(String::from_utf8_lossy(&audited.output.stdout), "a launch in a window\n", "{}", said(&audited.output));
}

#[test]
fn a_call_has_the_innermost_operator_of_pytorch_around_it() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("operators.so");
    let own = format!("-L{}", stand_in().display());
    compile("../no_wait/operators.c", &["-shared", "-fPIC", &own, "-l:libcupti.so.13"], &library);
    let program = format!(
        "import ctypes\ncuda = ctypes.CDLL('libcupti.so.13')\noperators = ctypes.CDLL('{}')\ncuda.cuInit(0)\nfor _ in range(3):\n    \
         cuda.fakeLaunch(b'forward', ctypes.c_uint64(7), ctypes.c_uint64(2_000_000))\n    operators.item()\n",
        library.display()
    );
    for stacks in ["all", "sample"] {
        let audited = Audited::of(&["python3", "-c", &program], &["--stacks", stacks], &[]);
        let place = &audited.report.places[0];
        assert_eq!((&*place.call, &*place.operator), ("cuMemcpyDtoHAsync_v2", "aten::_local_scalar_dense"), "{stacks}");
        assert_eq!(place.count, 3);
    }
}
