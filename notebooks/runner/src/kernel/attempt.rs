//! Cells without Jupyter, in a session as a kernel begins it: each runs, also behind one that failed, and what they came to
//! is said as JSON. `report lab check` starts this.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::folder::{self, Installed};
use super::start;
use crate::library;

/// What is asked for: JSON with the `folder` that relative paths start from, the `timeout` of a cell in seconds, and the
/// code of the `cells`.
struct Request {
    folder: PathBuf,
    timeout: Duration,
    cells: Vec<String>,
}

impl Request {
    fn read(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let content: Value = serde_json::from_str(&text).with_context(|| file.display().to_string())?;
        let wrong = || format!("{}: not cells to run", file.display());
        let cells = content["cells"].as_array().with_context(wrong)?;
        let code = |cell: &Value| Some(cell.as_str()?.to_owned());
        Ok(Self {
            folder: content["folder"].as_str().with_context(wrong)?.into(),
            timeout: Duration::from_secs(content["timeout"].as_u64().with_context(wrong)?),
            cells: cells.iter().map(code).collect::<Option<_>>().with_context(wrong)?,
        })
    }
}

/// Runs the cells that a file asks for and prints, for each, why it failed or `null`.
pub(crate) fn attempt(file: &Path) -> anyhow::Result<()> {
    let installed = Installed::find()?;
    let folder = installed.enter()?;
    let ran = run(&installed, &folder, &Request::read(file)?);
    // As a kernel that ends: the folder is of no use to another.
    let _ = fs::remove_dir_all(&folder);
    println!("{}", Value::Array(ran?));
    Ok(())
}

fn run(installed: &Installed, folder: &Path, request: &Request) -> anyhow::Result<Vec<Value>> {
    let versions = installed.warm().join("Cargo.lock");
    let (mut session, own) =
        start::begin(installed, folder, &versions, None, &OnceLock::new()).with_context(folder::unusable)?;
    for notice in start::changes(installed)? {
        eprintln!("{notice}");
    }
    std::env::set_current_dir(&request.folder).with_context(|| request.folder.display().to_string())?;
    let dependency = installed.dependency()?;
    let outcomes = request.cells.iter().map(|code| {
        let code = library::resolved(code, &request.folder, &dependency, &own);
        let failure = session.run_within(request.timeout, &code).failure;
        failure.map_or(Value::Null, |failure| json!({"kind": failure.name, "message": failure.placed(&failure.value)}))
    });
    let outcomes = outcomes.collect();
    session.control().kill();
    Ok(outcomes)
}
