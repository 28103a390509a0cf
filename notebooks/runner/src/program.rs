//! A notebook as one Rust program: for machines that have a GPU and no toolchain.
//!
//! All cells become the body of one function, in their order, so that variables live on as they do in a kernel. What a
//! cell shows at its end is shown in the same way, and the program's standard output is the record of it (see `record`).
//!
//! # Limits
//! Of evcxr's commands `:dep` is known and any other an error. Items that have the same name in two cells do not compile.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use quote::{ToTokens, quote};
use syn::parse::Parser;
use syn::{Block, Expr, Item, Stmt};

use crate::file::File;
use crate::library;
use crate::record::{CELL, DONE, FAILED};

/// Dependencies by their name.
type Dependencies = BTreeMap<String, toml::Value>;

/// Builds the programs of `notebooks` in `out` and says where they are.
pub(crate) fn build(notebooks: &[PathBuf], out: &Path) -> anyhow::Result<()> {
    let (mut dependencies, mut names) = (Dependencies::new(), Vec::new());
    let sources = out.join("src/bin");
    if sources.exists() {
        fs::remove_dir_all(&sources)?;
    }
    fs::create_dir_all(&sources).with_context(|| sources.display().to_string())?;
    for path in notebooks {
        let name = path.file_stem().and_then(|stem| stem.to_str()).context("a notebook needs a name")?;
        let program = source(&File::read(path)?, &mut dependencies).with_context(|| path.display().to_string())?;
        fs::write(sources.join(format!("{name}.rs")), program)?;
        names.push(name.to_owned());
    }
    fs::write(out.join("Cargo.toml"), manifest(dependencies)?)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--manifest-path"]).arg(out.join("Cargo.toml"));
    command.arg("--target-dir").arg(out.join("target"));
    if !command.status().context("cargo does not start")?.success() {
        bail!("the programs do not compile");
    }
    for name in names {
        let program = out.join("target/release").join(&name);
        println!("{} > {name}.record", program.display());
    }
    Ok(())
}

fn manifest(dependencies: Dependencies) -> anyhow::Result<String> {
    let dependencies = toml::to_string(&BTreeMap::from([("dependencies", dependencies)]))?;
    Ok(format!(
        "[workspace]\n\n[package]\nname = \"notebook-programs\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         publish = false\n\n{dependencies}"
    ))
}

