//! Why a cell did not compile, as the notebook shows it: each error with its lines of the cell.

use std::collections::HashSet;
use std::ops::Range;

use ariadne::{Label, Report, ReportKind};
use evcxr::CompilationError;
use serde_json::Value;
use syn::parse::Parser;
use syn::{Block, Expr, Pat, Stmt};

use crate::file::Failure;

/// What a report calls the cell.
const CELL: &str = "cell";
/// What points to an attribute that no cell holds.
const LEVEL: &str = "the lint level is defined here";

/// The failure that the compiler's errors in the cell `code` are; cells before it made variables of the names in `gone`.
pub(crate) fn not_compiled(code: &str, errors: &[CompilationError], gone: &HashSet<&str>) -> Failure {
    let mut text = Vec::new();
    // Warnings stand beside errors only.
    for error in errors.iter().filter(|error| error.level() == "error") {
        let source = ariadne::sources([(CELL.to_owned(), code.to_owned())]);
        // Writing to memory does not fail.
        let _ = report(code, error, gone).write(source, &mut text);
    }
    let value = errors.iter().find(|error| error.level() == "error").map(CompilationError::message).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let text = format!("the cell does not compile:\n{}", text.trim_end());
    Failure { text, ..Failure::new("CompileError", value) }
}

/// An error at its lines; where evcxr knows none, at what reads as the compiler quotes it, or at the first line of the cell.
fn report(code: &str, error: &CompilationError, gone: &HashSet<&str>) -> Report<'static, (String, Range<usize>)> {
    let messages =
        error.primary_spanned_message().into_iter().chain(error.spanned_messages()).chain(error.help_spanned());
    let messages = messages.map(|message| {
        let range = message
            .span
            .map(|span| at(code, span.start_line, span.start_column)..at(code, span.end_line, span.end_column));
        (range, message.label.clone())
    });
    let mut messages: Vec<(Option<Range<usize>>, String)> = messages.collect();
    if messages.iter().all(|(range, _)| range.is_none())
        && let Some((range, text)) = same_text(code, &error.json).or_else(|| no_rust(code))
    {
        // The first stands among the others, too.
        messages.splice(0..0, [(Some(range.clone()), String::new()), (Some(range), text)]);
    }
    let primary = messages.first().and_then(|(range, _)| range.clone()).unwrap_or(0..0);
    let mut report = Report::build(ReportKind::Error, (CELL.to_owned(), primary)).with_message(error.message());
    if let Some(code) = error.code() {
        report = report.with_code(code);
    }
    messages.drain(..messages.len().min(1));
    for (range, text) in messages.into_iter().filter(|(_, text)| !text.is_empty() && !text.contains(LEVEL)) {
        match range {
            Some(range) => report.add_label(Label::new((CELL.to_owned(), range)).with_message(text).with_order(10)),
            None => report.add_note(text),
        }
    }
    if matches!(error.code(), Some("E0384" | "E0594" | "E0596")) {
        report.add_note("An existing variable becomes one that can change by `let mut x = x;`");
    }
    // cannot find value `x` in this scope
    let message = error.message();
    let missing = message.split('`').nth(1).filter(|_| error.code() == Some("E0425"));
    if let Some(name) = missing.filter(|name| gone.contains(name)) {
        report.add_note(format!(
            "A cell before made `{name}`, and it is gone: it was moved (pass `&{name}` or `{name}.clone()` instead), or lost with \
             its process or its type. Run the cell that makes it again"
        ));
    }
    report.finish()
}

