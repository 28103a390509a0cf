//! The program as a user runs it: the main job, and what wrong input gets.

#![allow(clippy::unwrap_used)]

mod check;
mod commands;
mod lab;
mod output;
mod serve;
#[cfg(unix)]
#[path = "../fixtures/signals.rs"]
mod signals;
mod submit;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output};

use syncscope::device::Device;
use syncscope_results::{MetricSpec, Outcome, Plan, Provenance, Results, RunOutcome};
use syncscope_suite::experiment::Registry;

const TINY: &str = "title: Tiny
runs: 1
sampling: { samples: 3, warmup: 1 }
experiments:
  - launch-path: { operations: [1, 100], elements: 8, iterations: 2 }
  - ceilings: { copies: [64], sizes: [8], link: [64] }
";

/// The rows that the suite's experiment declares, without their parameters.
fn planned() -> Vec<MetricSpec> {
    let experiment = Registry::builtin().get("launch-path").unwrap().default_for("cpu");
    let mut planned = experiment.plan("cpu");
    let mut seen = std::collections::BTreeSet::new();
    planned.retain(|spec| seen.insert(spec.id.clone()));
    planned
}

fn report(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_report")).args(arguments).current_dir(folder).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn folder_with(suite: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("suite.yaml"), suite).unwrap();
    folder
}

