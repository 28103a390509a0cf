//! `report init`: begins a course author's own folder, or a crate with experiments of one's own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::json;

use super::schema::Kind;
use super::{AppContext, End, UsageError, argument, invocation, output};
use crate::book::document::Document;
use crate::error::BookError;
use crate::files::fill;

/// Begin a course of your own, in a folder that renders as it is, or a crate with experiments of your own
#[derive(Args)]
#[command(after_help = "\
Examples:
  report init my-course
  report --course my-course --out target/my-course
  report init --rust my-experiments")]
pub(super) struct Arguments {
    /// The folder: one that is empty, or not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// A crate with an example of an experiment, a document with a claim, a suite, and a kernel, and the same command line
    #[arg(long)]
    rust: bool,
}

/// The packages of this repository that a crate depends on, directly or not: Cargo keeps no other of the same name beside one.
const OWN: [&str; 10] = [
    "syncscope",
    "syncscope-audit",
    "syncscope-book",
    "syncscope-calls",
    "syncscope-fleet",
    "syncscope-jupyter",
    "syncscope-present",
    "syncscope-report",
    "syncscope-results",
    "syncscope-suite",
];

/// The files of a crate, by their path in it. `@NAME@` stands for its name, `@SYNCSCOPE@` for where the library is.
const CRATE: [(&str, &str); 10] = [
    ("Cargo.toml", include_str!("Cargo.toml.in")),
    ("README.md", include_str!("README.md")),
    (".gitignore", "/target\n"),
    ("src/main.rs", include_str!("main.rs.in")),
    ("src/sum.rs", include_str!("sum.rs.in")),
    ("examples/saxpy.rs", include_str!("saxpy.rs.in")),
    ("kernels/saxpy.cu", include_str!("saxpy.cu")),
    ("benches/words.rs", include_str!("bench.rs.in")),
    ("documents/sum.yaml", include_str!("document.yaml")),
    ("suites/sum.yaml", include_str!("suite.yaml")),
];

pub(super) fn execute(arguments: Arguments, context: &AppContext) -> anyhow::Result<End> {
    let Arguments { folder, rust } = arguments;
    let (place, program) = (argument(&folder), invocation());
    if rust {
        write_crate(&folder)?;
        say!("crate: {place}");
        say!("to measure and render (in that folder): cargo run --release -- --suite sum");
        say!("to judge its claims: cargo run --release -- claims target/report/results.json");
        say!("to time its kernel on a GPU: cargo run --release -- bench kernels/saxpy.cu");
        return Ok(End::Well);
    }
    let name = |kind: Kind| kind.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let schema = |kind: Kind| Ok((name(kind), output::json(&kind.schema(context))?));
    let schemas: Vec<(String, String)> = Kind::OF_A_COURSE.into_iter().map(schema).collect::<anyhow::Result<_>>()?;
    let schemas = schemas.iter().map(|(name, schema)| (name.as_str(), schema.as_str()));
    context.book.clone().with_schemas(schemas).write(&folder)?;
    say!("course: {place}");
    say!("to measure and render it: {program} --course {place} --out target/course");
    say!("to render results that you have: {program} render RESULTS.json --course {place} --out target/course");
    Ok(End::Well)
}

/// Writes the crate into a folder that is empty or not there.
fn write_crate(folder: &Path) -> anyhow::Result<()> {
    let name = crate_name(folder)?;
    let report = dependency();
    // The schema of suites names the experiments, also those of the crate: its own program writes it.
    let schema = output::json(&schemars::schema_for!(Document))?;
    let files = CRATE.into_iter().chain([("schemas/document.json", schema.as_str())]).map(|(path, text)| {
        let text = text.replace("@NAME@", &name).replace("@REPORT@", &report);
        (PathBuf::from(path), text.into_bytes())
    });
    match fill(folder, &files.collect())? {
        true => Ok(()),
        false => Err(BookError::not_empty(folder).into()),
    }
}

/// The crate of this program as a dependency: where it was built, or by its version where that folder is gone.
fn dependency() -> String {
    let source = fs::canonicalize(env!("CARGO_MANIFEST_DIR")).ok().filter(|source| source.join("Cargo.toml").exists());
    let (key, value) = match source {
        Some(path) => ("path", path.display().to_string()),
        None => ("version", format!("={}", env!("CARGO_PKG_VERSION"))),
    };
    // A JSON string without control characters is a string of TOML.
    format!("{{ {key} = {} }}", json!(value))
}

/// A crate's name from the name of its folder: lower case, with hyphens in place of what a name cannot hold.
fn crate_name(folder: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(folder).with_context(|| folder.display().to_string())?;
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let name = name.trim_matches('-');
    // Cargo takes neither a digit in front, nor its own or its folders' names.
    let refused = |why: &str| Err(UsageError(format!("{}: {why}; take another folder", folder.display())).into());
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return refused("a crate is named after its folder, and its name begins with a letter");
    }
    if OWN.contains(&name.replace('_', "-").as_str()) {
        return refused("a crate is named after its folder, and a package that it depends on has that name");
    }
    if ["test", "core", "std", "build", "deps", "examples", "incremental"].contains(&name) {
        return refused("a crate is named after its folder, and Cargo has another use for that name");
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_named_after_its_folder() {
        let name = |folder: &str| crate_name(Path::new(folder)).ok();
        assert_eq!(name("a/My Experiments (2)"), Some("my-experiments--2".to_owned()));
        assert_eq!(name("a/../b_c"), Some("b_c".to_owned()));
        assert_eq!((name("2nd"), name("/"), name("syncscope")), (None, None, None));
        let manifest = include_str!("../Cargo.toml").lines();
        let packages: Vec<&str> = manifest.filter(|line| line.starts_with("syncscope")).collect();
        assert_eq!(packages.len() + 1, OWN.len());
        for package in packages.iter().filter_map(|line| line.split(' ').next()).chain(["syncscope-report"]) {
            assert!(name(package).is_none() && name(&package.replace('-', "_")).is_none(), "{package}");
        }
        assert!(["build", "Deps", "examples", "incremental"].iter().all(|folder| name(folder).is_none()));
    }
}
