//! `report check`: validates suites, documents and results files without running anything.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::course::{self, CourseArgument};
use super::output::Form;
use super::planned::Planned;
use super::terminal;
use super::{AppContext, End, UsageError, output, recorded, told};
use crate::book::document::Document;
use crate::book::{BookProject, Warning, WarningSubject};
use crate::error::{BookError, FileError};
use crate::files::is_json;
use crate::units::counted;
use crate::yaml;
use syncscope_audit::{self as audit, AuditReport};

/// Validate a suite, a document, a course, a results file or an audit; runs nothing
#[derive(Args)]
#[command(after_help = "\
A document is refused where it names a row, a unit or a parameter that no experiment has. For a suite it prints what would \
run, and warns of long runs. For a results file it lists the warnings of its pages; a file is refused where a computed row \
does not follow from its samples. An audit is refused where its times do not add up.

Exit codes: 0; 1 with --current, where other code measured the results, or with --whole, where runs are missing; 2 where \
something is wrong, with file, line, column and the nearest name.

Examples:
  report check book/suites/quick.yaml
  report check my-course
  report check my-course/documents/overlap.yaml --course my-course
  report check report-out/results.json")]
pub(super) struct Arguments {
    /// A suite's name, or a file with a suite, a document, results or an audit, or a folder with a course; else the whole course
    what: Option<PathBuf>,
    /// Fail where a results file was measured by other code than this program's, or by code that no commit holds
    #[arg(long, requires = "what")]
    current: bool,
    /// Fail where a results file did not end: runs are missing, and `report run --resume` goes on with it
    #[arg(long, requires = "what")]
    whole: bool,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    course: CourseArgument,
}

/// What was looked at and is good, or what is wrong.
#[derive(Default, Serialize)]
struct Checked {
    documents: Vec<String>,
    suites: Vec<Planned>,
    /// A results file. `current`: this program's code measured it, and a commit holds that code; `whole`: all runs are there.
    results: Option<Value>,
    audit: Option<Value>,
    /// What is wrong; where something is, nothing else was looked at.
    problem: Option<Value>,
    /// What is said of a file with results or an audit.
    #[serde(skip)]
    read: Option<String>,
    #[serde(skip)]
    warnings: Vec<String>,
}

/// What is wrong, and where: no file where it is in none, and no line, from 1, where a file as a whole is meant.
fn problem(error: &anyhow::Error) -> Value {
    let file = error.downcast_ref::<FileError>();
    let file = file.or_else(|| match error.downcast_ref()? {
        BookError::File(error) => Some(error),
        _ => None,
    });
    let (file, place, message) = match file {
        Some(FileError::Invalid { origin, line, column, message, hint }) => {
            (Some(origin.clone()), Some((line, column)).filter(|_| *line > 0), format!("{message}{hint}"))
        }
        Some(FileError::Io { path, cause } | FileError::Unwritten { path, cause }) => {
            (Some(path.display().to_string()), None, cause.to_string())
        }
        Some(error @ FileError::Version { origin, .. }) => (Some(origin.clone()), None, error.to_string()),
        None => (None, None, told(error)),
    };
    let (line, column) = place.unzip();
    json!({ "file": file, "line": line, "column": column, "message": message })
}

impl Checked {
    fn say(&self) {
        match self.documents.as_slice() {
            [] => {}
            [document] => say!("The document `{document}` is good."),
            documents => say!("The documents are good: {}.", documents.join(", ")),
        }
        self.suites.iter().for_each(Planned::say);
        self.read.iter().for_each(|read| say!("{read}"));
        self.warnings.iter().for_each(|warning| output::message(warning, Some(terminal::WARNING)));
    }
}

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    match checked(arguments, context) {
        Ok(checked) => {
            arguments.form.print("check", &checked, || checked.say())?;
            let fails = checked.results.is_some_and(|results| {
                arguments.current && results["current"] == false || arguments.whole && results["whole"] == false
            });
            Ok(if fails { End::Failed } else { End::Well })
        }
        // Whoever asks for JSON gets the place of what is wrong as JSON; the words for a person go to standard error.
        Err(error) => {
            let checked = Checked { problem: Some(problem(&error)), ..Checked::default() };
            arguments.form.print("check", &checked, || ())?;
            Err(error)
        }
    }
}

fn checked(arguments: &Arguments, context: &AppContext) -> anyhow::Result<Checked> {
    let folder = arguments.what.as_ref().filter(|path| path.is_dir());
    let folder = folder.map(|path| CourseArgument { folder: Some(path.clone()) });
    let course = folder.as_ref().unwrap_or(&arguments.course);
    let book = course.project(context)?;
    let catalog = recorded::catalog_of(&book, &[], context);
    let mut checked = Checked::default();
    match arguments.what.as_deref().filter(|_| folder.is_none()) {
        None => {
            course::check(&book, context)?;
            checked.documents = book.documents(&catalog)?.into_iter().map(|document| document.id).collect();
            for name in book.suites() {
                checked.suites.push(Planned::of(name, &course.suite(Path::new(name), &book, context)?, context)?);
            }
        }
        Some(path) if BookProject::is_part(path) => {
            let path = path.display();
            return Err(UsageError(format!("{path}: this is checked with its course, whose folder it is in")).into());
        }
        Some(path) if is_json(path) && crate::audit::text(path).is_ok_and(|text| audit::is_audit(&text)) => {
            let AuditReport { places, processes, warnings, .. } = crate::audit::kept(path)?;
            let (places, processes, file) = (places.len(), processes.len(), path.display().to_string());
            let (counted, of) = (counted(places, "place"), audit::of_processes(processes));
            checked.read = Some(format!("{file}: {counted} of {of} can be read."));
            checked.audit =
                Some(json!({ "file": file, "places": places, "processes": processes, "warnings": warnings }));
            checked.warnings = warnings;
        }
        Some(path) if is_json(path) => {
            let results = recorded::sound(path)?;
            let declared = recorded::catalog(&[], context);
            let warnings: Vec<Warning> =
                Warning::of(&results).into_iter().chain(Warning::of_units(&results, &declared)).collect();
            let said = results.missing_runs().into_iter().chain(warnings.iter().map(ToString::to_string)).collect();
            let (file, rows, runs) = (path.display().to_string(), results.rows.len(), results.runs.len());
            let (counted_rows, counted_runs) = (counted(rows, "row"), counted(runs, "run"));
            checked.read = Some(format!("{file}: {counted_rows} of {counted_runs} can be read."));
            checked.results = Some(json!({
                "file": file,
                "rows": rows,
                "runs": runs,
                "current": !warnings.iter().any(|warning| warning.about == WarningSubject::Code),
                "whole": !results.is_partial(),
                "warnings": said,
            }));
            checked.warnings = said;
        }
        Some(path) => {
            let name = path.display().to_string();
            match document(path, &book)? {
                Some(text) => checked.documents.push(Document::parse(&name, &text, &book.names(&catalog)?)?.id),
                None => checked.suites.push(Planned::of(&name, &course.suite(path, &book, context)?, context)?),
            }
        }
    }
    Ok(checked)
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
