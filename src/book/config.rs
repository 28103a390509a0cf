//! `book.toml`: which of mdBook's settings a book may state.
//!
//! A project may be somebody else's, so the tables and keys are a list of what is known to be harmless. Settings that run
//! a program, read a file outside of the book, write one, load a script from elsewhere or put text into a script of the
//! page are not on it.

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use mdbook_driver::config::Config;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::includes::within;
use super::name;
use crate::error::{FileError, explained};

/// The most bytes of a `book.toml`: of many keys, reading takes much longer than twice as long for twice as many.
const MOST_BYTES: usize = 64 << 10;

/// What mdBook itself finds wrong with the value of a key is left to it.
type Any = Option<IgnoredAny>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only read to refuse what is not here")]
struct BookToml {
    book: Option<Book>,
    build: Option<Build>,
    rust: Option<Rust>,
    output: Option<Output>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[allow(dead_code, reason = "only read to refuse what is not here")]
struct Book {
    authors: Any,
    description: Any,
    language: Any,
    text_direction: Any,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[allow(dead_code, reason = "only read to refuse what is not here")]
struct Build {
    create_missing: Any,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[allow(dead_code, reason = "only read to refuse what is not here")]
struct Rust {
    edition: Any,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Output {
    html: Option<Html>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[allow(dead_code, reason = "only read to refuse what is not here")]
struct Html {
    default_theme: Option<Theme>,
    preferred_dark_theme: Option<Theme>,
    smart_punctuation: Any,
    definition_lists: Any,
    admonitions: Any,
    no_section_label: Any,
    sidebar_header_nav: Any,
    fold: Any,
    print: Any,
    search: Any,
    code: Any,
    playground: Option<Playground>,
    #[serde(default)]
    additional_css: Vec<Spanned<String>>,
    #[serde(default)]
    additional_js: Vec<Spanned<String>>,
    git_repository_url: Option<Spanned<String>>,
    edit_url_template: Option<Spanned<String>>,
    input_404: Option<Spanned<String>>,
}

/// mdBook's own themes: the name becomes a part of a script.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Theme {
    Light,
    Rust,
    Coal,
    Navy,
    Ayu,
}

/// `runnable` sends the reader's code to another host, which the page's policy does not allow.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[allow(dead_code, reason = "only read to refuse what is not here")]
struct Playground {
    runnable: Option<Spanned<bool>>,
    copyable: Any,
}

/// The configuration in the text of a `book.toml`. `origin` names the file in errors; `has` says whether a path is that of
/// a file of the book.
///
/// # Errors
/// [`FileError`] says what it states that a book may not state, and where.
pub(crate) fn parse(text: &str, origin: &str, has: impl Fn(&Path) -> bool) -> Result<Config, FileError> {
    if text.len() > MOST_BYTES {
        return Err(FileError::whole(origin, format!("it is longer than {} KB", MOST_BYTES >> 10)));
    }
    let at = |span: Option<Range<usize>>, message: String| {
        let (line, column) = span.map_or((0, 0), |span| place(text, span.start));
        FileError::Invalid { origin: origin.to_owned(), line, column, message, hint: String::new() }
    };
    let stated: BookToml = toml::from_str(text).map_err(|error| at(error.span(), error.message().to_owned()))?;
    if let Some(html) = stated.output.and_then(|output| output.html) {
        check(&html, has).map_err(|(span, message)| at(Some(span), message))?;
    }
    let whole = |error: anyhow::Error| FileError::whole(origin, explained(&error));
    let mut config = Config::from_str(text).map_err(whole)?;
    config.build.create_missing = false;
    config.build.use_default_preprocessors = false;
    config.set("output.html.playground.runnable", false).map_err(whole)?;
    Ok(config)
}

/// The text of a `book.toml` that was read, with a title.
pub(super) fn titled(text: &str, title: &str) -> Result<String, FileError> {
    let whole = |error: &dyn std::error::Error| FileError::whole("book.toml", error.to_string());
    let mut config: toml::Table = text.parse().map_err(|error| whole(&error))?;
    let book = config.entry("book").or_insert_with(|| toml::Table::new().into());
    // What is there was read as a table.
    book.as_table_mut().into_iter().for_each(|book| drop(book.insert("title".to_owned(), title.into())));
    toml::to_string(&config).map_err(|error| whole(&error))
}

fn check(html: &Html, has: impl Fn(&Path) -> bool) -> Result<(), (Range<usize>, String)> {
    let is_file = |folder: &str, file: &str| {
        let file = Path::new(file);
        name::leads_down(file) && within(Path::new(folder), file).is_some_and(|path| has(&path))
    };
    for file in html.additional_css.iter().chain(&html.additional_js) {
        if !is_file("", file.get_ref()) {
            return Err((file.span(), format!("`{}` is not a file of the book", file.get_ref())));
        }
    }
    // Each file of this ending is the program's own.
    if let Some(file) = html.additional_js.iter().find(|file| !file.get_ref().ends_with(".js")) {
        return Err((file.span(), format!("`{}` is not one of the program's scripts: leave it out", file.get_ref())));
    }
    for address in [&html.git_repository_url, &html.edit_url_template].into_iter().flatten() {
        if !["https://", "http://"].iter().any(|scheme| address.get_ref().starts_with(scheme)) {
            return Err((address.span(), format!("`{}` does not begin with https://", address.get_ref())));
        }
    }
    let is_page = |page: &str| page.ends_with(".md") && is_file("src", page);
    if let Some(page) = html.input_404.as_ref().filter(|page| !page.get_ref().is_empty() && !is_page(page.get_ref())) {
        return Err((page.span(), format!("`{}` is not a page of the book", page.get_ref())));
    }
    let runnable = html.playground.as_ref().and_then(|playground| playground.runnable.as_ref());
    match runnable.filter(|runnable| *runnable.get_ref()) {
        Some(runnable) => Err((runnable.span(), "a page of the book sends no code to other hosts".to_owned())),
        None => Ok(()),
    }
}

/// Line and column, from 1, of a byte.
fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse(text, "book.toml", |path| path == Path::new("theme/a.css")).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn what_runs_a_program_or_reads_a_foreign_file_is_refused_with_its_place() {
        for (text, says) in [
            ("[preprocessor.x]\ncommand = 'touch x'", "book.toml:1:2: unknown field `preprocessor`"),
            ("[output.x]\ncommand = 'touch x'", "book.toml:1:9: unknown field `x`"),
            ("[output.html]\ntheme = '/etc'", "book.toml:2:1: unknown field `theme`"),
            ("[book]\nsrc = '/etc'", "book.toml:2:1: unknown field `src`"),
            ("[build]\nbuild-dir = '/tmp/x'", "book.toml:2:1: unknown field `build-dir`"),
            ("[output.html]\nmathjax-support = true", "unknown field `mathjax-support`"),
            ("[output.html]\nadditional-js = ['../../etc/passwd']", "book.toml:2:18: `../../etc/passwd` is not a file"),
            ("[output.html]\nadditional-js = ['theme/a.css']", "`theme/a.css` is not one of the program's scripts"),
            ("[output.html]\nadditional-css = ['/etc/passwd']", "`/etc/passwd` is not a file of the book"),
            ("[output.html]\ninput-404 = '../../etc/passwd'", "is not a page of the book"),
            ("[output.html]\ninput-404 = '../theme/a.css'", "is not a page of the book"),
            ("[output.html]\nadditional-css = ['no/../theme/a.css']", "`no/../theme/a.css` is not a file of the book"),
            ("[output.html]\ndefault-theme = \"');alert(1)//\"", "unknown variant"),
            ("[output.html]\ngit-repository-url = 'javascript:alert(1)'", "does not begin with https://"),
            ("[output.html.playground]\nrunnable = true", "sends no code to other hosts"),
        ] {
            assert!(refusal(text).contains(says), "{text}: {}", refusal(text));
        }
    }

    #[test]
    fn a_configuration_of_any_length_is_refused_before_it_is_read() {
        let keys: String = (0..100_000).map(|number| format!("a{number} = 'x'\n")).collect();
        assert!(refusal(&format!("[output.html.code.hidelines]\n{keys}")).contains("it is longer than 64 KB"));
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
        let text = include_str!("../../book/book.toml");
        let config = parse(text, "book.toml", |_| true).unwrap();
        assert!(!config.build.use_default_preprocessors && !config.build.create_missing);
    }
}
