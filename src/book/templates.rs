//! The templates, and the one rule by which they escape.
//!
//! Whatever a template writes is escaped for Markdown, except what is marked as safe: HTML of a table, a plot, or
//! the Markdown of a document file. A name that is not in the context is an error, not an empty string.

use std::error::Error as _;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind};

use super::project::BookProject;
use super::{language, template_text};
use crate::error::BookError;
use crate::present::escape;

/// The folder of a project that holds them.
const FOLDER: &str = "templates";

/// The most bytes of a page, and of all values that are printed for one: a macro's text is printed again where it is called.
const MOST_BYTES: usize = 32 << 20;
const MOST_PRINTED: usize = 4 * MOST_BYTES;

/// The templates, ready to be rendered.
pub(super) struct Templates<'a> {
    environment: Environment<'static>,
    /// What was printed for a page.
    printed: Arc<Mutex<Printed>>,
    project: &'a BookProject,
}

impl<'a> Templates<'a> {
    /// The templates of a project.
    pub(crate) fn of(project: &'a BookProject) -> Result<Self, BookError> {
        let mut environment = language::of_texts();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build();
        let failed = |path: &Path, error: &Error| template_error(project, path, error);
        environment.set_syntax(syntax.map_err(|error| failed(Path::new(FOLDER), &error))?);
        environment.set_auto_escape_callback(|_| AutoEscape::Custom("markdown".into()));
        let printed = Arc::new(Mutex::new(Printed::default()));
        let told = Arc::clone(&printed);
        environment.set_formatter(move |out, _, value| {
            if matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Iterable) {
                return Err(Error::new(ErrorKind::InvalidOperation, "a list has no text: print its parts"));
            }
            let text = if value.is_safe() { value.to_string() } else { escape(&value.to_string()) };
            if !locked(&told).takes(&text) {
                return Err(Error::new(ErrorKind::WriteFailure, "its values are longer than a page may be"));
            }
            out.write_str(&text).map_err(Error::from)
        });
        let templates = project.below(FOLDER).map(|(path, _)| path);
        for path in templates.filter(|path| is_template(path)) {
            let name = path.display().to_string();
            let text = project.text(&name)?.to_owned();
            template_text::check(&text).map_err(|message| BookError::Template { name: project.name(path), message })?;
            let name = name.trim_start_matches(FOLDER).trim_start_matches('/').to_owned();
            environment.add_template_owned(name, text).map_err(|error| failed(path, &error))?;
        }
        Ok(Self { environment, printed, project })
    }

    /// Renders the template `name`.
    pub(super) fn render(&self, name: &str, context: Value) -> Result<String, BookError> {
        *locked(&self.printed) = Printed::default();
        let path = Path::new(FOLDER).join(name);
        let failed = |error: &Error| match excess(error) {
            Some(limit) => BookError::TooLarge {
                template: self.project.name(&path),
                limit,
                longest: locked(&self.printed).longest(),
            },
            None => template_error(self.project, &path, error),
        };
        let template = self.environment.get_template(name).map_err(|error| failed(&error))?;
        let mut text = Bounded(Vec::new());
        template.render_captured_to(context, &mut text).map_err(|error| failed(&error))?;
        String::from_utf8(text.0).map_err(|error| BookError::Build { message: error.to_string() })
    }
}

/// Which limit of a page was passed, where that is why it could not be made.
fn excess(mut error: &Error) -> Option<String> {
    // What happened in a macro is the cause of what happened where it was called.
    while let Some(cause) = error.source().and_then(|cause| cause.downcast_ref::<Error>()) {
        error = cause;
    }
    match error.kind() {
        ErrorKind::WriteFailure => Some(format!("longer than {} MB", MOST_BYTES >> 20)),
        ErrorKind::OutOfFuel => Some(format!("made in more than {} steps", language::MAX_STEPS)),
        _ => None,
    }
}

/// What was printed for a page: how many bytes, and the longest text of them by its length and its beginning.
#[derive(Default)]
struct Printed {
    bytes: usize,
    longest: (usize, String),
}