#[test]
fn the_main_job_leaves_results_and_a_book_and_says_where() {
    let folder = folder_with(TINY);
    let job = ["--suite", "suite.yaml", "--device", "cpu:0", "--out", "out"];
    let output = report(&job, folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    for part in ["Takeaways:", "results: out/results.json", "out/site/index.html", "to read it: "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().count() <= 25 && !text.contains("launch-path: "), "{text}");
    // Where there is no terminal, a line says which experiment runs.
    let progress = stderr(&output);
    let experiments: Vec<&str> = progress.lines().filter(|line| line.contains("/3 ")).collect();
    assert_eq!(experiments.len(), 3, "{progress}");
    assert!(!progress.lines().any(|line| line.starts_with("  launch-path.")), "{progress}");
    let output = report(&[&job[..], &["--verbose"]].concat(), folder.path());
    let text = stdout(&output);
    // Other experiments have rows of the same names.
    let own = &text[text.find("launch-path: ").unwrap()..];
    let places: Vec<Option<usize>> = planned().iter().map(|spec| own.find(&spec.label)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
    assert!(folder.path().join("out/site/launch-path.html").is_file());
    // This program is built with less optimisation than one that measures.
    let check = report(&["check", "out/results.json"], folder.path());
    assert!(code(&check) == 0 && stdout(&check).contains("built without optimisation"), "{}", stdout(&check));
    assert_eq!(code(&report(&["check", "--current", "out/results.json"], folder.path())), 1);
    fs::write(folder.path().join("other.json"), "{}").unwrap();
    assert_eq!(code(&report(&["check", "other.json"], folder.path())), 2);
}

#[test]
fn computed_rows_that_do_not_follow_from_samples_are_refused_and_marked() {
    let folder = folder_with(TINY);
    let run = ["run", "--suite", "suite.yaml", "--device", "cpu:0", "--out", "r.json"];
    assert_eq!(code(&report(&run, folder.path())), 0);
    let path = folder.path().join("r.json");
    let mut results = Results::read(&path).unwrap();
    let row = results.rows.iter_mut().find(|row| row.spec.id == "launch-path.same.b").unwrap();
    for series in &mut row.series {
        series.outcome.values_mut().into_iter().for_each(|sample| *sample *= 2.0);
    }
    results.write(&path).unwrap();
    let check = report(&["check", "r.json"], folder.path());
    let said = "launch-path.same.ratio";
    assert_eq!(code(&check), 2);
    assert!(stderr(&check).contains("contradicts itself") && stderr(&check).contains(said), "{}", stderr(&check));
    for refuses in [&["compare", "r.json", "r.json"][..], &["submit", "r.json"]] {
        let output = report(refuses, folder.path());
        assert_eq!((code(&output), stderr(&output)), (2, stderr(&check)), "{refuses:?}");
    }
    fs::create_dir_all(folder.path().join("store/here")).unwrap();
    fs::copy(&path, folder.path().join("store/here/2026-11-01T00-00-00Z-unknown.json")).unwrap();
    for leaves_out in [&["history", "store"][..], &["machines", "store"], &["collect", "r.json", "--into", "new"]] {
        let output = report(leaves_out, folder.path());
        let all = stdout(&output) + &stderr(&output);
        assert!(all.contains("contradicts itself") && all.contains(said), "{leaves_out:?}: {all}");
    }
    let render = report(&["render", "r.json", "--out", "out"], folder.path());
    assert_eq!(code(&render), 0);
    assert!(stderr(&render).contains("contradicts itself"), "{}", stderr(&render));
    let machine = fs::read_to_string(folder.path().join("out/book/src/machine.md")).unwrap();
    assert!(machine.contains("The file contradicts itself in 1 computed row"), "{machine}");
}

#[test]
fn a_cold_start_is_measured_in_processes_of_its_own_and_holds_its_steps() {
    let suite = "title: Cold\nruns: 1\nsampling: { samples: 3 }\nexperiments: [cold-start: { processes: 2 }]\n";
    let folder = folder_with(suite);
    let arguments = ["run", "--suite", "suite.yaml", "--device", "cpu:0", "--only", "cold-start", "--out", "r.json"];
    let output = report(&arguments, folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let results = Results::read(&folder.path().join("r.json")).unwrap();
    let samples = |id: &str| {
        let mut of_id = results.outcomes().filter(|(row, _)| row.spec.id == id);
        match of_id.next() {
            Some((_, outcome @ (Outcome::Measured(_) | Outcome::Derived { .. }))) => outcome.values().unwrap().to_vec(),
            other => panic!("{id}: {other:?}"),
        }
    };
    let (total, sum, process) = (samples("cold-start.total"), samples("cold-start.sum"), samples("cold-start.process"));
    assert_eq!([total.len(), sum.len(), process.len()], [2; 3]);
    for round in 0..2 {
        assert!(sum[round] <= total[round] && total[round] < process[round], "{total:?} {sum:?} {process:?}");
    }
    assert!(samples("cold-start.product").iter().all(|seconds| *seconds > 0.0));
    let driver = results.outcomes().find(|(row, _)| row.spec.id == "cold-start.driver").unwrap().1;
    assert!(matches!(driver, Outcome::NotApplicable { reason } if reason.contains("no driver")), "{driver:?}");
}

#[test]
fn one_experiment_is_summed_up_with_what_its_document_makes_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let bench = ["bench", "idle-device", "--device", "cpu:0", "--iters", "2", "--samples", "8"];
    let output = report(&bench, folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("Takeaways:\n  - "), "{text}");
    let experiment = Registry::builtin().get("idle-device").unwrap().default_for("cpu");
    assert!(experiment.plan("cpu").iter().all(|spec| text.contains(&spec.label)), "{text}");
}

#[test]
fn a_bench_that_measured_nothing_is_a_failure_that_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = "// syncscope: { kernel: k }\nextern \"C\" __global__ void k() {}\n";
    fs::write(folder.path().join("k.cu"), kernel).unwrap();
    let ran = report(&["bench", "k.cu", "--device", "cpu:0", "--samples", "2"], folder.path());
    assert!(code(&ran) == 1 && stderr(&ran).contains("nothing was measured: kernels need a GPU"), "{}", stderr(&ran));
}

#[test]
fn the_comment_that_states_a_launch_is_read_however_it_is_set_and_what_it_is_not_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let bench = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).unwrap();
        let ran = report(&["bench", name, "--device", "cpu:0", "--samples", "2"], folder.path());
        (code(&ran), stderr(&ran))
    };
    for (name, text) in [
        ("bom.cu", "\u{feff}// syncscope: { kernel: k }\n"),
        ("indented.cu", "    // syncscope:\n    //   kernel: k\n    //   grid: 1\n"),
        ("narrow.cu", "//syncscope: { kernel: k }\n"),
        ("upper.CU", "// syncscope: { kernel: k }\n"),
        ("empty.cu", "// syncscope: { kernel: k, arguments: [], options: [] }\n"),
    ] {
        let (code, said) = bench(name, text);
        assert!(code == 1 && said.contains("nothing was measured: kernels need a GPU"), "{name}: {said}");
    }
    let (code, said) = bench("prose.cu", "// syncscope: { kernel: k }\n// It does: nothing, \"much\n");
    assert!(code == 2 && said.contains("an empty line ends what states the launch"), "{said}");
    let (code, said) = bench("code.cu", "// syncscope:\n//   kernel: k\n//   grid: 1\n// int x = \"a\n");
    assert!(code == 2 && said.contains("an empty line ends what states the launch"), "{said}");
    for (header, says) in [
        ("//   kernel: k\n//   grid: 1e400\n", "a number has an end"),
        ("//   kernel: k\n//   grid: 1\n//   grid: 2\n", "the key `grid` stands twice"),
        ("//   kernel: [k\n", "header.cu:2:"),
        ("//   kernel: k\n//   source: /etc/passwd\n", "header.cu:3:6: `source` has no place in a kernel's own file"),
    ] {
        let (code, said) = bench("header.cu", &format!("// syncscope:\n{header}int a;\n"));
        assert!(code == 2 && said.contains(says) && !said.contains("an empty line"), "{header}: {said}");
    }
    for long in [
        "// syncscope:\n//   kernel: [saxpy\n".to_owned() + &"int a;\n".repeat(20_000),
        "// syncscope: [\n".to_owned() + &"// 1,\n".repeat(6_000),
    ] {
        let begun = std::time::Instant::now();
        let (code, said) = bench("long.cu", &long);
        assert!(code == 2 && begun.elapsed().as_secs() < 10, "{said}");
    }
    let (code, said) = bench("k.ptx", ".version 8.0");
    assert!(code == 2 && said.contains("a kernel is given as its source in CUDA C++"), "{said}");
    fs::create_dir(folder.path().join("folder.cu")).unwrap();
    let ran = report(&["bench", "folder.cu"], folder.path());
    assert!(stderr(&ran).contains("folder.cu: it is no file"), "{}", stderr(&ran));
}

