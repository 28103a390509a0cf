//! The programs by which evcxr finds and asks Cargo, so that a dependency that a cell adds costs that dependency alone.
//!
//! evcxr first asks Cargo about such a dependency in a package that has no other one, and Cargo forgets the versions of all
//! others. So the library would be compiled again, of newer versions, and nothing at all without a network. A `cargo` of our
//! own puts the versions back. evcxr finds it because `rustup` does not say where Cargo is.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where they are, in the folder that cells are compiled in, and in it those that they stand for. rust-analyzer looks for Cargo in
/// its home folder first, so the folder is one.
const HOME: &str = "tools";
const TOOLS: &str = "bin";
const BEHIND: &str = "behind";
/// The variable with Cargo's home folder, and that with the user's own.
const CARGO_HOME: &str = "CARGO_HOME";
const OWN_HOME: &str = "SYNCSCOPE_CARGO_HOME";

/// rust-analyzer, which asks for one platform, hears of the packages that it needs. What fails to compile is told by a build
/// as by a check, which would first check all dependencies: they are only built, by a profile of their own. An error that a
/// `?` returns says where that was, a cell that awaits drops the result that evcxr's own code has, and what a cell prints without
/// an end of the line is there when it is over.
const CARGO: &str = r#"#!/bin/sh
behind=${0%/*}/behind/cargo
if [ -n "$SYNCSCOPE_CARGO_HOME" ]; then export CARGO_HOME="$SYNCSCOPE_CARGO_HOME"; else unset CARGO_HOME; fi
case $1 in
metadata)
    case $* in
    *--filter-platform*) "$behind" "$@" | "${0%/*}/behind/runner" packages; exit ;;
    esac
    [ -f Cargo.lock ] || exec "$behind" "$@"
    kept=Cargo.lock.$$
    cp -p Cargo.lock "$kept"
    "$behind" "$@"
    code=$?
    mv "$kept" Cargo.lock
    exit $code
    ;;
build)
    sed '/ From<T> for EvcxrUserCodeError {$/,/^ *}$/{
s/fn from(error: T)/#[track_caller] &/
s/eprintln!("\({[^}]*}\)", error)/eprintln!("\1\\u{1}at {}", error, std::panic::Location::caller())/
}
/evcxr_tokio_runtime/,/mutex\.lock()/s/\bmatch\b/let _ = match/
s/^evcxr_variable_store$/let _ = std::io::Write::flush(\&mut std::io::stdout()); &/
' src/lib.rs >src/lib.rs.new && mv src/lib.rs.new src/lib.rs
    ;;
check)
    shift
    set -- build "$@"
    ;;
esac
if [ "$1" = build ]; then
    shift
    set -- build --config "${0%/*}/behind/profile.toml" "$@"
fi
exec "$behind" "$@"
"#;

/// What measures nothing and a cell waits for no longer: optimised, it is a third of what compiling the library takes. And the
/// parts of a crate are optimised each by itself, as in `report`: across them, it takes a third more.
const PROFILE: &str = "[profile.dev]
lto = \"off\"

[profile.dev.package]
syncscope-audit.opt-level = 0
syncscope-present.opt-level = 0
cpp_demangle.opt-level = 0
flate2.opt-level = 0
miniz_oxide.opt-level = 0
plotters.opt-level = 0
rustc-demangle.opt-level = 0
schemars.opt-level = 0
serde_json.opt-level = 0
zerocopy.opt-level = 0
";

const RUSTUP: &str = r#"#!/bin/sh
if [ "$1" = which ]; then exit 1; fi
exec "${0%/*}/behind/rustup" "$@"
"#;

/// Puts them into `folder`, and has `command` find them before the programs of the `path`.
pub(super) fn give(command: &mut Command, folder: &Path, path: &[PathBuf]) -> anyhow::Result<()> {
    let tools = put(folder, path)?;
    command.env(OWN_HOME, std::env::var_os(CARGO_HOME).unwrap_or_default()).env(CARGO_HOME, folder.join(HOME));
    command.env("PATH", std::env::join_paths([tools].iter().chain(path))?);
    Ok(())
}

fn put(folder: &Path, path: &[PathBuf]) -> io::Result<PathBuf> {
    let tools = folder.join(HOME).join(TOOLS);
    // Those of a folder that was copied are links.
    match fs::remove_dir_all(&tools) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::create_dir_all(tools.join(BEHIND))?,
    }
    symlink(std::env::current_exe()?, tools.join(BEHIND).join("runner"))?;
    fs::write(tools.join(BEHIND).join("profile.toml"), PROFILE)?;
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
    use super::*;

    /// The lines that evcxr generates, below such of a cell.
    const GENERATED: &str = "impl<T> From<T> for Own {\nfn from(error: T) -> Self {\n    eprintln!(\"{}\", error);\n}\n}\n            \
                             impl<T: std::fmt::Display> From<T> for EvcxrUserCodeError {\n                fn from(error: T) -> \
                             Self {\n                    eprintln!(\"{}\", error);\n                    Own\n                }\n            }\n\
                             match of_the_cell {}\nlazy_arc(\"evcxr_tokio_runtime\", ||\nnew()); match\nmutex.lock() { Ok(a) => a }\n\
                             .block_on(async {\nmatch of_the_cell {}\n});\nevcxr_variable_store\n}\n";

    #[test]
    fn asking_about_a_dependency_keeps_the_versions_and_a_build_says_where_errors_were_returned() {
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
        let source = folder.path().join("src/lib.rs");
        fs::create_dir(source.with_file_name("")).unwrap();
        fs::write(&source, GENERATED).unwrap();
        for (command, left) in [("build", "of build\n"), ("metadata", "of build\n"), ("update", "of update\n")] {
            assert_eq!(run("cargo", &[command, "--x"]).status.code(), Some(7));
            assert_eq!(versions(), left, "{command}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "nothing else is left");
        assert_eq!(run("cargo", &["check", "--x"]).status.code(), Some(7));
        assert_eq!(versions(), "of build\n", "a check is a build");
        let made = fs::read_to_string(source).unwrap();
        let own = "fn from(error: T) -> Self {\n    eprintln!(\"{}\", error);";
        assert_eq!((made.lines().count(), made.contains(own)), (GENERATED.lines().count(), true), "{made}");
        let from = "#[track_caller] fn from(error: T)";
        let said = "eprintln!(\"{}\\u{1}at {}\", error, std::panic::Location::caller());";
        assert!(made.matches(from).count() == 1 && made.matches(said).count() == 1, "{made}");
        assert!(made.contains("\nnew()); let _ = match\nmutex.lock()"), "{made}");
        assert_eq!(made.matches("\nmatch of_the_cell {}\n").count(), 2, "{made}");
        assert!(made.contains("std::io::Write::flush(&mut std::io::stdout()); evcxr_variable_store\n}"), "{made}");
        assert!(!run("rustup", &["which", "cargo"]).status.success());
        assert_eq!(run("rustup", &["+nightly", "which", "cargo"]).stdout, b"rustup +nightly which cargo\n");
        put(folder.path(), &[]).unwrap();
        assert!(!tools.join("cargo").exists(), "where there is none, there is none");
    }
}
