//! A notebook on disk: its cells in, its outputs back. Nothing else of the file changes, so that a diff is small.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use nbformat::v4::{Cell, Output};
use nbformat::{Notebook, parse_notebook, serialize_notebook};
use serde_json::{Map, Value, json};

use crate::pictures::{Bundle, apart};

/// A notebook of the format 4.5.
pub(crate) struct File {
    path: PathBuf,
    notebook: nbformat::v4::Notebook,
}

/// A cell with code.
pub(crate) struct CodeCell {
    /// Its identifier.
    pub(crate) id: String,
    /// Its code.
    pub(crate) code: String,
    /// The kinds of the outputs that are stored.
    pub(crate) kinds: Vec<String>,
}

/// What a cell left: text that it printed, what it shows, an error.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Left {
    /// What it wrote, by the name of the stream, `stdout` or `stderr`.
    pub(crate) texts: Vec<(&'static str, String)>,
    /// What it shows, one display behind the other.
    pub(crate) shown: Vec<Bundle>,
    /// Why it failed, where it did.
    pub(crate) failure: Option<Failure>,
}

/// Why a cell failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Failure {
    /// The kind of failure, in one word.
    pub(crate) name: &'static str,
    /// The message.
    pub(crate) value: String,
    /// The message with all that is known, in lines.
    pub(crate) text: String,
    /// Where in the cell it was, where that is known.
    pub(crate) place: Option<String>,
}

impl Failure {
    /// A failure about which no more is known than its message.
    pub(crate) fn new(name: &'static str, value: String) -> Self {
        Self { name, text: value.clone(), value, place: None }
    }

    /// What a notebook shows of it: what it says, with `errors`, which the cell wrote last on its standard error.
    pub(crate) fn trace(&self, errors: &str) -> Vec<String> {
        let (errors, text) = (said(errors), self.text.as_str());
        let heading = match self.name {
            "Panic" => "The cell panicked:\n",
            "Error" => "The cell returned an error:\n",
            _ => "",
        };
        let whole = match () {
            () if text.contains(&errors) => format!("{heading}{text}"),
            () if errors.contains(text) => format!("{heading}{errors}"),
            () => format!("{errors}\n{heading}{text}"),
        };
        self.placed(&whole).lines().map(str::to_owned).collect()
    }

    /// A text of it with where in the cell it was, where that is known.
    pub(crate) fn placed(&self, text: &str) -> String {
        [Some(text), self.place.as_deref()].into_iter().flatten().collect::<Vec<_>>().join("\n")
    }
}

/// What a process wrote on its standard error, without the places of panics: they are lines of a file that evcxr
/// generates.
pub(crate) fn said(errors: &str) -> String {
    let kept = |line: &&str| panicked_at(line).is_none() && !line.starts_with("note: run with `RUST_BACKTRACE");
    errors.lines().filter(kept).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// The place of a panic whose message begins below the line.
pub(crate) fn panicked_at(line: &str) -> Option<&str> {
    let (_, place) = line.strip_prefix("thread '")?.split_once(" panicked at ")?;
    Some(place.trim_end_matches(':'))
}

impl File {
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let notebook = match parse_notebook(&text).with_context(|| path.display().to_string())? {
            Notebook::V4(notebook) => notebook,
            Notebook::V4QuirksMode(quirks) => bail!("{}: {:?}", path.display(), quirks.quirks()),
            _ => bail!("{}: not a notebook of the format 4.5", path.display()),
        };
        Ok(Self { path: path.to_owned(), notebook })
    }

    /// As messages name it.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The folder that relative paths in its cells start from.
    pub(crate) fn folder(&self) -> anyhow::Result<PathBuf> {
        let path = fs::canonicalize(&self.path)?;
        Ok(path.parent().unwrap_or(&path).to_owned())
    }

    pub(crate) fn code_cells(&self) -> Vec<CodeCell> {
        let code = |cell: &Cell| match cell {
            Cell::Code { id, source, outputs, .. } => {
                Some(CodeCell { id: id.to_string(), code: source.concat(), kinds: outputs.iter().map(kind).collect() })
            }
            _ => None,
        };
        self.notebook.cells.iter().filter_map(code).collect()
    }

    /// Puts what each code cell left in the place of its outputs, in their order.
    pub(crate) fn set_outputs(&mut self, left: &[Left]) -> anyhow::Result<()> {
        let mut counted = (1..).zip(left);
        for cell in &mut self.notebook.cells {
            if let Cell::Code { execution_count, outputs, .. } = cell {
                let Some((count, left)) = counted.next() else { bail!("{}: too few outputs", self.path.display()) };
                *execution_count = Some(count);
                *outputs = left.outputs(count)?;
            }
        }
        Ok(())
    }

    /// Writes the notebook, and says whether that changed the file.
    pub(crate) fn write(self, path: Option<&Path>) -> anyhow::Result<bool> {
        let path = path.unwrap_or(&self.path);
        let text = serialize_notebook(&Notebook::V4(self.notebook))?;
        if fs::read_to_string(path).is_ok_and(|was| was == text) {
            return Ok(false);
        }
        // Beside it first: a write that is cut short must not cost the notebook.
        let new = path.with_extension("ipynb.new");
        fs::write(&new, text).and_then(|()| fs::rename(&new, path)).with_context(|| path.display().to_string())?;
        Ok(true)
    }
}

