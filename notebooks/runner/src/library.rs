//! A cell's line `:dep syncscope = { path = … }`.
//!
//! The line leads from a notebook of the repository to the library. Where it does not, as in the folder of the worked
//! answers, the runner takes the nearest folder above that is the library. In a notebook that was downloaded the line leads
//! nowhere: the kernel's library takes its place, and where there is no kernel, the clone that the runner was built from. The
//! kernel's library takes it, too, where the line leads to the folder that the kernel was installed from: nothing is compiled again, and the kernel says where that folder has other files by now.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use toml::{Table, Value};

/// The cell's `code` for a kernel that works in `folder`, whose library was `installed` from one place and is the dependency
/// `own`.
pub(crate) fn resolved(code: &str, folder: &Path, installed: &str, own: &str) -> String {
    replaced(code, |asked| takes_place(asked, folder, installed).then(|| own.to_owned()))
}

/// The clone that this program was built from.
pub(crate) const CLONE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The cell's `code` in `folder`, where no library is installed: a path that leads to none leads to the nearest folder above
/// that is the library, and of a notebook that was downloaded to the `clone`.
pub(crate) fn nearest(code: &str, folder: &Path, clone: &Path) -> String {
    replaced(code, |asked| {
        let asked_for = folder.join(path(&mut table(asked)?)?);
        if library(&asked_for).is_some() {
            return None;
        }
        let above = fs::canonicalize(asked_for).ok().and_then(|asked_for| asked_for.ancestors().find_map(library));
        let found = above.or_else(|| library(clone))?;
        in_folder(asked, &found).ok()
    })
}

/// The cell's `code` with another dependency in the place of each that it asks for and `by` has one for.
fn replaced(code: &str, by: impl Fn(&str) -> Option<String>) -> String {
    let line = |line: &str| {
        let (name, asked) = line.trim_start().strip_prefix(":dep ")?.split_once('=')?;
        if name.trim() == "syncscope" { by(asked).map(|own| format!(":dep syncscope = {own}")) } else { None }
    };
    code.split('\n').map(|text| line(text).unwrap_or_else(|| text.to_owned())).collect::<Vec<_>>().join("\n")
}

/// Whether the installed dependency stands for the one that is `asked` for.
fn takes_place(asked: &str, folder: &Path, installed: &str) -> bool {
    let (Some(mut asked), Some(mut installed)) = (table(asked), table(installed)) else { return false };
    let Some(path) = path(&mut asked) else { return false };
    let Some(found) = library(&folder.join(path)) else { return true };
    path_of(&mut installed) == Some(found) && asked == installed
}

/// A dependency with its library in `folder`.
pub(crate) fn in_folder(dependency: &str, folder: &Path) -> anyhow::Result<String> {
    let mut table = table(dependency).with_context(|| format!("`{dependency}` is no dependency"))?;
    let folder = folder.to_str().context("the library's folder has a name that is no text")?;
    table.insert("path".to_owned(), Value::String(folder.to_owned()));
    Ok(Value::Table(table).to_string())
}

/// What of a library is copied into the kernel and decides what it does.
const COMPARED: [&str; 5] = ["Cargo.toml", "Cargo.lock", "build.rs", "src", "kernels"];

/// The folder that the dependency was `installed` from, where its library has other files than the `copy`. A folder that is
/// gone has no other ones.
pub(crate) fn newer(installed: &str, copy: &Path) -> Option<PathBuf> {
    let clone = library(&path(&mut table(installed)?)?)?;
    let differs = |name: &str| {
        // The copy has a manifest of its own.
        let copied = if name == "Cargo.toml" { "Cargo.toml.orig" } else { name };
        !is_same(&clone.join(name), &copy.join(copied))
    };
    COMPARED.iter().any(|name| differs(name)).then_some(clone)
}

/// Whether two files, or all files of two folders, hold the same.
fn is_same(one: &Path, other: &Path) -> bool {
    if !one.is_dir() {
        return fs::read(one).ok() == fs::read(other).ok();
    }
    let names = |folder: &Path| -> BTreeSet<OsString> {
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
    };
    let (own, others) = (names(one), names(other));
    own == others && own.iter().all(|name| is_same(&one.join(name), &other.join(name)))
}

