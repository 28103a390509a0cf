//! Cells that are ended from outside at moments which no clock gives for sure, and what cells that fail say.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "a part of the program, in a program of tests"
)]

#[path = "../src/cells.rs"]
mod cells;
#[path = "../src/diagnostics.rs"]
mod diagnostics;
#[path = "../src/file.rs"]
mod file;
#[path = "../src/inside.rs"]
mod inside;
#[path = "../src/pictures.rs"]
mod pictures;
#[path = "../src/places.rs"]
mod places;
#[path = "../src/session.rs"]
mod session;

use std::sync::{Arc, OnceLock};

use session::{ATTRIBUTES, Control, Session};

fn main() {
    cells::become_cells().unwrap();
    let mut session = Session::new(None).unwrap();
    session.run("let kept = 1;\nfn two() -> u32 { 2 }");
    a_cell_that_is_ended_behind_its_last_word_has_failed_and_the_next_one_runs(&mut session);
    a_cell_that_is_ended_while_it_is_compiled_has_failed_and_the_next_one_runs(&mut session);
    an_end_between_two_cells_ends_nothing(&mut session);
    a_cell_that_looks_whether_it_is_interrupted_ends_itself_and_keeps_the_variables();
    a_cell_that_fails_says_at_which_line(&mut session);
    an_error_that_nobody_looked_at_fails(&mut session);
    a_number_of_no_type_is_shown(&mut session);
    all_displays_are_shown(&mut session);
    println!("cells that are ended, cells that fail and what cells show: 8 passed");
}

/// The cell `code` with an end that comes when evcxr is done with it.
fn ended_behind(session: &mut Session, code: &str) {
    let result = session.execute(code);
    session.control().end("ended here");
    let failure = session.came_to(code, result).failure.unwrap_or_else(|| panic!("`{code}` did not fail"));
    assert_eq!(failure.name, "Interrupted");
    assert!(failure.text.contains("ended here") && failure.text.contains("variables are lost"), "{}", failure.text);
}

/// That the next cell finds functions and no variables.
fn next_cell_runs(session: &mut Session) {
    let left = session.run("println!(\"{}\", two());");
    assert!(left.failure.is_none(), "{}", left.failure.unwrap().text);
    assert_eq!(left.texts, [("stdout", "2\n".to_owned())]);
    assert_eq!(session.run("kept").failure.unwrap().name, "CompileError", "the variable is lost");
    assert!(session.run("let kept = 1;").failure.is_none());
}

fn a_cell_that_is_ended_behind_its_last_word_has_failed_and_the_next_one_runs(session: &mut Session) {
    ended_behind(session, "let more = kept + 1;");
    next_cell_runs(session);
    // Of a cell that ended its process itself, the end may meet the process for the next one.
    ended_behind(session, "std::process::exit(0);");
    next_cell_runs(session);
}

fn a_cell_that_is_ended_while_it_is_compiled_has_failed_and_the_next_one_runs(session: &mut Session) {
    ended_behind(session, "let wrong: u32 = \"six\";");
    next_cell_runs(session);
}

fn an_end_between_two_cells_ends_nothing(session: &mut Session) {
    session.control().end("too late");
    let left = session.run("kept");
    assert!(left.failure.is_none(), "{}", left.failure.unwrap().text);
}

fn a_cell_that_looks_whether_it_is_interrupted_ends_itself_and_keeps_the_variables() {
    let control: Arc<OnceLock<Arc<Control>>> = Arc::default();
    let own = Arc::clone(&control);
    let interrupt = move |_: &str, text: &str| {
        if text == "runs\n" {
            own.get().unwrap().interrupt();
        }
    };
    let mut session = Session::new(Some(Box::new(interrupt))).unwrap();
    let _ = control.set(session.control());
    session.run("let kept = 1;");
    let waits = "println!(\"runs\");\nlet file = std::env::var_os(\"SYNCSCOPE_INTERRUPT\").unwrap();\n\
                 while !std::path::Path::new(&file).exists() { std::thread::yield_now(); }";
    let failure = session.run(waits).failure.unwrap();
    assert!(failure.name == "Interrupted" && failure.value.contains("variables are kept"), "{}", failure.text);
    assert!(session.run("let more = kept + 1;").failure.is_none());
    session.control().kill();
}

fn a_cell_that_fails_says_at_which_line(session: &mut Session) {
    let place = |session: &mut Session, code: &str| session.run(code).failure.unwrap().place;
    let panicked = place(session, "fn third(list: &[u32]) -> u32 {\n    list[2]\n}\nlet list = vec![1];\n\nlist[1];");
    assert_eq!(panicked.as_deref(), Some("at line 6 of the cell: list[1];"));
    assert_eq!(place(session, "third(&[]);").as_deref(), Some("in a cell before: list[2]"));
    let failure = session.run("// µs\nlet wrong: u32 = \"six\";").failure.unwrap();
    assert!(failure.text.contains("cell:2:18") && failure.value == "mismatched types", "{}", failure.text);
    assert!(session.run("let taken = vec![1];").failure.is_none() && session.run("drop(taken);").failure.is_none());
    let failure = session.run("taken.len()").failure.unwrap();
    assert!(failure.text.contains("`&taken`"), "{}", failure.text);
    for (code, at) in [
        ("let x = 1;\nx / 0", "cell:2:1"),
        ("let x = 1;\nuse no::such;", "cell:2:5"),
        ("let x = 1;\nif x > 0 {", "cell:2:10"),
    ] {
        let failure = session.run(code).failure.unwrap();
        let text = failure.placed(&failure.text);
        assert!(text.contains(at), "{text}");
    }
}

fn an_error_that_nobody_looked_at_fails(session: &mut Session) {
    assert!(session.run(&format!("{ATTRIBUTES}let one = \"1\";")).failure.is_none());
    let forgotten = session.run("one.parse::<u32>();").failure.unwrap();
    assert!(forgotten.name == "CompileError" && forgotten.value.contains("unused `Result`"), "{}", forgotten.text);
    let left = session.run("\"two\".parse::<u32>()");
    assert!(left.shown.is_empty() && left.failure.unwrap().value.starts_with("Err(ParseIntError"));
    assert_eq!(session.run("one.parse::<u32>()").shown, [[("text/plain".to_owned(), "Ok(1)".to_owned())]]);
}

fn a_number_of_no_type_is_shown(session: &mut Session) {
    assert_eq!(session.run("let c = 3;\nc").shown, [[("text/plain".to_owned(), "3".to_owned())]]);
}

fn all_displays_are_shown(session: &mut Session) {
    let block = |text: &str| format!("println!(\"EVCXR_BEGIN_CONTENT text/plain\\n{text}\\nEVCXR_END_CONTENT\");\n");
    let left = session.run(&format!("{}{}3", block("one"), block("two")));
    assert_eq!(left.shown, ["one", "two", "3"].map(|text| [("text/plain".to_owned(), text.to_owned())]));
}