#[test]
fn a_book_is_rendered_from_a_results_file_alone_and_twice_alike() {
    let folder = folder_with(TINY);
    let run = report(&["run", "--suite", "suite.yaml", "--device", "cpu:0", "--out", "r.json"], folder.path());
    assert_eq!(code(&run), 0, "{}", stderr(&run));
    for out in ["a", "b"] {
        let output = report(&["render", "r.json", "--out", out], folder.path());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    let page = |out: &str| std::fs::read(folder.path().join(out).join("site/launch-path.html")).unwrap();
    assert!(page("a") == page("b"));
}

#[test]
fn a_missing_device_experiment_or_file_is_named() {
    let folder = folder_with(TINY);
    for (arguments, exit, part) in [
        (&["run", "--device", "cuda:77"][..], 2, "there is no device `cuda:77`; there are: "),
        (&["run", "--device", "gpu"], 2, "there is no device `gpu`"),
        (&["run", "--device", "cup:0"], 2, "did you mean `cpu:0`?"),
        (&["bench", "launch-path", "--device", "cpu:o"], 2, "did you mean `cpu:0`?"),
        (&["benhc", "launch-path"], 2, "a similar subcommand exists: 'bench'"),
        (&["run", "--with", "pytroch"], 2, "a similar value exists: 'pytorch'"),
        (&["run", "--with", "cudarc", "--with", "cudarc"], 2, "--with: cudarc stands there twice"),
        (&["--suite", "quick", "check"], 2, "`--suite` stands before `check`"),
        (&["run", "--suite", "none.yaml"], 2, "none.yaml"),
        (&["run", "--suite", "quik"], 2, "there is no suite `quik` and no such file; did you mean `quick`?"),
        (&["run", "--course", "none"], 2, "none"),
        (&["bench", "lanch-path"], 2, "did you mean `launch-path`?"),
        (&["bench", "launch-path", "--dtype", "fp16", "--device", "cpu:0"], 2, "no element type"),
        (&["bench", "launch-path", "--dtype", "fp8"], 2, "fp16, bf16, fp32"),
        (&["bench", "launch-path", "--iters", "0"], 2, "iters"),
        (&["render", "none.json"], 2, "none.json"),
        (&["slides", "none.json"], 2, "none.json"),
        (&["run", "--out", "suite.yaml/r.json", "--device", "cpu:0"], 2, "suite.yaml"),
        (&["frobnicate"], 2, "frobnicate"),
    ] {
        let output = report(arguments, folder.path());
        let text = stderr(&output);
        assert_eq!(code(&output), exit, "{arguments:?}: {text}");
        assert!(text.contains(part) && !text.contains("panicked"), "{arguments:?}: {text}");
    }
}

#[test]
fn a_broken_results_file_says_what_is_wrong_and_leaves_the_site_that_stood_there() {
    let folder = folder_with(TINY);
    let run = report(&["--suite", "suite.yaml", "--device", "cpu:0", "--out", "out"], folder.path());
    assert_eq!(code(&run), 0, "{}", stderr(&run));
    let good = std::fs::read_to_string(folder.path().join("out/results.json")).unwrap();
    let site = || std::fs::read(folder.path().join("out/site/launch-path.html")).unwrap();
    let before = site();
    for (text, part) in [
        (good[..good.len() / 2].to_owned(), "not a whole results file"),
        ("title: no JSON".to_owned(), "not a whole results file"),
        (good.replace("\"schema_version\": 2", "\"schema_version\": 999"), "schema version 999"),
        (good.replace("\"rows\"", "\"rosw\""), "rosw"),
        (good.replace("\"id\": \"syncscope-1\"", "\"id\": \"gone\""), "a run `syncscope-1`, which is not there"),
        ("{}".to_owned(), "schema_version"),
    ] {
        std::fs::write(folder.path().join("bad.json"), text).unwrap();
        let output = report(&["render", "bad.json", "--out", "out"], folder.path());
        let text = stderr(&output);
        assert_eq!(code(&output), 2, "{text}");
        assert!(text.contains("bad.json") && text.contains(part), "{part}: {text}");
        assert!(site() == before, "the site changed");
    }
}

#[test]
fn a_row_that_fails_is_recorded_the_others_run_and_the_exit_code_says_so() {
    let folder = folder_with(&TINY.replace("elements: 8", "elements: 60000000000"));
    let output = report(&["--suite", "suite.yaml", "--device", "cpu:0", "--out", "out"], folder.path());
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("failed: ") && text.contains("has no room for"), "{text}");
    let chapter = std::fs::read_to_string(folder.path().join("out/site/launch-path.html")).unwrap();
    assert!(chapter.contains("has no room for"));
}

