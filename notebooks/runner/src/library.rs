//! A cell's lines `:dep syncscope = { path = … }` and `:dep syncscope-audit = { path = … }`.
//!
//! The line leads from a notebook of the repository to the library, or to the audit beside it. Where it does not, as in the
//! folder of the worked answers, the runner takes the nearest folder above that is the repository. In a notebook that was
//! downloaded the line leads nowhere: the kernel's library takes its place, and where there is no kernel, the clone that the
//! runner was built from. The kernel's library takes it, too, where the line leads to the clone that the kernel was installed
//! from: nothing is compiled again, and the kernel says where that clone has other files by now.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use toml::{Table, Value};

/// The packages that a cell may take from the repository, each with its folder there.
const PACKAGES: [(&str, &str); 2] = [("syncscope", "src/syncscope"), ("syncscope-audit", "src/audit")];

/// The cell's `code` for a kernel that works in `folder`, whose library was `installed` from one place and is the dependency
/// `own`.
pub(crate) fn resolved(code: &str, folder: &Path, installed: &str, own: &str) -> String {
    replaced(code, |package, asked| {
        let own = beside(package, own)?;
        takes_place(package, asked, folder, &beside(package, installed)?).then_some(own)
    })
}

/// The lines by which a cell has the library, which is the dependency `own`, and the audit beside it.
pub(crate) fn lines(own: &str) -> String {
    let line = |(package, _): &(&str, _)| Some(format!(":dep {package} = {}\n", beside(package, own)?));
    PACKAGES.iter().filter_map(line).collect()
}

/// The dependency on `package`, where that on the library is `library`.
fn beside(package: &str, library: &str) -> Option<String> {
    if package == PACKAGES[0].0 {
        return Some(library.to_owned());
    }
    let (_, place) = PACKAGES.iter().find(|(name, _)| *name == package)?;
    let path = path(&mut table(library)?)?;
    // A library that does not lie in its repository has nothing beside it.
    let repository = path.to_str()?.strip_suffix(PACKAGES[0].1)?;
    Some(format!("{{ path = {} }}", Value::String(format!("{repository}{place}"))))
}

/// The clone that this program was built from.
pub(crate) const CLONE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The cell's `code` in `folder`, where no library is installed: a path that leads to none leads to the nearest folder above
/// that is the repository, and of a notebook that was downloaded to the `clone`.
pub(crate) fn nearest(code: &str, folder: &Path, clone: &Path) -> String {
    replaced(code, |package, asked| {
        if is_package(&folder.join(path(&mut table(asked)?)?), package) {
            return None;
        }
        let (_, place) = PACKAGES.iter().find(|(name, _)| *name == package)?;
        let within = |above: &Path| Some(above.join(place)).filter(|place| is_package(place, package));
        let above = fs::canonicalize(folder).ok().and_then(|folder| folder.ancestors().find_map(within));
        let found = above.or_else(|| within(&fs::canonicalize(clone).ok()?))?;
        in_folder(asked, &found).ok()
    })
}

/// The cell's `code` with another dependency in the place of each that it asks for and `by` has one for.
fn replaced(code: &str, by: impl Fn(&str, &str) -> Option<String>) -> String {
    let line = |line: &str| {
        let (name, asked) = line.trim_start().strip_prefix(":dep ")?.split_once('=')?;
        let (package, _) = PACKAGES.iter().find(|(package, _)| *package == name.trim())?;
        by(package, asked).map(|own| format!(":dep {package} = {own}"))
    };
    code.split('\n').map(|text| line(text).unwrap_or_else(|| text.to_owned())).collect::<Vec<_>>().join("\n")
}

/// Whether the installed dependency stands for the one that is `asked` for.
fn takes_place(package: &str, asked: &str, folder: &Path, installed: &str) -> bool {
    let (Some(mut asked), Some(mut installed)) = (table(asked), table(installed)) else { return false };
    let Some(path) = path(&mut asked) else { return false };
    let found = folder.join(path);
    if !is_package(&found, package) {
        return true;
    }
    path_of(&mut installed) == fs::canonicalize(found).ok() && asked == installed
}

/// A dependency with its library in `folder`.
pub(crate) fn in_folder(dependency: &str, folder: &Path) -> anyhow::Result<String> {
    let mut table = table(dependency).with_context(|| format!("`{dependency}` is no dependency"))?;
    let folder = folder.to_str().context("the library's folder has a name that is no text")?;
    table.insert("path".to_owned(), Value::String(folder.to_owned()));
    Ok(Value::Table(table).to_string())
}

/// The library's folder within a repository, or a copy of one.
pub(crate) fn place(repository: &Path) -> PathBuf {
    repository.join(PACKAGES[0].1)
}

