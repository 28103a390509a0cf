//! `report completions`: a script by which a shell completes the command line.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Command};
use clap_complete::{Shell, generate};

use super::{Carried, End, output, program};

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

pub(super) fn execute(arguments: &Arguments, command: &Command, carried: &Carried) -> End {
    let names: Vec<&'static str> = carried.registry.entries().iter().map(|entry| entry.name).collect();
    let experiments = |bench: Command| {
        bench.mut_arg("experiment", |argument| argument.value_parser(PossibleValuesParser::new(names)))
    };
    // Some shells' scripts would complete what is hidden.
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let shown = Command::new("report").args(command.get_arguments().cloned()).subcommands(shown);
    let mut shown = shown.mut_subcommand("bench", experiments);
    let mut script = Vec::new();
    generate(arguments.shell, &mut shown, program(), &mut script);
    let values = if arguments.shell == Shell::Fish { values_in_fish(&shown) } else { String::new() };
    output::whole(&(String::from_utf8_lossy(&script) + &*values));
    End::Well
}

/// What completes in fish the values that stand without a flag: clap's script for it has none.
fn values_in_fish(command: &Command) -> String {
    let program = program();
    let using = format!("__fish_{}_using_subcommand", program.replace('-', "_"));
    let mut lines = String::new();
    for own in command.get_subcommands() {
        let values = own.get_positionals().flat_map(Arg::get_possible_values);
        let values: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        if !values.is_empty() {
            lines +=
                &format!("complete -c {program} -n \"{using} {}\" -f -a \"{}\"\n", own.get_name(), values.join(" "));
        }
    }
    lines
}
