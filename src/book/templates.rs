//! The templates, and the one rule by which they escape.
//!
//! Whatever a template writes is escaped for Markdown, except what is marked as safe: HTML of a table, a plot, or
//! the Markdown of a document file. A name that is not in the context is an error, not an empty string.

use std::io;
use std::path::Path;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

use super::project::BookProject;
use crate::error::BookError;
use crate::present::escape;

/// The folder of a project that holds them.
const FOLDER: &str = "templates";

/// The most steps that a template may take, and the most bytes that it may write: one may be anybody's, and may loop.
const MOST_STEPS: u64 = 20_000_000;
const MOST_BYTES: usize = 32 << 20;
/// What makes text as long as a template says.
const LENGTHENING: [&str; 2] = ["format", "indent"];

/// The templates, ready to be rendered.
pub(super) struct Templates<'a> {
    environment: Environment<'static>,
    project: &'a BookProject,
}

impl<'a> Templates<'a> {
    /// The templates of a project.
    pub(super) fn of(project: &'a BookProject) -> Result<Self, BookError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(MOST_STEPS));
        LENGTHENING.into_iter().for_each(|filter| environment.remove_filter(filter));
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build();
        let failed = |path: &Path, error: &minijinja::Error| template_error(project, path, error);
        environment.set_syntax(syntax.map_err(|error| failed(Path::new(FOLDER), &error))?);
        environment.set_auto_escape_callback(|_| AutoEscape::Custom("markdown".into()));
        environment.set_formatter(|out, _, value| {
            let text = if value.is_safe() { value.to_string() } else { escape(&value.to_string()) };
            out.write_str(&text).map_err(minijinja::Error::from)
        });
        let templates = project.below(FOLDER).map(|(path, _)| path);
        for path in templates.filter(|path| is_template(path)) {
            let name = path.display().to_string();
            let text = project.text(&name)?.to_owned();
            let name = name.trim_start_matches(FOLDER).trim_start_matches('/').to_owned();
            environment.add_template_owned(name, text).map_err(|error| failed(path, &error))?;
        }
        Ok(Self { environment, project })
    }

    /// Renders the template `name`.
    pub(super) fn render(&self, name: &str, context: Value) -> Result<String, BookError> {
        let failed = |error: &minijinja::Error| template_error(self.project, &Path::new(FOLDER).join(name), error);
        let template = self.environment.get_template(name).map_err(|error| failed(&error))?;
        let mut text = Bounded(Vec::new());
        template.render_captured_to(context, &mut text).map_err(|error| failed(&error))?;
        String::from_utf8(text.0).map_err(|error| BookError::Build { message: error.to_string() })
    }
}

/// Text up to a limit.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_BYTES {
            return Err(io::Error::other(format!("the page is longer than {} MB", MOST_BYTES >> 20)));
        }
        self.0.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a file among the templates is one.
pub(super) fn is_template(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "j2")
}

/// Text that needs no escaping: a template writes it as it is.
pub(super) fn safe_html(text: impl Into<String>) -> Value {
    Value::from_safe_string(text.into())
}

/// A heading's attribute that gives it the anchor `id`.
pub(super) fn anchor(id: &str) -> Value {
    safe_html(format!("{{#{id}}}"))
}

fn template_error(project: &BookProject, path: &Path, error: &minijinja::Error) -> BookError {
    BookError::Template { name: project.name(path), message: format!("{error:#}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::context;

    fn render(source: &'static str, context: Value) -> Result<String, BookError> {
        let project = BookProject::embedded();
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
    fn a_template_without_an_end_is_refused() {
        let hundred_thousand = "range(100000)";
        for source in [
            "{% for a in N %}{% for b in N %}{% endfor %}{% endfor %}",
            "{% for a in N %}{{ 'x' * 10000 }}{% endfor %}",
            "{{ 'x'|indent(2000000000) }}",
            "{{ '%2000000000d'|format(1) }}",
        ] {
            let source: &'static str = source.replace('N', hundred_thousand).leak();
            let error = render(source, context! {}).unwrap_err().to_string();
            assert!(error.contains("report-templates/test"), "{error}");
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_shows_the_template() {
        let error = render("# {{ nobody }}", context! {}).unwrap_err().to_string();
        assert!(error.contains("report-templates/test") && error.contains("nobody"), "{error}");
    }
}
