//! A suite on many machines: what is handed to Slurm and Kubernetes, and what a folder of tasks holds when some of them failed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use syncscope_results::Results;

const SUITE: &str = "title: Tiny
runs: 2
sampling: { samples: 3, warmup: 1 }
experiments:
  - launch-path: { operations: [1], elements: 8, iterations: 2 }
";

/// Runs the tasks of a script one after the other, as an array would. Its arguments are kept.
const SBATCH: &str = r#"#!/bin/sh
printf '%s\n' "$@" >sbatch.txt
echo '4711;cluster'
for task in ${TASKS-}; do
    SLURM_ARRAY_TASK_ID=$task SLURMD_NODENAME="node$task" SLURM_JOB_GPUS="${GPUS-}" \
        SLURM_CPUS_PER_TASK=2 sh ./fleet.sh >>"task-$task.log" 2>&1
done
exit 0
"#;

/// Starts a program, but for one task that it ends as a node does that fails.
const SRUN: &str = r#"#!/bin/sh
printf '%s\n' "$@" >"srun-$SLURM_ARRAY_TASK_ID.txt"
echo "$SRUN_CPUS_PER_TASK $NCCL_NVLS_ENABLE" >>"srun-$SLURM_ARRAY_TASK_ID.txt"
shift
if [ "$SLURM_ARRAY_TASK_ID" = "${BROKEN-}" ]; then
    echo 'srun: error: the node failed' >&2
    exit 137
fi
exec "$@"
"#;

/// A folder with a suite, and `bin` with the stand-ins.
fn site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    for (name, text) in [("sbatch", SBATCH), ("srun", SRUN)] {
        fs::write(bin.join(name), text).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(folder.path().join("suite.yaml"), SUITE).unwrap();
    folder
}

