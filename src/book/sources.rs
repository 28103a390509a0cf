//! The page of sources: the texts, and where peak rates come from.

use minijinja::{Value, context};

use super::document::{Document, Hardware};
use super::templates::Templates;
use crate::error::BookError;

/// The page as Markdown.
pub(super) fn render(
    templates: &Templates<'_>,
    documents: &[Document],
    hardware: &Hardware,
) -> Result<String, BookError> {
    let texts = documents.iter().filter_map(|document| {
        let (id, title, gpu) = (document.id.as_str(), document.title.as_str(), document.gpu.as_deref());
        let (text, source) = (document.cited()?, document.source.as_deref());
        Some(context! { id, title, source, text, gpu })
    });
    let chips = hardware.chips().map(|chip| context! { model => chip.model.as_str(), source => chip.source.as_str() });
    let context = context! { documents => texts.collect::<Vec<Value>>(), chips => chips.collect::<Vec<Value>>() };
    templates.render("sources.md.j2", context)
}
