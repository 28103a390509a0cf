//! The templates, and the one rule by which they escape.
//!
//! Whatever a template writes is escaped for Markdown, except what is marked as finished: HTML of a table, a plot, or
//! the Markdown of a document file. A name that is not in the context is an error, not an empty string.

use include_dir::{Dir, include_dir};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

use crate::error::BookError;
use crate::present::escape;

pub(super) static TEMPLATES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/report-templates");

/// The templates, ready to be rendered.
pub(super) struct Templates {
    environment: Environment<'static>,
}

impl Templates {
    /// The templates that come with the program.
    pub(super) fn embedded() -> Result<Self, BookError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build();
        environment.set_syntax(syntax.map_err(|error| template_error("", &error))?);
        environment.set_auto_escape_callback(|_| AutoEscape::Custom("markdown".into()));
        environment.set_formatter(|out, _, value| {
            let text = if value.is_safe() { value.to_string() } else { escape(&value.to_string()) };
            out.write_str(&text).map_err(minijinja::Error::from)
        });
        for file in TEMPLATES.files().filter(|file| file.path().extension().is_some_and(|e| e == "j2")) {
            let name = file.path().display().to_string();
            let source = file.contents_utf8().ok_or_else(|| BookError::Embedded { name: name.clone() })?;
            environment.add_template_owned(name.clone(), source).map_err(|error| template_error(&name, &error))?;
        }
        Ok(Self { environment })
    }

    /// Renders the template `name`.
    pub(super) fn render(&self, name: &str, context: Value) -> Result<String, BookError> {
        let template = self.environment.get_template(name).map_err(|error| template_error(name, &error))?;
        template.render(context).map_err(|error| template_error(name, &error))
    }
}

/// Text that is finished: a template writes it as it is.
pub(super) fn finished(text: impl Into<String>) -> Value {
    Value::from_safe_string(text.into())
}

/// A heading's attribute that gives it the anchor `id`.
pub(super) fn anchor(id: &str) -> Value {
    finished(format!("{{#{id}}}"))
}

fn template_error(name: &str, error: &minijinja::Error) -> BookError {
    BookError::Template { name: name.to_owned(), message: format!("{error:#}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::context;

    fn render(source: &'static str, context: Value) -> Result<String, BookError> {
        let mut templates = Templates::embedded().unwrap();
        templates.environment.add_template("test", source).unwrap();
        templates.render("test", context)
    }

    #[test]
    fn what_is_interpolated_is_escaped_unless_it_is_finished() {
        let text = render("{{ a }} {{ b }}", context! { a => "<b>*", b => finished("<b>*") }).unwrap();
        assert_eq!(text, "&#60;b&#62;&#42; <b>*");
    }

    #[test]
    fn an_unknown_name_is_an_error_that_shows_the_template() {
        let error = render("# {{ nobody }}", context! {}).unwrap_err().to_string();
        assert!(error.contains("report-templates/test") && error.contains("nobody"), "{error}");
    }
}
