//! What a page may do in a browser, and the one place where mdBook's own script would let a title become markup.
//!
//! Each page states a Content-Security-Policy: styles, pictures and fonts of the site alone, nothing from elsewhere and
//! nothing sent anywhere. Of scripts only those run that this program put into the page, by a nonce, and those that these load. The
//! nonce is the digest of the page before it was there: the same in each rendering, and no page can hold it that was written
//! before. What a policy does not reach, a page does not hold: see [`markup`]. A reader that follows a link leaves these limits.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::folder::at;
use super::markup;
use crate::error::BookError;

/// mdBook puts the titles over a hit into the list as markup, and decodes them before: so any title is.
const TITLES: &str = "+ result.doc.breadcrumbs + '</a>'";
const TITLES_AS_TEXT: &str = "+ escapeHTML(result.doc.breadcrumbs) + '</a>'";

/// What a browser takes for a page by the ending of its name.
pub(super) const MARKUP: [&str; 2] = ["html", "htm"];
/// A page is read as what it was checked as, whatever it says of itself.
const ENCODING: &str = "<meta charset=\"utf-8\">";

/// What a page may do that a course has as it is.
const OF_FOREIGN: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; form-action 'none'";

/// Whose script elements of a page are.
#[derive(Clone, Copy)]
pub(super) enum Scripts {
    /// Those of its frame are mdBook's, or load the program's. What the page shows stands in `<main>` and has none.
    OfFrame,
    /// These words alone: a course may have written all others.
    Only(&'static str),
}

/// Makes the site's pages safe to open. `is_own` says of a path within the site whether it is a file of the book's own, as it
/// lay there, and no page of mdBook.
pub(super) fn apply(site: &Path, scripts: Scripts, is_own: impl Fn(&Path) -> bool) -> Result<(), BookError> {
    let (mut searched, mut escaped) = (false, false);
    each_file(site, &mut |path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let own = path.strip_prefix(site).is_ok_and(&is_own);
        if name.rsplit_once('.').is_some_and(|(_, ending)| MARKUP.contains(&ending)) {
            let page = fs::read_to_string(path).map_err(at(path))?;
            let page = match own {
                true => [&meta(OF_FOREIGN), ENCODING, &page].concat(),
                false => {
                    check(&page, scripts, path.strip_prefix(site).unwrap_or(path))?;
                    with_policy(&page, scripts)
                }
            };
            return fs::write(path, page).map_err(at(path));
        }
        searched |= name.starts_with("searchindex") && !own;
        if name.starts_with("searcher") && name.ends_with(".js") && !own {
            escaped = true;
            let script = fs::read_to_string(path).map_err(at(path))?;
            if script.matches(TITLES).count() != 1 {
                return Err(unknown_search());
            }
            return fs::write(path, script.replace(TITLES, TITLES_AS_TEXT)).map_err(at(path));
        }
        Ok(())
    })?;
    if searched && !escaped { Err(unknown_search()) } else { Ok(()) }
}

/// What a course wrote was looked at before this page was made of it; how it was made is another program's.
fn check(page: &str, scripts: Scripts, name: &Path) -> Result<(), BookError> {
    let foreign = match scripts {
        Scripts::OfFrame => shown(page).map_or("", |(start, end)| &page[start..end]),
        Scripts::Only(_) => page,
    };
    match markup::refusal(foreign) {
        Some(message) => Err(BookError::Reference { page: name.display().to_string(), message }),
        None => Ok(()),
    }
}

/// Where that begins and ends what a page of mdBook shows: between the first and the last of these.
fn shown(page: &str) -> Option<(usize, usize)> {
    page.find("<main").zip(page.rfind("</main>")).filter(|(start, end)| start < end)
}

fn unknown_search() -> BookError {
    let message = "its search is not the one that is known: titles in it could not be escaped".to_owned();
    BookError::Build { message }
}

/// Calls `act` with each file below a folder.
pub(super) fn each_file(folder: &Path, act: &mut impl FnMut(&Path) -> Result<(), BookError>) -> Result<(), BookError> {
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        if path.is_dir() { each_file(&path, act)? } else { act(&path)? }
    }
    Ok(())
}