/// Starts a long run, interrupts it once its second experiment has begun, and goes on from what it left.
#[cfg(unix)]
#[test]
fn an_interrupted_run_keeps_what_was_measured_and_can_be_resumed() {
    use std::process::Stdio;

    // A group ends by its time limit, and there are so many that no experiment ends before the interrupt.
    let many: Vec<String> = (1..40).map(|operations| operations.to_string()).collect();
    let suite = TINY.replace("samples: 3", "samples: 1000000, time_limit: 0.1");
    let folder = folder_with(&suite.replace("operations: [1, 2]", &format!("operations: [{}]", many.join(", "))));
    signals::hear();
    let mut child = Command::new(env!("CARGO_BIN_EXE_report"))
        .args(["run", "--suite", "suite.yaml", "--device", "cpu:0", "--out", "r.json"])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("2/3 ")), "the second experiment began");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("report run --resume r.json")), "{rest:?}");

    let file = folder.path().join("r.json");
    let mut partial = Results::read(&file).unwrap();
    assert_eq!(partial.run().outcome, RunOutcome::Interrupted);
    // What is left need not take long.
    partial.suite["sampling"] = serde_json::json!({ "samples": 1, "warmup": 0 });
    partial.write(&file).unwrap();
    let resumed = report(&["run", "--resume", "r.json"], folder.path());
    assert_eq!(code(&resumed), 0, "{}", stderr(&resumed));
    let whole = Results::read(&file).unwrap();
    assert_eq!(whole.run().outcome, RunOutcome::Complete);
    // What is computed is computed again, for its operands may have been interrupted.
    let is_kept = |outcome: &Outcome| outcome.is_finished() && matches!(outcome, Outcome::Measured { .. });
    let mut finished = partial.outcomes().filter(|(_, outcome)| is_kept(outcome)).map(|(row, _)| row).peekable();
    assert!(finished.peek().is_some(), "nothing was finished");
    let lost = finished.find(|row| !whole.rows.contains(row)).map(|row| row.spec.title());
    assert_eq!(lost, None, "what was finished is not kept");
    let again = report(&["run", "--resume", "r.json"], folder.path());
    assert_eq!(code(&again), 2, "{}", stderr(&again));
}

