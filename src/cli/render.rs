//! `report render`: makes the book from results files, without a device.

use std::path::PathBuf;

use clap::Args;

use super::course::{self, CoursePlace};
use super::{Carried, End, UsageError, recorded};
use crate::audit::{self, AuditReport};
use crate::book::BookProject;

/// Render the book from results files; needs no device
#[derive(Args)]
#[command(after_help = "Examples:
  report render target/report/results.json --out site-of-my-gpu
  report render book/results/nvidia-h200.json --course my-course
  report render target/report/results.json --audit audit.json")]
pub(super) struct Arguments {
    /// Results files: one column each
    #[arg(required = true, value_name = "RESULTS.json")]
    results: Vec<PathBuf>,
    /// Also make a chapter of an audit (`report audit --json FILE`); may be given again
    #[arg(long = "audit", value_name = "FILE")]
    audits: Vec<PathBuf>,
    #[command(flatten)]
    place: CoursePlace,
}

pub(super) fn execute(arguments: &Arguments, carried: &Carried) -> anyhow::Result<End> {
    let book = with_audits(arguments.place.course.project(carried)?, &arguments.audits)?;
    course::check_place(&book, &arguments.place.out)?;
    let all = arguments.results.iter().map(|path| recorded::shown(path, carried)).collect::<Result<Vec<_>, _>>()?;
    course::render(&all, &book, &arguments.place.out, carried)?;
    Ok(End::Well)
}

/// The book with a chapter of each audit, which the name of its file tells from the others.
fn with_audits(book: BookProject, files: &[PathBuf]) -> anyhow::Result<BookProject> {
    let mut names: Vec<String> = Vec::new();
    files.iter().try_fold(book, |book, path| {
        let text = audit::kept_text(path)?;
        AuditReport::parse(&text, &path.display().to_string())?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if names.contains(&name) {
            let message = format!("two audits are called `{name}`, and a chapter has the name of its file: rename one");
            return Err(UsageError(message).into());
        }
        let book = book.with_audit(&name, &text);
        names.push(name);
        Ok(book)
    })
}
