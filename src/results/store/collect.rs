//! Puts results files into a store.
//!
//! Every file is read and checked first. Then one suite is chosen, the store's own or that of most files, and the files of
//! that suite are copied, each whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::index::entries;
use super::reading::each;
use super::{Reader, ask_plain, files, other_suite, place_of, plain, suite_of};
use crate::error::{FileError, at};
use crate::files::{Target, begins_with, is_json, is_kind, is_same, kind_of, read_bytes, without_gz};
use crate::{LONGEST_FILE, Results};

/// What became of the files that were to be collected.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Collected {
    /// The files that the store has now.
    pub added: Vec<Added>,
    /// The files that it had already, or that came twice.
    pub duplicates: Vec<Duplicate>,
    /// The files that do not belong there.
    pub refused: Vec<Refused>,
}

/// A file that was put into the store.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Added {
    /// The file that was collected.
    pub from: PathBuf,
    /// Where it lies in the store.
    pub place: PathBuf,
}

/// A file of the same samples as another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Duplicate {
    /// The file that was not taken.
    pub file: PathBuf,
    /// The file of the same samples.
    pub of: PathBuf,
}

/// A file that does not belong into the store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refused {
    /// The file.
    pub file: PathBuf,
    /// Why.
    pub reason: String,
}

/// A file that was read.
struct Candidate {
    file: PathBuf,
    place: PathBuf,
    /// What stands in it, by its digest: that it is the same when it is copied.
    content: Vec<u8>,
    suite: String,
    title: String,
    refusal: Option<String>,
    /// Where the store has it, whole.
    there: Option<PathBuf>,
}

/// Puts the results files of `sources` (files, or folders with all that is in them) into the store `store`, which no other
/// process puts files into meanwhile: see [`held`](super::held).
///
/// # Errors
/// A source cannot be listed, or the store cannot be written; what was put there before stays.
pub fn collect(sources: &[PathBuf], store: &Path, read: Reader<'_>) -> Result<Collected, FileError> {
    let mut collected = Collected::default();
    let mut candidates = Vec::new();
    let files_there: Vec<PathBuf> = listed(sources, store)?.into_iter().collect();
    each(
        &files_there,
        |file| candidate(file, store, read),
        |file, found| {
            match found {
                Ok(candidate) => candidates.push(candidate),
                Err(reason) => collected.refused.push(Refused { file: file.clone(), reason }),
            }
            Ok::<_, FileError>(())
        },
    )?;
    let Some((suite, title)) = own_suite(store, read)?.or_else(|| most_common(&candidates)) else {
        return Ok(collected);
    };
    // A file's name says when it was measured, and of which samples it is: one of the same name is the same measurement,
    // whatever its machine is called.
    let mut named: BTreeMap<OsString, PathBuf> = files(store)?
        .into_iter()
        .filter_map(|file| Some((without_gz(&file).file_name()?.to_owned(), store.join(&file))))
        .collect();
    for candidate in candidates {
        let Candidate { file, place, content, suite: own, refusal, there, .. } = candidate;
        let name = place.file_name().unwrap_or_default().to_owned();
        if own != suite {
            collected.refused.push(Refused { file, reason: other_suite(&title) });
        } else if let Some(reason) = refusal {
            collected.refused.push(Refused { file, reason });
        } else if let Some(same) = named.get(&name).filter(|same| without_gz(same) != store.join(&place)) {
            collected.duplicates.push(Duplicate { file, of: same.clone() });
        } else if let Some(of) = there {
            collected.duplicates.push(Duplicate { file, of });
        } else {
            copy(&file, &content, &store.join(&place))?;
            named.insert(name, file.clone());
            collected.added.push(Added { from: file, place });
        }
    }
    collected.refused.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(collected)
}

