//! What a notebook's program writes on its standard output, and its way back into the notebook.
//!
//! The record is what evcxr's kernel reads of a cell, with a line before each cell that names it, and one at the end:
//! without that the program did not come to it.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use crate::file::{Failure, File, Left};

/// Begins a cell; its identifier follows.
pub(crate) const CELL: &str = "NOTEBOOK_CELL ";
/// Says why the cell failed; the message follows, its line ends as `\n`.
pub(crate) const FAILED: &str = "NOTEBOOK_FAILED ";
/// Ends the record of a program that ran all cells.
pub(crate) const DONE: &str = "NOTEBOOK_DONE";

/// Stores the outputs of a record in its notebook, at `out` where that is given. Whether all cells ran; what did not is
/// said, and nothing is stored.
pub(crate) fn store(notebook: &Path, record: &Path, out: Option<&Path>) -> anyhow::Result<bool> {
    let mut file = File::read(notebook)?;
    let text = fs::read_to_string(record).with_context(|| record.display().to_string())?;
    let cells = parse(&text).with_context(|| record.display().to_string())?;
    if let Some((id, failure)) = cells.iter().find_map(|(id, left)| Some((id, left.failure.as_ref()?))) {
        eprintln!("{}: cell {id}: {}", record.display(), failure.text);
        return Ok(false);
    }
    let (ran, has): (Vec<&String>, Vec<String>) =
        (cells.iter().map(|(id, _)| id).collect(), file.code_cells().into_iter().map(|cell| cell.id).collect());
    if !ran.iter().copied().eq(&has) {
        bail!("{} is a record of other cells than those of {}", record.display(), notebook.display());
    }
    let left: Vec<Left> = cells.into_iter().map(|(_, left)| left).collect();
    file.set_outputs(&left)?;
    let changed = file.write(out)?;
    println!(
        "{}: {} cells{}",
        out.unwrap_or(notebook).display(),
        left.len(),
        if changed { ", outputs stored" } else { "" }
    );
    Ok(true)
}

/// The cells of a record and what each left.
fn parse(text: &str) -> anyhow::Result<Vec<(String, Left)>> {
    let mut cells: Vec<(String, Left)> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(id) = line.strip_prefix(CELL) {
            cells.push((id.to_owned(), Left::default()));
            continue;
        }
        if line == DONE {
            return Ok(cells);
        }
        let Some((_, left)) = cells.last_mut() else { bail!("`{line}` stands before the first cell") };
        if let Some(message) = line.strip_prefix(FAILED) {
            left.failure = Some(Failure::new("Error", message.replace("\\n", "\n")));
            return Ok(cells);
        }
        match line.strip_prefix("EVCXR_BEGIN_CONTENT ") {
            Some(mime) => {
                let content: Vec<&str> = lines.by_ref().take_while(|line| *line != "EVCXR_END_CONTENT").collect();
                left.shows(mime, content.join("\n"));
            }
            None => left.texts.push(("stdout", format!("{line}\n"))),
        }
    }
    match cells.last_mut() {
        Some((_, left)) => left.failure = Some(Failure::new("ProcessEnded", "the program ended here".to_owned())),
        None => bail!("it names no cell"),
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_gives_each_cell_its_lines_and_its_displays() {
        let text = "NOTEBOOK_CELL a\none\nEVCXR_BEGIN_CONTENT text/plain\nx\n\ny\nEVCXR_END_CONTENT\ntwo\nNOTEBOOK_CELL b\n\
                    EVCXR_BEGIN_CONTENT text/plain\n1\nEVCXR_END_CONTENT\nEVCXR_BEGIN_CONTENT text/plain\n2\n\
                    EVCXR_END_CONTENT\nNOTEBOOK_DONE\n";
        let cells = parse(text).unwrap();
        assert_eq!(cells[0].1.texts, [("stdout", "one\n".to_owned()), ("stdout", "two\n".to_owned())]);
        assert_eq!(cells[0].1.shown, [[("text/plain".to_owned(), "x\n\ny".to_owned())]]);
        let second = ["1", "2"].map(|text| [("text/plain".to_owned(), text.to_owned())]);
        assert_eq!(cells[1].1.shown, second);
        assert!(cells.iter().all(|(_, left)| left.failure.is_none()));
    }

    #[test]
    fn a_record_that_was_cut_short_has_a_failed_cell() {
        let cells = parse("NOTEBOOK_CELL a\nNOTEBOOK_CELL b\nNOTEBOOK_FAILED no\\nroom\n").unwrap();
        assert_eq!(cells[1].1.failure.as_ref().map(|failure| failure.value.as_str()), Some("no\nroom"));
        let cells = parse("NOTEBOOK_CELL a\nEVCXR_BEGIN_CONTENT text/plain\n").unwrap();
        assert!(cells[0].1.failure.is_some());
    }
}
