//! Which book a command means: the one that the program carries, or a course in a folder.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{AppContext, UsageError, argument, invocation, recorded};
use crate::book::{self, AuditPage, BookProject};
use crate::error::{BookError, FileError};
use crate::files::is_missing;
use crate::present::escape;
use crate::results::{Results, nearest};
use crate::runner::Suite;
use syncscope_audit::AuditReport;

/// Where documents and suites come from: by default the book that the program carries.
#[derive(Args, Default)]
pub(super) struct CourseArgument {
    /// A folder made by `report init`, instead of the built-in book
    #[arg(long = "course", value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
}

/// Where the book goes and what it is made of.
#[derive(Args)]
pub(super) struct CoursePlace {
    /// The folder for the book, and for a results file that is measured
    #[arg(long, value_name = "DIR", default_value = "target/report")]
    pub(super) out: PathBuf,
    #[command(flatten)]
    pub(super) course: CourseArgument,
}

impl CourseArgument {
    /// What the book is made of.
    pub(super) fn project(&self, context: &AppContext) -> anyhow::Result<BookProject> {
        let Some(folder) = &self.folder else { return Ok(context.book.clone()) };
        if folder.is_dir() && !BookProject::is_begun(folder) {
            let (program, folder) = (invocation(), folder.display());
            let message =
                format!("{folder}: this is no course: it has no book.toml; `{program} init DIR` makes a course");
            return Err(UsageError(message).into());
        }
        let book = BookProject::read(folder, &context.book)?;
        let audits: Vec<_> =
            book.audits()?.into_iter().map(|(name, file, text)| (name, file, text.to_owned())).collect();
        Ok(audits.into_iter().try_fold(book, |book, (name, file, text)| with_audit(book, name, &file, text))?)
    }

    /// The suite of that name, else the one in that file.
    pub(super) fn suite(&self, path: &Path, book: &BookProject, context: &AppContext) -> anyhow::Result<Suite> {
        match path.to_str().and_then(|name| book.suite(name)) {
            Some((origin, text)) => {
                let folder = self.folder.as_ref().map(|folder| folder.join("suites"));
                Ok(Suite::parse_in(folder.as_deref(), text, &origin, &context.registry)?)
            }
            None if !is_missing(path) || path.extension().is_some() => Ok(Suite::read(path, &context.registry)?),
            None => {
                let (name, names): (_, Vec<&str>) = (&*path.to_string_lossy(), book.suites().collect());
                let (nearest, known) = (nearest(name, names.iter().copied()), names.join(", "));
                let message = format!("there is no suite `{name}` and no such file{nearest}; there are: {known}");
                Err(UsageError(message).into())
            }
        }
    }
}

/// The book with a chapter of an audit. What a reader can do leads to the chapter that explains it.
pub(super) fn with_audit(book: BookProject, name: String, file: &str, json: String) -> Result<BookProject, FileError> {
    let titles = book.titles();
    let link = |id: &str| match titles.get(id) {
        Some(title) => format!("<a href=\"{}.html\">{}</a>", escape(id), escape(title)),
        None => format!("<em>{}</em>", escape(id)),
    };
    let letters: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let content = AuditReport::parse(&json, file)?.to_chapter(&format!("audit-{letters}-longest"), &link);
    Ok(book.with_audit(AuditPage { name, json, content }))
}

/// Finds what is wrong with the documents, the templates and the pages, before anything is measured: a mistake in them must
/// not cost a run.
pub(crate) fn check(project: &BookProject, context: &AppContext) -> Result<(), BookError> {
    book::check(project, &recorded::catalog_of(project, &[], context))
}

/// Refuses a place where a book cannot be put, before anything is measured for it.
pub(super) fn check_place(project: &BookProject, out: &Path) -> anyhow::Result<()> {
    check_apart(project, out)?;
    Ok(book::check_place(out, book::BOOK)?)
}

/// Refuses a place within the course: what is written there would be read the next time.
pub(super) fn check_apart(project: &BookProject, out: &Path) -> Result<(), UsageError> {
    if !project.takes_in(out) {
        return Ok(());
    }
    let out = out.display();
    Err(UsageError(format!("{out}: what is made would become a part of the course; give another folder by --out")))
}

/// An error of making what its place was claimed for.
pub(super) fn unwritten(error: BookError) -> anyhow::Error {
    match error {
        BookError::Io { path, cause } => FileError::Unwritten { path, cause }.into(),
        error => error.into(),
    }
}

/// Renders the book of `all` into `out` and says where it is and how to open it.
pub(super) fn render(all: &[Results], project: &BookProject, out: &Path, context: &AppContext) -> anyhow::Result<()> {
    let rendered = book::render(all, project, &recorded::catalog_of(project, all, context), out);
    let rendered = rendered.map_err(unwritten)?;
    say!("book: {}", rendered.index.display());
    say!("to read it: {} serve {}", invocation(), argument(out));
    Ok(())
}
