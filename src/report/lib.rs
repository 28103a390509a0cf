//! The command line `report`, as a value: a crate of your own adds its experiments, documents, suites and notebooks and
//! has the same subcommands.
//!
//! A subcommand is one file: its arguments, which [`clap`] reads, and what it does.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr, reason = "what is said passes `output`")]

#[macro_use]
mod output;

mod attach;
mod audit;
mod bench;
mod benchmark;
mod by_turns;
mod check;
mod claims;
mod collect;
mod compare;
mod course;
mod device;
mod devices;
mod embedded;
mod error;
mod exit;
mod experiments;
mod first_steps;
mod fleet;
mod history;
mod import;
mod init;
mod interrupt;
mod job;
mod keep;
mod lab;
mod machines;
mod naming;
mod next_run;
mod output_file;
mod peer;
mod plan;
mod planned;
mod processes;
mod progress;
mod recorded;
mod render;
mod run;
mod schema;
mod sent;
mod serve;
mod slides;
mod submit;
mod terminal;
mod version;

use syncscope::{measure, timeline};
use syncscope_book as book;
use syncscope_present::{self as present, clean, units};
use syncscope_results::{files, store, yaml};
use syncscope_suite::runner;

// What a crate of one's own experiments needs.
pub use syncscope;
pub use syncscope_results as results;
pub use syncscope_suite::experiment;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

pub use self::benchmark::Benchmarks;
#[doc(hidden)]
pub use self::embedded::book as carried_book;
use self::exit::{AlreadyReported, End, UsageError, exit_code, failed, told};
use self::naming::{invocation, program};
use crate::book::BookProject;
use crate::clean::terminal_line;
use crate::experiment::{Experiment, Registry};
use crate::files::is_same;

/// The program `report` with the experiments and the book that it carries.
///
/// ```no_run
/// use std::process::ExitCode;
/// use syncscope_report::App;
///
/// # mod sums {
/// #     #[derive(Clone, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// #     pub struct Sums {}
/// #     impl syncscope_suite::experiment::Experiment for Sums {
/// #         const NAME: &'static str = "sums";
/// #         const SUMMARY: &'static str = "What a sum costs its caller";
/// #         fn groups(&self, _: &str) -> Vec<syncscope_suite::experiment::Group> {
/// #             Vec::new()
/// #         }
/// #     }
/// # }
/// # const SUMS: &str = "";
/// fn main() -> ExitCode {
///     App::new()
///         .experiment::<sums::Sums>()
///         .document("sums", SUMS) // include_str!("../documents/sums.yaml")
///         .suite("sums", "title: Sums\nsampling: { samples: 15 }\nexperiments: [sums: {}]")
///         .main()
/// }
/// ```
#[derive(Debug)]
pub struct App {
    registry: Registry,
    book: BookProject,
}

impl Default for App {
    fn default() -> Self {
        Self::new()
    }
}

impl App {
    /// The program with the library's own experiments and book.
    pub fn new() -> Self {
        Self { registry: Registry::builtin(), book: embedded::book() }
    }

    /// With the experiment `E`, in place of one of that name where there is one.
    #[must_use]
    pub fn experiment<E: Experiment>(mut self) -> Self {
        self.registry = self.registry.with::<E>();
        self
    }

    /// With a document (YAML), in place of one of that name where there is one.
    #[must_use]
    pub fn document(mut self, name: &str, yaml: &str) -> Self {
        self.book = self.book.with_file(format!("documents/{name}.yaml"), yaml);
        self
    }

    /// With a suite (YAML), in place of one of that name where there is one: `--suite NAME` runs it.
    #[must_use]
    pub fn suite(mut self, name: &str, yaml: &str) -> Self {
        self.book = self.book.with_file(format!("suites/{name}.yaml"), yaml);
        self
    }

    /// With a notebook (ipynb) as a chapter, in place of one of that name where there is one.
    #[must_use]
    pub fn notebook(mut self, name: &str, ipynb: &str) -> Self {
        self.book = self.book.with_file(format!("notebooks/{name}.ipynb"), ipynb);
        self
    }

    /// The subcommands and their flags, for whoever lists or completes them. The examples in their help name the program
    /// that runs.
    ///
    /// ```
    /// use syncscope_report::App;
    ///
    /// let command = App::new().command();
    /// assert!(command.get_subcommands().any(|subcommand| subcommand.get_name() == "render"));
    /// ```
    pub fn command(&self) -> clap::Command {
        let name = program();
        naming::in_all(Cli::command(), &name).display_name(&name).bin_name(&name)
    }

