//! A Slurm job array: its script, and handing it to the site's own `sbatch`.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use super::super::course::CourseArgument;
use super::super::output_file::OutputFile;
use super::super::{Carried, End, UsageError, argument, output};
use super::script::{Script, on_one_line, quote};
use super::{Arguments, Per, next, whole_path};
use crate::files::begins_with;
use syncscope_fleet::{JobPlan, PLAN, SCRIPT};

/// How a script begins.
const BEGIN: &str = "#!/bin/sh\n# A fleet of syncscope";

/// Options of sbatch, long and short, by which the tasks would leave their results and logs elsewhere, or be others.
const OWN: [(&str, Option<char>); 6] = [
    ("array", Some('a')),
    ("output", Some('o')),
    ("error", Some('e')),
    ("chdir", Some('D')),
    ("wrap", None),
    ("parsable", None),
];

/// Options of sbatch, long and short, that take no value, or only one that stands behind `=`. The word behind any other option is
/// its value.
const ALONE: [(&str, Option<char>); 26] = [
    ("contiguous", None),
    ("consolidate-segments", None),
    ("exclusive", None),
    ("get-user-env", None),
    ("help", Some('h')),
    ("hold", Some('H')),
    ("ignore-pbs", None),
    ("nice", None),
    ("no-kill", Some('k')),
    ("no-requeue", None),
    ("overcommit", Some('O')),
    ("oversubscribe", Some('s')),
    ("propagate", None),
    ("quiet", Some('Q')),
    ("reboot", None),
    ("requeue", None),
    ("resv-ports", None),
    ("spread-job", None),
    ("spread-segments", None),
    ("stepmgr", None),
    ("test-only", None),
    ("usage", None),
    ("use-min-nodes", None),
    ("verbose", Some('v')),
    ("version", Some('V')),
    ("wait", Some('W')),
];

pub(super) fn execute(arguments: &Arguments, carried: &Carried) -> anyhow::Result<End> {
    let Some(folder) = &arguments.out else { return Ok(End::Refused) };
    check(&arguments.options)?;
    let out = whole_path("the folder's name", folder)?;
    let report = match &arguments.report {
        Some(path) => whole_path("the program's path", path)?,
        None => whole_path("the program's path", &std::env::current_exe()?)?,
    };
    let suite = CourseArgument::embedded().suite(&arguments.choice.suite, &carried.book, carried)?;
    let needs_gpu = arguments.check(Some(&suite), carried)?;
    let script = script(arguments, &arguments.suite_anywhere(carried)?, needs_gpu, &out, &report)?;
    if arguments.dry_run {
        output::whole(&script);
        return Ok(End::Well);
    }
    write(folder, &script, arguments.tasks)?;
    let job = submit(folder, &arguments.options)?;
    say!("job {job}: {} tasks, results in {}", arguments.tasks, folder.display());
    say!("{}", next(&argument(folder)));
    Ok(End::Well)
}

fn script(arguments: &Arguments, suite: &str, needs_gpu: bool, out: &str, report: &str) -> anyhow::Result<String> {
    let last = arguments.tasks - 1;
    let options: String = arguments.options.iter().map(|option| format!(" {}", quote(option))).collect();
    let share = match arguments.per {
        Per::Node => "#SBATCH --exclusive\n",
        Per::Gpu if needs_gpu => "#SBATCH --gres=gpu:1\n",
        Per::Gpu => "",
    };
    // A path in these lines would have its own marks; the logs go where the script is submitted.
    let head = format!(
        "{BEGIN}. To submit it: cd {} && sbatch{options} {SCRIPT}\n\
         #SBATCH --job-name=syncscope\n#SBATCH --array=0-{last}\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n{share}\
         #SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --output=task-%a.log\n",
        quote(out)
    );
    let gpu = match arguments.per {
        Per::Gpu => "[ -z \"${SLURM_JOB_GPUS-}\" ] || machine=$machine-gpu$SLURM_JOB_GPUS\n",
        Per::Node => "",
    };
    let place = format!(
        "task=$SLURM_ARRAY_TASK_ID\nmachine={}${{SLURMD_NODENAME:-$(hostname)}}\n{gpu}\
         # Since Slurm 22.05, srun takes the number of processors from this variable only.\n\
         [ -z \"${{SLURM_CPUS_PER_TASK-}}\" ] || export SRUN_CPUS_PER_TASK=\"$SLURM_CPUS_PER_TASK\"\n",
        arguments.prefix()
    );
    let script = Script {
        head,
        out,
        report,
        place,
        launch: "srun --ntasks=1 ",
        tasks: arguments.tasks,
        begin: arguments.begin(suite)?,
        always: arguments.always(),
        multicast: arguments.multicast(),
    };
    Ok(script.text())
}

