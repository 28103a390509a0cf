//! Executed notebooks as chapters: their text, their code and what is stored of their outputs. Nothing is executed here.
//!
//! A notebook may be anybody's. The policy of its page keeps scripts from running, and from asking other hosts. What a policy does
//! not reach is refused: an element by which a page leads elsewhere by itself, or by which a browser asks others beforehand.

use std::collections::BTreeMap;

use pulldown_cmark::{Event, Options, Parser, Tag};
use serde::Deserialize;
use serde_json::Value;
use syncscope_jupyter::INSTALL;

use super::project::BookProject;
use crate::error::{BookError, FileError};
use crate::present::escape;

/// The style of what a cell shows in the book.
pub(super) const STYLE: &str = include_str!("cell.css");

/// A notebook of a project.
pub(super) struct Notebook {
    /// The name of its file without the ending.
    pub(super) name: String,
    /// Its first heading.
    pub(super) title: String,
    /// The chapter, as Markdown.
    pub(super) chapter: String,
    /// The notebook's own text.
    pub(super) text: String,
}

/// The most headings of a notebook: of those that are alike, mdBook takes a time that grows as their square.
const MAX_HEADINGS: usize = 1000;
/// What in HTML leads a page elsewhere, asks other hosts, or is a page of its own.
const LEADING: [&str; 4] = ["<link", "<base", "http-equiv", "srcdoc"];

/// The notebooks of a project, in the order of their names.
pub(super) fn of(project: &BookProject) -> Result<Vec<Notebook>, BookError> {
    let notebook = |name: String| {
        let path = format!("notebooks/{name}.ipynb");
        Ok(made(&project.name(path.as_ref()), name, project.text(&path)?)?)
    };
    project.notebooks().map(notebook).collect()
}

/// The chapter of a notebook, which messages call `file`.
fn made(file: &str, name: String, text: &str) -> Result<Notebook, FileError> {
    let cells = read(file, text)?;
    let chapter = chapter(&name, &cells);
    match refusal(&chapter) {
        Some(message) => Err(FileError::whole(file, message)),
        None => Ok(Notebook { title: title(&cells), chapter, name, text: without_png(text) }),
    }
}

/// The notebook as it is downloaded: without the PNG that stands beside pictures in SVG for LaTeX, and is three times as large.
/// Whoever executes the notebook has it again.
fn without_png(stored: &str) -> String {
    let Ok(mut notebook) = serde_json::from_str::<Value>(stored) else { return stored.to_owned() };
    let cells = notebook["cells"].as_array_mut().into_iter().flatten();
    let outputs = cells.filter_map(|cell| cell.get_mut("outputs")?.as_array_mut()).flatten();
    for data in outputs.filter_map(|output| output.get_mut("data")?.as_object_mut()) {
        if data.get("text/html").is_some_and(|html| text(html).contains("data:image/svg+xml")) {
            data.remove("image/png");
        }
    }
    notebook.to_string()
}

/// Why a page of this Markdown is refused.
fn refusal(chapter: &str) -> Option<String> {
    // As mdBook reads it: what is text in another Markdown may be markup in it.
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
    let options = options | Options::ENABLE_TASKLISTS | Options::ENABLE_HEADING_ATTRIBUTES;
    let (mut html, mut headings) = (String::new(), 0);
    for event in Parser::new_ext(chapter, options) {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => html.push_str(&text.to_ascii_lowercase()),
            Event::Start(Tag::Heading { .. }) => headings += 1,
            _ => {}
        }
    }
    let found = LEADING.into_iter().find(|part| html.contains(part));
    let leads =
        found.map(|part| format!("its HTML holds `{part}`, which no page of a notebook may have: take it away"));
    leads.or_else(|| (headings > MAX_HEADINGS).then(|| format!("it has more than {MAX_HEADINGS} headings")))
}

/// What a chapter takes from a notebook of the format 4 (<https://nbformat.readthedocs.io>).
#[derive(Deserialize)]
struct Stored {
    nbformat: u32,
    #[serde(default)]
    cells: Vec<NotebookCell>,
}

#[derive(Deserialize)]
struct NotebookCell {
    cell_type: CellType,
    source: Value,
    #[serde(default)]
    metadata: Value,
    #[cfg(test)]
    execution_count: Option<u32>,
    #[serde(default)]
    outputs: Vec<Output>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum CellType {
    Markdown,
    Code,
    Raw,
}

/// An output: what a cell shows by media type, or a stream's text.
#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    text: Value,
    #[serde(default)]
    data: BTreeMap<String, Value>,
}

