//! `report man`: the manual page of the program or of one of its commands, which may have commands of its own.

use anyhow::Context;
use clap::{Args, Command};
use clap_mangen::Man;

use super::{End, UsageError, output};
use crate::results::nearest;

/// Print the manual page of the program, or of one of its commands
#[derive(Args)]
#[command(after_help = "Examples:
  report man > ~/.local/share/man/man1/report.1
  report man kernel install | man -l -")]
pub(super) struct Arguments {
    /// One of the commands, and one of its own behind it; else the program itself
    command: Vec<String>,
}

pub(super) fn execute(arguments: &Arguments, command: Command) -> anyhow::Result<End> {
    // Says to which command each of them belongs.
    let mut whole = command;
    whole.build();
    let mut page = &whole;
    for name in &arguments.command {
        let shown = || page.get_subcommands().filter(|command| !command.is_hide_set());
        let found = shown().find(|command| command.get_name() == name);
        let place = page.get_bin_name().unwrap_or_default();
        let near = || nearest(name, shown().map(Command::get_name));
        page = found.ok_or_else(|| UsageError(format!("{place}: no command `{name}`{}", near())))?;
    }
    let mut text = Vec::new();
    Man::new(page.clone()).render(&mut text).context("cannot write the page")?;
    output::whole(&String::from_utf8_lossy(&text));
    Ok(End::Well)
}
