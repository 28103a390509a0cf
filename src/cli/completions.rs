//! `report completions`: a script by which a shell completes the command line.

use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use clap_complete::{Shell, generate};

use super::{Carried, End, output, program};

/// Print a script by which a shell completes commands, flags and names
#[derive(Args)]
#[command(after_help = "Examples:
  report completions bash > ~/.local/share/bash-completion/completions/report
  report completions zsh > ~/.zfunc/_report")]
pub(super) struct Arguments {
    /// The shell
    shell: Shell,
}

pub(super) fn execute(arguments: &Arguments, command: &Command, carried: &Carried) -> End {
    let names: Vec<&'static str> = carried.registry.entries().iter().map(|entry| entry.name).collect();
    let experiments = |bench: Command| {
        bench.mut_arg("experiment", |argument| argument.value_parser(PossibleValuesParser::new(names)))
    };
    // Some shells' scripts would complete what is hidden.
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let shown = Command::new("report").args(command.get_arguments().cloned()).subcommands(shown);
    let mut script = Vec::new();
    generate(arguments.shell, &mut shown.mut_subcommand("bench", experiments), program(), &mut script);
    output::whole(&String::from_utf8_lossy(&script));
    End::Well
}