    /// Does what the command line asks for.
    ///
    /// The exit code is 0 where all is well, 1 where something failed on the way, 2 where what the user gave is wrong, and
    /// 130 after Ctrl-C.
    pub fn main(self) -> ExitCode {
        interrupt::settle();
        // Where it is not known, what starts it says so.
        let _ = std::env::current_exe().map(crate::experiment::start_anew);
        let command = self.command().color(terminal::named(std::env::args_os()));
        let matches = command.clone().try_get_matches().and_then(|matches| reject_misplaced_flags(matches, &command));
        // With what clap works out of itself, without which an argument cannot be named in a message.
        let mut built = command.clone();
        built.build();
        let matches = matches.and_then(|matches| reject_empty_values(&matches, &built).map_or(Ok(matches), Err));
        let context = AppContext { registry: self.registry, book: self.book };
        let end = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
            Ok(cli) => execute(cli, &context).unwrap_or_else(|error| failed(&error)),
            Err(error) => refuse(error),
        };
        exit_code(end)
    }
}

/// What the program carries: its experiments, and the book that is made where no folder of a course is named.
struct AppContext {
    registry: Registry,
    book: BookProject,
}

/// Measures where a host and a GPU wait for each other, and publishes the answer as a book.
///
/// Without a subcommand: runs the quick suite on the first GPU (on the CPU engine where there is none), prints a
/// summary and renders the book.
#[derive(Parser)]
#[command(version, after_help = "Examples:\n  report --suite full --out target/full\n  report --verbose")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    job: job::Arguments,
    #[command(flatten)]
    manner: terminal::OutputOptions,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Arguments),
    Render(render::Arguments),
    Slides(slides::Arguments),
    Serve(serve::Arguments),
    Init(init::Arguments),
    Audit(audit::Arguments),
    Bench(bench::Arguments),
    Claims(claims::Arguments),
    Devices(devices::Arguments),
    Experiments(experiments::Arguments),
    Check(check::Arguments),
    Schema(schema::Arguments),
    Compare(compare::Arguments),
    Lab(lab::Arguments),
    Attach(attach::Arguments),
    Import(import::Arguments),
    Collect(collect::Arguments),
    Submit(submit::Arguments),
    History(history::Arguments),
    Machines(machines::Arguments),
    Fleet(fleet::Arguments),
    Plan(plan::Arguments),
    NextRun(next_run::Arguments),
    FirstSteps(first_steps::Arguments),
}

fn execute(cli: Cli, context: &AppContext) -> anyhow::Result<End> {
    cli.manner.take();
    let Some(command) = cli.command else { return job::execute(cli.job, context) };
    match command {
        Command::Run(arguments) => run::execute(arguments, context),
        Command::Render(arguments) => render::execute(&arguments, context),
        Command::Slides(arguments) => slides::execute(&arguments, context),
        Command::Serve(arguments) => serve::execute(&arguments),
        Command::Init(arguments) => init::execute(arguments, context),
        Command::Audit(arguments) => audit::execute(&arguments),
        Command::Bench(arguments) => bench::execute(&arguments, context),
        Command::Claims(arguments) => claims::execute(&arguments, context),
        Command::Devices(arguments) => devices::execute(&arguments),
        Command::Experiments(arguments) => experiments::execute(&arguments, context),
        Command::Check(arguments) => check::execute(&arguments, context),
        Command::Schema(arguments) => schema::execute(&arguments, context),
        Command::Compare(arguments) => compare::execute(&arguments, context),
        Command::Lab(arguments) => lab::execute(arguments, context),
        Command::Attach(arguments) => attach::execute(&arguments, context),
        Command::Import(arguments) => import::execute(&arguments),
        Command::Collect(arguments) => collect::execute(&arguments),
        Command::Submit(arguments) => submit::execute(&arguments),
        Command::History(arguments) => history::execute(&arguments),
        Command::Machines(arguments) => machines::execute(&arguments),
        Command::Fleet(arguments) => fleet::execute(&arguments, context),
        Command::Plan(arguments) => plan::execute(&arguments, context),
        Command::NextRun(arguments) => next_run::execute(&arguments, context),
        Command::FirstSteps(arguments) => first_steps::execute(&arguments),
    }
}

