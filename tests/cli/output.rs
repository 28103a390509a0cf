//! What the program prints: for programs, for terminals, for shells.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use syncscope_report::App;
use syncscope_suite::experiment::Registry;

use super::commands::commands;
use super::{TINY, code, folder_with, report, stderr, stdout};

/// Runs the program with one variable set.
fn with(variable: (&str, &str), arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_report"));
    command.args(arguments).current_dir(folder).env(variable.0, variable.1).output().unwrap()
}

/// How a command prints facts.
enum FactsOf {
    /// It prints none.
    None,
    /// By these arguments.
    Arguments(Vec<&'static str>),
    /// In another test, which has what it takes.
    Elsewhere,
}

fn facts_of(command: &str) -> FactsOf {
    match command {
        "devices" => FactsOf::Arguments(vec!["devices"]),
        "experiments" => FactsOf::Arguments(vec!["experiments"]),
        "claims" => FactsOf::Arguments(vec!["claims", "r.json"]),
        "check" => FactsOf::Arguments(vec!["check", "r.json"]),
        "compare" => FactsOf::Arguments(vec!["compare", "r.json", "r.json"]),
        // Collected in this order: the store is made by the first.
        "collect" => FactsOf::Arguments(vec!["collect", "r.json"]),
        "history" => FactsOf::Arguments(vec!["history", "results"]),
        "machines" => FactsOf::Arguments(vec!["machines", "results"]),
        "submit" => FactsOf::Arguments(vec!["submit", "r.json"]),
        // In the kernel's stand-in.
        "lab check" => FactsOf::Elsewhere,
        // What they print is the work itself, a text for a shell, or JSON in any case.
        // Of an audit, the standard output is the audited program's, so its JSON goes to a file.
        "audit" | "audit now" | "import" | "run" | "render" | "slides" | "serve" | "init" | "bench" | "attach"
        | "fleet" => FactsOf::None,
        "lab" | "lab release" => FactsOf::None,
        "schema" | "plan" => FactsOf::None,
        other => panic!("does `{other}` print facts? Then it has --json, and stands here with its arguments"),
    }
}

#[test]
fn facts_print_as_json_with_their_schema_version() {
    let folder = folder_with(TINY);
    let run = report(&["run", "--suite", "suite.yaml", "--device", "cpu:0", "--out", "r.json"], folder.path());
    assert_eq!(code(&run), 0, "{}", stderr(&run));
    for (path, command) in commands(App::new().command()) {
        let name = path.join(" ");
        let has_json = command
            .get_arguments()
            .any(|argument| argument.get_long() == Some("json") && !argument.get_action().takes_values());
        let arguments = match facts_of(&name) {
            FactsOf::Arguments(arguments) => arguments,
            other => {
                assert_eq!(has_json, matches!(other, FactsOf::Elsewhere), "{name}");
                continue;
            }
        };
        assert!(has_json, "{name}");
        // The width of a terminal and colours are for people.
        let asked = [&arguments[..], &["--json", "--color", "always"]].concat();
        let output = with(("COLUMNS", "40"), &asked, folder.path());
        assert!(code(&output) < 2, "{name}: {}", stderr(&output));
        let facts: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(facts["schema_version"], 1, "{name}");
        assert_eq!(facts["command"], path[0]);
        assert!(facts.as_object().unwrap().len() > 2, "{name} says nothing");
    }
}

#[test]
fn the_facts_are_those_that_are_said_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let facts =
        |name: &str| -> Value { serde_json::from_str(&stdout(&report(&[name, "--json"], folder.path()))).unwrap() };
    let words = |name: &str| stdout(&report(&[name], folder.path()));
    let (devices, said) = (facts("devices"), words("devices"));
    assert!(devices["devices"].as_array().unwrap().iter().all(|own| said.contains(own["name"].as_str().unwrap())));
    assert_eq!(devices["cuda_unavailable"].is_string(), said.contains("no GPU: "));
    let (experiments, said) = (facts("experiments"), words("experiments"));
    for experiment in experiments["experiments"].as_array().unwrap() {
        assert!(said.contains(experiment["summary"].as_str().unwrap()));
        let rows = experiment["rows"].as_array().unwrap();
        // One that measures what a user brings has none of its own.
        let brings = Registry::builtin().get(experiment["name"].as_str().unwrap()).unwrap().files;
        assert_eq!(rows.is_empty(), !brings.is_empty());
        assert!(rows.iter().all(|row| said.contains(row["id"].as_str().unwrap())));
    }
}

