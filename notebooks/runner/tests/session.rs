//! Cells that are ended from outside at moments which no clock gives for sure.

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
#[path = "../src/places.rs"]
mod places;
#[path = "../src/session.rs"]
mod session;

use session::Session;

fn main() {
    cells::become_cells().unwrap();
    let mut session = Session::new(None).unwrap();
    session.run("let kept = 1;\nfn two() -> u32 { 2 }");
    a_cell_that_is_ended_behind_its_last_word_has_failed_and_the_next_one_runs(&mut session);
    a_cell_that_is_ended_while_it_is_compiled_has_failed_and_the_next_one_runs(&mut session);
    an_end_between_two_cells_ends_nothing(&mut session);
    println!("cells that are ended: 3 passed");
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
