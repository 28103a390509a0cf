//! Takes out of a site what mdBook puts into it and no reader sees: the nodes of the search index at which no word ends and
//! the long decimals in it, the indentation and the comments around each page, the fonts that nothing is set in.

use std::fs;
use std::path::{Path, PathBuf};

use super::folder::at;
use crate::error::BookError;

/// Slims the files that are mdBook's. `is_own` says of a path within the site whether it is a file of the book's own.
pub(super) fn apply(site: &Path, is_own: impl Fn(&Path) -> bool) -> Result<(), BookError> {
    for path in of_mdbook(site, site, &is_own)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".html") {
            rewrite(&path, slim_frame)?;
        } else if name.starts_with("searchindex") {
            rewrite(&path, |index| without_inner_nodes(&with_short_weights(index)))?;
        }
    }
    let fonts = site.join("fonts");
    if !fonts.is_dir() {
        return Ok(());
    }
    for path in of_mdbook(site, &fonts, &is_own)? {
        if path.extension().is_some_and(|ending| ending == "css") {
            let mut unused = Vec::new();
            rewrite(&path, |faces| without_unused_faces(faces, &mut unused))?;
            for font in unused.iter().map(|name| fonts.join(name)).filter(|font| font.is_file()) {
                fs::remove_file(&font).map_err(at(&font))?;
            }
        }
    }
    Ok(())
}

/// The files that lie in a folder of the site and are not the book's own.
fn of_mdbook(site: &Path, folder: &Path, is_own: &impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, BookError> {
    let paths = fs::read_dir(folder).map_err(at(folder))?.map(|entry| Ok(entry.map_err(at(folder))?.path()));
    let is_mdbooks = |path: &PathBuf| path.is_file() && !path.strip_prefix(site).is_ok_and(is_own);
    paths.filter(|path| path.as_ref().map_or(true, is_mdbooks)).collect()
}

fn rewrite(path: &Path, slim: impl FnOnce(&str) -> String) -> Result<(), BookError> {
    let text = fs::read_to_string(path).map_err(at(path))?;
    fs::write(path, slim(&text)).map_err(at(path))
}

/// A page whose frame has no indentation, no empty lines, no comment but for one that says whose the icons are, and no icons of
/// buttons that no code on the page has.
fn slim_frame(page: &str) -> String {
    let (Some(start), Some(end)) = (page.find("<main"), page.rfind("</main>")) else { return page.to_owned() };
    let shown = &page[start..end];
    // mdBook's script makes them for code that is run, edited or partly hidden.
    let has_buttons = ["playground", "boring"].iter().any(|class| shown.contains(class));
    let behind =
        if has_buttons { page[end..].to_owned() } else { without(&page[end..], "<template id=fa-", "</template>") };
    let mut is_said = false;
    let [before, behind] = [&page[..start], &*behind].map(|part| without_comments(part, &mut is_said));
    [&before, shown, &behind].concat()
}

/// A text without what begins and ends so.
fn without(text: &str, begin: &str, end: &str) -> String {
    let mut parts = text.split(begin);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + part.split_once(end).map_or(part, |(_, behind)| behind))
}

fn without_comments(frame: &str, is_said: &mut bool) -> String {
    const LICENCE: &str = "!";
    let (mut out, mut rest) = (String::new(), frame);
    while let Some((before, comment, behind)) = rest
        .split_once("<!--")
        .and_then(|(before, rest)| rest.split_once("-->").map(|(own, behind)| (before, own, behind)))
    {
        out.push_str(before);
        if comment.starts_with(LICENCE) && !std::mem::replace(is_said, true) {
            out.extend(["<!--", comment, "-->"]);
        }
        rest = behind;
    }
    out.push_str(rest);
    let lines = out.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<&str>>().join("\n")
}

/// A search index whose weights of words have two decimals: what is behind them is a tenth of the index, and ranks nothing.
fn with_short_weights(index: &str) -> String {
    const WEIGHT: &str = "\"tf\":";
    let mut parts = index.split(WEIGHT);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut short, part| {
        let end = part.find(|digit: char| !digit.is_ascii_digit() && digit != '.').unwrap_or(part.len());
        let (weight, behind) = part.split_at(end);
        let decimals = weight.find('.').map_or(weight.len(), |point| weight.len().min(point + 3));
        let weight = &weight[..decimals];
        short += WEIGHT;
        short += weight.strip_suffix(".0").unwrap_or(weight);
        short += behind;
        short
    })
}

