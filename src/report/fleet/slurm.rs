//! A Slurm job array: its script, and handing it to the site's own `sbatch`.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use super::super::course::CourseArgument;
use super::super::output_file::OutputFile;
use super::super::{AppContext, End, UsageError, argument, output};
use super::script::{Script, on_one_line, quote};
use super::{Arguments, Per, next, whole_path};
use crate::files::begins_with;
use syncscope_fleet::{PLAN, SCRIPT};

/// How a script begins.
const BEGIN: &str = "#!/bin/sh\n# A fleet of syncscope";

/// Options of sbatch by which the tasks would leave their results and logs elsewhere, or be others.
const OWN: [&str; 6] = ["--array", "--output", "--error", "--chdir", "--wrap", "--parsable"];
/// The same in short.
const OWN_LETTERS: [&str; 4] = ["-a", "-o", "-e", "-D"];

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    let Some(folder) = &arguments.out else { return Ok(End::Refused) };
    check(&arguments.options)?;
    let out = whole_path("the folder's name", folder)?;
    let report = match &arguments.report {
        Some(path) => whole_path("the program's path", path)?,
        None => whole_path("the program's path", &std::env::current_exe()?)?,
    };
    let suite = CourseArgument::embedded().suite(&arguments.choice.suite, &context.book, context)?;
    let needs_gpu = arguments.check(Some(&suite), context)?;
    let script = script(arguments, &arguments.suite_anywhere(context)?, needs_gpu, &out, &report)?;
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

/// Refuses options by which the results would not be found, and a word that is none.
fn check(options: &[String]) -> Result<(), UsageError> {
    if let Some(first) = options.first().filter(|first| !first.starts_with('-')) {
        let message = format!("`{first}` is no option of sbatch: behind `--` stand options with their values alone");
        return Err(UsageError(message));
    }
    for option in options {
        on_one_line("an option of sbatch", option)?;
        let name = option.split_once('=').map_or(option.as_str(), |(name, _)| name);
        let is_short = !option.starts_with("--") && OWN_LETTERS.iter().any(|own| option.starts_with(own));
        if is_short || OWN.contains(&name) {
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
        OutputFile::claim_inside(folder, name, begins_with(begin))?.write(text.as_bytes())
    };
    put(SCRIPT, BEGIN, script)?;
    put(PLAN, "tasks:", &format!("tasks: {tasks}\n"))?;
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
        for wrong in ["--array=0-9", "-a0-9", "--output=x", "-o", "--chdir=/", "-D/", "--wrap=ls"] {
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
        assert!(refused(&["gpu"]).is_some_and(|said| said.starts_with("`gpu` is no option")));
        assert!(refused(&["-p", "a\nb"]).is_some());
    }
}