#[test]
fn a_file_that_was_begun_with_a_system_unknown_here_is_not_gone_on_with() {
    let folder = folder_with(TINY);
    let output = report(&["run", "--suite", "suite.yaml", "--device", "cpu:0", "--out", "r.json"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let file = folder.path().join("r.json");
    let results = Results::read(&file).unwrap();
    for with in [vec!["Abacus"], vec!["syncscope"], vec!["PyTorch", "Abacus"]] {
        let mut begun = results.clone();
        begun.plan = Plan { runs: 2, with: with.iter().map(ToString::to_string).collect() };
        begun.write(&file).unwrap();
        let output = report(&["run", "--resume", "r.json"], folder.path());
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        let said = format!("r.json: this program cannot measure {}", with[with.len() - 1]);
        assert!(stderr(&output).contains(&said), "{}", stderr(&output));
        assert_eq!(Results::read(&file).unwrap(), begun, "the file is as it was");
    }
}

#[test]
fn each_run_is_a_process_of_its_own_and_another_order() {
    let folder = folder_with(&TINY.replace("runs: 1", "runs: 4"));
    let output = report(&["run", "--suite", "suite.yaml", "--device", "cpu:0", "--out", "r.json"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let results = Results::read(&folder.path().join("r.json")).unwrap();
    let ids: Vec<&str> = results.runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(ids, ["syncscope-1", "syncscope-2", "syncscope-3", "syncscope-4"]);
    assert!(results.runs.iter().all(|run| run.outcome == RunOutcome::Complete));
    let orders: BTreeSet<Vec<&str>> =
        results.runs.iter().map(|run| run.order.iter().map(|left| left.name.as_str()).collect()).collect();
    assert!(orders.len() > 1, "{orders:?}");
    assert!(results.rows.iter().all(|row| row.series.len() == 4), "each row has what each run left of it");
    assert_eq!(
        results.experiments(),
        ["self-audit", "launch-path", "ceilings"],
        "rows stand in the order of the suite"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "the suite and the results alone");

    // A budget that is spent before the first run, and one that is no time.
    let spent = report(&["run", "--suite", "suite.yaml", "--device", "cpu:0", "--budget", "0s"], folder.path());
    assert_eq!(code(&spent), 1, "{}", stderr(&spent));
    assert!(stderr(&spent).contains("the budget leaves no time"), "{}", stderr(&spent));
    assert_eq!(code(&report(&["run", "--budget", "soon"], folder.path())), 2);
}

#[test]
fn a_count_that_is_none_is_refused_in_plain_words() {
    let folder = tempfile::tempdir().unwrap();
    for wrong in ["0", "-1", "1.5", "many", "99999999999999999999"] {
        for option in [["run", "--runs"], ["bench", "--samples"], ["bench", "--iters"]] {
            let experiment: &[&str] = if option[0] == "bench" { &["self-audit"] } else { &[] };
            let refused = report(&[&option[..], &[wrong], experiment].concat(), folder.path());
            assert_eq!(code(&refused), 2, "{option:?} {wrong}");
            let said = stderr(&refused);
            assert!(said.contains(&format!("'{wrong}' for '{}", option[1])), "{option:?}: {said}");
            assert!(said.contains("expected a whole number of 1 or more"), "{option:?}: {said}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_run_whose_process_dies_costs_its_own_rows_alone() {
    use std::process::Stdio;

    let many: Vec<String> = (1..40).map(|operations| operations.to_string()).collect();
    let suite = TINY.replace("samples: 3", "samples: 100000, time_limit: 0.1").replace("runs: 1", "runs: 2");
    let folder = folder_with(&suite.replace("operations: [1, 2]", &format!("operations: [{}]", many.join(", "))));
    let mut child = Command::new(env!("CARGO_BIN_EXE_report"))
        .args(["run", "--suite", "suite.yaml", "--device", "cpu:0", "--out", "r.json", "--only", "launch-path"])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("1/1 launch-path")), "the first run began");
    let children = Command::new("pgrep").args(["-P", &child.id().to_string()]).output().unwrap();
    let measuring = String::from_utf8(children.stdout).unwrap();
    assert!(Command::new("kill").args(["-KILL", measuring.trim()]).status().unwrap().success(), "{measuring}");
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest:?}");
    let results = Results::read(&folder.path().join("r.json")).unwrap();
    let outcomes: Vec<RunOutcome> = results.runs.iter().map(|run| run.outcome).collect();
    assert_eq!(outcomes, [RunOutcome::Failed, RunOutcome::Complete]);
    assert!(results.lookup().metrics().all(|(_, metric)| metric.is_ok()), "the other run stands");
}

#[test]
fn rows_are_chosen_by_name_and_an_unknown_name_is_refused() {
    let folder = folder_with(TINY);
    let arguments =
        ["run", "--suite", "suite.yaml", "--device", "cpu:0", "--only", "launch-path.batched", "--out", "r.json"];
    let output = report(&arguments, folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let results = Results::read(&folder.path().join("r.json")).unwrap();
    let measured = results.outcomes().filter(|(_, outcome)| matches!(outcome, Outcome::Measured { .. }));
    let chosen = planned().iter().filter(|spec| spec.id.starts_with("launch-path.batched.")).count();
    assert_eq!(measured.count(), 2 * chosen, "for each of two numbers of operations");
    let rows = planned();
    let derived = rows.iter().find(|spec| matches!(spec.provenance, Provenance::Derived { .. })).unwrap();
    let one = ["run", "--suite", "suite.yaml", "--device", "cpu:0", "--only", &derived.id, "--out", "one.json"];
    assert_eq!(code(&report(&one, folder.path())), 0);
    let results = Results::read(&folder.path().join("one.json")).unwrap();
    let mut of_it = results.outcomes().filter(|(row, _)| row.spec.id == derived.id);
    assert!(of_it.all(|(_, outcome)| matches!(outcome, Outcome::Derived { .. })), "{}: with its operands", derived.id);
    let unknown = report(&["run", "--skip", "lanch-path", "--device", "cpu:0"], folder.path());
    assert_eq!(code(&unknown), 2, "{}", stderr(&unknown));
    assert!(stderr(&unknown).contains("no row begins with `lanch-path`"), "{}", stderr(&unknown));
    let near = report(&["run", "--only", "overlap.transfr", "--device", "cpu:0"], folder.path());
    assert!(stderr(&near).contains("did you mean `overlap.transfer`?"), "{}", stderr(&near));
    let other = ["run", "--suite", "suite.yaml", "--device", "cpu:0", "--only", "overlap.transfer", "--out", "o.json"];
    let other = report(&other, folder.path());
    assert_eq!(code(&other), 2, "{}", stderr(&other));
    assert!(stderr(&other).contains("report plan --suite suite.yaml` lists its rows"), "{}", stderr(&other));
}

#[test]
fn rows_that_only_the_suite_has_are_chosen_by_name() {
    let folder =
        folder_with("title: T\nsampling: { samples: 3 }\nexperiments:\n  - kernel: { source: k.cu, kernel: k }\n");
    fs::write(folder.path().join("k.cu"), "extern \"C\" __global__ void k() {}").unwrap();
    let run = ["run", "--suite", "suite.yaml", "--device", "cpu:0", "--only", "kernel", "--skip", "kernel.time"];
    let ran = report(&[&run[..], &["--out", "r.json"]].concat(), folder.path());
    assert!(folder.path().join("r.json").exists(), "{}", stderr(&ran));
    let unknown = report(&["run", "--suite", "suite.yaml", "--only", "kernel.tiem"], folder.path());
    assert!(stderr(&unknown).contains("did you mean `kernel.time`?"), "{}", stderr(&unknown));
}

#[test]
fn a_choice_of_nothing_measures_nothing_says_so_and_overwrites_nothing() {
    let folder = folder_with(TINY);
    fs::create_dir(folder.path().join("out")).unwrap();
    for file in ["r.json", "out/results.json"] {
        fs::write(folder.path().join(file), "kept").unwrap();
    }
    let choice = ["--suite", "suite.yaml", "--device", "cpu:0", "--only", "launch-path", "--skip", "launch-path"];
    for (command, out) in [(&["run"][..], "r.json"), (&[], "new")] {
        let arguments = [command, &choice, &["--out", out]].concat();
        let output = report(&arguments, folder.path());
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        assert!(stderr(&output).contains("measures none of the rows"), "{}", stderr(&output));
    }
    assert_eq!(fs::read_to_string(folder.path().join("r.json")).unwrap(), "kept");
    assert!(!folder.path().join("new").exists());
}

#[test]
fn the_lists_name_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let devices = stdout(&report(&["devices"], folder.path()));
    assert!(Device::list().iter().all(|device| devices.contains(&device.name)), "{devices}");
    assert_eq!(devices.contains("no GPU: "), Device::cuda_unavailable().is_some(), "{devices}");
    let experiments = stdout(&report(&["experiments"], folder.path()));
    for entry in Registry::builtin().entries() {
        for spec in entry.default_for("cuda").plan("cuda") {
            let listed = |line: &str| line.contains(&format!(" {} ", spec.id)) && line.contains(&spec.label);
            assert!(experiments.lines().any(listed), "{}", spec.id);
            assert!(experiments.lines().any(|line| line.trim() == spec.group), "{}", spec.group);
        }
    }
}

#[test]
fn an_empty_name_is_refused_with_how_its_command_is_used() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["bench", ""][..], &["bench", " "], &["lab", "release", "--out", "made", " "]] {
        let output = report(arguments, folder.path());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let usage = said.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or_else(|| panic!("{said}"));
        assert!(usage.starts_with(&format!("report {}", arguments[0])), "{said}");
    }
}

#[test]
fn a_course_of_one_s_own_begins_in_an_empty_folder_and_renders_as_it_is() {
    let folder = folder_with(TINY);
    let init = report(&["init", "course"], folder.path());
    assert_eq!(code(&init), 0, "{}", stderr(&init));
    assert!(stdout(&init).contains("report --course course"), "{}", stdout(&init));
    let job = ["--course", "course", "--suite", "suite.yaml", "--device", "cpu:0", "--out", "out"];
    let output = report(&job, folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    // As it was started, so that the next command works where this one did.
    let next = format!("to read it: {} serve out", env!("CARGO_BIN_EXE_report"));
    assert!(stdout(&output).contains(&next), "{}", stdout(&output));
    let page = |out: &str| std::fs::read(folder.path().join(out).join("site/launch-path.html")).unwrap();
    let plain = report(&["render", "out/results.json", "--out", "plain"], folder.path());
    assert_eq!(code(&plain), 0, "{}", stderr(&plain));
    assert!(page("out") == page("plain"));

    let again = report(&["init", "course"], folder.path());
    assert_eq!(code(&again), 2, "{}", stderr(&again));
    assert!(stderr(&again).contains("not empty"), "{}", stderr(&again));
}

#[test]
fn a_notebook_of_ones_own_run_replaces_the_books_and_names_its_hardware() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("notebooks/00-quick-start.ipynb");
    let mut notebook: serde_json::Value = serde_json::from_str(&fs::read_to_string(kept).unwrap()).unwrap();
    for output in
        notebook["cells"].as_array_mut().unwrap().iter_mut().filter_map(|cell| cell.get_mut("outputs")?.as_array_mut())
    {
        *output = vec![serde_json::json!({"output_type": "execute_result", "execution_count": 1, "metadata": {},
            "data": {"text/html": "<p>mine</p>", "text/plain": "cuda:0\nhardware  NVIDIA B200\n"}})];
    }
    fs::write(folder.path().join("00-quick-start.ipynb"), notebook.to_string()).unwrap();
    fs::write(folder.path().join("00-quick-strat.ipynb"), notebook.to_string()).unwrap();
    fs::create_dir(folder.path().join("none")).unwrap();
    fs::write(folder.path().join("none/00-quick-start.ipynb"), "{\"nbformat\": 3}").unwrap();
    let results = concat!(env!("CARGO_MANIFEST_DIR"), "/../../book/results/two-gpus.json.gz");
    let render = |notebook: &str| report(&["render", results, "--notebook", notebook, "--out", "out"], folder.path());
    for (notebook, why) in [
        ("00-quick-strat.ipynb", "did you mean `00-quick-start`?"),
        ("none/00-quick-start.ipynb", "none/00-quick-start.ipynb: not a notebook of the format 4, but 3"),
        ("missing/00-quick-start.ipynb", "missing/00-quick-start.ipynb"),
    ] {
        let output = render(notebook);
        assert_eq!(code(&output), 2, "{notebook}: {}", stderr(&output));
        assert!(stderr(&output).contains(why), "{notebook}: {}", stderr(&output));
        assert!(!folder.path().join("out").exists(), "{notebook}");
    }
    let own = "00-quick-start.ipynb";
    let twice = ["render", results, "--notebook", own, "--notebook", "none/00-quick-start.ipynb", "--out", "out"];
    let output = report(&twice, folder.path());
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).contains("two notebooks are called `00-quick-start`"), "{}", stderr(&output));
    let output = render(own);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let page = |name: &str| fs::read_to_string(folder.path().join("out/site").join(name)).unwrap();
    let own = page("00-quick-start.html");
    assert!(own.contains("<strong>NVIDIA B200</strong>") && own.contains("<p>mine</p>"), "{own}");
    assert!(!page("01-idle-device.html").contains("NVIDIA B200"));
}

