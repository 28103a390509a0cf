//! What a course's markup may hold: pages in HTML, and the HTML in its prose.
//!
//! The policy of a page lets it load files of the site alone, and no script that is not the program's. Beyond a policy are a page
//! that leads elsewhere by itself, and links by which a browser asks other hosts before a reader does. Their names cannot be
//! written in another way, so that they are looked for wherever a tag could begin, whatever a browser makes of what stands before.

/// The links that the program's own frame of slides has.
const OWN_LINKS: [&str; 2] =
    ["<link rel=\"stylesheet\" href=\"syncscope.css\">", "<link rel=\"stylesheet\" href=\"slides.css\">"];
/// The most attributes of an element: reading takes as long as their square.
const MOST_ATTRIBUTES: usize = 256;

/// Why markup is refused.
pub(super) fn refusal(markup: &str) -> Option<String> {
    let markup = OWN_LINKS.iter().fold(markup.to_ascii_lowercase(), |markup, own| markup.replace(own, ""));
    let refused = |what: &str| Some(format!("a course's page may not have {what}: take it away"));
    each_tag(&markup, |name, attributes| match name {
        "link" => refused("an element `link`, by which a browser asks other hosts"),
        "base" => refused("an element `base`, by which its links lead elsewhere"),
        "meta" if attributes.contains(&"http-equiv") => {
            refused("an element `meta` with `http-equiv`, by which it can lead elsewhere by itself")
        }
        _ if attributes.contains(&"srcdoc") => refused("an attribute `srcdoc`, which is a page of its own"),
        _ => None,
    })
}

/// How the places are called that the attributes `id` of markup name, and what could be taken for one.
pub(super) fn identifiers(markup: &str) -> impl Iterator<Item = String> {
    const LONGEST: usize = 256;
    let is_apart = |at: usize| markup[..at].ends_with(|c: char| c.is_whitespace() || "/\"'".contains(c));
    let starts = markup.match_indices("id").filter(move |(at, _)| is_apart(*at));
    starts.filter_map(|(at, name)| {
        let value = markup[at + name.len()..].trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''));
        let is_end = |c: char| quote.map_or(c.is_whitespace() || c == '>', |quote| c == quote);
        Some(value.chars().skip(usize::from(quote.is_some())).take(LONGEST).take_while(|c| !is_end(*c)).collect())
    })
}

/// Which limit markup passes.
pub(super) fn beyond_limits(markup: &str) -> Option<String> {
    each_tag(markup, |_, _| None)
}

/// Why a tag is refused, by `why` of its name and the names of its attributes, or by a limit. A tag is looked at wherever one
/// could begin, in comments and in values, too: so none can hide.
fn each_tag(markup: &str, why: impl Fn(&str, &[&str]) -> Option<String>) -> Option<String> {
    // Tags that do not begin within each other are looked at once.
    let mut left = 4 * markup.len();
    for (at, _) in markup.match_indices('<') {
        let tag = &markup[at + 1..];
        if !tag.starts_with(|c: char| c.is_ascii_alphabetic() || "/_:".contains(c) || !c.is_ascii()) {
            continue;
        }
        let Tag { name, attributes, length } = Tag::at(tag);
        if attributes.len() > MOST_ATTRIBUTES {
            return Some(format!("an element has more than {MOST_ATTRIBUTES} attributes"));
        }
        if let Some(message) = why(name, &attributes) {
            return Some(message);
        }
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return Some("its tags begin within each other".to_owned()),
        }
    }
    None
}

/// A tag, as HTML has it (<https://html.spec.whatwg.org/multipage/parsing.html#tokenization>).
struct Tag<'a> {
    name: &'a str,
    /// Their names; of more than may be, one more.
    attributes: Vec<&'a str>,
    /// How many bytes were looked at.
    length: usize,
}

