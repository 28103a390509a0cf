//! A Slurm job array: its script, and handing it to the site's own `sbatch`.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use super::super::{Carried, End, UsageError, argument, output};
use super::script::{Script, on_one_line, quote};
use super::{Arguments, Per, next, whole_path};
use crate::error::FileError;
use crate::files::{Target, begins_with};
use crate::fleet::{JobPlan, PLAN, SCRIPT};

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

pub(super) fn execute(arguments: &Arguments, carried: &Carried) -> anyhow::Result<End> {
    let Some(folder) = &arguments.out else { return Ok(End::Refused) };
    check(&arguments.options)?;
    let out = whole_path("the folder's name", folder)?;
    let report = match &arguments.report {
        Some(path) => whole_path("the program's path", path)?,
        None => whole_path("the program's path", &std::env::current_exe()?)?,
    };
    let script = script(arguments, &arguments.checked_suite(carried)?, &out, &report)?;
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

fn script(arguments: &Arguments, suite: &str, out: &str, report: &str) -> anyhow::Result<String> {
    let last = arguments.tasks - 1;
    let options: String = arguments.options.iter().map(|option| format!(" {}", quote(option))).collect();
    let share = match arguments.per {
        Per::Node => "#SBATCH --exclusive\n",
        Per::Gpu if arguments.needs_gpu() => "#SBATCH --gres=gpu:1\n",
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

/// Refuses options that sbatch would take for the script, and those by which the results would not be found.
fn check(options: &[String]) -> Result<(), UsageError> {
    if let Some(first) = options.first().filter(|first| !first.starts_with('-')) {
        return Err(UsageError(format!("`{first}` is no option of sbatch: what follows `--` begins with one")));
    }
    for option in options {
        on_one_line("an option of sbatch", option)?;
        let is_own = |(long, short): &(&str, Option<char>)| match option.strip_prefix("--") {
            // Options may be shortened.
            Some(name) => name.len() > 1 && long.starts_with(name.split('=').next().unwrap_or(name)),
            None => short.is_some_and(|short| option.starts_with(&format!("-{short}"))),
        };
        if OWN.iter().any(is_own) {
            let message =
                format!("`{option}` is set by the script, which would not find its tasks and files otherwise");
            return Err(UsageError(message));
        }
    }
    Ok(())
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
        let file = folder.join(name);
        let at = |source| FileError::Io { path: file.clone(), source };
        Target::claim(&file, begins_with(begin)).map_err(at)?.write(text.as_bytes()).map_err(at)
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
    if !output.status.success() {
        return Err(forgotten(format!("sbatch ended with {}, so nothing was submitted", output.status)));
    }
    // With a cluster's name behind a semicolon, where there are several.
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_would_move_the_results_are_refused_in_each_form() {
        let refused =
            |options: &[&str]| check(&options.iter().map(|own| (*own).to_owned()).collect::<Vec<_>>()).is_err();
        for wrong in
            ["--array=0-9", "--arr", "-a0-9", "--output=x", "-o", "--chdir=/", "-D/", "--wrap=ls", "gpu", "-p\n"]
        {
            assert!(refused(&[wrong]), "{wrong}");
        }
        for right in ["--partition=gpu", "-p", "--account=a b", "--exclude=n1", "--exclusive", "--time=30", "--"] {
            assert!(!refused(&[right]), "{right}");
        }
        assert!(!refused(&["-p", "gpu"]) && refused(&["-p", "gpu", "-e", "x"]));
    }
}
