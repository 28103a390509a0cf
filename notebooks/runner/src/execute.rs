//! Notebooks, one after the other: executed, and then stored or checked.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::file::{CodeCell, File, Left};
use crate::library;
use crate::session::Session;

/// What to do with the outputs.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Then {
    Nothing,
    Write,
    Check,
}

/// Executes all of `notebooks`, each up to its first failure. Whether all went well; what did not is said.
pub(crate) fn all(notebooks: &[PathBuf], then: Then, timeout: Duration) -> anyhow::Result<bool> {
    let mut files = Vec::new();
    for path in notebooks {
        // Before the folder changes.
        let file = File::read(path)?;
        let (folder, written) = (file.folder()?, std::path::absolute(path)?);
        files.push((file, folder, written));
    }
    let mut session = Session::new(None)?;
    let mut failures = Vec::new();
    for (mut file, folder, path) in files {
        let (name, start) = (file.name(), Instant::now());
        session.begin(&folder)?;
        let cells = file.code_cells();
        let (left, failure) = execute(&mut session, timeout, &folder, &cells, then)?;
        let (seconds, ran) = (start.elapsed().as_secs_f64(), left.len());
        if let Some(failure) = failure {
            eprintln!("{name}: {failure}");
            failures.push(format!("{name}: {}", failure.lines().next().unwrap_or_default()));
            continue;
        }
        let stored = match then {
            Then::Write => {
                file.set_outputs(&left)?;
                if file.write(Some(&path))? { ", outputs stored" } else { ", outputs as they were" }
            }
            Then::Check => ", outputs of the kinds stored",
            Then::Nothing => "",
        };
        println!("{name}: {ran} cells in {seconds:.1} s{stored}");
    }
    for failure in &failures {
        eprintln!("failed: {failure}");
    }
    Ok(failures.is_empty())
}

/// Executes cells up to the first that fails, and says which and why.
fn execute(
    session: &mut Session,
    timeout: Duration,
    folder: &Path,
    cells: &[CodeCell],
    then: Then,
) -> anyhow::Result<(Vec<Left>, Option<String>)> {
    let mut left = Vec::new();
    for (number, cell) in (1..).zip(cells) {
        let ran = session.run_within(timeout, &library::nearest(&cell.code, folder, Path::new(library::CLONE)));
        let place = format!("cell {number} ({})", cell.id);
        if let Some(failure) = &ran.failure {
            return Ok((left, Some(format!("{place}: {}", failure.placed(&failure.text)))));
        }
        let kinds = ran.kinds()?;
        if then == Then::Check && kinds != cell.kinds {
            let words = |kinds: &[String]| if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") };
            let (was, is) = (words(&cell.kinds), words(&kinds));
            return Ok((left, Some(format!("{place}: the stored outputs are {was}, and the cell left {is}"))));
        }
        left.push(ran);
    }
    Ok((left, None))
}
