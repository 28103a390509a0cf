//! Placeholders for the pictures and the tables of values of a book's pages, which mdBook does not read.

use std::collections::BTreeSet;
use std::path::Path;

use super::folder::has_ending;
use super::policy;
use super::source::Source;
use crate::error::BookError;

/// The pictures and the tables of values of all pages, which mdBook is not to read: their numbers would be a large part of the
/// index that a search loads. Each of their words is searched for once.
#[derive(Default)]
pub(super) struct Placeholders(Vec<String>);

impl Placeholders {
    /// How they begin and end.
    const KINDS: [(&str, &str); 2] = [("<svg class=\"plot\" ", "</svg>"), ("<table class=\"results\">", "</table>")];
    const PLACE: &str = "<svg data-aside=\"";

    /// A page with a small element in the place of each.
    pub(super) fn taken_from(&mut self, page: &str) -> String {
        let mut out = String::with_capacity(page.len());
        // Of a kind whose end does not come again there are no more: no part of a page is looked at for each that begins.
        let mut kinds = Self::KINDS.to_vec();
        let (mut done, mut at) = (0, 0);
        while let Some(start) = page[at..].find('<').map(|next| at + next) {
            at = start + 1;
            let Some(kind) = kinds.iter().position(|(begin, _)| page[start..].starts_with(begin)) else { continue };
            let (_, end) = kinds[kind];
            let Some(length) = page[start..].find(end) else {
                kinds.remove(kind);
                continue;
            };
            at = start + length + end.len();
            let aside = &page[start..at];
            let place = format!("{}{}\"><desc>{}</desc></svg>", Self::PLACE, self.0.len(), words(aside));
            out.extend([&page[done..start], &place]);
            self.0.push(plain(&aside.replace(SPOKEN, "")));
            done = at;
        }
        out + &page[done..]
    }

    /// Puts them back into the pages of the site that mdBook made.
    pub(super) fn put_back(&self, source: &Source, site: &Path) -> Result<(), BookError> {
        policy::each_file(site, &mut |path| {
            let is_copied = path.strip_prefix(site).is_ok_and(|path| source.is_copied(path));
            if is_copied || !has_ending(path, "html") {
                return Ok(());
            }
            policy::rewrite(path, |page| Ok(self.put_into(&page)))
        })
    }

    fn put_into(&self, page: &str) -> String {
        let mut parts = page.split(Self::PLACE);
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let number = part.split_once("\">").and_then(|(number, _)| self.0.get(number.parse::<usize>().ok()?));
            match number.zip(part.split_once("</svg>")) {
                Some((aside, (_, behind))) => out.extend([aside, behind]),
                None => out.extend([Self::PLACE, part]),
            }
        }
        out
    }
}

/// What a screen reader says before an interval. Of a site, the style sheet says it: the element would stand there thousands of times.
const SPOKEN: &str = "<span class=\"spoken\">95 % interval: </span>";

/// The words of a picture or table, each once: no tags, entities, numbers and what is too short to be searched for.
fn words(markup: &str) -> String {
    let text = markup.split('<').flat_map(|part| part.split_once('>').map(|(_, text)| text));
    let parts = text.flat_map(|text| {
        text.split('&').enumerate().map(|(place, part)| match part.split_once(';') {
            Some((_, behind)) if place > 0 => behind,
            _ => part,
        })
    });
    let words = parts.flat_map(|part| part.split(|char: char| !char.is_alphanumeric() && char != '_'));
    let searched = words.filter(|word| word.chars().count() > 2 && word.starts_with(char::is_alphabetic));
    let mut seen = BTreeSet::new();
    let once: Vec<&str> = searched.filter(|word| seen.insert(word.to_lowercase())).collect();
    once.join(" ")
}

/// A picture or table with the characters themselves in the place of entities, but for those that HTML reads as its own.
fn plain(markup: &str) -> String {
    let mut parts = markup.split("&#");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let found = part.split_once(';').and_then(|(number, behind)| Some((number.parse::<u8>().ok()?, behind)));
        match found.filter(|(byte, _)| byte.is_ascii_punctuation() && !b"\"&'<>".contains(byte)) {
            Some((byte, behind)) => {
                out.push(char::from(byte));
                out.push_str(behind);
            }
            None => out.extend(["&#", part]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_aside_is_put_back_where_it_was_and_nothing_else_is_taken_for_it() {
        let page = "a <svg class=\"plot\" viewBox=\"0\"><text>word</text></svg> b <svg>own</svg> \
                    <table class=\"results\"><tr><td>1&#46;5 row</td></tr></table> <svg class=\"plot\" id=\"2\"></svg>";
        let mut places = Placeholders::default();
        let without = places.taken_from(page);
        assert!(!without.contains("1&#46;5") && without.contains("<svg>own</svg>"), "{without}");
        assert!(without.contains("<desc>word</desc>") && without.contains("<desc>row</desc>"), "{without}");
        assert_eq!(places.put_into(&without), page.replace("&#46;", "."));
        assert_eq!(plain("&#40;a&#41; &#60;b&#62; &#38;amp; &#300; &#x"), "(a) &#60;b&#62; &#38;amp; &#300; &#x");
        let foreign = "<svg data-aside=\"9\"></svg> <svg data-aside=\"x";
        assert_eq!(places.put_into(foreign), foreign);
    }

    #[test]
    fn the_words_of_a_picture_are_those_that_a_reader_searches_for_each_once() {
        let picture =
            "<svg a=\"no\"><text>cuMemAlloc&#44; 4 KiB</text><text>Waits, waits of record_stream 12.5 µs</text></svg>";
        assert_eq!(words(picture), "cuMemAlloc KiB Waits record_stream");
    }

    #[test]
    fn of_elements_that_do_not_end_and_of_many_that_do_each_is_looked_at_once() {
        let (open, one) = ("<svg class=\"plot\" ", "<svg class=\"plot\" x></svg>");
        let mut places = Placeholders::default();
        // One after the other from the page's begin this would take hours.
        let page = [one.repeat(100_000), open.repeat(300_000)].concat();
        let without = places.taken_from(&page);
        assert!(places.0.len() == 100_000 && without.ends_with(open));
        assert_eq!(places.put_into(&without), page);
    }
}
