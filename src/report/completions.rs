//! `report completions`: a script by which a shell completes the command line.

use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use clap_complete::{Shell, generate};

use super::{AppContext, End, output, program};

/// Print a script by which a shell completes commands, flags and names
#[derive(Args)]
#[command(after_help = "Examples:
  report completions bash > ~/.local/share/bash-completion/completions/report
  report completions zsh > ~/.zfunc/_report
  report completions fish > ~/.config/fish/completions/report.fish")]
pub(super) struct Arguments {
    /// The shell
    shell: Shell,
}

pub(super) fn execute(arguments: &Arguments, command: &Command, context: &AppContext) -> End {
    let names: Vec<&'static str> = context.registry.entries().iter().map(|entry| entry.name).collect();
    let experiments = |bench: Command| {
        bench.mut_arg("experiment", |argument| argument.value_parser(PossibleValuesParser::new(names)))
    };
    // Some shells' scripts would complete what is hidden.
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let shown = Command::new("report").args(command.get_arguments().cloned()).subcommands(shown);
    let mut shown = shown.mut_subcommand("bench", experiments);
    let mut script = Vec::new();
    generate(arguments.shell, &mut shown, program(), &mut script);
    output::whole(&String::from_utf8_lossy(&script));
    End::Well
}