/// What of the repository is copied into the kernel beside the manifest: the library, what it shows, and the audit.
pub(crate) const PARTS: [&str; 5] = ["Cargo.lock", "src/syncscope", "src/present", "src/audit", "report-templates"];
/// The copy of the manifest as it was: the kernel's copy has one of its own.
pub(crate) const MANIFEST: &str = "Cargo.toml.orig";

/// The clone that the dependency was `installed` from, where its library has other files than the `copy`. A folder that is
/// gone has no other ones.
pub(crate) fn newer(installed: &str, copy: &Path) -> Option<PathBuf> {
    let library = path_of(&mut table(installed)?)?;
    let clone = library.ancestors().nth(2)?.to_owned();
    let mut same = PARTS.iter().map(|part| is_same(&clone.join(part), &copy.join(part)));
    (!is_same(&clone.join("Cargo.toml"), &copy.join(MANIFEST)) || same.any(|same| !same)).then_some(clone)
}

/// Whether two files, or all files of two folders, hold the same.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
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

/// Whether a folder holds a package of this name.
fn is_package(folder: &Path, name: &str) -> bool {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok().and_then(|text| text.parse::<Table>().ok());
    manifest
        .is_some_and(|manifest| manifest.get("package").and_then(|package| package.get("name")?.as_str()) == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: &str =
        ":dep syncscope = { path = \"../src/syncscope\", features = [\"cuda\"] }\nuse syncscope::prelude::*;";

    /// A repository with the packages and a folder for notebooks in it.
    fn repository() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        for (package, place) in PACKAGES {
            let place = folder.path().join(place);
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("Cargo.toml"), format!("[package]\nname = \"{package}\"\n")).unwrap();
        }
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
        fs::create_dir_all(folder.path().join("sub")).unwrap();
        fs::create_dir_all(folder.path().join("src/syncscope")).unwrap();
        fs::write(folder.path().join("src/syncscope/Cargo.toml"), "[package]\nname = \"another\"\n").unwrap();
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
        assert_eq!(asked["path"].as_str(), fs::canonicalize(place(folder.path())).unwrap().to_str());
        assert_eq!(asked["features"].as_array().map(Vec::len), Some(1));
        fs::remove_file(place(folder.path()).join("Cargo.toml")).unwrap();
        assert_eq!(nearest(CELL, &worked, nowhere), CELL);
    }

    #[test]
    fn a_downloaded_notebook_uses_the_runners_clone_of_the_library() {
        let downloads = tempfile::tempdir().unwrap();
        let asked = asked_for(&nearest(CELL, downloads.path(), Path::new(CLONE)));
        assert_eq!(asked["path"].as_str(), fs::canonicalize(place(Path::new(CLONE))).unwrap().to_str());
        assert_eq!(asked["features"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn a_path_to_another_library_than_the_installed_one_stays() {
        let (_folder, notebooks) = repository();
        assert_eq!(resolved(CELL, &notebooks, "{ path = \"/installed\" }", "OWN"), CELL);
    }

    #[test]
    fn the_installed_library_is_written_as_the_kernel_does() {
        let (folder, notebooks) = repository();
        let path = place(folder.path());
        let path = path.display();
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
            fs::create_dir_all(folder.join("src/syncscope/device")).unwrap();
            fs::write(folder.join("src/syncscope/device/mod.rs"), "one").unwrap();
        }
        for (_, place) in PACKAGES {
            fs::create_dir_all(copy.path().join(place)).unwrap();
            fs::copy(clone.path().join(place).join("Cargo.toml"), copy.path().join(place).join("Cargo.toml")).unwrap();
        }
        let installed = format!("{{ path = \"{}\" }}", place(clone.path()).display());
        assert_eq!(newer(&installed, copy.path()), None);
        fs::write(clone.path().join("src/syncscope/device/mod.rs"), "two").unwrap();
        assert_eq!(newer(&installed, copy.path()), Some(fs::canonicalize(clone.path()).unwrap()));
        assert_eq!(newer("{ path = \"/gone\" }", copy.path()), None);
    }

    #[test]
    fn the_audit_lies_beside_the_library_that_is_installed() {
        let (folder, notebooks) = repository();
        let cell = ":dep syncscope-audit = { path = \"../src/audit\" }";
        let installed = format!("{{ path = \"{}\" }}", place(folder.path()).display());
        let own = "{ path = \"/own/src/syncscope\", features = [\"cuda\"] }";
        assert_eq!(resolved(cell, &notebooks, &installed, own), ":dep syncscope-audit = { path = \"/own/src/audit\" }");
        assert!(lines(own).ends_with("\n:dep syncscope-audit = { path = \"/own/src/audit\" }\n"), "{}", lines(own));
    }

    #[test]
    fn other_dependencies_stay() {
        let cell = ":dep regex = \"1\"\n:dep syncscope = \"0.1\"";
        assert_eq!(resolved(cell, Path::new("/"), "{ path = \"/installed\" }", "OWN"), cell);
    }
}