/// Refuses arguments of the program's own job before a command, which has arguments of its own.
fn reject_misplaced_flags(matches: ArgMatches, command: &clap::Command) -> Result<ArgMatches, clap::Error> {
    let Some(name) = matches.subcommand_name() else { return Ok(matches) };
    let is_given = |argument: &&clap::Arg| {
        let id = argument.get_id().as_str();
        !argument.is_global_set() && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    match command.get_arguments().find(is_given).and_then(clap::Arg::get_long) {
        Some(flag) => {
            let message = format!("`--{flag}` stands before `{name}`, which does not read it there");
            Err(command.clone().error(ErrorKind::ArgumentConflict, message))
        }
        None => Ok(matches),
    }
}

/// Refuses an empty text in the place of a name or a value. What another program is handed may be empty. `command` is
/// built.
fn reject_empty_values(matches: &ArgMatches, command: &clap::Command) -> Option<clap::Error> {
    let is_empty = |argument: &&clap::Arg| {
        let of_another = argument.is_last_set() || argument.is_trailing_var_arg_set();
        let values = matches.get_raw(argument.get_id().as_str());
        !of_another && values.is_some_and(|mut values| values.any(|value| value.to_string_lossy().trim().is_empty()))
    };
    if let Some(argument) = command.get_arguments().find(is_empty) {
        let message = format!("a value is required for `{argument}`, and an empty one was given");
        return Some(command.clone().error(ErrorKind::InvalidValue, message));
    }
    let (name, matches) = matches.subcommand()?;
    reject_empty_values(matches, command.find_subcommand(name)?)
}

/// Says what is wrong with the command line, or prints the help that it asks for.
fn refuse(error: clap::Error) -> End {
    let error = in_lines(error);
    if error.kind() == ErrorKind::DisplayVersion {
        show!("{}", version::text());
        return End::Well;
    }
    if error.use_stderr() {
        // It repeats the arguments, and a pattern of the shell makes arguments of the names of files.
        output::error(&error.render().to_string());
        return End::Refused;
    }
    if let Err(unwritten) = error.print() {
        output::failed(unwritten);
    }
    End::Well
}

/// The error with its arguments as lines: a pattern of the shell makes arguments of the names of files.
fn in_lines(mut error: clap::Error) -> clap::Error {
    let line = |value: &ContextValue| match value {
        ContextValue::String(text) => Some(ContextValue::String(terminal_line(text).into_owned())),
        _ => None,
    };
    let lines: Vec<_> = error.context().filter_map(|(kind, value)| Some((kind, line(value)?))).collect();
    lines.into_iter().for_each(|(kind, line)| _ = error.insert(kind, line));
    error
}

/// Refuses to write where something is read that would be lost.
fn refuse_input<'a>(out: &Path, read: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), UsageError> {
    // A pipe or a terminal may be read and written.
    let is_lost = out.is_file() && read.into_iter().any(|read| is_same(read, out));
    match is_lost {
        true => Err(UsageError(format!("{}: it is read, too, and would be lost; name another file", out.display()))),
        false => Ok(()),
    }
}

/// A path as an argument that a shell hands on as it is, and that is no flag.
fn argument(path: &Path) -> String {
    let path = if path.as_os_str().as_encoded_bytes().starts_with(b"-") { &Path::new(".").join(path) } else { path };
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:@,%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of all flags of the command and of those below it: clap shows the value, and a parser's own words follow.
    fn with_values(command: &clap::Command, path: &[String]) -> Vec<Vec<String>> {
        let flags = command.get_arguments().filter(|argument| argument.get_action().takes_values());
        let own = flags.filter_map(clap::Arg::get_long).map(|flag| {
            let end = [format!("--{flag}"), "1\nerror: c".to_owned()];
            path.iter().cloned().chain(end).collect()
        });
        let below = command.get_subcommands().flat_map(|command| {
            let path: Vec<String> = path.iter().cloned().chain([command.get_name().to_owned()]).collect();
            with_values(command, &path)
        });
        own.chain(below).collect()
    }

    #[test]
    fn an_argument_with_a_line_break_begins_no_line_of_the_refusal() {
        let command = App::new().command();
        let all = with_values(&command, &["report".to_owned()]);
        let names = [&["report", "bench", "a", "b\nerror: c"][..], &["report", "a\nerror: c"]];
        let names = names.map(|arguments| arguments.iter().map(|&argument| argument.to_owned()).collect());
        let refused: Vec<String> = names
            .into_iter()
            .chain(all)
            .filter_map(|arguments: Vec<String>| command.clone().try_get_matches_from(arguments).err())
            .map(|error| in_lines(error).to_string())
            .collect();
        assert!(refused.iter().any(|error| error.contains("--runs")), "{refused:?}");
        for error in refused {
            assert!(!error.contains("\nerror: c"), "{error}");
        }
    }

    #[test]
    fn a_path_in_a_command_is_one_argument_and_no_flag() {
        for (path, said) in
            [("a/b-1.json", "a/b-1.json"), ("-q", "./-q"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$(x)", "'$(x)'")]
        {
            assert_eq!(argument(Path::new(path)), said);
        }
    }
}