impl Left {
    /// It shows a block: of the last display, unless that is whole.
    pub(crate) fn shows(&mut self, kind: &str, block: String) {
        match self.shown.last_mut() {
            Some(last) if !begins_another(last.iter().map(|(known, _)| known), kind) => {
                last.push((kind.to_owned(), block))
            }
            _ => self.shown.push(vec![(kind.to_owned(), block)]),
        }
    }

    /// As outputs of the file format.
    fn outputs(&self, count: i32) -> anyhow::Result<Vec<Output>> {
        let mut outputs: Vec<Value> = Vec::new();
        for (name, text) in &self.texts {
            match outputs.last_mut() {
                Some(last) if last["name"] == *name => {
                    let before = last["text"].as_str().unwrap_or_default();
                    last["text"] = json!(format!("{before}{text}"));
                }
                _ => outputs.push(json!({"output_type": "stream", "name": name, "text": text})),
            }
        }
        outputs.extend(self.displays(count).into_iter().map(|(kind, mut output)| {
            output["output_type"] = json!(kind);
            output
        }));
        if let Some(failure) = &self.failure {
            let text = failure.placed(&failure.text);
            let traceback: Vec<&str> = text.lines().collect();
            let (name, value) = (failure.name, &failure.value);
            outputs.push(json!({"output_type": "error", "ename": name, "evalue": value, "traceback": traceback}));
        }
        Ok(outputs.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?)
    }

    /// What it shows, as messages and files hold it, each with its kind. The last is the value of the cell, of this number.
    pub(crate) fn displays(&self, count: impl Into<Value>) -> Vec<(&'static str, Value)> {
        let bundles = self.shown.iter().cloned().flat_map(apart);
        let display = |bundle: Bundle| {
            let data: Map<String, Value> = bundle.into_iter().map(bundled).collect();
            ("display_data", json!({"data": data, "metadata": {}}))
        };
        let mut displays: Vec<_> = bundles.map(display).collect();
        if let Some((kind, value)) = displays.last_mut() {
            *kind = "execute_result";
            value["execution_count"] = count.into();
        }
        displays
    }

    /// The kinds of its outputs.
    pub(crate) fn kinds(&self) -> anyhow::Result<Vec<String>> {
        Ok(self.outputs(1)?.iter().map(kind).collect())
    }
}

/// Whether a block of this `kind` begins another display than one of these types: a display has each once, its text last.
pub(crate) fn begins_another<'a>(mut types: impl Iterator<Item = &'a String>, kind: &str) -> bool {
    types.any(|known| known == kind || known == "text/plain")
}

/// What a cell shows, as a message holds it.
fn bundled((mime, text): (String, String)) -> (String, Value) {
    let json = mime == "application/json" || mime.ends_with("+json");
    let parsed = json.then(|| serde_json::from_str(&text).ok()).flatten();
    (mime, parsed.unwrap_or(Value::String(text)))
}

/// An output without its content: `execute_result text/html text/plain`.
fn kind(output: &Output) -> String {
    let value = serde_json::to_value(output).unwrap_or_default();
    let mut parts = vec![value["output_type"].as_str().unwrap_or_default().to_owned()];
    parts.extend(value["name"].as_str().map(str::to_owned));
    let mut mimes: Vec<String> =
        value["data"].as_object().map(|data| data.keys().cloned().collect()).unwrap_or_default();
    mimes.sort_unstable();
    parts.extend(mimes);
    parts.join(" ")
}
