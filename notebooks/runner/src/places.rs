//! Where in a cell something happened.
//!
//! evcxr puts the statements of a cell into a function and its items above it, each with its lines as they are, so a line of
//! the generated source is one of the cell where both have the same text. Between several such lines, the lines around decide.

/// Begins evcxr's line that shows the value of a cell.
const SHOWS: &str = "evcxr_send_text_plain(";

/// What a place in the generated source is to the reader of a notebook: the line of the `cell`, or of a cell before it.
pub(crate) fn told(cell: &str, source: &str, line: usize) -> Option<String> {
    let text_of = |line: usize| Some(source.lines().nth(line.checked_sub(1)?)?.trim());
    // A value that is shown stands behind the line that shows it.
    let line = if text_of(line)?.starts_with(SHOWS) { line + 1 } else { line };
    let text = text_of(line)?;
    Some(match line_of(cell, source, line) {
        Some(number) => format!("at line {number} of the cell: {}", cell.lines().nth(number - 1)?.trim()),
        None => format!("in a cell before: {text}"),
    })
}

/// The line of the `cell` that a line of the generated `source` is; both count from 1.
fn line_of(cell: &str, source: &str, line: usize) -> Option<usize> {
    let (cell, source): (Vec<&str>, Vec<&str>) = (cell.lines().collect(), source.lines().collect());
    // A statement that begins within a line of the cell begins a line of the source.
    let is_same = |own: Option<&&str>, made: Option<&&str>| {
        own.zip(made).is_some_and(|(own, made)| own.contains(made.trim()) && !made.trim().is_empty())
    };
    let around = |own: usize| {
        let above = (1..=own.min(line - 1)).take_while(|up| is_same(cell.get(own - up), source.get(line - 1 - up)));
        let below = (1..cell.len() - own).take_while(|down| is_same(cell.get(own + down), source.get(line - 1 + down)));
        above.count() + below.count()
    };
    let alike = (0..cell.len()).filter(|own| is_same(cell.get(*own), source.get(line - 1)));
    alike.rev().max_by_key(|own| around(*own)).map(|own| own + 1)
}

/// The line of the generated source that a place in it names, such as `src/lib.rs:107:5`.
pub(crate) fn line_in_source(place: &str) -> Option<usize> {
    place.strip_prefix("src/lib.rs:")?.split(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: &str = "let list = [1];\nlet at = 3;\nfor x in list {\n    check(x);\n}\nfn check(x: u32) {\n    \
                        assert!(x > 1);\n}\nlet y = 1; panic!();\nfor x in list {\n    check(x);\n}";
    const SOURCE: &str = "fn check(x: u32) {\n    assert!(x > 1);\n}\nfn older() {\n    todo!()\n}\nlet list = [1];\n\
                          let at = 3;\nfor x in list {\n    check(x);\n}\nlet y = 1;\npanic!();\nfor x in list {\n    \
                          check(x);\n}\nstore(list);";

    #[test]
    fn a_line_of_the_source_is_that_of_the_cell_whose_surroundings_it_has() {
        let found = |line| line_of(CELL, SOURCE, line);
        assert_eq!([found(2), found(10), found(13), found(15)], [Some(7), Some(4), Some(9), Some(11)]);
        assert_eq!(found(17), None);
    }

    #[test]
    fn a_place_is_told_with_its_text() {
        assert_eq!(told(CELL, SOURCE, 2).as_deref(), Some("at line 7 of the cell: assert!(x > 1);"));
        assert_eq!(told(CELL, SOURCE, 5).as_deref(), Some("in a cell before: todo!()"));
        assert_eq!(told(CELL, SOURCE, 99), None);
        let shown = "let a = 5;\nevcxr_send_text_plain(&format!(\"{:?}\",&(\na / (a - 5)\n)));";
        assert_eq!(told("let a = 5;\na / (a - 5)", shown, 2).as_deref(), Some("at line 2 of the cell: a / (a - 5)"));
        assert_eq!(line_in_source("src/lib.rs:107:5"), Some(107));
        assert_eq!(line_in_source("/library/src/lib.rs:107:5"), None);
    }
}
