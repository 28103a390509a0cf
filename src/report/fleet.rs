//! `report fleet`: the same suite on many GPUs or nodes, by a Slurm job array. It writes the array's script and hands it to
//! the site's own `sbatch`. Nothing of its own stays behind: results are files in a folder.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use clap::{Args, ValueEnum};

use super::course::CourseArgument;
use super::output_file::OutputFile;
use super::processes::WITHOUT_MULTICAST;
use super::run::Choice;
use super::{AppContext, End, UsageError, argument, invocation, output};
use crate::error::at;
use crate::files::{begins_with, kind_of};
use crate::runner::{ENGINES, Suite};
use syncscope::device::Device;
use syncscope_fleet::{MAX_TASKS, PLAN, SCRIPT};

/// Measure a suite on many GPUs or nodes, by Slurm
#[derive(Args)]
#[command(after_help = "\
A script is written to DIR/fleet.sh and submitted as a job array by `sbatch`, with the options that follow `--`. Each task is \
named after its node and GPU (--machine) and leaves one results file or none. A task that is killed or requeued resumes its \
file if it gets the same machine. Two tasks can get the same GPU one after the other; `report collect DIR` then counts one \
machine. It also lists the tasks that left nothing, with the reason.

Exit codes: 0, 1 where there is no sbatch or it refuses, 2 where something is wrong with what was given.

Examples:
  report fleet --suite full --out job --tasks 500 -- --partition gpu --time 30 --cpus-per-task 8
  report fleet --dry-run --out job --per node --tasks 4
  report collect job --into results")]
pub(super) struct Arguments {
    #[command(flatten)]
    choice: Choice,
    /// How many tasks there are
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_TASKS)))]
    tasks: u32,
    /// What each task has for itself
    #[arg(long, value_name = "WHAT", default_value = "gpu")]
    per: Per,
    /// A prefix for the names of machines, where two clusters have nodes of the same name
    #[arg(long, value_name = "NAME", value_parser = plain)]
    prefix: Option<String>,
    /// Let NCCL, PyTorch and NVSHMEM use NVLink multicast, as of `report run`
    #[arg(long)]
    allow_multicast: bool,
    /// The folder for the results, which all nodes see
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print the script, and submit nothing
    #[arg(long)]
    dry_run: bool,
    /// The program on the nodes; else this one
    #[arg(long, value_name = "PATH")]
    report: Option<PathBuf>,
    /// Options of sbatch: partition, account, time, processors
    #[arg(last = true, value_name = "SBATCH OPTIONS")]
    options: Vec<String>,
}

/// What a task has for itself.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Per {
    /// One GPU
    Gpu,
    /// A whole node
    Node,
}

/// How a script begins.
const BEGIN: &str = "#!/bin/sh\n# A fleet of syncscope";
/// How it ends: the part that is the same for all.
const BODY: &str = include_str!("task.sh");

/// Options of sbatch by which the tasks would leave their results and logs elsewhere, or be others.
const OWN: [&str; 6] = ["--array", "--output", "--error", "--chdir", "--wrap", "--parsable"];
/// The same in short.
const OWN_LETTERS: [&str; 4] = ["-a", "-o", "-e", "-D"];

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    check_options(&arguments.options)?;
    let folder = &arguments.out;
    let suite = CourseArgument::default().suite(&arguments.choice.suite, &context.book, context)?;
    let needs_gpu = needs_gpu(&arguments.choice, &suite, context)?;
    let script = script(arguments, needs_gpu, context)?;
    if arguments.dry_run {
        output::whole(&script);
        return Ok(End::Well);
    }
    write(folder, &script, arguments.tasks)?;
    let job = submit(folder, &arguments.options)?;
    say!("job {job}: {} tasks, results in {}", arguments.tasks, folder.display());
    say!("when it has ended: {} collect {}", invocation(), argument(folder));
    Ok(End::Well)
}

/// Refuses what no node could measure, so that it is found out once and before it is submitted. Whether a task needs a GPU.
fn needs_gpu(choice: &Choice, suite: &Suite, context: &AppContext) -> anyhow::Result<bool> {
    let selection = choice.selection(suite, context)?;
    let named = choice.device.as_deref();
    if let Some(refusal) = named.and_then(Suite::refuse_device) {
        return Err(UsageError(refusal).into());
    }
    // The CPU engine is the same on every machine.
    if let Some(name) = named.filter(|name| name.starts_with("cpu:")) {
        Device::open(name)?;
    }
    let device = named.unwrap_or(&suite.device);
    let is_meant = |engine: &&str| device == "auto" || device.starts_with(engine);
    let engines: Vec<&str> = ENGINES.into_iter().filter(is_meant).collect();
    choice.check_rows(suite, &selection, &engines, context)?;
    Ok(!device.starts_with("cpu:"))
}

