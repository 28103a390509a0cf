//! Links from the first use of a term on a page to the glossary.
//!
//! The terms are those of the definition list in `src/glossary.md`. A term is linked where it stands in running text:
//! not in headings, links, code or HTML.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::present::escape;

/// The terms, the longest first: *device synchronize* is not a *device* first.
pub(super) struct Glossary(Vec<String>);

/// The page that the links lead to.
pub(super) const PAGE: &str = "glossary.md";

impl Glossary {
    /// The terms of a glossary's text.
    pub(crate) fn of(text: &str) -> Self {
        let (mut terms, mut within) = (Vec::new(), false);
        for event in Parser::new_ext(text, options()) {
            match event {
                Event::Start(Tag::DefinitionListTitle) => within = true,
                Event::End(TagEnd::DefinitionListTitle) => within = false,
                Event::Text(term) if within => terms.push(term.trim().to_lowercase()),
                _ => {}
            }
        }
        terms.sort_by_key(|term| std::cmp::Reverse(term.len()));
        Self(terms)
    }

    /// A page with the first use of each term linked.
    pub(super) fn linked(&self, page: &str) -> String {
        let mut links: Vec<(usize, usize, &str)> = Vec::new();
        let mut unused: Vec<&str> = self.0.iter().map(String::as_str).collect();
        // The elements that nothing is linked in, as they end.
        let mut closed: Vec<TagEnd> = Vec::new();
        for (event, range) in Parser::new_ext(page, options()).into_offset_iter() {
            match event {
                Event::Start(tag) if is_closed(&tag) => closed.push(tag.to_end()),
                Event::End(end) if closed.last() == Some(&end) => drop(closed.pop()),
                Event::Text(_) if closed.is_empty() => {
                    let text = page[range.clone()].to_lowercase();
                    // A letter whose other case is longer would shift what follows it.
                    if text.len() != range.len() {
                        continue;
                    }
                    unused.retain(|term| {
                        let used = uses(&text, term).find(|(at, end)| {
                            let (at, end) = (range.start + at, range.start + end);
                            links.iter().all(|(other, until, _)| end <= *other || at >= *until)
                                && !is_within_a_name(&page[..at], &page[end..])
                        });
                        if let Some((at, end)) = used {
                            links.push((range.start + at, range.start + end, *term));
                        }
                        used.is_none()
                    });
                }
                _ => {}
            }
        }
        links.sort_unstable();
        let (mut out, mut done) = (String::with_capacity(page.len()), 0);
        for (at, end, term) in links {
            let (before, words, anchor) = (&page[done..at], &page[at..end], term.replace(' ', "-"));
            out.push_str(&format!("{before}[{words}]({PAGE}#{anchor})"));
            done = end;
        }
        out.push_str(&page[done..]);
        out
    }
}

fn options() -> Options {
    Options::ENABLE_DEFINITION_LIST | Options::ENABLE_TABLES | Options::ENABLE_HEADING_ATTRIBUTES
}

fn is_closed(tag: &Tag<'_>) -> bool {
    matches!(
        tag,
        Tag::Heading { .. } | Tag::Link { .. } | Tag::CodeBlock(_) | Tag::Image { .. } | Tag::HtmlBlock | Tag::Table(_)
    )
}

/// Whether escaped signs join a word to a name: they part the text for the parser.
fn is_within_a_name(before: &str, after: &str) -> bool {
    let [line, hyphen, dot] = ["_", "-", "."].map(escape);
    let follows = |sign: &str| after.strip_prefix(sign).is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
    [&line, &hyphen, &dot].iter().any(|sign| before.ends_with(sign.as_str()) || follows(sign))
}

/// Where `term` stands in `text` as a word of its own, in the singular or the plural.
fn uses<'a>(text: &'a str, term: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let is_letter = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    text.match_indices(term).filter_map(move |(at, _)| {
        let mut end = at + term.len();
        if text[end..].starts_with('s') {
            end += 1;
        }
        // A dot between letters is one of a name, such as that of a measurement.
        let in_name =
            text[..at].ends_with('.') || text[end..].strip_prefix('.').is_some_and(|t| t.starts_with(is_letter));
        let alone = !in_name && !text[..at].ends_with(is_letter) && !text[end..].starts_with(is_letter);
        alone.then_some((at, end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: &str =
        "# Glossary\n\nhost\n: The processor.\n\ndevice\n: The GPU.\n\ndevice synchronize\n: A barrier.\n";

    #[test]
    fn the_first_use_of_a_term_is_linked_and_the_longest_term_wins() {
        let page = Glossary::of(TERMS).linked("Hosts call a device synchronize. The host waits for the device.\n");
        assert_eq!(
            page,
            "[Hosts](glossary.md#host) call a [device synchronize](glossary.md#device-synchronize). The host waits for \
             the [device](glossary.md#device).\n"
        );
    }

    #[test]
    fn headings_links_code_and_html_stay_as_they_are() {
        let page =
            "# host\n\n[host](a.md) `host` ghost a.host host.b\n\n<p title=\"host\">host</p>\n\n```sh\nhost\n```\n";
        assert_eq!(Glossary::of(TERMS).linked(page), page);
        for name in ["host_x", "x_host", "a-host", "host.b"] {
            let escaped = format!("{}\n", escape(name));
            assert_eq!(Glossary::of(TERMS).linked(&escaped), escaped);
        }
        assert_eq!(Glossary::of(TERMS).linked("host&#46;\n"), "[host](glossary.md#host)&#46;\n");
    }
}