#[test]
fn a_suite_of_a_course_is_found_by_its_name() {
    let folder = folder_with(TINY);
    assert_eq!(code(&report(&["init", "course"], folder.path())), 0);
    let quick = folder.path().join("course/suites/quick.yaml");
    std::fs::write(&quick, TINY.replace("Tiny", "The course's own")).unwrap();
    let job = ["run", "--course", "course", "--suite", "quick", "--device", "cpu:0", "--out", "r.json"];
    let output = report(&job, folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(Results::read(&folder.path().join("r.json")).unwrap().title(), "The course's own");
    let checked = report(&["check", "quick", "--course", "course"], folder.path());
    assert!(stdout(&checked).contains("ceilings"), "{}", stdout(&checked));
    std::fs::write(&quick, TINY.replace("launch-path", "lanch-path")).unwrap();
    let wrong = report(&job, folder.path());
    assert_eq!(code(&wrong), 2, "{}", stderr(&wrong));
    assert!(stderr(&wrong).contains("course/suites/quick.yaml:5:"), "{}", stderr(&wrong));
}

#[test]
fn results_of_an_experiment_that_this_program_has_not_are_rendered() {
    let folder = folder_with(TINY);
    let run = report(&["run", "--suite", "suite.yaml", "--device", "cpu:0", "--out", "r.json"], folder.path());
    assert_eq!(code(&run), 0, "{}", stderr(&run));
    let text = std::fs::read_to_string(folder.path().join("r.json")).unwrap();
    std::fs::write(folder.path().join("foreign.json"), text.replace("launch-path", "somebody-elses")).unwrap();
    let rendered = report(&["render", "foreign.json", "--out", "out"], folder.path());
    assert_eq!(code(&rendered), 0, "{}", stderr(&rendered));
    let page = std::fs::read_to_string(folder.path().join("out/site/somebody-elses.html")).unwrap();
    let own = planned().into_iter().filter(|spec| spec.group != "The same code twice");
    assert!(own.into_iter().all(|spec| page.contains(&spec.label)), "{page}");
}

#[test]
fn a_packed_results_file_gives_the_same_answers_and_the_same_book_as_the_plain_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../book/results/two-gpus.json.gz");
    std::fs::copy(kept, at("packed.json.gz")).unwrap();
    let results = Results::read(&at("packed.json.gz")).unwrap();
    results.write(&at("plain.json")).unwrap();
    results.write(&at("again.json.gz")).unwrap();
    assert!(std::fs::read(at("again.json.gz")).unwrap().len() < std::fs::read(at("plain.json")).unwrap().len() / 4);
    let said = |arguments: &[&str]| {
        let output = report(arguments, folder.path());
        assert_eq!(code(&output), 0, "{arguments:?}: {}", stderr(&output));
        stdout(&output)
    };
    for command in ["check", "claims"] {
        let plain = said(&[command, "plain.json"]);
        for packed in ["packed.json.gz", "again.json.gz"] {
            assert_eq!(said(&[command, packed]).replace(packed, "plain.json"), plain, "{command}");
        }
    }
    said(&["compare", "plain.json", "packed.json.gz", "--fail-on", "slower,different,missing"]);
    for (name, file) in [("one", "plain.json"), ("other", "packed.json.gz")] {
        said(&["render", file, "--out", name]);
    }
    let same = Command::new("diff").args(["-r", "one/site", "other/site"]).current_dir(folder.path()).output().unwrap();
    assert!(same.status.success(), "{}", stdout(&same));
    said(&["collect", "packed.json.gz", "--into", "store"]);
    assert!(said(&["collect", "plain.json", "--into", "store"]).contains("0 added, 1 duplicates"));
}
