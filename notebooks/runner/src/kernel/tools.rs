//! The programs by which evcxr finds and asks Cargo, so that a dependency that a cell adds costs that dependency alone.
//!
//! evcxr first asks Cargo about such a dependency in a package that has no other one, and Cargo forgets the versions of all
//! others. So the library would be compiled again, of newer versions, and nothing at all without a network. A `cargo` of our
//! own puts the versions back. evcxr finds it because `rustup` does not say where Cargo is.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Where they are, in the folder that cells are compiled in, and in it those that they stand for.
const TOOLS: &str = "tools";
const BEHIND: &str = "behind";

const CARGO: &str = r#"#!/bin/sh
behind=${0%/*}/behind/cargo
if [ "$1" != metadata ] || [ ! -f Cargo.lock ]; then exec "$behind" "$@"; fi
kept=Cargo.lock.$$
cp -p Cargo.lock "$kept"
"$behind" "$@"
code=$?
mv "$kept" Cargo.lock
exit $code
"#;

const RUSTUP: &str = r#"#!/bin/sh
if [ "$1" = which ]; then exit 1; fi
exec "${0%/*}/behind/rustup" "$@"
"#;

/// Puts them into `folder`, before the programs of the `path`.
pub(super) fn put(folder: &Path, path: &[PathBuf]) -> io::Result<PathBuf> {
    let tools = folder.join(TOOLS);
    // Those of a folder that was copied are links.
    match fs::remove_dir_all(&tools) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::create_dir_all(tools.join(BEHIND))?,
    }
    for (name, script) in [("cargo", CARGO), ("rustup", RUSTUP)] {
        if let Some(found) = path.iter().map(|folder| folder.join(name)).find(|program| program.is_file()) {
            symlink(found, tools.join(BEHIND).join(name))?;
            fs::write(tools.join(name), script)?;
            fs::set_permissions(tools.join(name), Permissions::from_mode(0o755))?;
        }
    }
    Ok(tools)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn asking_about_a_dependency_keeps_the_versions_and_building_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let programs = folder.path().join("pro grams");
        fs::create_dir(&programs).unwrap();
        let cargo = "#!/bin/sh\necho \"of $1\" >Cargo.lock\nexit 7\n";
        for (name, script) in [("cargo", cargo), ("rustup", "#!/bin/sh\necho \"rustup $@\"\n")] {
            fs::write(programs.join(name), script).unwrap();
            fs::set_permissions(programs.join(name), Permissions::from_mode(0o755)).unwrap();
        }
        let tools = put(folder.path(), &[folder.path().join("none"), programs]).unwrap();
        let run = |name: &str, arguments: &[&str]| {
            Command::new(tools.join(name)).args(arguments).current_dir(folder.path()).output().unwrap()
        };
        let versions = || fs::read_to_string(folder.path().join("Cargo.lock")).unwrap();
        for (command, left) in [("build", "of build\n"), ("metadata", "of build\n"), ("check", "of check\n")] {
            assert_eq!(run("cargo", &[command, "--x"]).status.code(), Some(7));
            assert_eq!(versions(), left, "{command}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing else is left");
        assert!(!run("rustup", &["which", "cargo"]).status.success());
        assert_eq!(run("rustup", &["+nightly", "which", "cargo"]).stdout, b"rustup +nightly which cargo\n");
        put(folder.path(), &[]).unwrap();
        assert!(!tools.join("cargo").exists(), "where there is none, there is none");
    }
}