/// A search index that does not say of a letter within a word that no word ends there: the search, which looks for all words that
/// begin with what is typed, passes such a letter by. One that looks for whole words alone asks each letter, and keeps them.
fn without_inner_nodes(index: &str) -> String {
    const NO_WORD: &str = "\"df\":0,\"docs\":{}";
    if !index.contains("\"expand\":true") {
        return index.to_owned();
    }
    index.replace(&format!("{NO_WORD},"), "").replace(&format!(",{NO_WORD}"), "")
}

/// The style sheet of the fonts without the faces that no style sheet of the site asks for, whose files are added to `unused`.
fn without_unused_faces(faces: &str, unused: &mut Vec<String>) -> String {
    const FACE: &str = "@font-face";
    const LIGHT_ITALIC: [&str; 2] = ["font-style: italic", "font-weight: 300"];
    let is_unused =
        |face: &str| face.contains("font-weight: 800") || LIGHT_ITALIC.iter().all(|part| face.contains(part));
    let mut parts = faces.split(FACE);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (face, behind) = part.split_at(part.find('}').map_or(part.len(), |end| end + 1));
        if is_unused(face) {
            let files = face.split("url('").skip(1).filter_map(|rest| rest.split_once('\''));
            unused.extend(files.filter_map(|(file, _)| file.rsplit('/').next()).map(str::to_owned));
        } else {
            kept.extend([FACE, face]);
        }
        kept.push_str(behind);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_in_a_search_index_are_short_and_all_else_is_kept() {
        let index = r#"{"docs":{"1":{"tf":1.4142135623730951},"2":{"tf":1.0}},"df":2},"body":"\\"tf\\":1.23456"#;
        let short = r#"{"docs":{"1":{"tf":1.41},"2":{"tf":1}},"df":2},"body":"\\"tf\\":1.23456"#;
        assert_eq!(with_short_weights(index), short);
    }

    #[test]
    fn a_letter_at_which_no_word_ends_says_nothing_where_a_search_expands() {
        let word = r#""a":{"b":{"df":1,"docs":{"7":{"tf":1}}},"df":0,"docs":{}},"c":{"df":0,"docs":{},"d":{"df":1,"docs":{}}}"#;
        let short = r#""a":{"b":{"df":1,"docs":{"7":{"tf":1}}}},"c":{"d":{"df":1,"docs":{}}}"#;
        let [expands, does_not] = [true, false].map(|expand| format!("{{{word},\"expand\":{expand}}}"));
        assert_eq!(without_inner_nodes(&expands), format!("{{{short},\"expand\":true}}"));
        assert_eq!(without_inner_nodes(&does_not), does_not);
    }

    #[test]
    fn the_frame_of_a_page_is_slim_and_what_the_page_shows_is_as_it_was() {
        let page = "<html>\n    <!-- said -->\n\n    <p>a<!--! icons --> b</p>\n  <main>\n\n  <pre>\n  x <!-- y --></pre>\n</main>\n\
                    \n   <template id=fa-play><!--! icons --><i></i></template>\n<i><!--! icons --></i> </html>\n";
        let slim = "<html>\n<p>a<!--! icons --> b</p><main>\n\n  <pre>\n  x <!-- y --></pre>\n</main>\n<i></i> </html>";
        assert_eq!(slim_frame(page), slim);
        assert_eq!(slim_frame("<p>  no  page"), "<p>  no  page");
        let run = page.replace("<pre>", "<pre class=\"playground\">");
        assert!(slim_frame(&run).contains("<template id=fa-play>"), "{run}");
    }

    #[test]
    fn a_face_that_nothing_is_set_in_goes_with_its_file() {
        let face = |style: &str, weight: u32, file: &str| {
            format!(
                "@font-face {{\n  font-style: {style};\n  font-weight: {weight};\n  src: url('../fonts/{file}') format('woff2');\n}}\n"
            )
        };
        let used = [face("normal", 300, "a"), face("italic", 400, "b")].concat();
        let all = [&*face("normal", 800, "c"), &used, &face("italic", 300, "d")].concat();
        let mut unused = Vec::new();
        assert_eq!(without_unused_faces(&all, &mut unused).trim(), used.trim());
        assert_eq!(unused, ["c", "d"]);
    }
}