/// A text, which is stored whole or line by line; of another kind of value, nothing.
fn text(stored: &Value) -> String {
    match stored {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

impl NotebookCell {
    /// Whether nbgrader's metadata says this of it, such as that it gives points (`grade`).
    fn is_marked(&self, what: &str) -> bool {
        self.cell_type == CellType::Code && self.metadata["nbgrader"][what] == true
    }
}

fn read(name: &str, text: &str) -> Result<Vec<NotebookCell>, FileError> {
    let wrong = |message: String| FileError::whole(name, message);
    let stored: Stored = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    if stored.nbformat != 4 {
        return Err(wrong(format!("not a notebook of the format 4, but {}", stored.nbformat)));
    }
    Ok(stored.cells)
}

/// The first heading.
fn title(cells: &[NotebookCell]) -> String {
    let heading = |text: String| text.lines().find_map(|line| Some(line.strip_prefix("# ")?.trim().to_owned()));
    cells.iter().map(|cell| text(&cell.source)).find_map(heading).unwrap_or_else(|| "Notebook".to_owned())
}

fn chapter(name: &str, cells: &[NotebookCell]) -> String {
    let mut out = String::new();
    for (number, cell) in cells.iter().enumerate() {
        let source = text(&cell.source);
        match cell.cell_type {
            CellType::Markdown => out.push_str(&format!("{}\n\n", source.trim())),
            CellType::Code => {
                out.push_str(&block("rust,noplayground", &source));
                out.extend(cell.outputs.iter().map(shown));
            }
            CellType::Raw => {}
        }
        if number == 0 {
            out.push_str(&introduction(name, cells));
        }
    }
    out
}

/// What a reader can do with the notebook, and where it was executed.
fn introduction(name: &str, cells: &[NotebookCell]) -> String {
    let then = format!("Fill its tasks, and `report lab check {name}.ipynb` gives the points. ");
    let (kind, then) = match cells.iter().any(|cell| cell.is_marked("grade")) {
        true => ("lab: a notebook with tasks", then),
        false => ("notebook", String::new()),
    };
    let run = hardware(cells).map(|hardware| {
        let hardware = escape(&hardware);
        format!("The outputs on this page are those of one run, on this hardware: <strong>{hardware}</strong>. ")
    });
    format!(
        "This chapter is a {kind}. {}[Download it]({name}.ipynb) to execute it on your machine, in the Jupyter kernel that \
         `{INSTALL}` installs in the folder of syncscope. {then}The kernel has the library, so the notebook may lie in any \
         folder. In a book of yours, `report render --notebook {name}.ipynb` shows the outputs of your run here.\n\n",
        run.unwrap_or_default()
    )
}

/// What a notebook was executed on, from the first table of a device among its outputs.
fn hardware(cells: &[NotebookCell]) -> Option<String> {
    let outputs = cells.iter().flat_map(|cell| &cell.outputs);
    let texts = outputs.filter_map(|output| Some(text(output.data.get("text/plain")?)));
    let row = |text: String| text.lines().find_map(|line| Some(line.strip_prefix("hardware ")?.trim().to_owned()));
    texts.filter_map(row).find(|hardware| !hardware.is_empty())
}

/// Refuses what is no notebook that a page can be made of.
///
/// # Errors
/// What is wrong with it; the message begins with `name`.
pub fn check(name: &str, text: &str) -> Result<(), FileError> {
    made(name, String::new(), text).map(drop)
}

/// An output as Markdown: its HTML where it has some.
fn shown(output: &Output) -> String {
    let of = |kind: &str| output.data.get(kind).map(text).unwrap_or_default();
    let html = of("text/html");
    if html.is_empty() {
        // A stream has a text of its own.
        return block("text", &format!("{}{}", text(&output.text), of("text/plain")));
    }
    // An empty line would end the block.
    let html = without_style(&html);
    let lines: Vec<&str> = html.lines().filter(|line| !line.trim().is_empty()).collect();
    format!("<div class=\"cell-output\">\n{}\n</div>\n\n", lines.join("\n"))
}

/// An output without the styles that it brings along.
fn without_style(html: &str) -> String {
    let mut parts = html.split("<style>");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + part.split_once("</style>").map_or(part, |(_, rest)| rest))
}

/// A block of code; nothing for none.
fn block(language: &str, text: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() {
        return String::new();
    }
    // A fence longer than any within.
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    // mdBook takes two braces and a hash for a directive of its own, and drops the backslash before them.
    format!("{fence}{language}\n{}\n{fence}\n\n", text.replace("{{#", "\\{{#"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(outputs: serde_json::Value) -> Vec<NotebookCell> {
        let cell = serde_json::json!({"cell_type": "code", "id": "a", "metadata": {}, "execution_count": 1,
            "source": ["let fence = \"```\";"], "outputs": outputs});
        let text = serde_json::json!({"metadata": {}, "nbformat": 4, "nbformat_minor": 5, "cells": [cell]}).to_string();
        read("test", &text).unwrap()
    }

    #[test]
    fn every_notebook_is_executed_and_has_a_title() {
        let notebooks = of(&crate::tests::project()).unwrap();
        assert!(!notebooks.is_empty());
        for Notebook { name, title, text, .. } in notebooks {
            let cells = read(&name, &text).unwrap();
            assert_ne!(title, "Notebook", "{name}");
            // A task is the reader's, and a check is of no use before it.
            let is_open = |cell: &NotebookCell| cell.is_marked("solution") || cell.is_marked("grade");
            let executed = |cell: &NotebookCell| {
                is_open(cell) || cell.cell_type != CellType::Code || cell.execution_count.is_some()
            };
            assert!(cells.iter().all(executed), "{name} has cells that were not executed");
        }
    }

    #[test]
    fn the_page_of_a_lab_says_how_to_grade_it_and_shows_no_answer() {
        let lab = of(&crate::tests::project()).unwrap().remove(0);
        assert!(lab.chapter.contains("report lab check 00-quick-start.ipynb"), "{}", lab.chapter);
        assert!(lab.chapter.contains("todo!(\"your answer\")") && !lab.chapter.contains("BEGIN SOLUTION"));
        assert!(!chapter("test", &cells(serde_json::json!([]))).contains("lab"));
    }

    #[test]
    fn a_page_says_on_which_hardware_its_notebook_was_executed_where_that_was_shown() {
        for Notebook { name, chapter, .. } in of(&crate::tests::project()).unwrap() {
            assert!(chapter.contains("on this hardware: <strong>"), "{name}");
        }
        let device = |hardware: &str| {
            let text = format!("cuda:0\nproperty  value\nhardware  {hardware}\nengine    cuda\n");
            let data = serde_json::json!({"text/html": "<b>x</b>", "text/plain": text});
            serde_json::json!({"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data})
        };
        let shown = serde_json::json!([device("<i>A</i> GPU"), device("NVIDIA B200")]);
        let text = introduction("test", &cells(shown));
        assert!(text.contains(" GPU</strong>. ") && !text.contains("<i>") && !text.contains("B200"), "{text}");
        assert!(!introduction("test", &cells(serde_json::json!([]))).contains("hardware"));
    }

    #[test]
    fn a_block_of_html_has_no_empty_line_and_text_stays_text() {
        let outputs = serde_json::json!([
            {"output_type": "stream", "name": "stdout", "text": ["<b>\n"]},
            {"output_type": "execute_result", "execution_count": 1, "metadata": {},
                "data": {"text/html": ["<div><style>\n", "a { b: c }</style>\n", "\n", "</div>"], "text/plain": ["x"]}},
        ]);
        let text = chapter("test", &cells(outputs));
        assert!(
            text.contains("```text\n<b>\n```") && text.contains("<div class=\"cell-output\">\n<div>\n</div>\n</div>"),
            "{text}"
        );
        assert!(text.contains("````rust,noplayground\n") && text.contains("(test.ipynb)"), "{text}");
    }

    #[test]
    fn a_download_has_no_png_beside_a_picture_in_svg_and_is_the_notebook_else() {
        let notebook = |of_svg: Value| {
            let outputs = [of_svg, serde_json::json!({"data": {"text/html": "<p>", "image/png": "b"}})];
            serde_json::json!({"nbformat": 4, "cells": [{"cell_type": "code", "source": ["let x = 1.0;\n"], "outputs": outputs}]})
        };
        let html = "<img src=\"data:image/svg+xml,%3Csvg%3E\">";
        let stored = notebook(serde_json::json!({"data": {"text/html": ["<p>\n", html], "image/png": "a"}}));
        let expected = notebook(serde_json::json!({"data": {"text/html": ["<p>\n", html]}}));
        assert_eq!(serde_json::from_str::<Value>(&without_png(&stored.to_string())).unwrap(), expected);
        assert_eq!(without_png("no notebook"), "no notebook");
    }

    #[test]
    fn a_notebook_leads_nowhere_by_itself_asks_no_host_and_has_an_end() {
        let markdown = |source: &str| serde_json::json!({"cell_type": "markdown", "source": source});
        let output = |html: &str| {
            let shown =
                serde_json::json!([{"output_type": "display_data", "metadata": {}, "data": {"text/html": html}}]);
            serde_json::json!({"cell_type": "code", "source": "1", "outputs": shown})
        };
        let refusal = |cell: serde_json::Value| {
            let text = serde_json::json!({"nbformat": 4, "cells": [cell]}).to_string();
            check("n.ipynb", &text).err().map(|error| error.to_string())
        };
        for html in [
            "<META HTTP-EQUIV=refresh content='0;url=http://example.com'>",
            "<p title='<meta http-equiv=refresh'>",
            "<link rel=preconnect href=http://example.com>",
            "<base href=http://example.com>",
            "<iframe srcdoc='&lt;link rel=preconnect href=http://example.com>'></iframe>",
        ] {
            for cell in [markdown(html), output(html)] {
                assert!(refusal(cell).is_some_and(|why| why.starts_with("n.ipynb: its HTML holds `")), "{html}");
            }
        }
        assert_eq!(refusal(markdown("`<link rel=x>`, `http-equiv`\n\n```html\n<base href=x>\n```\n")), None);
        let headings = refusal(markdown(&"# same\n".repeat(100_000)));
        assert_eq!(headings.as_deref(), Some("n.ipynb: it has more than 1000 headings"));
    }
}
