//! The student's notebook, made of the teacher's: what nbgrader's `generate_assignment` makes of it, with the outputs of
//! the cells that belong to no task.

use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Value, json};

use super::cells::{Lab, is_code, mark, source};
use crate::UsageError;

/// What begins and ends a worked answer.
const BEGIN: &str = "### BEGIN SOLUTION";
const END: &str = "### END SOLUTION";
/// What stands in the place of one; `book/answers/nbgrader_config.py` has the same.
const STUB: [&str; 2] = ["// YOUR CODE HERE", "todo!(\"your answer\")"];
/// The same in a cell of text.
const STUB_OF_TEXT: [&str; 1] = ["YOUR ANSWER HERE"];

impl Lab {
    /// The student's notebook, as the text of its file.
    pub(super) fn released(mut self) -> Result<String, UsageError> {
        let name = self.name.clone();
        for cell in self.content["cells"].as_array_mut().into_iter().flatten() {
            release(cell).map_err(|message| UsageError(format!("{name}: {message}")))?;
        }
        let mut text = Vec::new();
        // As Jupyter writes notebooks.
        let written =
            self.content.serialize(&mut Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b" ")));
        written.map_err(|error| UsageError(format!("{name}: {error}")))?;
        text.push(b'\n');
        String::from_utf8(text).map_err(|error| UsageError(format!("{name}: {error}")))
    }

    /// Whether each of its tasks has its stub and no answer, neither a worked one nor a student's.
    pub(super) fn is_unanswered(&self) -> bool {
        self.cells().iter().all(|cell| {
            let (text, is_task) = (source(cell), mark(cell).is_some_and(|mark| mark.solution));
            let stub = if is_code(cell) { STUB[1] } else { STUB_OF_TEXT[0] };
            !text.contains(BEGIN) && (!is_task || text.contains(stub))
        })
    }
}

/// Makes a cell the student's.
fn release(cell: &mut Value) -> Result<(), String> {
    let text = source(cell);
    let mark = mark(cell);
    let is_task = mark.as_ref().is_some_and(|mark| mark.solution);
    let stub: &[&str] = if is_code(cell) { &STUB } else { &STUB_OF_TEXT };
    let (stripped, found) = stripped(&text, stub)?;
    let text = match (found, is_task) {
        (true, false) => return Err(format!("a worked answer stands in a cell that is no task:\n{text}")),
        (false, true) => stub.join("\n"),
        _ => stripped,
    };
    cell["source"] = text.split_inclusive('\n').collect();
    let Some(mark) = mark else { return Ok(()) };
    if mark.grade || mark.solution || mark.locked {
        cell["metadata"]["deletable"] = json!(false);
    }
    if !mark.solution && (mark.grade || mark.locked) {
        cell["metadata"]["editable"] = json!(false);
    }
    if is_code(cell) && (mark.grade || mark.solution) {
        cell["outputs"] = json!([]);
        cell["execution_count"] = Value::Null;
    }
    Ok(())
}

