//! Cells, executed in the installed kernel: by its program, in its library, with its variables.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use syncscope_jupyter::{INSTALL, installed};

use crate::UsageError;
use crate::interrupt::THREAD;

/// An installed kernel.
pub(super) struct Kernel {
    folder: PathBuf,
    /// What Jupyter reads of it.
    spec: Value,
}

/// Why a cell failed.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Failure {
    kind: String,
    message: String,
}

impl Failure {
    /// What it says, in words.
    pub(super) fn reason(&self) -> String {
        match self.kind.as_str() {
            "CompileError" => format!("does not compile: {}", self.message.trim()),
            "Error" => format!("returns an error: {}", self.message.trim()),
            _ => self.message.trim().to_owned(),
        }
    }

    #[cfg(test)]
    pub(super) fn new(kind: &str, message: &str) -> Self {
        Self { kind: kind.to_owned(), message: message.to_owned() }
    }
}

impl Kernel {
    /// The kernel that Jupyter finds first, beginning with the environment `prefix`, where one is named.
    pub(super) fn find(prefix: Option<&Path>) -> Result<Self, UsageError> {
        let found = installed(prefix).map_err(|error| UsageError(error.to_string()))?;
        let none = format!("no kernel is installed to run the cells; in the clone, `{INSTALL}` installs one");
        let folder = found.ok_or(UsageError(none))?;
        let file = folder.join("kernel.json");
        let wrong = |message: String| UsageError(format!("{}: {message}", file.display()));
        let text = fs::read_to_string(&file).map_err(|error| wrong(error.to_string()))?;
        let spec = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { folder, spec })
    }

    /// Runs cells in a folder, each also behind one that failed, and says why those that failed did.
    pub(super) fn run(
        &self,
        codes: &[String],
        folder: &Path,
        timeout: Duration,
    ) -> anyhow::Result<Vec<Option<Failure>>> {
        let cells = json!({"folder": folder, "timeout": timeout.as_secs(), "cells": codes}).to_string();
        let program = self.spec["argv"][0].as_str().context("the kernel names no program")?;
        let mut command = Command::new(program);
        for (name, value) in self.spec["env"].as_object().into_iter().flatten() {
            command.env(name, value.as_str().unwrap_or_default());
        }
        // Through a pipe: a file would stay where this process is killed.
        command.args(["attempt", "/dev/stdin"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut kernel = command.spawn().with_context(|| program.to_owned())?;
        let input = kernel.stdin.take();
        let ask = move || input.map(|mut input| input.write_all(cells.as_bytes()));
        let asking = thread::Builder::new().spawn(ask).context(THREAD)?;
        let output = kernel.wait_with_output().with_context(|| program.to_owned())?;
        // One that ended before it had read all says so by its status.
        let _ = asking.join();
        if !output.status.success() {
            let place = self.folder.display();
            bail!("{place}: the kernel does not run cells; in the clone, `{INSTALL}` installs it again");
        }
        let ran: Vec<Option<Failure>> =
            serde_json::from_slice(&output.stdout).context("what the kernel says of cells")?;
        if ran.len() != codes.len() {
            bail!("the kernel ran {} of {} cells", ran.len(), codes.len());
        }
        Ok(ran)
    }
}