/// The characters of the `code` that read as what an error of the compiler is about, and what it says there.
fn same_text(code: &str, error: &Value) -> Option<(Range<usize>, String)> {
    let span = error["spans"].as_array()?.iter().find(|span| span["is_primary"] == true)?;
    let quoted = |line: &Value| {
        let column = |name: &str| usize::try_from(line[name].as_u64()?).ok()?.checked_sub(1);
        let (start, end) = (column("highlight_start")?, column("highlight_end")?);
        let quoted: String = line["text"].as_str()?.chars().take(end).skip(start).collect();
        let (quoted, length) = (quoted.trim(), quoted.trim().chars().count());
        // The last of several: that a value is shown is behind all else.
        let is_whole = |(at, _): &(usize, &str)| {
            let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            let joins = |one: Option<char>, other: Option<char>| one.is_some_and(is_name) && other.is_some_and(is_name);
            let (before, behind) = (&code[..*at], &code[at + quoted.len()..]);
            !joins(before.chars().next_back(), quoted.chars().next())
                && !joins(quoted.chars().next_back(), behind.chars().next())
        };
        let (at, _) = code.match_indices(quoted).filter(|_| length > 0).filter(is_whole).last()?;
        let begin = code[..at].chars().count();
        Some(begin..begin + length)
    };
    // Of several lines some are evcxr's.
    let longest = span["text"].as_array()?.iter().filter_map(quoted).max_by_key(ExactSizeIterator::len)?;
    let label = span["label"].as_str().filter(|label| !label.is_empty()).unwrap_or("here");
    Some((longest, label.to_owned()))
}

/// Where a cell ceases to be Rust, if it is none.
fn no_rust(code: &str) -> Option<(Range<usize>, String)> {
    let (line, column) = place_of(code, &statements(code).err()?);
    let begin = at(code, line, column + 1);
    Some((begin..begin + 1, "here".to_owned()))
}

/// The line, from 1, and the column, from 0, of an error: of one at the end, which has none, those of the end.
fn place_of(code: &str, error: &syn::Error) -> (usize, usize) {
    let place = error.span().start();
    let last = code.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).last();
    match last.filter(|_| error.to_string().starts_with("unexpected end of input")) {
        Some((line, text)) => (line + 1, text.trim_end().chars().count().saturating_sub(1)),
        None => (place.line.max(1), place.column),
    }
}

/// The character of the `code` at a line and a column, which count from 1.
fn at(code: &str, line: usize, column: usize) -> usize {
    let before: usize = code.split('\n').take(line - 1).map(|line| line.chars().count() + 1).sum();
    before + column - 1
}

/// The statements of a cell; an error where it is no Rust.
fn statements(code: &str) -> syn::Result<Vec<Stmt>> {
    // Commands, calls of a shell, and attributes of the whole, which evcxr knows.
    let is_evcxr = |line: &str| [":", "!", "#!["].iter().any(|sign| line.trim_start().starts_with(sign));
    let own = code.lines().map(|line| if is_evcxr(line) { "" } else { line });
    Block::parse_within.parse_str(&own.collect::<Vec<_>>().join("\n"))
}

/// Why a cell's code is no Rust, if it is none.
pub(crate) fn unparsed(code: &str) -> Option<Failure> {
    let error = statements(code).err()?;
    let (line, _) = place_of(code, &error);
    let text = code.lines().nth(line.saturating_sub(1));
    let place = text.map(|text| format!("at line {line} of the cell: {}", text.trim()));
    Some(Failure { place, ..Failure::new("CompileError", format!("the cell is not Rust: {error}")) })
}

/// The failure that a cell is before it is compiled: it keeps a closure, whose type no later cell can name.
pub(crate) fn closure_kept(code: &str) -> Option<Failure> {
    let statements = statements(code).ok()?;
    // The last variable of a name is the one that is kept.
    let mut seen = HashSet::new();
    let last = statements.iter().rev().filter_map(variable).filter(|(name, _)| seen.insert(name.clone()));
    let (name, _) = last.filter(|(_, is_closure)| *is_closure).last()?;
    let text = format!(
        "the variable `{name}` is a closure, whose type has no name, so it cannot be kept for later cells\nBox it, with the \
         types of its arguments and of what it returns: `let {name}: Box<dyn Fn(i32) -> i32> = Box::new(|x| x + 1);`. Or \
         write a function, or put braces around the lines that use it."
    );
    Some(Failure::new("CompileError", text))
}

/// What evcxr says of a cell, where it knows no type to keep a variable by in words that help.
pub(crate) fn of_evcxr(said: &str) -> String {
    let variable = said.strip_prefix("The variable `").and_then(|said| said.split_once("` "));
    let unkept = variable.and_then(|(name, said)| {
        let kind = said.strip_prefix("has type `").and_then(|said| said.split_once("` which cannot be persisted"));
        let is_closure = said.starts_with("is a closure, which cannot be persisted");
        kind.map(|(kind, _)| (name, format!("has the type `{kind}`")))
            .or(is_closure.then(|| (name, "is a closure".to_owned())))
    });
    unkept.map_or_else(
        || said.to_owned(),
        |(name, is)| {
            format!(
                "the variable `{name}` {is}, whose type has no name, so it cannot be kept for later cells\nKeep what has a \
                 type: a function in a box (`let f: Box<dyn Fn(i32) -> i32> = Box::new(f);`), what an iterator gives in a \
                 list (`.collect::<Vec<_>>()`). Or put braces around the lines that use it."
            )
        },
    )
}