/// The program of a notebook. Its dependencies go to `dependencies`.
fn source(file: &File, dependencies: &mut Dependencies) -> anyhow::Result<String> {
    let folder = file.folder()?;
    let (mut items, mut body) = (Vec::<String>::new(), String::new());
    for cell in file.code_cells() {
        let place = || format!("cell {}", cell.id);
        let (commands, code) = split(&cell.code);
        for command in commands {
            depend(&command, &folder, dependencies).with_context(place)?;
        }
        body.push_str(&format!("    begin({:?});\n", cell.id));
        let mut statements = Block::parse_within.parse_str(&code).with_context(place)?;
        let last = match statements.pop() {
            Some(Stmt::Expr(expression, None)) if shows(&expression) => Some(expression),
            Some(other) => {
                statements.push(other);
                None
            }
            None => None,
        };
        for statement in statements {
            match statement {
                Stmt::Item(item @ Item::Use(_)) => {
                    let text = item.into_token_stream().to_string();
                    // Two cells may use the same.
                    if !items.contains(&text) {
                        items.push(text);
                    }
                }
                other => body.push_str(&format!("    {}\n", other.into_token_stream())),
            }
        }
        if let Some(expression) = last {
            body.push_str(&format!("    {}\n", quote! { (#expression).evcxr_display(); }));
        }
    }
    let items = items.iter().map(|item| format!("    {item}\n")).collect::<String>();
    Ok(format!("{}fn cells() -> Result<(), Box<dyn std::error::Error>> {{\n{items}{body}    Ok(())\n}}\n", frame()))
}

/// Whether a kernel would show it: loops have nothing to show.
fn shows(expression: &Expr) -> bool {
    !matches!(expression, Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_))
}

/// What every program begins with: its `main`, and how cells begin, show themselves and fail.
fn frame() -> String {
    format!(
        r##"#![allow(unused, non_snake_case)]

trait Plain {{
    fn evcxr_display(&self);
}}

/// For what has no display of its own, which goes first. A kernel shows no unit.
impl<T: std::fmt::Debug + ?Sized> Plain for T {{
    fn evcxr_display(&self) {{
        if std::any::type_name::<T>() == "()" {{
            return;
        }}
        println!("EVCXR_BEGIN_CONTENT text/plain\n{{self:?}}\nEVCXR_END_CONTENT");
    }}
}}

fn begin(cell: &str) {{
    println!("{CELL}{{cell}}");
}}

fn failed(message: &str) {{
    println!("{FAILED}{{}}", message.replace('\n', "\\n"));
    eprintln!("{{message}}");
}}

fn main() -> std::process::ExitCode {{
    let outcome = std::panic::catch_unwind(cells);
    match outcome {{
        Ok(Ok(())) => {{
            println!("{DONE}");
            return std::process::ExitCode::SUCCESS;
        }}
        Ok(Err(error)) => failed(&error.to_string()),
        Err(panic) => {{
            let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
            failed(&text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or("a panic".to_owned()));
        }}
    }}
    std::process::ExitCode::FAILURE
}}

"##
    )
}

/// A cell's commands, which begin with a colon, and the rest of its code.
fn split(code: &str) -> (Vec<String>, String) {
    let (commands, code): (Vec<&str>, Vec<&str>) = code.lines().partition(|line| line.starts_with(':'));
    (commands.into_iter().map(str::to_owned).collect(), code.join("\n"))
}

/// Takes note of what a command depends on. Paths start from `folder`.
fn depend(command: &str, folder: &Path, dependencies: &mut Dependencies) -> anyhow::Result<()> {
    let command = &library::nearest(command, folder, Path::new(library::CLONE));
    let Some(text) = command.strip_prefix(":dep ") else { bail!("`{command}` cannot be part of a program") };
    let mut table: Dependencies = toml::from_str(text).with_context(|| format!("`{command}`"))?;
    for value in table.values_mut() {
        if let Some(path) = value.get_mut("path") {
            let found = fs::canonicalize(folder.join(path.as_str().unwrap_or_default()));
            *path = toml::Value::String(found.with_context(|| format!("`{command}`"))?.display().to_string());
        }
    }
    for (name, value) in table {
        match dependencies.get(&name) {
            Some(known) if *known != value => bail!("`{command}` asks for another `{name}` than a cell before it"),
            _ => dependencies.insert(name, value),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(cells: &[&str]) -> anyhow::Result<(String, Dependencies)> {
        let folder = tempfile::tempdir()?;
        let cells: Vec<serde_json::Value> = (1..)
            .zip(cells)
            .map(|(number, code)| {
                serde_json::json!({"cell_type": "code", "id": format!("c{number}"), "metadata": {}, "source": [code],
                    "execution_count": null, "outputs": []})
            })
            .collect();
        let notebook = serde_json::json!({"metadata": {}, "nbformat": 4, "nbformat_minor": 5, "cells": cells});
        let path = folder.path().join("test.ipynb");
        fs::write(&path, notebook.to_string())?;
        let mut dependencies = Dependencies::new();
        let source = source(&File::read(&path)?, &mut dependencies)?;
        Ok((source, dependencies))
    }

    #[test]
    fn the_last_expression_is_shown_and_a_statement_is_not() {
        let (source, _) = program(&["let x = 1;\nx + 1", "x;", "for _ in 0..2 {}"]).unwrap();
        assert!(source.contains("(x + 1) . evcxr_display ()"), "{source}");
        assert_eq!(source.matches(". evcxr_display").count(), 1);
        syn::parse_file(&source).unwrap();
    }

    #[test]
    fn what_two_cells_use_is_used_once() {
        let (source, _) = program(&["use std::fmt;", "use std::fmt;\nuse std::io;"]).unwrap();
        assert_eq!((source.matches("use std :: fmt").count(), source.matches("use std :: io").count()), (1, 1));
    }

    #[test]
    fn dependencies_are_taken_over_and_other_commands_refused() {
        let (_, dependencies) =
            program(&[":dep half = { version = \"2\", features = [\"std\"] }\nlet x = 1;"]).unwrap();
        assert_eq!(dependencies["half"]["version"].as_str(), Some("2"));
        assert!(format!("{:#}", program(&[":vars"]).unwrap_err()).contains("`:vars`"));
        assert!(format!("{:#}", program(&["let x = ;"]).unwrap_err()).contains("cell c1"));
    }
}
