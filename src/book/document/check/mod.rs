//! What the shape of a document file cannot say: that names are unique, and that every name stands for something.

mod at;
mod claim;
mod figure;
mod sentence;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use at::At;

use super::{Document, Language, is_taken};
use crate::error::FileError;
use crate::results::nearest;

/// Nothing, or what is wrong and where.
type Check = Result<(), FileError>;

/// Finds the first contradiction in a document.
pub(super) fn check(document: &Document, origin: &str, text: &str) -> Check {
    let top = At::of(document, origin, text);
    check_name(&top.key("id"), &document.id)?;
    if is_taken(&document.id, &document.names.pages) {
        let what = format!("the book has a page `{}` of its own: a chapter takes another name", document.id);
        return top.key("id").refuse(what);
    }
    check_source(&top)?;
    check_listings(&top)?;
    check_anchors(&top)?;
    table::check(&top)?;
    figure::check(&top)?;
    claim::check(&top)?;
    sentence::check(&top)?;
    sentence::check_lesson(&top)
}

/// Finds what two documents of a course may not share.
pub(super) fn check_beside(document: &Document, others: &[Document], origin: &str, text: &str) -> Check {
    let top = At::of(document, origin, text);
    if let Some(other) = others.iter().find(|other| other.id == document.id) {
        return top.key("id").refuse(format!("another file has the document `{}`, too", other.id));
    }
    if let Some(other) = others.iter().find(|other| other.order == document.order) {
        return top.key("order").refuse(format!("the document `{}` has the order {}, too", other.id, other.order));
    }
    Ok(())
}

/// A listing is a file of the book, and the only one in its language.
fn check_listings(top: &At<'_>) -> Check {
    let (listings, files) = (&top.document.listings, &top.document.names.files);
    for (place, (at, name)) in top.each("listings", listings).enumerate() {
        at.known(name, files.iter().map(String::as_str), format!("the book has no file `{name}` in `src`"))?;
        let Some(language) = Language::of(name) else {
            return at.refuse(format!("`{name}` does not end with the {}", Language::endings()));
        };
        if listings[..place].iter().any(|other| Language::of(other) == Some(language)) {
            return at.refuse(format!("another listing is in {}, too", language.name));
        }
    }
    Ok(())
}

/// A text that the project does not name is cited by its file; one that is nearly named is a mistake.
fn check_source(top: &At<'_>) -> Check {
    let Some(file) = top.document.source.as_deref() else { return Ok(()) };
    let texts = &top.document.names.texts;
    match nearest(file, texts.files()) {
        hint if hint.is_empty() || texts.of_file(file).is_some() => Ok(()),
        hint => top.key("source").refuse_for(format!("the project has no text in the file `{file}`"), hint),
    }
}

/// Tables, figures and claims are anchors of one page: each identifier is a name, and there once.
fn check_anchors(top: &At<'_>) -> Check {
    let Document { tables, figures, claims, .. } = top.document;
    let tables = top.each("tables", tables).map(|(at, table)| ("table", at, &table.id));
    let figures = top.each("figures", figures).map(|(at, figure)| ("figure", at, &figure.id));
    let claims = top.each("claims", claims).map(|(at, claim)| ("claim", at, &claim.id));
    let mut taken = BTreeSet::new();
    for (what, at, id) in tables.chain(figures).chain(claims) {
        check_name(&at.key("id"), id)?;
        if !taken.insert(id) {
            return at.key("id").refuse(format!("{what} `{id}` has the name of another table, figure or claim"));
        }
    }
    Ok(())
}

/// An identifier can be the name of a file and an anchor.
fn check_name(at: &At<'_>, id: &str) -> Check {
    let is_name = !id.is_empty() && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if is_name { Ok(()) } else { at.refuse(format!("`{id}` is no identifier: lower-case letters, digits and hyphens")) }
}
