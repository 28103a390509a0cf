//! What a page may do in a browser, and the one place where mdBook's own script would let a title become markup.
//!
//! Each page states a Content-Security-Policy: styles, pictures, fonts and scripts of the site alone, nothing from
//! elsewhere and nothing sent anywhere. Of scripts within the page only those of its frame run, by their hash; a page's own
//! content stands in `<main>` and has none.

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

/// What a browser takes for a page by its name.
const MARKUP: [&str; 5] = [".html", ".htm", ".xhtml", ".xht", ".shtml"];

/// Makes the site's pages safe to open. `is_own` says of a path within the site whether it is a file of the book's own, as it
/// lay there, and no page of mdBook.
pub(super) fn apply(site: &Path, is_own: impl Fn(&Path) -> bool) -> Result<(), BookError> {
    let (mut searched, mut escaped) = (false, false);
    each_file(site, &mut |path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let own = path.strip_prefix(site).is_ok_and(&is_own);
        if MARKUP.iter().any(|ending| name.ends_with(ending)) {
            let page = fs::read(path).map_err(at(path))?;
            let page = match std::str::from_utf8(&page) {
                Ok(page) if !own => with_policy(page).into_bytes(),
                _ => [meta("default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:").as_bytes(), &page]
                    .concat(),
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

fn unknown_search() -> BookError {
    let message = "its search is not the one that is known: titles in it could not be escaped".to_owned();
    BookError::Build { message }
}

fn each_file(folder: &Path, act: &mut impl FnMut(&Path) -> Result<(), BookError>) -> Result<(), BookError> {
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        if path.is_dir() { each_file(&path, act)? } else { act(&path)? }
    }
    Ok(())
}

/// The page with its policy, before anything that it could apply to.
fn with_policy(page: &str) -> String {
    const HEAD: &str = "<head>";
    // What a page shows stands between the first and the last of these.
    let frame = match (page.find("<main"), page.rfind("</main>")) {
        (Some(start), Some(end)) if start < end => [&page[..start], &page[end..]],
        _ => [page, ""],
    };
    let mut hashes: Vec<String> = frame.iter().flat_map(|part| scripts(part)).map(hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    let policy = format!(
        "default-src 'none'; script-src 'self'{}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
         font-src 'self'; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'",
        hashes.concat()
    );
    page.replacen(HEAD, &format!("{HEAD}\n{}", meta(&policy)), 1)
}

/// The element that states a policy. Where no head has begun, it begins one.
fn meta(policy: &str) -> String {
    format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">")
}

/// The scripts that stand in the page itself.
fn scripts(part: &str) -> Vec<&str> {
    let found = part.split("<script>").skip(1);
    found.filter_map(|rest| rest.split_once("</script>").map(|(script, _)| script)).collect()
}

fn hash(script: &str) -> String {
    format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(script.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_the_frame_run_and_those_of_the_content_do_not() {
        let page = "<html><head></head><script>frame()</script><main><script>foreign()</script></main> \
                    <script>foreign()</script></main><script>end()</script></html>";
        let page = with_policy(page);
        for (script, runs) in [("frame()", true), ("end()", true), ("foreign()", false)] {
            assert_eq!(page.contains(hash(script).trim()), runs, "{script}");
        }
        assert!(page.find("Content-Security-Policy") < page.find("<script>"), "{page}");
    }
}
