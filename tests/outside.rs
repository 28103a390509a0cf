//! A crate outside of this one: `report init --rust` makes it; it builds, measures, renders, and judges a claim of its
//! own.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const NAME: &str = "outside-experiments";

fn text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// Runs a command and expects it to end well.
fn good(command: &mut Command, what: &str) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(output.status.success(), "{what} ended with {}:\n{}", output.status, text(&output));
    text(&output)
}

/// Makes a crate, and lets it be built as this repository is: of the versions in its lock file, with its profiles.
fn init(parent: &Path, name: &str) -> PathBuf {
    let mut report = Command::new(env!("CARGO_BIN_EXE_report"));
    good(report.args(["init", "--rust", name]).current_dir(parent), "report init --rust");
    let (folder, root) = (parent.join(name), Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")));
    std::fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let profiles = manifest.split("\n[").filter(|section| section.starts_with("profile."));
    std::fs::create_dir(folder.join(".cargo")).unwrap();
    std::fs::write(folder.join(".cargo/config.toml"), profiles.map(|own| format!("[{own}\n")).collect::<String>())
        .unwrap();
    folder
}

/// Cargo in a crate's folder. It builds where this test was built, so that nothing but the crate is new.
fn cargo(folder: &Path, command: &str) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args([command, "--offline", "--profile", if cfg!(debug_assertions) { "dev" } else { "release" }]);
    cargo.current_dir(folder).env("CARGO_TARGET_DIR", target());
    cargo
}

fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}

/// Builds the crate and says where its program is.
fn build(folder: &Path) -> PathBuf {
    good(
        &mut cargo(folder, "build"),
        "the crate that `report init --rust` made does not build: `cargo build --offline`",
    );
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    target().join(profile).join(format!("{NAME}{}", std::env::consts::EXE_SUFFIX))
}

#[test]
fn a_crate_with_its_own_experiment_builds_measures_renders_and_judges_its_own_claim() {
    let parent = tempfile::tempdir().unwrap();
    let folder = init(parent.path(), NAME);
    let main = std::fs::read_to_string(folder.join("src/main.rs")).unwrap();
    assert!(main.lines().count() <= 20, "{main}");
    let mut again = Command::new(env!("CARGO_BIN_EXE_report"));
    let again = again.args(["init", "--rust", NAME]).current_dir(parent.path()).output().unwrap();
    assert_eq!(again.status.code(), Some(2), "a folder that holds something is left as it is");

    let program = build(&folder);
    let run = |arguments: &[&str]| {
        good(Command::new(&program).args(arguments).current_dir(&folder), &format!("{NAME} {}", arguments.join(" ")))
    };
    assert!(run(&["experiments"]).contains("sum.dispatch"));
    assert!(run(&["check"]).contains("sum"));
    assert!(run(&["check", "documents/sum.yaml"]).contains("good"));
    let help = run(&["run", "--help"]);
    assert!(help.contains(&format!("{NAME} run --resume")), "the examples name the program: {help}");

    let suite = std::fs::read_to_string(folder.join("suites/sum.yaml")).unwrap();
    let only = ["--only", "sum", "--device", "cpu:0", "--out", "out", "--verbose"];
    let said = run(&[&["--suite", "sum"][..], &only].concat());
    assert!(said.contains("Sum over a tensor") && said.contains("out/results.json"), "{said}");
    assert!(folder.join("out/site/sum.html").is_file(), "the document has its chapter");
    let results = syncscope_results::Results::read(&folder.join("out/results.json")).unwrap();
    assert!(suite.contains(results.title()), "{}", results.title());
    assert_eq!(results.environment().program.command[0], NAME);

    let claims = run(&["claims", "out/results.json"]);
    let verdicts = ["confirmed", "refuted", "inconclusive"];
    let judged = |line: &str| {
        let line = line.to_lowercase();
        line.contains("c-sum-returns-early") && verdicts.iter().any(|verdict| line.contains(verdict))
    };
    assert!(claims.lines().any(judged), "{claims}");

    // Who has not this experiment can still read what it left.
    let rendered = Command::new(env!("CARGO_BIN_EXE_report"))
        .args(["render", "out/results.json", "--out", "elsewhere"])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(rendered.status.success(), "{}", text(&rendered));
    assert!(folder.join("elsewhere/site/sum.html").is_file(), "the experiment has a chapter without a document");
}