fn table(dependency: &str) -> Option<Table> {
    let mut parsed: Table = toml::from_str(&format!("syncscope = {dependency}")).ok()?;
    match parsed.remove("syncscope")? {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

fn path(dependency: &mut Table) -> Option<PathBuf> {
    dependency.remove("path")?.as_str().map(PathBuf::from)
}

fn path_of(dependency: &mut Table) -> Option<PathBuf> {
    path(dependency).and_then(|path| fs::canonicalize(path).ok())
}

/// The folder, where it holds the library.
fn library(folder: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(folder).ok()?;
    let manifest: Table = toml::from_str(&fs::read_to_string(folder.join("Cargo.toml")).ok()?).ok()?;
    (manifest.get("package")?.get("name")?.as_str()? == "syncscope").then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: &str = ":dep syncscope = { path = \"..\", features = [\"cuda\"] }\nuse syncscope::prelude::*;";

    /// A folder with a library and a folder for notebooks in it.
    fn repository() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("Cargo.toml"), "[package]\nname = \"syncscope\"\n").unwrap();
        let notebooks = folder.path().join("note books");
        fs::create_dir(&notebooks).unwrap();
        (folder, notebooks)
    }

    /// The library that the first line of a cell asks for.
    fn asked_for(cell: &str) -> Table {
        table(cell.lines().next().unwrap().strip_prefix(":dep syncscope = ").unwrap()).unwrap()
    }

    #[test]
    fn a_path_that_leads_nowhere_is_the_installed_library() {
        let folder = tempfile::tempdir().unwrap();
        let installed = "{ path = \"/installed\" }";
        assert!(resolved(CELL, folder.path(), installed, "OWN").starts_with(":dep syncscope = OWN\nuse "));
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("Cargo.toml"), "[package]\nname = \"another\"\n").unwrap();
        assert_ne!(resolved(CELL, &folder.path().join("sub"), installed, "OWN"), CELL);
    }

    #[test]
    fn a_path_that_leads_to_no_library_is_the_nearest_one_above() {
        let (folder, notebooks) = repository();
        let nowhere = Path::new("/nowhere");
        assert_eq!(nearest(CELL, &notebooks, nowhere), CELL);
        let worked = notebooks.join("worked");
        fs::create_dir(&worked).unwrap();
        let asked = asked_for(&nearest(CELL, &worked, nowhere));
        assert_eq!(asked["path"].as_str(), fs::canonicalize(folder.path()).unwrap().to_str());
        assert_eq!(asked["features"].as_array().map(Vec::len), Some(1));
        fs::remove_file(folder.path().join("Cargo.toml")).unwrap();
        assert_eq!(nearest(CELL, &worked, nowhere), CELL);
    }

    #[test]
    fn a_downloaded_notebook_has_the_library_of_the_clone_that_the_runner_was_built_from() {
        let downloads = tempfile::tempdir().unwrap();
        let asked = asked_for(&nearest(CELL, downloads.path(), Path::new(CLONE)));
        assert_eq!(asked["path"].as_str(), fs::canonicalize(CLONE).unwrap().to_str());
        assert_eq!(asked["features"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn a_path_to_another_library_than_the_installed_one_stays() {
        let (_folder, notebooks) = repository();
        assert_eq!(resolved(CELL, &notebooks, "{ path = \"/installed\" }", "OWN"), CELL);
    }

    #[test]
    fn the_installed_library_is_written_as_the_kernel_writes_it_if_the_features_are_its_own() {
        let (folder, notebooks) = repository();
        let path = folder.path().display();
        let installed = format!("{{ path = \"{path}\", features = [\"cuda\"] }}");
        assert!(resolved(CELL, &notebooks, &installed, "OWN").starts_with(":dep syncscope = OWN\n"));
        assert_eq!(resolved(CELL, &notebooks, &format!("{{ path = \"{path}\" }}"), "OWN"), CELL);
    }

    #[test]
    fn the_kernels_own_library_is_the_installed_one_in_another_folder() {
        let own = in_folder(
            "{ path = \"/clone\", default-features = false, features = [\"cuda\"] }",
            Path::new("/a b/library"),
        );
        let own = table(&own.unwrap()).unwrap();
        assert_eq!(own["path"].as_str(), Some("/a b/library"));
        assert_eq!(
            (own["default-features"].as_bool(), own["features"].as_array().map(Vec::len)),
            (Some(false), Some(1))
        );
    }

    #[test]
    fn a_clone_is_newer_as_soon_as_one_file_of_the_library_is_another() {
        let (clone, _) = repository();
        let copy = tempfile::tempdir().unwrap();
        for folder in [clone.path(), copy.path()] {
            fs::create_dir_all(folder.join("src/device")).unwrap();
            fs::write(folder.join("src/device/mod.rs"), "one").unwrap();
        }
        fs::copy(clone.path().join("Cargo.toml"), copy.path().join("Cargo.toml.orig")).unwrap();
        let installed = format!("{{ path = \"{}\" }}", clone.path().display());
        assert_eq!(newer(&installed, copy.path()), None);
        fs::write(clone.path().join("src/device/mod.rs"), "two").unwrap();
        assert_eq!(newer(&installed, copy.path()), Some(fs::canonicalize(clone.path()).unwrap()));
        assert_eq!(newer("{ path = \"/gone\" }", copy.path()), None);
    }

    #[test]
    fn other_dependencies_stay() {
        let cell = ":dep regex = \"1\"\n:dep syncscope = \"0.1\"";
        assert_eq!(resolved(cell, Path::new("/"), "{ path = \"/installed\" }", "OWN"), cell);
    }
}