/// Refuses words that sbatch would take for the script or its arguments, and options by which the results would not be found.
fn check(options: &[String]) -> Result<(), UsageError> {
    let mut words = options.iter();
    while let Some(option) = words.next() {
        on_one_line("an option of sbatch", option)?;
        let takes_next = match option.strip_prefix("--").map(|name| (name, name.split_once('='))) {
            // Options may be shortened.
            Some((name, None)) if is_one(&ALONE, name) => false,
            Some((name, given)) if !name.is_empty() => {
                own(option, is_one(&OWN, given.map_or(name, |(name, _)| name)))?;
                given.is_none()
            }
            None if option.len() > 1 && option.starts_with('-') => takes_next(option)?,
            _ => {
                let message = format!(
                    "`{option}` is no option of sbatch, nor the value of one before it: sbatch would take it for the script; \
                     behind `--` stand options with their values alone"
                );
                return Err(UsageError(message));
            }
        };
        if let Some(value) = takes_next.then(|| words.next()).flatten() {
            on_one_line("an option of sbatch", value)?;
        }
    }
    Ok(())
}

/// Whether a name, which may be shortened, is one of these long options.
fn is_one(options: &[(&str, Option<char>)], name: &str) -> bool {
    name.len() > 1 && options.iter().any(|(long, _)| long.starts_with(name))
}

/// Whether the value of the last of the letters of `-Qp` is the next word.
fn takes_next(letters: &str) -> Result<bool, UsageError> {
    let is = |options: &[(&str, Option<char>)], letter| options.iter().any(|(_, short)| *short == Some(letter));
    let mut rest = letters[1..].chars();
    while let Some(letter) = rest.next() {
        own(letters, is(&OWN, letter))?;
        if !is(&ALONE, letter) {
            return Ok(rest.as_str().is_empty());
        }
    }
    Ok(false)
}

fn own(option: &str, is_own: bool) -> Result<(), UsageError> {
    match is_own {
        true => Err(UsageError(format!(
            "`{option}` is set by the script, which would not find its tasks and files otherwise"
        ))),
        false => Ok(()),
    }
}

/// Writes the script and the number of its tasks into a folder that has no other job.
fn write(folder: &Path, script: &str, tasks: u32) -> anyhow::Result<()> {
    let plan = folder.join(PLAN);
    if plan.exists() {
        let (folder, again) = (folder.display(), argument(folder));
        let message = format!(
            "{folder}: it holds the tasks of a job already; `cd {again} && sbatch {SCRIPT}` submits what is missing again, \
             or name another folder"
        );
        return Err(UsageError(message).into());
    }
    let put = |name: &str, begin: &'static str, text: &str| {
        OutputFile::claim_inside(folder, name, begins_with(begin))?.write(text.as_bytes())
    };
    put(SCRIPT, BEGIN, script)?;
    put(PLAN, "tasks:", &serde_yaml::to_string(&JobPlan { tasks })?)?;
    Ok(())
}

/// Hands the script to sbatch; the number of the job.
fn submit(folder: &Path, options: &[String]) -> anyhow::Result<String> {
    let mut command = Command::new("sbatch");
    command
        .arg("--parsable")
        .args(options)
        .arg(SCRIPT)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let forgotten = |why: String| {
        // Nothing was submitted: the folder is free for another try.
        let _ = std::fs::remove_file(folder.join(PLAN));
        anyhow::anyhow!("{why}; the script is {}", folder.join(SCRIPT).display())
    };
    let output = command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => forgotten("there is no `sbatch` here, so nothing was submitted".to_owned()),
        _ => forgotten(format!("sbatch cannot be started: {error}")),
    })?;
    // With a cluster's name behind a semicolon, where there are several. With `--wait`, the exit code is that of the tasks.
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !said.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(forgotten(format!(
            "sbatch named no job and ended with {}, so nothing was submitted",
            output.status
        )));
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_would_move_the_results_are_refused_in_each_form() {
        let refused = |options: &[&str]| {
            let options: Vec<String> = options.iter().map(|own| (*own).to_owned()).collect();
            check(&options).err().map(|error| error.to_string())
        };
        for wrong in
            ["--array=0-9", "--arr", "-a0-9", "--output=x", "-o", "--chdir=/", "-D/", "--wrap=ls", "-Ha0-9", "-QQo"]
        {
            assert!(refused(&[wrong]).is_some_and(|said| said.contains("is set by the script")), "{wrong}");
            assert!(refused(&["-p", "gpu", wrong]).is_some(), "{wrong}");
        }
        for right in [
            &["--partition=gpu"][..],
            &["-p", "gpu", "--account", "a b", "--time=30", "-c8"],
            &["--exclusive", "--exclude", "n1", "-HOp", "gpu", "--nice=5", "--wait", "-k"],
            &["--dependency", "-1", "--hold"],
        ] {
            assert_eq!(refused(right), None, "{right:?}");
        }
        for (wrong, word) in [
            (&["gpu"][..], "gpu"),
            (&["--exclusive", "user"], "user"),
            (&["-p", "gpu", "job.sh"], "job.sh"),
            (&["-H", "job.sh", "-p", "gpu"], "job.sh"),
            (&["-Hpgpu", "job.sh"], "job.sh"),
            (&["--partition=gpu", ":", "-N1"], ":"),
            (&["--hold", "--", "job.sh"], "--"),
            (&["-p", "gpu", "-"], "-"),
            (&["--requeue", ""], ""),
        ] {
            assert!(
                refused(wrong).is_some_and(|said| said.starts_with(&format!("`{word}` is no option"))),
                "{wrong:?}"
            );
        }
        assert!(refused(&["-p", "a\nb"]).is_some());
    }
}