impl Printed {
    /// Whether there is room for `text`, too.
    fn takes(&mut self, text: &str) -> bool {
        const SHOWN: usize = 40;
        self.bytes += text.len();
        if text.len() > self.longest.0 {
            self.longest = (text.len(), text.chars().take(SHOWN).collect());
        }
        self.bytes <= MOST_PRINTED
    }

    fn longest(&self) -> String {
        let (length, begin) = &self.longest;
        format!("{length} bytes from `{begin}` on")
    }
}

fn locked(printed: &Mutex<Printed>) -> MutexGuard<'_, Printed> {
    printed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Text up to a limit.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
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

fn template_error(project: &BookProject, path: &Path, error: &Error) -> BookError {
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
        let loops = "{% for a in many %}{% for b in many %}IN{% endfor %}{% endfor %}";
        let doubled: String = (0..40).map(|_| "{% set x %}{{ x }}{{ x }}{% endset %}").collect();
        for source in [
            loops.replace("IN", ""),
            loops.replace("IN", "{{ long }}"),
            format!("{{% set x %}}{}{{% endset %}}", loops.replace("IN", "{{ long }}")),
            format!("{{% set x = 'x' %}}{doubled}"),
            "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}".to_owned(),
        ] {
            assert_eq!(template_text::check(&source), Ok(()));
            let context = context! { many => vec![0; 5000], long => safe_html("x".repeat(10_000)) };
            let error = render(source.leak(), context).unwrap_err().to_string();
            assert!(error.contains("report-templates/test"), "{error}");
        }
    }

    #[test]
    fn a_page_that_is_too_large_is_no_fault_of_its_template_and_its_longest_text_is_named() {
        let long = || context! { a => "short", b => safe_html(format!("begin{}", "x".repeat(MOST_BYTES))), many => vec![0; 5000] };
        for (source, limit) in [
            ("{{ a }}{{ b }}", "longer than 32 MB"),
            ("{% macro f() %}{{ b }}{% endmacro %}{{ a }}{{ f() }}", "longer than 32 MB"),
            (
                "{% for x in many %}{% for y in many %}{% endfor %}{% endfor %}{{ b }}",
                "made in more than 2000000 steps",
            ),
        ] {
            let error = render(source, long()).unwrap_err();
            assert!(matches!(error, BookError::TooLarge { .. }), "{error}");
            let error = error.to_string();
            assert!(error.contains(limit) && !error.contains("{{"), "{error}");
            assert_eq!(error.contains("33554437 bytes from `beginxxx"), limit.starts_with("longer"), "{error}");
        }
    }

    #[test]
    fn a_template_calls_what_is_listed_and_nothing_else() {
        for source in
            ["{{ many|batch(9) }}", "{{ many|join('x') }}", "{{ range(9)|length }}", "{{ namespace() }}", "{{ many }}"]
        {
            assert!(render(source, context! { many => vec![0; 3] }).is_err(), "{source}");
        }
        assert_eq!(render("{{ many|length }}", context! { many => vec![0; 3] }).unwrap(), "3");
    }

    #[test]
    fn the_longest_template_that_is_read_takes_no_more_than_a_stack() {
        let row = |first: &str, next: &str, last: &str| format!("{first}{}{last}", next.repeat(900));
        for source in [
            row("{% if no %}", "{% elif no %}", "{% endif %}"),
            row("", "{% if yes %}", ""),
            format!("{{{{ yes{} }}}}", "|upper".repeat(45)),
            format!("{{{{ {}yes }}}}", "not ".repeat(90)),
        ] {
            assert_eq!(template_text::check(&source), Ok(()));
            let mut environment = language::of_texts();
            // Read or refused, and nothing worse.
            let read = environment.add_template_owned("test", source).is_ok();
            let template = read.then(|| environment.get_template("test").unwrap());
            let _ = template.map(|template| template.render(context! { no => false, yes => "x" }));
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_shows_the_template() {
        let error = render("# {{ nobody }}", context! {}).unwrap_err().to_string();
        assert!(error.contains("report-templates/test") && error.contains("nobody"), "{error}");
    }
}