/// A text with a stub in the place of each worked answer, and whether there was one.
fn stripped(text: &str, stub: &[&str]) -> Result<(String, bool), String> {
    let (mut lines, mut within, mut found) = (Vec::new(), false, false);
    for line in text.split('\n') {
        if line.contains(BEGIN) {
            if within {
                return Err(format!("`{BEGIN}` stands within a worked answer:\n{text}"));
            }
            (within, found) = (true, true);
            let indent = &line[..line.len() - line.trim_start().len()];
            lines.extend(stub.iter().map(|line| format!("{indent}{line}")));
        } else if line.contains(END) {
            within = false;
        } else if !within {
            lines.push(line.to_owned());
        }
    }
    if within {
        return Err(format!("a worked answer has no `{END}`:\n{text}"));
    }
    Ok((lines.join("\n"), found))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn cell(source: &str, nbgrader: Value) -> Value {
        let output = json!([{"output_type": "stream", "name": "stdout", "text": ["1\n"]}]);
        json!({"cell_type": "code", "id": "a", "metadata": {"nbgrader": nbgrader}, "execution_count": 1,
            "source": source, "outputs": output})
    }

    fn task() -> Value {
        json!({"grade": false, "grade_id": "t", "locked": false, "solution": true})
    }

    #[test]
    fn a_worked_answer_becomes_a_stub_at_its_own_indentation() {
        let text = "fn f() -> u32 {\n    // ### BEGIN SOLUTION\n    let x = 1;\n    x\n    // ### END SOLUTION\n}";
        let mut cell = cell(text, task());
        release(&mut cell).unwrap();
        assert_eq!(source(&cell), "fn f() -> u32 {\n    // YOUR CODE HERE\n    todo!(\"your answer\")\n}");
        assert_eq!((&cell["outputs"], &cell["execution_count"]), (&json!([]), &Value::Null));
        assert_eq!(cell["metadata"]["deletable"], false);
        assert!(cell["metadata"].get("editable").is_none(), "a task can be edited");
    }

    #[test]
    fn a_task_without_marks_becomes_a_stub_as_a_whole_and_a_check_is_locked() {
        let mut whole = cell("let x = 1;", task());
        release(&mut whole).unwrap();
        assert_eq!(source(&whole), STUB.join("\n"));
        let check = json!({"grade": true, "grade_id": "c", "locked": true, "points": 2, "solution": false});
        let mut check = cell("assert!(x == 1);", check);
        release(&mut check).unwrap();
        assert_eq!(source(&check), "assert!(x == 1);");
        assert_eq!((&check["metadata"]["deletable"], &check["metadata"]["editable"]), (&json!(false), &json!(false)));
        assert_eq!(check["outputs"], json!([]));
    }

    #[test]
    fn a_cell_that_belongs_to_no_task_keeps_its_outputs() {
        let mut shown = cell("1 + 1", Value::Null);
        let before = (shown["outputs"].clone(), source(&shown));
        release(&mut shown).unwrap();
        assert_eq!((shown["outputs"].clone(), source(&shown)), before);
    }

    #[test]
    fn marks_that_do_not_fit_are_refused() {
        for (text, nbgrader) in [
            ("// ### BEGIN SOLUTION\n1", task()),
            ("// ### BEGIN SOLUTION\n// ### BEGIN SOLUTION\n// ### END SOLUTION", task()),
            ("// ### BEGIN SOLUTION\n1\n// ### END SOLUTION", Value::Null),
        ] {
            assert!(release(&mut cell(text, nbgrader)).is_err(), "{text}");
        }
    }

    /// The folder of the teacher's notebooks, which an archive of the repository leaves out.
    fn answers() -> Option<PathBuf> {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let folder = root.join("book/answers");
        (folder.exists() || root.join(".git").exists()).then_some(folder)
    }

    /// The teacher's notebooks.
    fn sources() -> Vec<(String, Lab)> {
        let folder = answers().map(fs::read_dir).into_iter();
        let paths = folder.flat_map(Result::unwrap).map(|entry| entry.unwrap().path());
        let notebooks = paths.filter(|path| path.extension().is_some_and(|ending| ending == "ipynb"));
        let read = |path: std::path::PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let lab = Lab::parse(&name, &fs::read_to_string(&path).unwrap()).unwrap();
            (name, lab)
        };
        notebooks.map(read).collect()
    }

    #[test]
    fn each_students_notebook_is_what_is_made_of_the_teachers() {
        let sources = sources();
        assert!(!sources.is_empty() || answers().is_none());
        for (name, lab) in sources {
            let kept = fs::read_to_string(
                Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("notebooks").join(&name),
            )
            .unwrap();
            let (kept, made): (Value, Value) =
                (serde_json::from_str(&kept).unwrap(), serde_json::from_str(&lab.released().unwrap()).unwrap());
            assert!(kept == made, "{name}: run `report lab release book/answers/*.ipynb --out notebooks`");
        }
    }

    #[test]
    fn the_names_of_checks_are_of_one_lab_alone_and_each_check_follows_a_task() {
        let mut names = Vec::new();
        for (name, lab) in sources() {
            let marks: Vec<_> = lab.cells().iter().filter_map(mark).collect();
            let mut filled = false;
            for mark in &marks {
                assert!(!mark.grade || filled && mark.points > 0.0 && mark.locked, "{name}: {}", mark.grade_id);
                filled |= mark.solution;
            }
            names.extend(marks.into_iter().map(|mark| mark.grade_id));
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn nbgrader_is_told_the_same_stub() {
        let Some(folder) = answers() else { return };
        let config = fs::read_to_string(folder.join("nbgrader_config.py")).unwrap();
        let stub = format!("{:?}", STUB.join("\n"));
        assert!(config.contains(&stub) && config.contains(&format!("\"{}\"", STUB_OF_TEXT.join("\n"))), "{stub}");
    }
}
