//! A suite on many machines: what is handed to Slurm and Kubernetes, and what a folder of tasks holds when some of them failed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
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

const FLEET: [&str; 7] = ["fleet", "--slurm", "--suite", "suite.yaml", "--device", "cpu:0", "--tasks"];

#[test]
fn a_dry_run_prints_a_script_that_a_shell_reads_and_submits_nothing() {
    let site = site();
    for (per, device, share) in [
        ("gpu", "auto", Some("#SBATCH --gres=gpu:1\n")),
        ("gpu", "cpu:0", None),
        ("node", "auto", Some("#SBATCH --exclusive\n")),
    ] {
        let arguments =
            ["fleet", "--slurm", "--dry-run", "--out", "job", "--tasks", "500", "--per", per, "--device", device];
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
    let allowed =
        out(&report(&["fleet", "--slurm", "--dry-run", "--out", "job", "--allow-multicast"], site.path(), &[]));
    assert!(!allowed.contains("NCCL") && allowed.contains(" '--allow-multicast'; }"), "{allowed}");
}

#[test]
fn names_of_any_characters_stay_names() {
    let site = site();
    let suite = "it's \"a\" $(touch pwned) `touch pwned` @out@.yaml";
    fs::write(site.path().join(suite), SUITE).unwrap();
    let job = "a job; touch pwned 'x' $HOME";
    let arguments = ["fleet", "--slurm", "--suite", suite, "--device", "cpu:0", "--out", job];
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
    let fleet = ["fleet", "--slurm", "--dry-run", "--out"];
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
    said(&report(&["fleet", "--slurm"], site.path(), &[]), 2);
    said(&report(&["fleet", "--out", "job"], site.path(), &[]), 2);
    let kubernetes = ["fleet", "--kubernetes", "--image", "i", "--out-volume", "r", "--suite", "/suite.yaml"];
    for (arguments, word) in [
        (["--suite", "ful"], "did you mean `full`?"),
        (["--only", "overlop"], "did you mean `overlap`?"),
        (["--device", "cuda"], "did you mean `cuda:0`?"),
    ] {
        let more = if arguments[0] == "--suite" { &kubernetes[..6] } else { &kubernetes[..] };
        let text = said(&report(&[more, &arguments].concat(), site.path(), &[]), 2);
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn without_sbatch_it_is_said_and_the_script_is_there() {
    let site = site();
    let [sbatch, away] = ["bin/sbatch", "away"].map(|name| site.path().join(name));
    fs::rename(&sbatch, &away).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_report"));
    command.args(["fleet", "--slurm", "--out", "job"]).current_dir(site.path()).env("PATH", site.path().join("bin"));
    let text = said(&command.output().unwrap(), 1);
    assert!(text.contains("there is no `sbatch` here") && text.contains("job/fleet.sh"), "{text}");
    assert!(site.path().join("job/fleet.sh").is_file());
    // Nothing was submitted, so the folder can be used.
    fs::rename(&away, &sbatch).unwrap();
    said(&report(&["fleet", "--slurm", "--out", "job"], site.path(), &[]), 0);
    let again = report(&["fleet", "--slurm", "--out", "job"], site.path(), &[]);
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

/// The part of the schema of a Job (batch/v1) that is used, by its reference. An unknown field is refused, as the server
/// does with `--validate=strict`.
const JOB: &str = include_str!("fixtures/job.schema.yaml");

/// What is wrong with a value, by the keys of JSON Schema that the schema has.
fn wrong(value: &Value, schema: &Value, place: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut hold = |holds: bool, what: &str| found.extend((!holds).then(|| format!("{place}: {what}")));
    if let Some(kind) = schema["type"].as_str() {
        let is_kind = match kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            other => panic!("the schema has the type {other}"),
        };
        hold(is_kind, kind);
    }
    hold(schema.get("enum").is_none_or(|all| all.as_array().unwrap().contains(value)), "none of the values");
    hold(schema.get("minimum").is_none_or(|least| value.as_i64() >= least.as_i64()), "too small");
    hold(schema.get("maximum").is_none_or(|most| value.as_i64() <= most.as_i64()), "too large");
    for key in schema["required"].as_array().into_iter().flatten() {
        hold(value.get(key.as_str().unwrap()).is_some(), &format!("{key} is missing"));
    }
    for (key, own) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(key).or(schema.get("additionalProperties")) {
            Some(schema) => found.extend(wrong(own, schema, &format!("{place}.{key}"))),
            None => found.push(format!("{place}: there is no {key}")),
        }
    }
    for (number, own) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(wrong(own, &schema["items"], &format!("{place}[{number}]")));
    }
    found
}

fn manifest(site: &Path, more: &[&str]) -> Value {
    let own =
        ["fleet", "--kubernetes", "--image", "registry.example/report:1", "--out-volume", "results", "--tasks", "16"];
    let output = report(&[&own[..], more].concat(), site, &[]);
    said(&output, 0);
    serde_saphyr::from_str(&out(&output)).unwrap()
}

#[test]
fn the_manifest_is_an_indexed_job_by_the_schema_of_kubernetes() {
    let site = site();
    let schema: Value = serde_saphyr::from_str(JOB).unwrap();
    for (more, gpus) in [
        (&[][..], Some(1)),
        (&["--per", "node", "--gpus", "8", "--name", "fleet-1"], Some(8)),
        (&["--device", "cpu:0"], None),
    ] {
        let job = manifest(site.path(), more);
        assert_eq!(wrong(&job, &schema, "job"), Vec::<String>::new());
        let (spec, pod) = (&job["spec"], &job["spec"]["template"]["spec"]);
        assert_eq!((&spec["completionMode"], spec["completions"].as_u64()), (&Value::from("Indexed"), Some(16)));
        assert_eq!(pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"].as_u64(), gpus);
        assert_eq!(pod["volumes"][0]["persistentVolumeClaim"]["claimName"], "results");
        assert_eq!(pod.get("affinity").is_some(), more.contains(&"node"));
    }
    // The schema finds what is wrong.
    let mut job = manifest(site.path(), &[]);
    job["spec"]["completion"] = 16.into();
    job["spec"]["template"]["spec"]["restartPolicy"] = "Sometimes".into();
    job["spec"].as_object_mut().unwrap().remove("backoffLimitPerIndex");
    assert_eq!(wrong(&job, &schema, "job").len(), 3);
    let refused = ["fleet", "--kubernetes", "--image", "i", "--out-volume", "Results_1"];
    assert!(said(&report(&refused, site.path(), &[]), 2).contains("lower case"));
    let refused = ["fleet", "--kubernetes", "--image", "i", "--out-volume", "r", "--suite", "suite.yaml"];
    assert!(said(&report(&refused, site.path(), &[]), 2).contains("there is no suite `suite.yaml`"));
}

/// Runs a pod's script; its exit code.
fn pod(script: &str, folder: &Path, variables: &[(&str, &str)]) -> Option<i32> {
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(folder).env("PATH", path).env_remove("NVIDIA_VISIBLE_DEVICES");
    shell.env("JOB_COMPLETION_INDEX", "7").env("NODE_NAME", "n1").envs(variables.iter().copied());
    shell.status().unwrap().code()
}

/// A machine with two GPUs, one of which is divided.
const NVIDIA_SMI: &str = "#!/bin/sh
echo 'GPU 0: NVIDIA H200 (UUID: GPU-1111)'
echo 'GPU 1: NVIDIA H200 (UUID: GPU-2222)'
echo '  MIG 1g.18gb     Device  0: (UUID: MIG-3333)'
";

#[test]
fn a_pod_is_called_after_its_gpus_in_whatever_form_they_are_given() {
    let site = site();
    let executable = |name: &str, text: &str| {
        let file = site.path().join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    };
    executable(
        "shown",
        "#!/bin/sh\nwhile [ \"$1\" != --machine ]; do shift || exit 1; done\necho \"$2\" >>shown.txt\nexit 1\n",
    );
    let script = |more: &[&str]| {
        let job = manifest(site.path(), more);
        let text = job["spec"]["template"]["spec"]["containers"][0]["command"][2].as_str().unwrap().to_owned();
        text.replace("$$", "$").replace("out='/results'", "out=$PWD").replace("report='report'", "report=./shown")
    };
    let called = |script: &str, gpus: Option<&str>| {
        let _ = fs::remove_file(site.path().join("shown.txt"));
        let place: Vec<(&str, &str)> = gpus.map(|gpus| ("NVIDIA_VISIBLE_DEVICES", gpus)).into_iter().collect();
        assert_eq!(pod(script, site.path(), &place), Some(1));
        fs::read_to_string(site.path().join("shown.txt")).unwrap().trim().to_owned()
    };
    let (with, without) = (script(&[]), script(&["--device", "cpu:0"]));
    executable("bin/nvidia-smi", "#!/bin/sh\nexit 9\n");
    let unnamed = [None, Some(""), Some("void"), Some("none"), Some("all"), Some("/var/run/nvidia-container-devices")];
    for form in unnamed {
        assert_eq!(called(&with, form), "n1", "{form:?}");
    }
    executable("bin/nvidia-smi", NVIDIA_SMI);
    for form in unnamed {
        assert_eq!(called(&with, form), "n1-GPU-1111-GPU-2222-MIG-3333", "{form:?}");
    }
    for (form, name) in
        [("0", "n1-0"), ("GPU-4f5e", "n1-GPU-4f5e"), ("MIG-GPU-4f5e/1/0", "n1-MIG-GPU-4f5e-1-0"), ("0:1", "n1-0-1")]
    {
        assert_eq!(called(&with, Some(form)), name);
    }
    // Without a GPU of its own, what the image says of them names none.
    assert_eq!(called(&without, Some("all")), "n1");
    let eight = |last: &str| {
        called(&with, Some(&format!("{},{last}", ["GPU-4f5e8899-aabb-ccdd-eeff-001122334455"; 7].join(","))))
    };
    assert!(eight("GPU-1").len() < 130 && eight("GPU-1") != eight("GPU-2"), "{}", eight("GPU-1"));
}

#[test]
fn the_pods_command_is_the_same_script_with_names_quoted_twice() {
    let site = site();
    let suite = "/suites/it's $(NODE_NAME)$$.yaml";
    let job = manifest(site.path(), &["--suite", suite]);
    let command = job["spec"]["template"]["spec"]["containers"][0]["command"].as_array().unwrap();
    // Kubernetes makes one sign of two, and expands only single ones.
    let escaped = command[2].as_str().unwrap();
    assert!(!escaped.replace("$$", "").contains('$'));
    let script =
        escaped.replace("$$", "$").replace("out='/results'", "out=$PWD").replace("report='report'", "report=./shown");
    fs::write(site.path().join("shown"), "#!/bin/sh\nprintf '%s\\n' \"$@\" >>shown.txt\nexit 1\n").unwrap();
    fs::set_permissions(site.path().join("shown"), fs::Permissions::from_mode(0o755)).unwrap();
    let place = [("NVIDIA_VISIBLE_DEVICES", "GPU-a b/c")];
    assert_eq!(pod(&script, site.path(), &place), Some(1));
    let shown = fs::read_to_string(site.path().join("shown.txt")).unwrap();
    assert!(shown.contains(&format!("\n--suite\n{suite}\n")) && shown.contains("\nn1-GPU-a-b-c\n"), "{shown}");
    assert_eq!(fs::read_to_string(site.path().join("task-7.exit")).unwrap(), "1\n");
    assert_eq!(fs::read_to_string(site.path().join("fleet.yaml")).unwrap(), "tasks: 16\n");
}
