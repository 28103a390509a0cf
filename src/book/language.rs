//! The language of templates: the part of Jinja that ends, in a bounded memory, whoever wrote it.
//!
//! A course may be anybody's. What its templates can call is listed here and nowhere else, and a step is counted.

use minijinja::{Environment, UndefinedBehavior, filters, tests};

/// The most steps of a template.
pub(super) const MAX_STEPS: u64 = 2_000_000;
/// Where templates are rendered. No filter makes more than it is given, and there is no function.
pub(super) fn of_texts() -> Environment<'static> {
    let mut environment = of_nothing(MAX_STEPS);
    environment.add_filter("default", filters::default);
    environment.add_filter("first", filters::first);
    environment.add_filter("last", filters::last);
    environment.add_filter("length", filters::length);
    environment.add_filter("lower", filters::lower);
    environment.add_filter("trim", filters::trim);
    environment.add_filter("upper", filters::upper);
    environment.add_test("defined", tests::is_defined);
    environment.add_test("none", tests::is_none);
    environment
}

/// Without any filter, test or function, and with so many steps. A name without a value is an error, never something to
/// compare with.
fn of_nothing(steps: u64) -> Environment<'static> {
    let mut environment = Environment::empty();
    // An error shows the line of the template with its names, however the program was built.
    environment.set_debug(true);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(steps));
    environment
}