#[test]
fn quiet_leaves_the_progress_out_and_no_error() {
    let folder = folder_with(TINY);
    let run = ["run", "--suite", "suite.yaml", "--device", "cpu:0", "--out", "r.json"];
    assert!(stderr(&report(&run, folder.path())).contains("run 1 of 1"));
    for arguments in [[&run[..], &["--quiet"]].concat(), [&["--quiet"], &run[..]].concat()] {
        let quiet = report(&arguments, folder.path());
        // That times of this build are not to be trusted is no progress.
        let said = stderr(&quiet);
        let others: Vec<&str> = said.lines().filter(|line| !line.contains("this build is not optimised")).collect();
        assert_eq!((code(&quiet), others), (0, vec![]));
        assert!(stdout(&quiet).contains("results: r.json"));
    }
    let wrong = report(&["run", "--quiet", "--suite", "none.yaml"], folder.path());
    assert_eq!(code(&wrong), 2);
    assert!(stderr(&wrong).starts_with("error: none.yaml"), "{}", stderr(&wrong));
}

#[test]
fn colours_come_where_they_are_asked_for_and_not_where_they_are_not() {
    const ESCAPE: char = '\u{1b}';
    let folder = tempfile::tempdir().unwrap();
    let both = |output: &Output| stdout(output) + &stderr(output);
    for arguments in [&["experiments"][..], &["run", "--suite", "none.yaml"], &["bench", "--help"], &["benhc"]] {
        let plain = report(arguments, folder.path());
        assert!(!both(&plain).contains(ESCAPE), "{arguments:?}: this is no terminal");
        let never = report(&[arguments, &["--color", "never"]].concat(), folder.path());
        assert_eq!(both(&never), both(&plain));
        let always = report(&[arguments, &["--color=always"]].concat(), folder.path());
        assert!(both(&always).contains(ESCAPE), "{arguments:?}");
        assert_eq!(code(&always), code(&plain));
    }
}

/// On a terminal, `auto` colours, and `NO_COLOR` forbids it. `script` gives the program a terminal.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_is_coloured_unless_no_color_is_set() {
    let folder = tempfile::tempdir().unwrap();
    let on_a_terminal = |no_color: Option<&str>| {
        let mut script = Command::new("script");
        script.args(["-qec", &format!("{} experiments", env!("CARGO_BIN_EXE_report")), "/dev/null"]);
        script.current_dir(folder.path()).env("TERM", "xterm").env_remove("NO_COLOR").env_remove("COLUMNS");
        if let Some(value) = no_color {
            script.env("NO_COLOR", value);
        }
        script.output().map(|output| stdout(&output))
    };
    // Not every system has it.
    let Ok(text) = on_a_terminal(None) else { return };
    assert!(text.contains("\u{1b}[1m"), "{text}");
    assert!(!on_a_terminal(Some("1")).unwrap().contains('\u{1b}'));
    assert!(on_a_terminal(Some("")).unwrap().contains('\u{1b}'), "an empty variable is none");
}

#[test]
fn lines_are_no_wider_than_the_terminal_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let wide = report(&["experiments"], folder.path());
    let narrow = with(("COLUMNS", "72"), &["experiments"], folder.path());
    assert!(stdout(&wide).lines().any(|line| line.chars().count() > 72));
    let too_wide = stdout(&narrow).lines().find(|line| line.chars().count() > 72).map(str::to_owned);
    assert_eq!(too_wide, None);
    let words = |output: &Output| stdout(output).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&narrow), words(&wide));
}

#[test]
fn the_program_has_two_names_and_says_from_what_it_was_built() {
    for path in [env!("CARGO_BIN_EXE_report"), env!("CARGO_BIN_EXE_syncscope")] {
        let name = Path::new(path).file_stem().unwrap().to_str().unwrap();
        let run = |argument: &str| stdout(&Command::new(path).arg(argument).output().unwrap());
        let version = run("--version");
        assert!(version.starts_with(&format!("{name} {}\n", env!("CARGO_PKG_VERSION"))), "{version}");
        for part in ["\ncommit: ", "\nfeatures: none", "\nCUDA: "] {
            assert!(version.contains(part), "{part}: {version}");
        }
        assert_eq!(version.contains("CUDA: not found: "), syncscope::device::Device::cuda_unavailable().is_some());
        assert_eq!(run("-V"), version);
        assert!(run("--help").contains(&format!("{name} --suite full")), "{}", run("--help"));
    }
}
