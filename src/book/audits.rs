//! Audits as chapters: where a program waited.

use std::collections::BTreeSet;

use super::project::AuditPage;
use crate::present::escape;

/// The names of the pages of audits: none is one of `taken`.
pub(super) fn names(audits: &[AuditPage], taken: &BTreeSet<String>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for audit in audits {
        let letters = audit.name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
        let mut name = format!("audit-{}", letters.collect::<String>());
        while taken.contains(&name) || names.contains(&name) {
            name.push_str("-2");
        }
        names.push(name);
    }
    names
}

/// The heading of an audit's page.
pub(super) fn title(audit: &AuditPage) -> String {
    format!("Audit: {}", audit.name)
}

/// The chapter as Markdown, which has this name. Links to chapters that this book leaves out are their words alone.
pub(super) fn chapter<'a>(audit: &AuditPage, name: &str, left_out: impl Iterator<Item = &'a String>) -> String {
    let unlinked = |content: String, id: &String| {
        let link = format!("<a href=\"{}.html\">", escape(id));
        let mut parts = content.split(&link);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |out, part| out + &part.replacen("</a>", "", 1))
    };
    let content = left_out.fold(audit.content.clone(), unlinked);
    let title = escape(&title(audit));
    format!("# {title}\n\n{content}<p class=\"source\"><a href=\"{name}.json\" download>The audit (JSON)</a></p>\n")
}