/// Of the same crate: its kernel, as a suite states it and from Rust.
#[test]
fn a_crate_times_its_own_kernel_or_says_that_it_needs_a_gpu() {
    let parent = tempfile::tempdir().unwrap();
    let folder = init(parent.path(), "outside-kernels");
    let said = good(cargo(&folder, "run").args(["--example", "saxpy"]), "cargo run --example saxpy");
    let has_gpu = syncscope::device::Device::cuda_unavailable().is_none();
    let needs_gpu = said.lines().filter(|line| line.contains("kernels need a GPU")).count();
    assert_eq!((said.contains("saxpy.cu on cuda:0"), needs_gpu), (has_gpu, usize::from(!has_gpu)), "{said}");
    assert!(said.contains("x + y on ") && said.contains("device events behind a gate: "), "{said}");

    let mut bench = Command::new(env!("CARGO_BIN_EXE_report"));
    bench.args(["bench", "kernels/saxpy.cu", "--device", "cpu:0"]).current_dir(&folder);
    let said = text(&bench.output().unwrap());
    assert!(said.contains("GPU") && !said.contains("saxpy.cu:"), "its comment is read: {said}");
}

/// Of the same crate: its benchmarks, built without optimisation so that nothing but they are new.
#[test]
fn a_crate_measures_its_own_functions_and_compares_them_with_the_last_time() {
    let parent = tempfile::tempdir().unwrap();
    let folder = init(parent.path(), "outside-benchmarks");
    let bench =
        |arguments: &[&str]| cargo(&folder, "bench").args(["--bench", "words", "--"]).args(arguments).output().unwrap();
    let ends_well = |arguments: &[&str]| {
        let output = bench(arguments);
        assert!(output.status.success(), "{arguments:?} ended with {}:\n{}", output.status, text(&output));
        text(&output)
    };
    let out = folder.join("words.json");
    let out = ["--runs", "2", "--out", out.to_str().unwrap()];

    let first = ends_well(&out);
    for part in ["sum", "sort", "parse", "count", "results: "] {
        assert!(first.contains(part), "{part}: {first}");
    }
    assert!(!first.contains("beside the last"), "there is none: {first}");
    let results = syncscope_results::Results::read(Path::new(out[3])).unwrap();
    assert_eq!((results.runs.len(), results.rows.len(), results.is_partial()), (2, 4, false));
    assert!(results.rows.iter().all(|row| row.series.len() == 2), "each run has samples of each row");
    let iterations = |row: &syncscope_results::Row| match row.spec.provenance {
        syncscope_results::Provenance::Measured { iterations, .. } => iterations,
        syncscope_results::Provenance::Derived { .. } => 0,
    };
    assert!(results.rows.iter().any(|row| iterations(row) > 1), "a short function is called in batches");

    std::fs::copy(folder.join("words.json"), folder.join("words.first.json")).unwrap();
    let second = ends_well(&out);
    assert!(second.contains("beside the last") && second.contains("now / last"), "{second}");
    let one = ends_well(&[&["sum", "--runs", "1"], &out[2..]].concat());
    assert!(one.contains("runs can name no change") && one.contains("is not kept"), "{one}");
    assert!(!one.contains("slower,") && !one.contains("faster,"), "nothing is claimed of one run: {one}");
    assert_eq!(syncscope_results::Results::read(Path::new(out[3])).unwrap().rows.len(), 4, "a choice replaces nothing");

    assert!(ends_well(&["--list"]).contains("count: benchmark"));
    assert!(!bench(&["--runs", "0"]).status.success(), "a run is needed");
    // What was kept is a results file as any other.
    let mut compare = Command::new(env!("CARGO_BIN_EXE_report"));
    let said = good(compare.args(["compare", "words.first.json", "words.json"]).current_dir(&folder), "report compare");
    assert!(said.contains("words.sum"), "{said}");
}
