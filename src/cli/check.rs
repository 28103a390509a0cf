//! `report check`: validates suites, documents and results files without running anything.

use std::path::{Path, PathBuf};

use clap::Args;

use super::course::Course;
use super::{Carried, End, recorded};
use crate::book::document::Document;
use crate::book::{BookProject, Warning};
use crate::error::FileError;
use crate::results::MetricSpec;
use crate::runner::{Suite, planned};
use crate::yaml;

/// Validate a suite, a document, a course or a results file; runs nothing
#[derive(Args)]
#[command(after_help = "\
A document is refused where it names a row, a unit or a parameter that no experiment has. Of a results file, what its
pages warn of is listed.

Exit codes: 0; 1 with --current, where the results are not of this program's code; 2 where something is wrong: with file,
line, column and the nearest name.

Examples:
  report check book/suites/quick.yaml
  report check my-course
  report check my-course/documents/overlap.yaml --course my-course
  report check report-out/results.json")]
pub(super) struct Arguments {
    /// A suite's name, or a file with a suite, a document or results, or a folder with a course; else the whole course
    what: Option<PathBuf>,
    /// Fail where a results file was measured by other code than this program's, or by code that no commit holds
    #[arg(long, requires = "what")]
    current: bool,
    #[command(flatten)]
    course: Course,
}

pub(super) fn execute(arguments: &Arguments, carried: &Carried) -> anyhow::Result<End> {
    let folder = arguments.what.as_deref().filter(|path| path.is_dir()).map(Course::of);
    let course = folder.as_ref().unwrap_or(&arguments.course);
    let book = course.project(carried)?;
    let catalog = recorded::catalog(&[], carried);
    match arguments.what.as_deref().filter(|_| folder.is_none()) {
        None => {
            super::course::check(&book, carried)?;
            let documents = book.documents(&catalog)?;
            let names: Vec<&str> = documents.iter().map(|document| document.id.as_str()).collect();
            say!("The documents are good: {}.", names.join(", "));
            for name in book.suites() {
                say(name, &course.suite(Path::new(name), &book, carried)?, carried);
            }
        }
        Some(path) if path.extension().is_some_and(|extension| extension == "json") => {
            return Ok(say_results(path, arguments.current, carried)?);
        }
        Some(path) => match document(path, &book)? {
            Some(text) => {
                let name = path.display().to_string();
                let document = Document::parse(&name, &text, &book.names(&catalog)?)?;
                say!("{name}: the document `{}` is good.", document.id);
            }
            None => say(&path.display().to_string(), &course.suite(path, &book, carried)?, carried),
        },
    }
    Ok(End::Well)
}

/// The text of a file that holds a document: what is no document is taken for a suite.
fn document(path: &Path, book: &BookProject) -> Result<Option<String>, FileError> {
    if path.to_str().is_some_and(|name| book.suite(name).is_some()) || !path.is_file() {
        return Ok(None);
    }
    let text = yaml::read(path)?;
    let content: serde_json::Value = yaml::parse(&text, &path.display().to_string()).unwrap_or_default();
    let is_document = ["id", "question", "method"].iter().any(|key| content.get(key).is_some());
    Ok(Some(text).filter(|_| is_document))
}

/// Says what limits a results file; `current` demands that its rows were measured by this program's code.
fn say_results(path: &Path, current: bool, carried: &Carried) -> Result<End, FileError> {
    let results = recorded::read(path, carried)?;
    let warnings = Warning::of(&results);
    say!("{}: {} rows of {} runs can be read.", path.display(), results.rows.len(), results.runs.len());
    warnings.iter().for_each(|warning| say!("{warning}"));
    let outdated = warnings.iter().any(Warning::is_of_other_code);
    Ok(if current && outdated { End::Failed } else { End::Well })
}

fn say(name: &str, suite: &Suite, carried: &Carried) {
    let names = |engine| {
        let planned = planned(suite, &carried.registry, engine);
        let mut names: Vec<&str> = planned.iter().map(MetricSpec::experiment).collect();
        names.dedup();
        names.join(", ")
    };
    say!("{name}: good. On a GPU: {}. On the CPU engine: {}.", names("cuda"), names("cpu"));
}
