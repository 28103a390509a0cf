//! `report man`: the manual page of the program or of one of its commands.

use anyhow::Context;
use clap::{Args, Command};
use clap_mangen::Man;

use super::{End, UsageError, output};
use crate::results::nearest;

/// Print the manual page of the program, or of one of its commands
#[derive(Args)]
#[command(after_help = "Examples:
  report man > ~/.local/share/man/man1/report.1
  report man bench | man -l -")]
pub(super) struct Arguments {
    /// One of the commands; else the program itself
    command: Option<String>,
}

pub(super) fn execute(arguments: &Arguments, command: Command) -> anyhow::Result<End> {
    // Says to which command each of them belongs.
    let mut whole = command;
    whole.build();
    let page = match &arguments.command {
        None => whole,
        Some(name) => {
            let shown = || whole.get_subcommands().filter(|command| !command.is_hide_set());
            let found = shown().find(|command| command.get_name() == name).cloned();
            let unknown =
                || UsageError(format!("no command `{name}`{}", nearest(name, shown().map(Command::get_name))));
            found.ok_or_else(unknown)?
        }
    };
    let mut text = Vec::new();
    Man::new(page).render(&mut text).context("cannot write the page")?;
    output::whole(&String::from_utf8_lossy(&text));
    Ok(End::Well)
}
