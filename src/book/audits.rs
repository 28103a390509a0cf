//! Audits as chapters: where a program waited, from the files that `report audit --json` wrote.

use std::collections::{BTreeMap, BTreeSet};

use super::project::{AUDITS, BookProject};
use crate::audit::{self, AuditReport, PageParts};
use crate::error::BookError;
use crate::present::escape;

/// An audit of a project.
pub(super) struct AuditChapter {
    /// The name of its page.
    pub(crate) name: String,
    /// The heading of its page.
    pub(super) title: String,
    /// The audit's own text, and its path within the project.
    pub(crate) text: String,
    pub(crate) path: String,
    report: AuditReport,
}

/// The audits of a project, in the order of their names. Their pages have no name of `taken`.
///
/// # Errors
/// A file is no audit, or contradicts itself; the message names it.
pub(crate) fn of(project: &BookProject, taken: &BTreeSet<String>) -> Result<Vec<AuditChapter>, BookError> {
    let mut audits: Vec<AuditChapter> = Vec::new();
    for (path, _) in project.below(AUDITS).filter(|(path, _)| path.extension().is_some_and(|ending| ending == "json")) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let path = path.display().to_string();
        let text = project.text(&path)?.to_owned();
        let report = AuditReport::parse(&text, &project.name(path.as_ref()))?;
        let letters = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
        let mut name = format!("audit-{}", letters.collect::<String>());
        while taken.contains(&name) || audits.iter().any(|other| other.name == name) {
            name.push_str("-2");
        }
        audits.push(AuditChapter { name, title: format!("Audit: {stem}"), text, path, report });
    }
    Ok(audits)
}

impl AuditChapter {
    /// The chapter as Markdown. `titles` are those of the book's chapters, by their identifiers: what a reader can do leads to
    /// the one that explains it.
    pub(super) fn chapter(&self, titles: &BTreeMap<String, String>) -> String {
        let link = |id: &str| match titles.get(id) {
            Some(title) => format!("<a href=\"{}.html\">{}</a>", escape(id), escape(title)),
            None => format!("<em>{}</em>", escape(id)),
        };
        let name = &self.name;
        let PageParts { first, others } = audit::parts(&self.report, &format!("{name}-longest"), &link);
        let mut text = format!("# {}\n\n{first}\n", escape(&self.title));
        for (heading, content) in others {
            text.push_str(&format!("## {heading}\n\n{content}\n"));
        }
        text + &format!("<p class=\"source\"><a href=\"{name}.json\" download>The audit (JSON)</a></p>\n")
    }
}
