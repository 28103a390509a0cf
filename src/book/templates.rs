//! The templates, and the one rule by which they escape.
//!
//! Whatever a template writes is escaped for Markdown, except what is marked as safe: HTML of a table, a plot, or
//! the Markdown of a document file. A name that is not in the context is an error, not an empty string.

use std::path::Path;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};

use super::folder::has_ending;
use super::project::BookProject;
use crate::error::{BookError, FileError};
use crate::present::escape;

/// The folder of a project that holds them.
const FOLDER: &str = "templates";

/// The most bytes of a page: what stands on it may be anybody's.
const MAX_BYTES: usize = 32 << 20;

/// The templates, ready to be rendered.
pub(super) struct Templates<'a> {
    environment: Environment<'static>,
    project: &'a BookProject,
}

impl<'a> Templates<'a> {
    /// The templates of a project.
    pub(super) fn of(project: &'a BookProject) -> Result<Self, BookError> {
        let mut environment = Environment::new();
        // An error shows the line of the template with its names, however the program was built.
        environment.set_debug(true);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build();
        let failed = |path: &Path, error: &Error| template_error(project, path, error);
        environment.set_syntax(syntax.map_err(|error| failed(Path::new(FOLDER), &error))?);
        environment.set_auto_escape_callback(|_| AutoEscape::Custom("markdown".into()));
        environment.set_formatter(|out, _, value| {
            if matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Iterable) {
                return Err(Error::new(ErrorKind::InvalidOperation, "a list has no text: print its parts"));
            }
            let text = if value.is_safe() { value.to_string() } else { escape(&value.to_string()) };
            out.write_str(&text).map_err(Error::from)
        });
        let templates = project.below(FOLDER).map(|(path, _)| path);
        for path in templates.filter(|path| has_ending(path, ENDING)) {
            let name = path.display().to_string();
            let text = project.text(&name)?.to_owned();
            let name = name.trim_start_matches(FOLDER).trim_start_matches('/').to_owned();
            environment.add_template_owned(name, text).map_err(|error| failed(path, &error))?;
        }
        Ok(Self { environment, project })
    }

    /// Renders the template `name`.
    pub(super) fn render(&self, name: &str, context: Value) -> Result<String, BookError> {
        let path = Path::new(FOLDER).join(name);
        let page = self.environment.get_template(name).and_then(|template| template.render(context));
        let page = page.map_err(|error| template_error(self.project, &path, &error))?;
        if page.len() > MAX_BYTES {
            let reason = "the page that it makes would be longer than 32 MB, which none may be: shorten the longest text \
                          in the results, the audit or the course";
            return Err(FileError::whole(self.project.name(&path), reason).into());
        }
        Ok(page)
    }
}

/// What the name of a template ends with.
pub(super) const ENDING: &str = "j2";

/// Text that needs no escaping: a template writes it as it is.
pub(super) fn safe_html(text: impl Into<String>) -> Value {
    Value::from_safe_string(text.into())
}

/// A heading's attribute that gives it the anchor `id`.
pub(super) fn anchor(id: &str) -> Value {
    safe_html(format!("{{#{id}}}"))
}

fn template_error(project: &BookProject, path: &Path, error: &Error) -> BookError {
    FileError::whole(project.name(path), format!("{error:#}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::context;

    fn render(source: &'static str, context: Value) -> Result<String, BookError> {
        let project = crate::tests::project();
        let mut templates = Templates::of(&project).unwrap();
        templates.environment.add_template("test", source).unwrap();
        templates.render("test", context)
    }

    #[test]
    fn what_is_interpolated_is_escaped_unless_it_is_marked_as_safe() {
        let text = render("{{ a }} {{ b }}", context! { a => "<b>*", b => safe_html("<b>*") }).unwrap();
        assert_eq!(text, "&#60;b&#62;&#42; <b>*");
    }

    #[test]
    fn a_page_that_is_too_large_is_refused() {
        let long = || context! { a => "short", b => safe_html(format!("begin{}", "x".repeat(MAX_BYTES))) };
        for source in ["{{ a }}{{ b }}", "{% macro f() %}{{ b }}{% endmacro %}{{ a }}{{ f() }}"] {
            let error = render(source, long()).unwrap_err();
            assert!(error.to_string().contains("longer than 32 MB"), "{error}");
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_shows_the_template() {
        let error = render("# {{ nobody }}", context! {}).unwrap_err().to_string();
        assert!(error.contains("report-templates/test") && error.contains("nobody"), "{error}");
    }
}