/// The one variable that a statement makes, and whether it is a closure by its value alone.
fn variable(statement: &Stmt) -> Option<(String, bool)> {
    let Stmt::Local(local) = statement else { return None };
    let (pattern, is_typed) = match &local.pat {
        Pat::Type(typed) => (&*typed.pat, true),
        pattern => (pattern, false),
    };
    let Pat::Ident(name) = pattern else { return None };
    let is_closure = local.init.as_ref().is_some_and(|value| matches!(&*value.expr, Expr::Closure(_)));
    Some((name.ident.to_string(), is_closure && !is_typed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_is_no_rust_is_told_from_code_that_is() {
        let failure = unparsed(":dep regex = \"1\"\nlet x = 1;\nlet = 7;").unwrap();
        assert!(failure.value.contains("not Rust"));
        assert_eq!(failure.place.as_deref(), Some("at line 3 of the cell: let = 7;"));
        let failure = unparsed("let a = 1;\nlet b =\n").unwrap();
        assert_eq!(failure.place.as_deref(), Some("at line 2 of the cell: let b ="));
        assert!(unparsed(":dep regex = \"1\"\n#![allow(unused)]\n// only words\n").is_none());
        assert!(unparsed("let x = 1;\nx").is_none());
    }

    #[test]
    fn a_closure_is_to_be_boxed_unless_it_is_gone_at_the_end_or_has_a_type() {
        assert!(closure_kept("let f = |a: i32| a + 1;").unwrap().value.contains("`let f: Box<dyn Fn("));
        assert!(closure_kept("let mut f = move || 1;\nf()").is_some());
        for kept in [
            "let f: fn(i32) -> i32 = |a| a + 1;",
            "{ let f = |a: i32| a + 1; f(1) }",
            "let f = Box::new(|| 1);",
            "let f = |a: i32| a + 1;\nlet f = f(2);\nf",
        ] {
            assert!(closure_kept(kept).is_none(), "{kept}");
        }
    }

    #[test]
    fn a_variable_that_evcxr_cannot_keep_is_told_by_its_type() {
        let of = |rest| of_evcxr(&format!("The variable `f` {rest}"));
        let boxed = of("has type `Box<impl Fn(i32)>` which cannot be persisted.\nYou might");
        assert!(boxed.contains("`f` has the type `Box<impl Fn(i32)>`, whose") && boxed.contains("collect"), "{boxed}");
        assert!(of("is a closure, which cannot be persisted.\nYou").contains("`f` is a closure, whose"));
        assert_eq!(of("was moved"), "The variable `f` was moved");
    }

    #[test]
    fn an_error_without_a_place_in_the_cell_is_where_the_cell_reads_as_the_compiler_quotes_it() {
        let of = |text: &str, start: u64, end: u64| {
            let shows = serde_json::json!({"text": "show(&(", "highlight_start": 7, "highlight_end": 8});
            let text = serde_json::json!([shows, {"text": text, "highlight_start": start, "highlight_end": end}]);
            serde_json::json!({"spans": [{"is_primary": false}, {"is_primary": true, "label": "no", "text": text}]})
        };
        let found = same_text("// é\nlet x = 1;\nx / 0", &of("show(&(x / 0));", 8, 13));
        assert_eq!(found, Some((16..21, "no".to_owned())));
        assert_eq!(same_text("x / 0", &of("show(&(y / 0));", 8, 13)), None);
        let found = same_text("use no::such;\nlet note = 1;", &of("use no::such;", 5, 7));
        assert_eq!(found, Some((4..6, "no".to_owned())));
    }

    #[test]
    fn a_column_is_a_character_whatever_stands_before_it() {
        assert_eq!("µ = 1;\nlet x: u32 = \"six\";".chars().nth(at("µ = 1;\nlet x", 2, 5)), Some('x'));
    }
}
