//! A cell's line `:dep syncscope = { path = … }` in a kernel that has the library.
//!
//! The line leads from a notebook of the repository to the library. In a notebook that was downloaded it leads nowhere,
//! and the installed library takes its place. Where it leads to the folder that the kernel was installed from, it is
//! written as the kernel writes it, so that nothing is compiled again.

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// The cell's `code` for a kernel that works in `folder` and whose library is the dependency `installed`.
pub(super) fn resolved(code: &str, folder: &Path, installed: &str) -> String {
    let line = |line: &str| match line.trim_start().strip_prefix(":dep ").and_then(|rest| rest.split_once('=')) {
        Some((name, asked)) if name.trim() == "syncscope" && takes_place(asked, folder, installed) => {
            format!(":dep syncscope = {installed}")
        }
        _ => line.to_owned(),
    };
    code.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Whether the installed dependency stands for the one that is `asked` for.
fn takes_place(asked: &str, folder: &Path, installed: &str) -> bool {
    let (Some(mut asked), Some(mut installed)) = (table(asked), table(installed)) else { return false };
    let Some(path) = path(&mut asked) else { return false };
    let Some(found) = library(&folder.join(path)) else { return true };
    path_of(&mut installed) == Some(found) && asked == installed
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

    #[test]
    fn a_path_that_leads_nowhere_is_the_installed_library() {
        let folder = tempfile::tempdir().unwrap();
        let installed = "{ path = \"/installed\" }";
        assert!(
            resolved(CELL, folder.path(), installed).starts_with(":dep syncscope = { path = \"/installed\" }\nuse ")
        );
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("Cargo.toml"), "[package]\nname = \"another\"\n").unwrap();
        assert_ne!(resolved(CELL, &folder.path().join("sub"), installed), CELL);
    }

    #[test]
    fn a_path_to_another_library_than_the_installed_one_stays() {
        let (_folder, notebooks) = repository();
        assert_eq!(resolved(CELL, &notebooks, "{ path = \"/installed\" }"), CELL);
    }

    #[test]
    fn the_installed_library_is_written_as_the_kernel_writes_it_if_the_features_are_its_own() {
        let (folder, notebooks) = repository();
        let path = folder.path().display();
        let installed = format!("{{ path = \"{path}\", features = [\"cuda\"] }}");
        assert!(resolved(CELL, &notebooks, &installed).starts_with(&format!(":dep syncscope = {installed}")));
        assert_eq!(resolved(CELL, &notebooks, &format!("{{ path = \"{path}\" }}")), CELL);
    }

    #[test]
    fn other_dependencies_stay() {
        let cell = ":dep regex = \"1\"\n:dep syncscope = \"0.1\"";
        assert_eq!(resolved(cell, Path::new("/"), "{ path = \"/installed\" }"), cell);
    }
}
