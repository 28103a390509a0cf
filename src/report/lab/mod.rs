//! `report lab`: grades a lab, and makes the student's notebook of the teacher's.
//!
//! A lab is a notebook whose cells carry nbgrader's metadata. A task is a cell to fill, and a check is a locked cell behind
//! it: it gives its points if it runs without a failure.
//!
//! | file | holds |
//! |---|---|
//! | `cells` | a notebook's cells and what nbgrader's metadata says of them |
//! | `release` | the student's notebook, made of the teacher's |
//! | `attempt` | cells, executed in the installed kernel |
//! | `grade` | what is to be run, and the points of what it came to |
//!
//! Source of the format: nbgrader's documentation, "Metadata format", schema version 3.

mod attempt;
mod cells;
mod grade;
mod release;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::json;
use syncscope_jupyter::INSTALL;

use self::attempt::Kernel;
use self::cells::Lab;
use self::grade::{Grade, Plan};
use super::course::CourseArgument;
use super::output::Form;
use super::output_file::OutputFile;
use super::{AppContext, End, UsageError, refuse_input};
use crate::error::{FileError, at};
use crate::files::is_kind;

/// Grade a lab, or make the student's notebook from the teacher's
#[derive(Args)]
#[command(after_help = "Examples:
  report lab check 00-quick-start.ipynb
  report lab check submitted/*/00-quick-start.ipynb --json
  report lab release book/answers/00-quick-start.ipynb --out notebooks")]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the cells of a lab and grade its checks: points, and why some are missing
    #[command(after_help = format!("\
The cells run in the installed kernel (in the clone: `{INSTALL}`), each also behind one that failed. A check gives all of \
its points if it does not fail, and none if it does. Where the notebook is a lab of the course, the checks are the course's \
own, whatever the notebook holds in their place.

Exit codes: 0 with all points, 1 without, 2 where the notebook or the kernel cannot be used.

Example:
  report lab check 00-quick-start.ipynb"))]
    Check(Check),
    /// Make the student's notebook: without the worked answers, and without the outputs of tasks and checks
    #[command(after_help = "\
A region between `### BEGIN SOLUTION` and `### END SOLUTION` becomes a stub, as in nbgrader's generate_assignment. A cell \
that belongs to no task keeps its outputs.

Exit codes: 0, 2 where a notebook is no lab.

Example:
  report lab release book/answers/*.ipynb --out notebooks")]
    Release(Release),
}

#[derive(Args)]
struct Check {
    /// The notebooks
    #[arg(required = true, value_name = "NOTEBOOK")]
    notebooks: Vec<PathBuf>,
    /// The seconds that a cell may take, compilation included
    #[arg(long, value_name = "SECONDS", default_value = "180", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// The environment of Python with the kernel, such as .venv; without it, where Jupyter finds the kernel
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    #[command(flatten)]
    course: CourseArgument,
    #[command(flatten)]
    form: Form,
}

#[derive(Args)]
struct Release {
    /// The teacher's notebooks
    #[arg(required = true, value_name = "NOTEBOOK")]
    notebooks: Vec<PathBuf>,
    /// The folder for the student's
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(super) fn execute(arguments: Arguments, context: &AppContext) -> anyhow::Result<End> {
    match arguments.command {
        Command::Check(check) => graded(&check, context),
        Command::Release(release) => released(&release),
    }
}

fn graded(arguments: &Check, context: &AppContext) -> anyhow::Result<End> {
    let book = arguments.course.project(context)?;
    let ending = |path: &Path| path.extension().is_some_and(|ending| ending == "ipynb");
    let known = book.below("notebooks").filter(|(path, _)| ending(path));
    let known: Vec<Lab> = known
        .filter_map(|(path, content)| Lab::parse(&path.to_string_lossy(), std::str::from_utf8(content).ok()?).ok())
        .collect();
    let submitted: Vec<Lab> = arguments.notebooks.iter().map(|path| read(path)).collect::<anyhow::Result<_>>()?;
    let kernel = Kernel::find(arguments.prefix.as_deref())?;
    let mut labs = Vec::new();
    for (path, lab) in arguments.notebooks.iter().zip(&submitted) {
        let plan = Plan::of(lab, lab.nearest(&known));
        let path = fs::canonicalize(path).with_context(|| path.display().to_string())?;
        let folder = path.parent().unwrap_or(&path);
        let codes = plan.codes();
        note!("{}: running {} cells", lab.name, codes.len());
        let ran = kernel.run(&codes, folder, Duration::from_secs(arguments.timeout))?;
        labs.push(plan.grade(&ran));
    }
    let whole = labs.iter().all(Grade::is_whole);
    arguments.form.print("lab", &json!({ "labs": labs }), || {
        labs.iter().for_each(|grade| show!("{}\n", grade.table().to_console()));
    })?;
    Ok(if whole { End::Well } else { End::Failed })
}

fn released(arguments: &Release) -> anyhow::Result<End> {
    let mut made = Vec::new();
    for path in &arguments.notebooks {
        let text = read(path)?.released()?;
        let name = path.file_name().ok_or_else(|| UsageError(format!("{}: no notebook", path.display())))?;
        let to = arguments.out.join(name);
        refuse_input(&to, &arguments.notebooks)?;
        let is_untouched =
            |there: &Path| Ok(is_kind(notebook_text(there))? && read(there).is_ok_and(|lab| lab.is_unanswered()));
        let file = OutputFile::claim(&arguments.out.join(name), is_untouched)?;
        made.push((to, file, text));
    }
    // All of them, or none.
    for (to, file, text) in made {
        file.write(text.as_bytes())?;
        say!("{}", to.display());
    }
    Ok(End::Well)
}

/// A lab in a file.
fn read(path: &Path) -> anyhow::Result<Lab> {
    Ok(Lab::parse(&path.display().to_string(), &notebook_text(path)?)?)
}

/// The text of a notebook, of at most 64 MiB.
pub(super) fn notebook_text(path: &Path) -> Result<String, FileError> {
    crate::files::read_text(path, 64 << 20).map_err(at(path))
}
