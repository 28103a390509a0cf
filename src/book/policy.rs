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

use super::project::at;
use crate::error::BookError;

/// mdBook puts the titles over a hit into the list as markup, and decodes them before: so any title is.
const TITLES: &str = "+ result.doc.breadcrumbs + '</a>'";
const TITLES_AS_TEXT: &str = "+ escapeHTML(result.doc.breadcrumbs) + '</a>'";

/// Makes the site's pages safe to open.
pub(super) fn apply(site: &Path) -> Result<(), BookError> {
    let mut searchers = 0;
    each_file(site, &mut |path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".html") {
            let page = fs::read_to_string(path).map_err(at(path))?;
            return fs::write(path, with_policy(&page)).map_err(at(path));
        }
        if name.starts_with("searcher") && name.ends_with(".js") {
            searchers += 1;
            let script = fs::read_to_string(path).map_err(at(path))?;
            if script.matches(TITLES).count() != 1 {
                let message = format!("{name} is not the search that is known: titles in it could not be escaped");
                return Err(BookError::Build { message });
            }
            return fs::write(path, script.replace(TITLES, TITLES_AS_TEXT)).map_err(at(path));
        }
        Ok(())
    })
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
    let meta = format!("{HEAD}\n<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">");
    page.replacen(HEAD, &meta, 1)
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