impl<'a> Tag<'a> {
    /// The tag behind a `<`.
    fn at(text: &'a str) -> Self {
        let is_apart = |c: char| c.is_ascii_whitespace() || c == '/';
        let end_of = |from: usize, is_end: &dyn Fn(char) -> bool| {
            text[from..].find(is_end).map_or(text.len(), |length| from + length)
        };
        let mut at = end_of(0, &|c| is_apart(c) || c == '>');
        let (name, mut attributes) = (&text[..at], Vec::new());
        loop {
            let start = end_of(at, &|c| !is_apart(c));
            let first = text[start..].chars().next().filter(|first| *first != '>');
            let Some(first) = first.filter(|_| attributes.len() <= MOST_ATTRIBUTES) else {
                return Self { name, attributes, length: start };
            };
            // The first sign of a name may be any.
            let end = end_of(start + first.len_utf8(), &|c| is_apart(c) || matches!(c, '=' | '>'));
            attributes.push(&text[start..end]);
            at = end_of(end, &|c| !c.is_ascii_whitespace());
            let Some(value) = text[at..].strip_prefix('=') else { continue };
            at = end_of(text.len() - value.len(), &|c| !c.is_ascii_whitespace());
            at = match text[at..].chars().next() {
                Some(quote @ ('"' | '\'')) => (end_of(at + 1, &|c| c == quote) + 1).min(text.len()),
                _ => end_of(at, &|c| c.is_ascii_whitespace() || c == '>'),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_leads_nowhere_by_itself_and_lets_a_browser_ask_no_other_host() {
        for markup in [
            "<meta charset=\"utf-8\"><meta name=viewport content=x><p>a link, a base</p><linked><basefont>",
            "<LINK rel=\"stylesheet\" href=\"slides.css\">",
            "a < b, c <= d, <code>&lt;meta http-equiv=x> srcdoc</code> <p title='http-equiv'>",
        ] {
            assert_eq!(refusal(markup), None, "{markup}");
        }
        for markup in [
            "<meta http-equiv=refresh content='0;url=http://x'>",
            "<META\nContent=x hTTp-Equiv = 'refresh'>",
            "<!-- --!><meta/http-equiv=refresh>-->",
            "<style><!--</style><meta http-equiv=refresh>-->",
            "<link rel=preconnect href=//x>",
            "<LINK/rel=prefetch href=//x>",
            "<link\u{c}rel=dns-prefetch href=//x>",
            "<a title=\"<link rel=prerender>\">",
            "<base href=//x>",
            "<iframe srcdoc='&lt;link rel=preconnect href=//x>'>",
            "<link rel=\"stylesheet\" href=\"slides.css\" ping>",
        ] {
            assert!(refusal(markup).is_some(), "{markup}");
        }
    }

    #[test]
    fn an_element_has_so_many_attributes_at_most_wherever_it_stands() {
        let many = |sign: &str| (0..300).map(|number| format!(" a{number}{sign}")).collect::<String>();
        for markup in [
            format!("<div{}>", many("=\"\"")),
            format!("<div {}>", many("=\">\"").replace(' ', "")),
            format!("<div{}>", many("/")),
            format!("<div{}>", many("/").replace(' ', "/")),
            format!("<div x=y' {} z=y'>", many("")),
            format!("<!-- <a b=\" --><div{}>", many("")),
            format!("<script><!--<script></script><a b=\"</script><div{}>", many("= \">\"")),
            format!("</div{}>", many("")),
        ] {
            assert!(refusal(&markup).is_some_and(|why| why.contains("more than 256 attributes")), "{markup}");
        }
        let table = "<tr data-id=\"a > b\" class='c'><td title=\"1\">1</td></tr>\n".repeat(20_000);
        assert_eq!(refusal(&format!("{table}<div{}>", " a".repeat(200))), None);
        for markup in ["<a<", "<a b=", "<a='", "<a"] {
            let why = refusal(&markup.repeat(20_000));
            assert!(why.is_some(), "{markup}: {why:?}");
        }
    }
}