/// The script of the array. Everything of the user's in it is quoted.
fn script(arguments: &Arguments, needs_gpu: bool, context: &AppContext) -> anyhow::Result<String> {
    let Arguments { tasks, per, allow_multicast, .. } = arguments;
    let quoted = |words: &[String]| words.iter().map(|word| format!(" {}", quote(word))).collect::<String>();
    let out = quote(&whole_path("the folder's name", &arguments.out)?);
    let own = std::env::current_exe()?;
    let report = quote(&whole_path("the program's path", arguments.report.as_deref().unwrap_or(&own))?);
    let (options, last) = (quoted(&arguments.options), tasks - 1);
    let (share, gpu) = match per {
        Per::Node => ("#SBATCH --exclusive\n", ""),
        Per::Gpu => (
            if needs_gpu { "#SBATCH --gres=gpu:1\n" } else { "" },
            "[ -z \"${SLURM_JOB_GPUS-}\" ] || machine=$machine-gpu$SLURM_JOB_GPUS\n",
        ),
    };
    let prefix = arguments.prefix.as_ref().map_or_else(String::new, |prefix| format!("{prefix}-"));
    let (multicast, always) = match allow_multicast {
        true => (String::new(), " '--allow-multicast'"),
        false => {
            let off = WITHOUT_MULTICAST.map(|(name, value)| format!("export {name}={value}\n")).concat();
            (format!("# NVLink multicast can disturb a host that others share.\n{off}"), "")
        }
    };
    let begin = quoted(&begin(&arguments.choice, context)?);
    // A path in the lines for Slurm would have its own marks; the logs go where the script is submitted.
    Ok(format!(
        "{BEGIN}. To submit it: cd {out} && sbatch{options} {SCRIPT}\n\
         #SBATCH --job-name=syncscope\n#SBATCH --array=0-{last}\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n{share}\
         #SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --output=task-%a.log\n\
         out={out}\nreport={report}\ntasks={tasks}\n\
         task=$SLURM_ARRAY_TASK_ID\nmachine={prefix}${{SLURMD_NODENAME:-$(hostname)}}\n{gpu}\
         # Since Slurm 22.05, srun takes the number of processors from this variable only.\n\
         [ -z \"${{SLURM_CPUS_PER_TASK-}}\" ] || export SRUN_CPUS_PER_TASK=\"$SLURM_CPUS_PER_TASK\"\n\
         {multicast}\
         begin() {{ srun --ntasks=1 \"$report\" run --out \"$part\" --machine \"$machine\"{begin}{always}; }}\n\
         resume() {{ srun --ntasks=1 \"$report\" run --resume \"$1\" --out \"$part\"{always}; }}\n{BODY}"
    ))
}

/// The arguments of a run that begins, with the suite as any folder finds it: by its name, or by the whole path of its file.
fn begin(choice: &Choice, context: &AppContext) -> anyhow::Result<Vec<String>> {
    let Choice { suite, device, only, skip, runs } = choice;
    let name = on_one_line("the suite's name", text("the suite's name", suite)?)?;
    let suite = match context.book.suite(name) {
        Some(_) => name.to_owned(),
        None => whole_path("the suite's path", suite)?,
    };
    let mut begin = vec!["--suite".to_owned(), suite];
    let runs = runs.map(|runs| runs.to_string());
    let device = device.iter().map(|value| ("--device", value));
    let runs = runs.iter().map(|value| ("--runs", value));
    let only = only.iter().map(|value| ("--only", value));
    let skip = skip.iter().map(|value| ("--skip", value));
    for (flag, value) in device.chain(runs).chain(only).chain(skip) {
        // With `=`, a value is no flag, whatever it begins with.
        begin.push(format!("{flag}={}", on_one_line(flag, value)?));
    }
    Ok(begin)
}

/// One word of a shell, whatever is in it.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Refuses a text that would not stay on its line.
fn on_one_line<'a>(what: &str, text: &'a str) -> Result<&'a str, UsageError> {
    let wrong = |character| format!("{what} holds the character {character:?}, which no line of a script can hold");
    text.chars().find(|character| character.is_control()).map_or(Ok(text), |found| Err(UsageError(wrong(found))))
}

/// A path from the root, as text on one line.
fn whole_path(what: &str, path: &Path) -> anyhow::Result<String> {
    let whole = std::path::absolute(path).with_context(|| path.display().to_string())?;
    Ok(on_one_line(what, text(what, &whole)?)?.to_owned())
}

fn text<'a>(what: &str, path: &'a Path) -> Result<&'a str, UsageError> {
    path.to_str().ok_or_else(|| UsageError(format!("{what} is no text: {}", path.display())))
}

/// A part of a machine's name: it becomes a part of file names.
fn plain(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("a name has letters, digits, dots, hyphens and underscores only".to_owned())
}

/// Refuses options by which the results would not be found, and a word that is none.
fn check_options(options: &[String]) -> Result<(), UsageError> {
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
    if kind_of(&plan).map_err(at(&plan))?.is_some() {
        let (folder, again) = (folder.display(), argument(folder));
        let message = format!(
            "{folder}: it holds the tasks of a job already; `cd {again} && sbatch {SCRIPT}` submits what is missing again, \
             or name another folder"
        );
        return Err(UsageError(message).into());
    }
    let put = |name: &str, begin: &'static str, text: &str| {
        OutputFile::claim(&folder.join(name), begins_with(begin))?.write(text.as_bytes())
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
            check_options(&options).err().map(|error| error.to_string())
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