fn report(arguments: &[&str], folder: &Path, variables: &[(&str, &str)]) -> Output {
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_report"));
    command.args(arguments).current_dir(folder).env("PATH", path).envs(variables.iter().copied());
    command.output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What was said, standard error too, of a command with this exit code.
fn said(output: &Output, code: i32) -> String {
    let text = out(output) + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    text
}

const FLEET: [&str; 6] = ["fleet", "--suite", "suite.yaml", "--device", "cpu:0", "--tasks"];

#[test]
fn a_dry_run_prints_a_script_that_a_shell_reads_and_submits_nothing() {
    let site = site();
    for (per, device, share) in [
        ("gpu", "auto", Some("#SBATCH --gres=gpu:1\n")),
        ("gpu", "cpu:0", None),
        ("node", "auto", Some("#SBATCH --exclusive\n")),
    ] {
        let arguments = ["fleet", "--dry-run", "--out", "job", "--tasks", "500", "--per", per, "--device", device];
        let output = report(&arguments, site.path(), &[]);
        said(&output, 0);
        let script = out(&output);
        for part in
            ["#SBATCH --array=0-499\n", "#SBATCH --requeue\n", "export NCCL_NVLS_ENABLE=0\n", "srun --ntasks=1 "]
        {
            assert!(script.contains(part), "{part}: {script}");
        }
        assert_eq!(script.contains("--gres"), share.is_some_and(|share| share.contains("gres")), "{script}");
        assert!(share.is_none_or(|share| script.contains(share)), "{script}");
        fs::write(site.path().join("script"), script).unwrap();
        for shell in ["sh", "bash"] {
            assert!(Command::new(shell).args(["-n"]).arg(site.path().join("script")).status().unwrap().success());
        }
    }
    assert!(!site.path().join("job").exists());
    let allowed = out(&report(&["fleet", "--dry-run", "--out", "job", "--allow-multicast"], site.path(), &[]));
    assert!(!allowed.contains("NCCL") && allowed.contains(" '--allow-multicast'; }"), "{allowed}");
}

#[test]
fn names_of_any_characters_stay_names() {
    let site = site();
    let suite = "it's \"a\" $(touch pwned) `touch pwned` @out@.yaml";
    fs::write(site.path().join(suite), SUITE).unwrap();
    let job = "a job; touch pwned 'x' $HOME";
    let arguments = ["fleet", "--suite", suite, "--device", "cpu:0", "--out", job];
    let options = ["--", "--comment=$(touch pwned) 'a'", "-p", "gpu"];
    let output = report(&[&arguments[..], &options].concat(), site.path(), &[("TASKS", "0")]);
    let text = said(&output, 0);
    assert!(text.contains("job 4711;cluster: 1 tasks"), "{text}");
    let folder = site.path().join(job);
    assert_eq!(fs::read_to_string(folder.join("sbatch.txt")).unwrap(), {
        "--parsable\n--comment=$(touch pwned) 'a'\n-p\ngpu\nfleet.sh\n"
    });
    let started = fs::read_to_string(folder.join("srun-0.txt")).unwrap();
    assert!(started.contains(&format!("/{suite}\n")) && started.ends_with("2 0\n"), "{started}");
    let log = fs::read_to_string(folder.join("task-0.log")).unwrap();
    assert_eq!(
        Results::read(&folder.join("task-0.json")).unwrap().environment().host.machine(),
        Some("node0"),
        "{log}"
    );
    for place in [site.path(), &folder] {
        assert!(!place.join("pwned").exists());
    }
}

#[test]
fn what_no_line_can_hold_and_what_would_move_the_results_is_refused_in_words() {
    let site = site();
    let fleet = ["fleet", "--dry-run", "--out"];
    for (arguments, word) in [
        (&["a\nb"][..], "the character '\\n'"),
        (&["job", "--suite", "none"], "there is no suite `none`"),
        (&["job", "--suite", "ful"], "did you mean `full`?"),
        (&["job", "--only", "overlop"], "no row begins with `overlop`; did you mean `overlap`?"),
        (&["job", "--skip", ""], "--skip"),
        (&["job", "--only", "overlap", "--skip", "overlap"], "measures none of the rows"),
        (&["job", "--device", "gpu0"], "`gpu0` names no device"),
        (&["job", "--device", "cuda"], "did you mean `cuda:0`?"),
        (&["job", "--device", "cpu:99"], "`cpu:99` names no device"),
        (&["job", "--prefix", "a b"], "letters, digits"),
        (&["job", "--tasks", "0"], "--tasks"),
        (&["job", "--", "--array=0-9"], "is set by the script"),
        (&["job", "--", "gpu"], "is no option of sbatch"),
        (&["job", "--", "--comment=a\nb"], "the character '\\n'"),
    ] {
        let output = report(&[&fleet[..], arguments].concat(), site.path(), &[]);
        let text = said(&output, 2);
        assert!(text.contains(word), "{word}: {text}");
    }
    said(&report(&["fleet"], site.path(), &[]), 2);
}

#[test]
fn without_sbatch_it_is_said_and_the_script_is_there() {
    let site = site();
    let [sbatch, away] = ["bin/sbatch", "away"].map(|name| site.path().join(name));
    fs::rename(&sbatch, &away).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_report"));
    command.args(["fleet", "--out", "job"]).current_dir(site.path()).env("PATH", site.path().join("bin"));
    let text = said(&command.output().unwrap(), 1);
    assert!(text.contains("there is no `sbatch` here") && text.contains("job/fleet.sh"), "{text}");
    assert!(site.path().join("job/fleet.sh").is_file());
    // Nothing was submitted, so the folder can be used.
    fs::rename(&away, &sbatch).unwrap();
    said(&report(&["fleet", "--out", "job"], site.path(), &[]), 0);
    let again = report(&["fleet", "--out", "job"], site.path(), &[]);
    assert!(said(&again, 2).contains("it holds the tasks of a job already"));
}

#[test]
fn tasks_that_left_nothing_are_listed_with_the_reason_and_nothing_is_counted_twice() {
    let site = site();
    let arguments = [&FLEET[..], &["4", "--prefix", "alps", "--out", "job"]].concat();
    said(&report(&arguments, site.path(), &[("TASKS", "0 1 2"), ("BROKEN", "1"), ("GPUS", "3")]), 0);
    let job = site.path().join("job");
    let first = fs::read(job.join("task-0.json")).unwrap();
    let collect = ["collect", "job", "--into", "store"];
    let text = said(&report(&collect, site.path(), &[]), 1);
    for part in [
        "missing: job: task 1: exit code 137; the last line of job/task-1.log: srun: error: the node failed",
        "missing: job: task 3: it did not start",
        "cd job && sbatch --array=1,3 fleet.sh",
        "2 added, 0 duplicates, 0 refused",
        "2 files of 2 machines",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(site.path().join("store/alps-node0-gpu3").is_dir());
    // Tasks that have ended do nothing when they are started again.
    let tasks = Command::new("sh")
        .env("TASKS", "0 1 2 3")
        .env("PATH", format!("{}:{}", site.path().join("bin").display(), std::env::var("PATH").unwrap()))
        .args(["../bin/sbatch", "fleet.sh"])
        .current_dir(&job)
        .status();
    assert!(tasks.unwrap().success());
    assert_eq!(fs::read(job.join("task-0.json")).unwrap(), first);
    let text = said(&report(&collect, site.path(), &[]), 0);
    assert!(text.contains("2 added, 2 duplicates, 0 refused") && !text.contains("missing"), "{text}");
    assert!(!job.join("task-1.exit").exists());
}

#[test]
fn a_task_resumes_its_checkpoint_unless_that_is_of_another_machine() {
    let site = site();
    let run =
        ["run", "--suite", "suite.yaml", "--device", "cpu:0", "--runs", "1", "--machine", "node0", "--out", "r.json"];
    said(&report(&run, site.path(), &[]), 0);
    let mut begun = Results::read(&site.path().join("r.json")).unwrap();
    begun.plan.runs = 2;
    for (job, is_other) in [("same", false), ("other", true)] {
        let kept = site.path().join(job).join(".tasks/task-0@node0.checkpoint.json");
        fs::create_dir_all(kept.parent().unwrap()).unwrap();
        let mut begun = begun.clone();
        if is_other {
            begun.runs[0].environment.host.cpu = "another".to_owned();
        }
        begun.write(&kept).unwrap();
        said(&report(&[&FLEET[..], &["1", "--out", job]].concat(), site.path(), &[("TASKS", "0")]), 0);
        let folder = site.path().join(job);
        let log = fs::read_to_string(folder.join("task-0.log")).unwrap();
        let results = Results::read(&folder.join("task-0.json")).unwrap_or_else(|error| panic!("{error}: {log}"));
        assert!(results.runs.len() == 2 && !results.is_partial(), "{log}");
        assert_eq!(
            results.runs[0].id == begun.runs[0].id && results.runs[0].started == begun.runs[0].started,
            !is_other
        );
        assert_eq!(fs::read_dir(folder.join(".tasks")).unwrap().count(), 0, "{log}");
    }
}

#[test]
fn a_part_of_a_run_is_not_whole() {
    let site = site();
    let run = ["run", "--suite", "suite.yaml", "--device", "cpu:0", "--runs", "1", "--out", "r.json"];
    said(&report(&run, site.path(), &[]), 0);
    said(&report(&["check", "--whole", "r.json"], site.path(), &[]), 0);
    let mut part = Results::read(&site.path().join("r.json")).unwrap();
    part.plan.runs = 2;
    part.write(&site.path().join("part.json")).unwrap();
    said(&report(&["check", "--whole", "part.json"], site.path(), &[]), 1);
    said(&report(&["check", "part.json"], site.path(), &[]), 0);
}
