//! The templates of the pages, and the one rule by which they escape: what is not marked as safe is text.

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior, Value};

use crate::error::FileError;
use crate::present::escape;
use crate::units::counted;

/// The page that a template makes.
pub(super) fn page(template: &str, context: Value) -> Result<String, FileError> {
    let failed = |error: Error| FileError::whole("the template of a page", format!("{error:#}"));
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build();
    environment.set_syntax(syntax.map_err(failed)?);
    environment.set_auto_escape_callback(|_| AutoEscape::Custom("html".into()));
    environment.set_formatter(|out, _, value| {
        let text = if value.is_safe() { value.to_string() } else { escape(&value.to_string()) };
        out.write_str(&text).map_err(Error::from)
    });
    environment.add_function("counted", |count: u64, noun: &str| counted(count, noun));
    environment.add_function("left_out", |all: usize, most: usize, noun: &str| match all.saturating_sub(most) {
        0 => Value::from_safe_string(String::new()),
        more => {
            let more = counted(more, noun);
            Value::from_safe_string(format!("<p>And {more} more, for which this page has no place.</p>\n"))
        }
    });
    environment.add_filter("tenths", |value: f64| Value::from_safe_string(format!("{value:.1}")));
    environment.render_str(template, context).map_err(failed)
}