/// An error without the name of its file, which stands beside it already.
pub(super) fn without_name(error: String, file: &Path) -> String {
    let rest = error.strip_prefix(&file.display().to_string()).and_then(|rest| rest.strip_prefix(':'));
    rest.map_or_else(|| error.clone(), |rest| rest.trim_start().to_owned())
}

fn candidate(file: &Path, store: &Path, read: Reader<'_>) -> Result<Candidate, String> {
    let content = content(file).map_err(|error| error.to_string())?;
    let content = Sha256::digest(content).to_vec();
    let results = read(file).map_err(|error| without_name(error.to_string(), file))?;
    // Runs that are missing are none: those that are there stand without them.
    let cut = results.interrupted_runs().join("; ");
    let refusal = (!cut.is_empty()).then(|| format!("it did not end: {cut}; resume it (`--resume`)"));
    let (place, suite, title) = (place_of(&results), suite_of(&results), results.title().to_owned());
    let own = [store.join(&place), store.join(place.with_extension("json.gz"))];
    let there = own.into_iter().find(|own| plain(own, read).is_ok());
    Ok(Candidate { file: file.to_owned(), place, content, suite, title, refusal, there })
}

/// The suite of the store's files: of the first that holds results.
fn own_suite(store: &Path, read: Reader<'_>) -> Result<Option<(String, String)>, FileError> {
    for file in files(store)? {
        let file = store.join(file);
        match plain(&file, read) {
            Ok(results) => return Ok(Some((suite_of(&results), results.title().to_owned()))),
            Err(error) => is_kind::<Results>(Err(error)).map_err(at(&file))?,
        };
    }
    Ok(None)
}

/// The suite of most files; of equally many the first one's.
fn most_common(candidates: &[Candidate]) -> Option<(String, String)> {
    let count = |suite: &str| candidates.iter().filter(|other| other.suite == suite).count();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for candidate in candidates {
        counts.entry(&candidate.suite).or_insert_with(|| count(&candidate.suite));
    }
    let most = counts.values().max()?;
    let first = candidates.iter().find(|candidate| counts.get(candidate.suite.as_str()) == Some(most))?;
    Some((first.suite.clone(), first.title.clone()))
}

/// Puts the text of a file into the store as it is.
fn copy(file: &Path, content: &[u8], place: &Path) -> Result<(), FileError> {
    let text = self::content(file).map_err(at(file))?;
    if Sha256::digest(&text).as_slice() != content {
        return Err(FileError::whole(
            file.display().to_string(),
            "it changed while it was collected; collect it again",
        ));
    }
    if place.exists() {
        ask_plain(place).map_err(at(place))?;
    }
    // What lies there in part was damaged: the place says of which samples it is.
    let target = Target::claim(place, begins_with(BEGIN)).map_err(at(place))?;
    target.write(&text).map_err(FileError::unwritten(place))
}

/// How every results file begins.
const BEGIN: &str = "{\n  \"schema_version\": ";

/// What is in a file, unpacked, as far as a results file may reach.
fn content(file: &Path) -> io::Result<Vec<u8>> {
    ask_plain(file)?;
    read_bytes(file, LONGEST_FILE)
}

/// The files to collect, each once and in order: those that are named, and all of the endings `.json` and `.json.gz` in the folders that
/// are. Links to folders are not followed, hidden names are left out, and so is the store.
fn listed(sources: &[PathBuf], store: &Path) -> Result<BTreeSet<PathBuf>, FileError> {
    let mut found = BTreeSet::new();
    let mut folders = Vec::new();
    for source in sources {
        let there = fs::metadata(source).map_err(at(source))?;
        if there.is_dir() {
            folders.push(source.clone());
        } else {
            found.insert(source.clone());
        }
    }
    while let Some(folder) = folders.pop() {
        if is_same(&folder, store) {
            continue;
        }
        for path in entries(&folder)? {
            if kind_of(&path).map_err(at(&folder))?.is_some_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if is_json(&path) {
                found.insert(path);
            }
        }
    }
    Ok(found)
}
