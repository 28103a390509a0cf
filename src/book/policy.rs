//! What a page may do in a browser, and the one place where mdBook's own script would let a title become markup.
//!
//! Results, audits and notebooks may be anybody's, and a page shows them: nothing of theirs runs. Each page states a
//! Content-Security-Policy: styles, pictures and fonts of the site alone, nothing from elsewhere and nothing sent anywhere.
//! Scripts run by a nonce that the elements of a page's frame have: they are mdBook's, or files that `book.toml` names. What a page
//! shows stands in `<main>`, and has none. The nonce is the digest of the page before it was there: the same in each
//! rendering, and nothing can hold it that was written before.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::folder::at;
use crate::error::BookError;

/// mdBook puts the titles over a hit into the list as markup, and decodes them before: so any title is.
const TITLES: &str = "+ result.doc.breadcrumbs + '</a>'";
const TITLES_AS_TEXT: &str = "+ escapeHTML(result.doc.breadcrumbs) + '</a>'";

/// Makes the pages safe to open that mdBook or a template made. `is_own` says of a path within the site whether it is a file of
/// the course's own, which stays as it is.
pub(super) fn apply(site: &Path, is_own: impl Fn(&Path) -> bool) -> Result<(), BookError> {
    let (mut searched, mut escaped) = (false, false);
    each_file(site, &mut |path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.strip_prefix(site).is_ok_and(&is_own) {
            return Ok(());
        }
        if name.ends_with(".html") {
            return rewrite(path, |page| Ok(with_policy(&page)));
        }
        searched |= name.starts_with("searchindex");
        if name.starts_with("searcher") && name.ends_with(".js") {
            escaped = true;
            return rewrite(path, |script| match script.matches(TITLES).count() {
                1 => Ok(script.replace(TITLES, TITLES_AS_TEXT)),
                _ => Err(unknown_search()),
            });
        }
        Ok(())
    })?;
    if searched && !escaped { Err(unknown_search()) } else { Ok(()) }
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

/// Puts what is made of its text in the place of a file.
pub(super) fn rewrite(path: &Path, made: impl FnOnce(String) -> Result<String, BookError>) -> Result<(), BookError> {
    let text = fs::read_to_string(path).map_err(at(path))?;
    fs::write(path, made(text)?).map_err(at(path))
}

/// The page with its policy, in the head before anything that it could apply to.
fn with_policy(page: &str) -> String {
    const HEAD: &str = "<head>";
    let nonce = STANDARD.encode(Sha256::digest(page.as_bytes()));
    let begin = format!("<script nonce=\"{nonce}\"");
    let with_nonce = |part: String, open: &&str| part.replace(open, &open.replacen("<script", &begin, 1));
    let named = |part: &str| ["<script>", "<script src="].iter().fold(part.to_owned(), with_nonce);
    // What the page shows is between the first and the last of these.
    let shown = page.find("<main").zip(page.rfind("</main>")).filter(|(start, end)| start < end);
    let page = match shown {
        Some((start, end)) => [&named(&page[..start]), &page[start..end], &named(&page[end..])].concat(),
        None => named(page),
    };
    let at = page.find(HEAD).map_or(0, |head| head + HEAD.len());
    let policy = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'nonce-{nonce}' 'strict-dynamic'; \
         style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; frame-src 'self'; \
         base-uri 'none'; form-action 'none'\"><meta charset=\"utf-8\">"
    );
    [&page[..at], &policy, &page[at..]].concat()
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
        let page = with_policy(PAGE);
        assert_eq!(run(&page), [">frame()", " src=\"own.js\">"]);
        assert!(page.find("Content-Security-Policy") < page.find("<script"), "{page}");
    }

    #[test]
    fn a_page_that_holds_the_nonce_of_another_has_another() {
        let first = with_policy(PAGE);
        let nonce = first.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
        let page = PAGE.replacen("<script src=\"x.txt\"", &format!("<script nonce=\"{nonce}\" src=\"x.txt\""), 1);
        assert_eq!(run(&with_policy(&page)).len(), 2);
    }
}