/// The page with its policy, before anything that it could apply to.
fn with_policy(page: &str, scripts: Scripts) -> String {
    let nonce = STANDARD.encode(Sha256::digest(page.as_bytes()));
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}' 'strict-dynamic'; style-src 'self' 'unsafe-inline'; \
         img-src 'self' data:; font-src 'self'; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'"
    );
    let begin = format!("<script nonce=\"{nonce}\"");
    let named = |part: &str| {
        ["<script>", "<script src="]
            .iter()
            .fold(part.to_owned(), |part, open| part.replace(open, &open.replacen("<script", &begin, 1)))
    };
    let page = match scripts {
        Scripts::Only(element) => page.replace(element, &named(element)),
        Scripts::OfFrame => match shown(page) {
            Some((start, end)) => [&named(&page[..start]), &page[start..end], &named(&page[end..])].concat(),
            None => named(page),
        },
    };
    let at = place(&page);
    [&page[..at], &meta(&policy), ENCODING, &page[at..]].concat()
}

/// Where the policy stands: in the head where that is the first thing of a page, and else before everything.
fn place(page: &str) -> usize {
    const HEAD: &str = "<head>";
    let Some(head) = page.find(HEAD) else { return 0 };
    let mut before = page[..head].to_lowercase();
    before.retain(|c| !c.is_whitespace());
    let is_first = before.strip_prefix("<!doctypehtml>").unwrap_or(&before).strip_prefix("<html");
    if is_first.is_some_and(|rest| rest.find('>') == Some(rest.len() - 1)) { head + HEAD.len() } else { 0 }
}

/// The element that states a policy. Where no head has begun, it begins one.
fn meta(policy: &str) -> String {
    format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<html><head></head><script>frame()</script><main><script>foreign()</script>\
                        <script src=\"x.txt\"></script></main> <script>foreign()</script></main>\
                        <script src=\"own.js\"></script></html>";

    /// The elements of a page that its policy lets run.
    fn run(page: &str) -> Vec<&str> {
        let nonce = page.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
        assert!(!page.contains("script-src 'self'") && !page.contains("unsafe-eval"), "{page}");
        let begin = format!("<script nonce=\"{nonce}\"");
        page.split(&begin).skip(1).map(|rest| rest.split("</script>").next().unwrap()).collect()
    }

    #[test]
    fn scripts_of_the_frame_run_and_those_of_the_content_do_not() {
        let page = with_policy(PAGE, Scripts::OfFrame);
        assert_eq!(run(&page), [">frame()", " src=\"own.js\">"]);
        assert!(page.find("Content-Security-Policy") < page.find("<script"), "{page}");
    }

    #[test]
    fn of_a_frame_that_a_course_may_have_written_the_named_script_alone_runs() {
        let page = with_policy(PAGE, Scripts::Only("<script src=\"own.js\"></script>"));
        assert_eq!(run(&page), [" src=\"own.js\">"]);
    }

    #[test]
    fn nothing_stands_before_the_policy_that_it_could_apply_to() {
        for (page, begin) in [
            (
                "<!DOCTYPE HTML>\n<html lang=\"en\">\n  <head><title>",
                "<!DOCTYPE HTML>\n<html lang=\"en\">\n  <head><meta http",
            ),
            ("<html><!-- <head> --><script>foreign()</script>", "<meta http"),
            ("<html x='><script>foreign()</script>'><head>", "<meta http"),
            ("<script>foreign()</script>", "<meta http"),
        ] {
            let page = with_policy(page, Scripts::Only("<script src=\"own.js\"></script>"));
            assert!(page.starts_with(begin), "{page}");
        }
    }

    #[test]
    fn a_page_that_holds_the_nonce_of_another_has_another() {
        let first = with_policy(PAGE, Scripts::OfFrame);
        let nonce = first.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
        let page = PAGE.replacen("<script src=\"x.txt\"", &format!("<script nonce=\"{nonce}\" src=\"x.txt\""), 1);
        assert_eq!(run(&with_policy(&page, Scripts::OfFrame)).len(), 2);
    }
}
