//! The files of a store, and a list of them as CSV. The list is for people and other programs: nothing here reads it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::reading::each;
use super::{Duplicate, Reader, Refused, machine_of, other_suite, place_of, plain, suite_of, without_name};
use crate::Results;
use crate::clean;
use crate::error::{FileError, at};
use crate::files::{is_json, without_gz};

const HEADINGS: &[u8] = b"file,machine,started,commit,engine,model,driver,runs,missing,samples_sha256\n";

/// The files of a store that lie where they belong, and those that do not.
///
/// ```
/// use std::path::Path;
/// use syncscope_results::error::FileError;
/// use syncscope_results::Results;
/// use syncscope_results::store::Index;
///
/// let store = Index::of(Path::new("a-store-that-is-to-be"), &|file: &Path| Results::read(file), |listed, results| {
///     println!("{}: {} rows", listed.file.display(), results.rows.len());
///     Ok::<_, FileError>(())
/// })?;
/// assert_eq!((store.files.len(), store.refused.len()), (0, 0));
/// # Ok::<(), FileError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Index {
    /// The files, in the order of their names.
    pub files: Vec<Listed>,
    /// Files whose runs stand in another one, which went on from them.
    pub duplicates: Vec<Duplicate>,
    /// What does not belong into the store, and why.
    pub refused: Vec<Refused>,
}

/// A file of a store.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Listed {
    /// The file, from the store's folder.
    pub file: PathBuf,
    /// The machine.
    pub machine: String,
    /// When its first run began.
    pub started: String,
    /// The commit that measured.
    pub commit: Option<String>,
    /// The engine.
    pub engine: String,
    /// The device's model.
    pub model: String,
    /// The driver.
    pub driver: Option<String>,
    /// How many runs there are.
    pub runs: usize,
    /// Of which systems planned runs are missing, each with how many of how many are there.
    pub missing: Vec<String>,
    /// The digest of the samples.
    pub samples_sha256: String,
}

/// The files of a store by their names in it, in order; none where there is no such folder.
///
/// ```
/// // Before the first results are collected, there is no folder.
/// let folder = std::env::temp_dir().join("no-such-store");
/// assert!(syncscope_results::store::files(&folder)?.is_empty());
/// # Ok::<(), syncscope_results::error::FileError>(())
/// ```
///
/// # Errors
/// A folder cannot be listed.
pub fn files(store: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut found = Vec::new();
    for folder in entries(store)?.into_iter().filter(|path| path.is_dir()) {
        let of_machine = entries(&folder)?.into_iter().filter(|path| is_json(path));
        found.extend(of_machine.filter_map(|path| path.strip_prefix(store).ok().map(Path::to_owned)));
    }
    found.sort();
    Ok(found)
}

/// What is in a folder but for hidden names.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let listing = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing.map_err(at(folder))?,
    };
    let mut found = Vec::new();
    for entry in listing {
        let entry = entry.map_err(at(folder))?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            found.push(entry.path());
        }
    }
    Ok(found)
}

impl Index {
    /// Reads every file of the store `store`, and hands those that belong there to `visit`, in the order of their names.
    ///
    /// # Errors
    /// The store cannot be listed, or what `visit` says.
    pub fn of<E: From<FileError>>(
        store: &Path,
        read: Reader<'_>,
        mut visit: impl FnMut(&Listed, &Results) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut index = Self::default();
        let mut suite: Option<(String, String)> = None;
        // Those that began at one time, by one commit on one machine: the next file may have gone on from them.
        let mut group: Vec<(Listed, Results)> = Vec::new();
        let found = |file: &PathBuf| {
            let results = plain(&store.join(file), read)?;
            let (place, listed, suite) = (place_of(&results), Listed::of(file.clone(), &results), suite_of(&results));
            Ok((place, listed, suite, results))
        };
        each(&files(store)?, found, |file, found: Result<_, FileError>| {
            let path = store.join(file);
            let refused = &mut index.refused;
            let mut refuse = |reason: String| refused.push(Refused { file: path.clone(), reason });
            let (place, listed, of_file, results) = match found {
                Ok(found) => found,
                Err(error) => {
                    refuse(without_name(error.to_string(), &path));
                    return Ok(());
                }
            };
            let (own, title) = suite.get_or_insert_with(|| (of_file.clone(), results.title().to_owned()));
            let same = group.iter().map(|(last, _)| last).find(|last| without_gz(&last.file) == place);
            if place != without_gz(file) {
                refuse(format!("its place is {}", place.display()));
            } else if let Some(same) = same {
                refuse(format!("the same samples as {}", same.file.display()));
            } else if *own != of_file {
                refuse(other_suite(title));
            } else {
                let begin = |of: &Listed| (of.machine.clone(), of.started.clone(), of.commit.clone());
                if group.first().is_some_and(|(first, _)| begin(first) != begin(&listed)) {
                    index.put(store, std::mem::take(&mut group), &mut visit)?;
                }
                group.push((listed, results));
            }
            Ok::<_, E>(())
        })?;
        index.put(store, group, &mut visit)?;
        Ok(index)
    }

    /// Lists the files of a group, but for those that another one went on from.
    fn put<E>(
        &mut self,
        store: &Path,
        group: Vec<(Listed, Results)>,
        visit: &mut impl FnMut(&Listed, &Results) -> Result<(), E>,
    ) -> Result<(), E> {
        for (listed, results) in &group {
            match group.iter().find(|(_, other)| other.goes_on_from(results)) {
                Some((longer, _)) => {
                    let [file, of] = [listed, longer].map(|listed| store.join(&listed.file));
                    self.duplicates.push(Duplicate { file, of });
                }
                None => {
                    visit(listed, results)?;
                    self.files.push(listed.clone());
                }
            }
        }
        Ok(())
    }

    /// The list as CSV.
    ///
    /// # Errors
    /// It cannot be written into memory.
    pub fn to_csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut out = csv::Writer::from_writer(HEADINGS.to_vec());
        for listed in &self.files {
            let (file, runs) = (listed.file.display().to_string(), listed.runs.to_string());
            let missing = listed.missing.join("; ");
            let [commit, driver] = [&listed.commit, &listed.driver].map(|fact| fact.as_deref().unwrap_or(""));
            let (machine, started, engine) = (&*listed.machine, &*listed.started, &*listed.engine);
            let (model, digest) = (&listed.model, &listed.samples_sha256);
            let record = [&file, machine, started, commit, engine, model, driver, &runs, &missing, digest];
            out.write_record(record.map(|cell| clean::cell(cell).into_owned()))?;
        }
        out.into_inner().map_err(|error| csv::Error::from(error.into_error()))
    }
}

impl Listed {
    fn of(file: PathBuf, results: &Results) -> Self {
        let (run, environment) = (results.run(), results.environment());
        let device = &environment.device;
        Self {
            file,
            machine: machine_of(results),
            started: run.started.clone(),
            commit: environment.program.commit.clone(),
            engine: device.engine.clone(),
            model: device.model.clone(),
            driver: device.fact("driver").map(str::to_owned),
            runs: results.runs.len(),
            missing: results.runs_to_come(),
            samples_sha256: results.samples_digest(),
        }
    }
}
