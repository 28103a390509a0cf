//! `report render`: makes the book from results files, without a device.

use std::path::PathBuf;

use clap::Args;

use super::course::{self, CoursePlace};
use super::lab::notebook_text;
use super::{AppContext, End, UsageError, recorded};
use crate::book::{BookProject, check_notebook};
use crate::results::nearest;

/// Render the book from results files; needs no device
#[derive(Args)]
#[command(after_help = "Examples:
  report render target/report/results.json --out site-of-my-gpu
  report render book/results/one-gpu.json.gz --course my-course
  report render target/report/results.json --audit audit.json
  report render target/report/results.json --notebook executed/00-quick-start.ipynb")]
pub(super) struct Arguments {
    /// Results files: one column each
    #[arg(required = true, value_name = "RESULTS.json")]
    results: Vec<PathBuf>,
    /// Also make a chapter of an audit (`report audit --json FILE`); may be given again
    #[arg(long = "audit", value_name = "FILE")]
    audits: Vec<PathBuf>,
    /// Show a notebook as you executed it, in the place of the book's own of this name; may be given again
    #[arg(long = "notebook", value_name = "FILE.ipynb")]
    notebooks: Vec<PathBuf>,
    #[command(flatten)]
    place: CoursePlace,
}

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    let book = with_audits(arguments.place.course.project(context)?, &arguments.audits)?;
    let book = with_notebooks(book, &arguments.notebooks)?;
    course::check_place(&book, &arguments.place.out)?;
    let all = arguments.results.iter().map(|path| recorded::shown(path)).collect::<Result<Vec<_>, _>>()?;
    course::render(&all, &book, &arguments.place.out, context)?;
    Ok(End::Well)
}

/// The book with a chapter of each audit, which the name of its file tells from the others.
fn with_audits(book: BookProject, files: &[PathBuf]) -> anyhow::Result<BookProject> {
    let names = names(files, "audits")?;
    files.iter().zip(names).try_fold(book, |book, (path, name)| {
        Ok(course::with_audit(book, name, &path.display().to_string(), crate::audit::text(path)?)?)
    })
}

/// The book with these notebooks in the places of its own. A notebook of another name has no place in its contents.
fn with_notebooks(book: BookProject, files: &[PathBuf]) -> anyhow::Result<BookProject> {
    let known: Vec<String> = book.notebooks().collect();
    let names = names(files, "notebooks")?;
    files.iter().zip(names).try_fold(book, |book, (path, name)| {
        let file = path.display().to_string();
        if !known.contains(&name) {
            let hint = nearest(&name, known.iter().map(String::as_str));
            return Err(UsageError(format!("{file}: the book has no notebook `{name}`{hint}")).into());
        }
        let text = notebook_text(path)?;
        check_notebook(&file, &text)?;
        Ok(book.with_file(format!("notebooks/{name}.ipynb"), &text))
    })
}

/// The names of the files, by which the pages made of them are told apart.
fn names(files: &[PathBuf], what: &str) -> Result<Vec<String>, UsageError> {
    let mut names: Vec<String> = Vec::new();
    for path in files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if names.contains(&name) {
            return Err(UsageError(format!(
                "two {what} are called `{name}`, and a chapter has the name of its file: rename one"
            )));
        }
        names.push(name);
    }
    Ok(names)
}
