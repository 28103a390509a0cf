//! The language of tests: the part of Jinja that ends, in a bounded memory.
//!
//! A step is counted, and an expression has a length, because the parser of Jinja bounds how deep parentheses are nested and
//! not how long a chain of operators is.

use minijinja::{Environment, UndefinedBehavior, filters};

/// The most steps of a test.
const MAX_STEPS: u64 = 100_000;
/// The most characters of an expression.
const MAX_CHARACTERS: usize = 1000;
/// Words of Jinja that give no number, or ask what no measured value answers.
const WORDS: [&str; 13] =
    ["and", "or", "not", "if", "else", "in", "is", "true", "false", "none", "True", "False", "None"];

/// Where a test is evaluated. Nothing can be called, and a name without a value is an error, never something to compare with.
pub(super) fn of_numbers() -> Environment<'static> {
    let mut environment = Environment::empty();
    // An error shows the line with its names, however the program was built.
    environment.set_debug(true);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(MAX_STEPS));
    environment.add_filter("abs", filters::abs);
    environment.add_filter("round", filters::round);
    environment.add_filter("max", filters::max);
    environment.add_filter("min", filters::min);
    environment
}

/// Refuses an expression that is too long, or that is no formula of names and numbers.
pub(super) fn check(expression: &str) -> Result<(), String> {
    if expression.chars().count() > MAX_CHARACTERS {
        let begin: String = expression.chars().take(40).collect();
        return Err(format!("`{begin}…` is longer than {MAX_CHARACTERS} characters"));
    }
    let wrong = |what: &str| Err(format!("`{expression}` is no formula of names and numbers: {what}"));
    let (mut rest, mut last, mut open) = (expression.trim(), Part::Sign('('), Vec::new());
    if rest.is_empty() {
        return Err("a formula is empty".to_owned());
    }
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        let length = match first {
            first if is_name(first) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
            '*' if rest.starts_with("**") => 2,
            '/' if rest.starts_with("//") => 2,
            first => first.len_utf8(),
        };
        let (token, tail) = rest.split_at(length);
        let is_behind_value = matches!(last, Part::Name | Part::Filter | Part::Sign(')' | ']'));
        let in_list = open.contains(&'[');
        let part = match first {
            '.' => return wrong("a part of a value has no value"),
            _ if WORDS.contains(&token) => return wrong(&format!("`{token}` has no meaning in it")),
            _ if is_name(first) && last == Part::Sign('|') => Part::Filter,
            _ if is_name(first) && is_behind_value => {
                return wrong(&format!("an operator is missing before `{token}`"));
            }
            _ if is_name(first) => Part::Name,
            '(' if matches!(last, Part::Name | Part::Sign(')')) => return wrong("nothing in it can be called"),
            '[' if in_list || matches!(last, Part::Name | Part::Sign(')')) => return wrong("a value has no parts"),
            '(' | '[' => {
                open.push(first);
                Part::Sign(first)
            }
            '-' => Part::Sign(first),
            ')' | ']' | ',' | '+' | '*' | '/' | '%' | '|' if !is_behind_value => {
                return wrong(&format!("a value is missing before `{token}`"));
            }
            ')' | ']' => {
                if open.pop() != Some(if first == ')' { '(' } else { '[' }) {
                    return wrong(&format!("`{token}` closes nothing"));
                }
                let filter = tail.trim_start().strip_prefix('|').map(str::trim_start);
                if first == ']' && !filter.is_some_and(|it| it.starts_with("max") || it.starts_with("min")) {
                    return wrong("of a list there is the `max` and the `min`");
                }
                Part::Sign(first)
            }
            ',' if open.last() == Some(&'[') => Part::Sign(first),
            '+' | '*' | '/' | '%' | '|' => Part::Sign(first),
            _ => return wrong(&format!("`{first}` has no meaning in it")),
        };
        last = part;
        rest = tail.trim_start();
    }
    match (open.last(), last) {
        (Some(bracket), _) => wrong(&format!("`{bracket}` is not closed")),
        (None, Part::Sign(sign)) if sign != ')' => wrong(&format!("a value is missing behind `{sign}`")),
        _ => Ok(()),
    }
}

#[derive(PartialEq)]
enum Part {
    /// A name or a number.
    Name,
    Filter,
    Sign(char),
}

#[cfg(test)]
mod tests_of_the_language {
    use super::*;

    #[test]
    fn a_formula_of_names_and_numbers_passes() {
        for formula in [
            "a",
            "a.b_1 / 2e-3 - (c|abs) ** 2",
            "(a + b)|round(2)|abs",
            "-5e-6",
            "(loop.each / x)|times",
            "a - [b, c] | max",
        ] {
            assert_eq!(check(formula), Ok(()));
        }
    }

    #[test]
    fn what_never_has_a_value_is_refused() {
        for formula in [
            "a[0]",
            "a()",
            "(a)(1)",
            "(a).b",
            "a .b",
            "a is odd",
            "a in b",
            "[a, b]",
            "[a, b] + [a]|max",
            "[[a]|max, b]|max",
            "{a}",
            "'x' * 9",
            "a, b",
            "a ~ b",
            "a + none",
            "not a",
            "µ",
        ] {
            assert!(check(formula).is_err(), "{formula}");
        }
    }

    #[test]
    fn what_is_missing_in_a_formula_is_named_in_one_line() {
        for (formula, what) in [
            ("1 s", "an operator is missing before `s`"),
            ("a|abs b", "an operator is missing before `b`"),
            ("(a) b", "an operator is missing before `b`"),
            ("a +", "a value is missing behind `+`"),
            ("a + * b", "a value is missing before `*`"),
            ("* a", "a value is missing before `*`"),
            ("a + ()", "a value is missing before `)`"),
            ("(a + b", "`(` is not closed"),
            ("a)", "`)` closes nothing"),
            ("[a)|max", "`)` closes nothing"),
            ("a|", "a value is missing behind `|`"),
        ] {
            let message = check(formula).unwrap_err();
            assert!(message.ends_with(what) && !message.contains('\n'), "{formula}: {message}");
        }
        assert_eq!(check(" ").unwrap_err(), "a formula is empty");
    }

    #[test]
    fn a_chain_of_any_kind_has_an_end() {
        for link in ["1+", "-", "a|abs|", "a.", "(", "a**"] {
            let error = check(&link.repeat(50_000)).unwrap_err();
            assert!(error.contains("longer than") && error.len() < 200, "{error}");
        }
    }
}
