//! `book.toml`: a book states mdBook's settings, but for those that run a program or name a place outside of the book.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use mdbook_driver::config::{Config, HtmlConfig};
use toml::Table;

use super::includes::{place, within};
use crate::error::{FileError, explained};

/// The configuration in the text of a `book.toml`. `origin` names the file in errors; `has` says whether a path is that of
/// a file of the book.
///
/// # Errors
/// [`FileError`] says what it states that a book may not state, and where.
pub(super) fn parse(text: &str, origin: &str, has: impl Fn(&Path) -> bool) -> Result<Config, FileError> {
    let invalid = |at: Option<usize>, message: String| {
        let (line, column) = at.map_or((0, 0), |at| place(text, at));
        FileError::Invalid { origin: origin.to_owned(), line, column, message, hint: String::new() }
    };
    let whole = |error: anyhow::Error| FileError::whole(origin, explained(&error));
    let config = toml::from_str::<Config>(text);
    let mut config =
        config.map_err(|error| invalid(error.span().map(|span| span.start), error.message().to_owned()))?;
    let outputs: BTreeMap<String, Table> = config.outputs().map_err(whole)?;
    let preprocessors: BTreeMap<String, Table> = config.preprocessors().map_err(whole)?;
    let html = config.get::<HtmlConfig>("output.html").map_err(whole)?.unwrap_or_default();
    let defaults = Config::default();
    let preprocessor = preprocessors.keys().next().map(|name| format!("preprocessor.{name}"));
    let renderer = outputs.keys().find(|name| *name != "html").map(|name| format!("output.{name}"));
    if let Some(key) = preprocessor.or(renderer) {
        return Err(invalid(text.find(&key), format!("`{key}`: a book runs no program")));
    }
    let stated = [
        ("src", config.book.src != defaults.book.src),
        ("build-dir", config.build.build_dir != defaults.build.build_dir),
        ("theme", html.theme.is_some()),
        ("redirect", !html.redirect.is_empty()),
    ];
    if let Some((key, _)) = stated.into_iter().find(|(_, is_stated)| *is_stated) {
        return Err(invalid(text.find(key), format!("`{key}`: a book has its files in its own folders")));
    }
    let page =
        html.input_404.iter().filter(|page| !page.is_empty()).map(|page| (Path::new("src"), PathBuf::from(page)));
    let files = html.additional_css.iter().chain(&html.additional_js).map(|file| (Path::new(""), file.clone()));
    for (folder, file) in files.chain(page) {
        // On its way back up, each folder has to be there.
        let leads_up = file.components().any(|part| part == Component::ParentDir);
        if leads_up || within(folder, &file).is_none_or(|path| !has(&path)) {
            let file = file.display().to_string();
            return Err(invalid(text.find(&file), format!("`{file}` is not a file of the book")));
        }
    }
    config.build.create_missing = false;
    config.build.use_default_preprocessors = false;
    config.set("output.html.playground.runnable", false).map_err(whole)?;
    Ok(config)
}

/// The text of a `book.toml` that was read, with a title.
pub(super) fn titled(text: &str, title: &str) -> Result<String, FileError> {
    let whole = |error: &dyn std::error::Error| FileError::whole("book.toml", error.to_string());
    let mut config: Table = text.parse().map_err(|error| whole(&error))?;
    let book = config.entry("book").or_insert_with(|| Table::new().into());
    // What is there was read as a table.
    book.as_table_mut().into_iter().for_each(|book| drop(book.insert("title".to_owned(), title.into())));
    toml::to_string(&config).map_err(|error| whole(&error))
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    fn refusal(text: &str) -> String {
        parse(text, "book.toml", |path| path == Path::new("theme/a.css")).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn what_runs_a_program_or_reads_a_foreign_file_is_refused_with_its_place() {
        for (text, says) in [
            ("[preprocessor.x]\ncommand = 'touch x'", "book.toml:1:2: `preprocessor.x`: a book runs no program"),
            ("[output.x]\ncommand = 'touch x'", "book.toml:1:2: `output.x`: a book runs no program"),
            ("[output.html]\ntheme = '/etc'", "book.toml:2:1: `theme`: a book has its files in its own folders"),
            ("[output.html.redirect]\n'/../x' = 'y'", "`redirect`: a book has its files in its own folders"),
            ("[book]\nsrc = '/etc'", "book.toml:2:1: `src`"),
            ("[build]\nbuild-dir = '/tmp/x'", "book.toml:2:1: `build-dir`"),
            ("[output.html]\nadditional-js = ['../../etc/passwd']", "book.toml:2:19: `../../etc/passwd` is not a file"),
            ("[output.html]\nadditional-css = ['/etc/passwd']", "`/etc/passwd` is not a file of the book"),
            ("[output.html]\ninput-404 = '../../etc/passwd'", "is not a file of the book"),
            ("[output.html]\nadditional-css = ['no/../theme/a.css']", "`no/../theme/a.css` is not a file of the book"),
            ("[boook]\n", "book.toml:1:2: unknown field `boook`"),
        ] {
            assert!(refusal(text).contains(says), "{text}: {}", refusal(text));
        }
    }

    #[test]
    fn however_a_table_is_written_it_has_the_title_and_what_it_had() {
        for text in [
            "",
            "[output.html]\nsmart-punctuation = true\n",
            "[book]\nlanguage = \"de\"\n",
            "[book]\r\nlanguage = \"de\"\r\n",
            "[ book ] # the book\nlanguage = \"de\"",
            "book.language = \"de\"",
            "book = { language = \"de\" }",
            "# [book]\n\"book\" = { \"language\" = 'de' }",
        ] {
            let titled = titled(text, "A \"title\"\\").unwrap();
            let config = Config::from_str(&titled).unwrap();
            assert_eq!(config.book.title.as_deref(), Some("A \"title\"\\"), "{titled}");
            assert_eq!(
                config.book.language.as_deref(),
                Some(if text.contains("language") { "de" } else { "en" }),
                "{titled}"
            );
            assert_eq!(titled.contains("smart-punctuation = true"), text.contains("smart-punctuation"), "{titled}");
        }
    }

    #[test]
    fn the_settings_of_the_books_own_configuration_are_known() {
        let project = crate::tests::project();
        let config = parse(project.text("book.toml").unwrap(), "book.toml", |_| true).unwrap();
        assert!(!config.build.use_default_preprocessors && !config.build.create_missing);
    }
}
