//! Benchmarks of a crate's own functions: a file in `benches/` without the harness, whose `main` lists them.
//!
//! `cargo bench` measures them: several runs, each a process, because a run has its own level (memory layout, placement of
//! threads, clock rates) that none of its samples shows. In a run the functions of a group are sampled by turns, in random
//! order within each round. What was measured is kept as a results file, which `report compare` and `report render` read,
//! and is compared with the last one.
//!
//! # What a comparison claims
//! As of `report compare`: of five runs a side, at most 5 % of comparisons of equal sides name any change. With three runs or
//! fewer on either side none is named. The runs of a side follow each other, but for those beside another build. What moved
//! the whole machine since then, such as a clock rate or a neighbour, is in no interval: only another side, measured now,
//! shows it.

mod measure;

use std::collections::HashSet;
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches, Parser};

use super::by_turns::{Measured, OneSide, TIME, found, measure};
use super::compare::{self, FailOn, Format};
use super::interrupt::{self, Forward};
use super::job::print_diagnoses;
use super::output_file::OutputFile;
use super::terminal::OutputOptions;
use super::{AlreadyReported, End, UsageError, exit_code, failed, output, refuse, terminal, told};
use crate::book::{Wording, smallest, summary};
use crate::files::{Scratch, is_json, is_kind};
use crate::measure::Case;
use crate::results::statistics::least_chance;
use crate::results::{Results, Row, Tolerance, compare, mismatches, remarks};
use crate::units::counted;

/// Functions that `cargo bench` measures.
///
/// In `Cargo.toml`:
///
/// ```toml
/// [[bench]]
/// name = "words"
/// harness = false
/// ```
///
/// In `benches/words.rs`:
///
/// ```no_run
/// use std::hint::black_box;
/// use std::process::ExitCode;
/// use syncscope_report::Benchmarks;
///
/// fn main() -> ExitCode {
///     let text = "the quick brown fox jumps over the lazy dog";
///     Benchmarks::new("words")
///         .function("count", || black_box(text).split(' ').count())
///         .function_with("sort", || text.split(' ').collect::<Vec<_>>(), |mut words| {
///             words.sort_unstable();
///             words
///         })
///         .main()
/// }
/// ```
///
/// A function is called in batches, so that the clock's step and cost are at most 1 % of a sample
/// ([`Case::new`]). [`black_box`](std::hint::black_box) keeps the compiler from computing what depends on nothing
/// else; what a function returns passes through it here.
#[must_use = "`main` measures them"]
#[derive(Debug)]
pub struct Benchmarks<'a> {
    name: String,
    heading: String,
    functions: Vec<Function<'a>>,
}

/// A function that is measured.
#[derive(Debug)]
struct Function<'a> {
    heading: String,
    case: Case<'a>,
}

impl<'a> Benchmarks<'a> {
    /// Benchmarks by a name: that of their results file.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), heading: name.to_owned(), functions: Vec::new() }
    }

    /// The functions declared from now on stand under a heading. They are sampled by turns, those of other headings before
    /// or after them.
    pub fn group(self, heading: &str) -> Self {
        Self { heading: heading.to_owned(), ..self }
    }

    /// A function: the time of one call.
    pub fn function<R>(self, name: &str, mut function: impl FnMut() -> R + 'a) -> Self {
        self.case(Case::new(name, move || Ok::<R, Infallible>(function())))
    }

    /// A function of what `input` makes: anew for each call, outside of the time. Return what is costly to drop. Inputs that
    /// take long to make limit how many calls make a sample ([`Case::with_input`]).
    pub fn function_with<I, R>(
        self,
        name: &str,
        input: impl FnMut() -> I + 'a,
        mut function: impl FnMut(I) -> R + 'a,
    ) -> Self {
        self.case(Case::with_input(name, input, move |input| Ok::<R, Infallible>(function(input))))
    }

    /// Any other case: of a function that can fail ([`Case::new`]), of single calls ([`Case::single`]), by the clock of a device ([`Case::on_device`]).
    pub fn case(mut self, case: Case<'a>) -> Self {
        self.functions.push(Function { heading: self.heading.clone(), case });
        self
    }

    /// Does what the command line asks for: measures and compares, or, where `cargo test` runs it, calls each function once.
    ///
    /// The exit code is 0 where all is well, 1 where a function failed or is what `--fail-on` names, and 2 where the command
    /// line is wrong.
    pub fn main(self) -> ExitCode {
        interrupt::settle();
        let end = match Arguments::parsed(std::env::args_os().collect()) {
            Ok(arguments) => self.execute(&arguments).unwrap_or_else(|error| failed(&error)),
            Err(error) => refuse(error),
        };
        exit_code(end)
    }

    fn execute(mut self, arguments: &Arguments) -> anyhow::Result<End> {
        arguments.manner.take();
        self.check()?;
        let all = self.functions.len();
        self.functions.retain(|function| arguments.chooses(function.case.name()));
        let is_whole = self.functions.len() == all;
        if arguments.list {
            self.functions.iter().for_each(|function| say!("{}: benchmark", function.case.name()));
            return Ok(End::Well);
        }
        if self.functions.is_empty() {
            // With another target in mind, as `cargo bench WORD` has.
            return Ok(End::Well);
        }
        if let Some(file) = &arguments.next_run {
            self.measure_next(file)?;
            return Ok(End::Well);
        }
        if !arguments.bench {
            return self.call_each();
        }
        match &arguments.against {
            Some(program) if !is_json(program) => by_turns(program, arguments),
            _ => self.compare(arguments, is_whole),
        }
    }

    /// Finds what forbids to measure.
    fn check(&self) -> Result<(), UsageError> {
        let mut names = HashSet::new();
        match self.functions.iter().map(|function| function.case.name()).find(|name| !names.insert(*name)) {
            Some(name) => Err(UsageError(format!("two functions are named `{name}`; give each its own name"))),
            None => Ok(()),
        }
    }

    /// Calls each function once, as a test.
    fn call_each(self) -> anyhow::Result<End> {
        for mut function in self.functions {
            let called = function.case.measure();
            called.map_err(|error| anyhow::anyhow!("`{}`: {error}", function.case.name()))?;
            say!("{}: called once", function.case.name());
        }
        Ok(End::Well)
    }

    /// Measures all runs, and says what came of them beside the last ones.
    fn compare(self, arguments: &Arguments, is_whole: bool) -> anyhow::Result<End> {
        let out = arguments.out.clone().map_or_else(|| kept(&self.name), Ok)?;
        // A choice of the functions is not kept.
        let claim = || OutputFile::claim(&out, |there| is_kind(Results::read(there)));
        let place = is_whole.then(claim).transpose()?;
        let last = match &arguments.against {
            Some(file) => Some(Results::read(file)?),
            None if out.exists() => Some(Results::read(&out)?),
            None => None,
        };
        let (functions, runs) = (counted(self.functions.len(), "function"), counted(arguments.runs, "run"));
        note!("{}: {functions}, {runs}", self.name);
        let chance = last.as_ref().map(|last| least_chance([last.runs.len(), arguments.runs as usize]));
        if chance.is_some_and(|chance| chance > Tolerance::default().error) {
            note!(
                "so few runs as these and the last ones can name no change; `--runs 5` measures what a comparison needs"
            );
        } else if let Some(last) = &last {
            let runs = last.runs.len().min(arguments.runs as usize);
            smallest(runs, last.smallest_change(runs, Tolerance::default())).iter().for_each(|found| note!("{found}"));
        }
        let program = std::env::current_exe().context("cannot find this program")?;
        let (now, ended) = all_runs(&program, &Forward::listen()?, arguments)?;
        output::out(&summary(&now, &self.name), Some(terminal::TITLE));
        print_diagnoses(&now.diagnoses());
        let mut fails = false;
        if let Some(mut last) = last {
            if !is_whole {
                let is_measured =
                    |row: &Row| now.rows.iter().any(|own| own.spec.is(&row.spec.id, &row.spec.parameters));
                last.rows.retain(is_measured);
            }
            say!("beside the last: {}", last.run().started);
            let differs: Vec<_> = mismatches(&last, &now).into_iter().chain(remarks(&last, &now)).collect();
            let tolerance = Tolerance::default();
            let compared = compare(&last, &now, tolerance);
            compare::say(&compared, &differs, tolerance, Format::Text, Wording::Last);
            fails = arguments.fail_on.iter().any(|what| what.holds(&compared));
        }
        match place {
            Some(place) if matches!(ended, End::Well) => {
                place.write(&now.to_content(&out)?)?;
                say!("results: {}", out.display());
            }
            // What the next ones are compared with is whole.
            Some(_) => note!("runs are missing, so nothing is kept"),
            None => note!("a choice of the functions is not kept"),
        }
        Ok(if fails && matches!(ended, End::Well) { End::Failed } else { ended })
    }
}

/// A build of the benchmarks.
struct Build<'a> {
    program: PathBuf,
    arguments: &'a Arguments,
}

impl OneSide for Build<'_> {
    fn name(&self) -> String {
        self.program.display().to_string()
    }

    fn command(&self, before: Option<&mut Results>, file: &Path, only: &[String]) -> anyhow::Result<Command> {
        let mut command = next_run(&self.program, file);
        let rows = before.iter().flat_map(|before| before.rows.iter());
        let open = rows.filter(|row| only.contains(&row.spec.id)).map(|row| &row.spec.label);
        let open: Vec<&String> = open.collect();
        match open.is_empty() {
            true => command.args(self.arguments.choice()),
            false => command.args(["--exact", "--"]).args(open),
        };
        Ok(command)
    }
}

/// Measures another build and this one in alternating runs.
fn by_turns(program: &Path, arguments: &Arguments) -> anyhow::Result<End> {
    if arguments.out.is_some() {
        return Err(UsageError("--out: what is measured beside another build is not kept".to_owned()).into());
    }
    let own = std::env::current_exe().context("cannot find this program")?;
    let sides = [found(program)?, own].map(|program| Build { program, arguments });
    let scratch = Scratch::new().context("a folder for the runs")?;
    let tolerance = Tolerance::default();
    let Measured { compared, first: [a, b], end } = measure(&sides, &scratch, tolerance, TIME, |_, _| Ok(()))?;
    say!("A is {}, and B this build", program.display());
    compare::say(&compared, &remarks(&a, &b), tolerance, Format::Text, Wording::Compare);
    let fails = arguments.fail_on.iter().any(|what| what.holds(&compared));
    Ok(if fails && matches!(end, End::Well) { End::Failed } else { end })
}

/// What measures the next run of `file`.
fn next_run(program: &Path, file: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--next-run").arg(file).args(OutputOptions::handed_on());
    command
}

/// Measures each run in a process of its own, up to one that fails or is interrupted: those before it stand.
fn all_runs(program: &Path, forward: &Forward, arguments: &Arguments) -> anyhow::Result<(Results, End)> {
    let folder = Scratch::new().context("a folder for the runs")?;
    let file = folder.path().join("runs.json");
    for number in 1..=arguments.runs {
        note!("run {number} of {}", arguments.runs);
        let mut command = next_run(program, &file);
        command.args(arguments.choice());
        // Its own group: a signal of the terminal reaches it through this process alone, once.
        let child = command.stdin(Stdio::null()).process_group(0).spawn();
        let ended = child.context("cannot start a process for the run").and_then(|child| forward.attend(child, |_| ()));
        let why = match ended {
            _ if forward.is_interrupted() => "was interrupted".to_owned(),
            Ok(status) if status.success() => continue,
            Ok(status) => format!("ended with {status}"),
            Err(error) => format!("failed: {}", told(&error)),
        };
        let end = if forward.is_interrupted() { End::Interrupted } else { End::Failed };
        if number == 1 {
            alert!("error: run 1 {why}; nothing was measured");
            return Err(AlreadyReported(end).into());
        }
        alert!("error: run {number} {why}; those before it stand");
        return Ok((Results::read(&file)?, end));
    }
    Ok((Results::read(&file)?, End::Well))
}

/// Where the results of benchmarks are kept: in Cargo's target folder.
fn kept(name: &str) -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let file: String = name.chars().map(|c| if c.is_alphanumeric() || "-_".contains(c) { c } else { '-' }).collect();
    Ok(target_of(&program).join("syncscope").join(format!("{file}.json")))
}

/// The target folder of a program that Cargo built; the program's own folder where there is none.
fn target_of(program: &Path) -> &Path {
    let is_target = |folder: &&Path| folder.join("CACHEDIR.TAG").is_file();
    let own = program.parent().unwrap_or(program);
    program.ancestors().skip(1).find(is_target).unwrap_or(own)
}

/// Measure functions, and compare them with the last time
#[derive(Parser)]
#[command(
    name = "cargo bench --",
    after_help = "\
A function is slower, faster or the same only where the whole interval of now / last says so; else it is uncertain.

Examples:
  cargo bench --bench words
  cargo bench --bench words -- sort --runs 10 --fail-on slower
  cargo bench --bench words -- --against words-before"
)]
struct Arguments {
    /// Only functions whose name holds one of these; they are compared, and not kept
    #[arg(value_name = "WORD")]
    filters: Vec<String>,
    /// How many runs, each a process; three or fewer name no change
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// A results file to compare with, in place of the last. Or another build of these benchmarks, such as a copy of the program in
    /// target/release/deps: both are measured in alternating runs until each function is decided or five minutes are over, and
    /// nothing is kept
    #[arg(long, value_name = "RESULTS.json|PROGRAM")]
    against: Option<PathBuf>,
    /// Where the results are kept, in place of target/syncscope; what is there is the last
    #[arg(long, value_name = "RESULTS.json")]
    out: Option<PathBuf>,
    /// Exit with 1 where a function is one of these; may be given again
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    fail_on: Vec<FailOn>,
    /// List the functions
    #[arg(long)]
    list: bool,
    /// What `cargo bench` says; without it each function is called once
    #[arg(long, hide = true)]
    bench: bool,
    /// Only functions of exactly these names
    #[arg(long, hide = true)]
    exact: bool,
    /// No functions whose name holds this
    #[arg(long, hide = true, value_name = "WORD")]
    skip: Vec<String>,
    /// Only functions that are not called otherwise: there are none
    #[arg(long, hide = true)]
    ignored: bool,
    #[arg(long, hide = true, value_name = "RESULTS.json")]
    next_run: Option<PathBuf>,
    #[command(flatten)]
    manner: OutputOptions,
}

impl Arguments {
    /// Reads the command line. As a test, as which `cargo bench` does not call it, a program is told what the harness of tests
    /// knows: what chooses functions does so here, and the rest means nothing where each function is called once.
    fn parsed(words: Vec<OsString>) -> Result<Self, clap::Error> {
        let command = Self::command().color(terminal::named(words.iter().cloned()));
        let is_test = !words.iter().any(|word| word == "--bench");
        let mut parsed = Self::from_arg_matches(&command.ignore_errors(is_test).try_get_matches_from(&words)?)?;
        // What is not known ends the reading.
        parsed.ignored |= words.iter().any(|word| word == "--ignored");
        Ok(parsed)
    }

    fn chooses(&self, name: &str) -> bool {
        let is_named = |word: &String| if self.exact { name == word } else { name.contains(word.as_str()) };
        let is_asked_for = self.filters.is_empty() || self.filters.iter().any(is_named);
        is_asked_for && !self.skip.iter().any(is_named) && !self.ignored
    }

    /// The arguments by which another process of this program chooses the same functions.
    fn choice(&self) -> Vec<String> {
        let exact = self.exact.then(|| "--exact".to_owned());
        let skipped = self.skip.iter().map(|word| format!("--skip={word}"));
        exact.into_iter().chain(skipped).chain(["--".to_owned()]).chain(self.filters.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn parsed<T: Into<OsString>>(arguments: impl IntoIterator<Item = T>) -> Result<Arguments, clap::Error> {
        Arguments::parsed(arguments.into_iter().map(Into::into).collect())
    }

    #[test]
    fn functions_are_chosen_by_a_part_of_their_name_and_by_nothing_all_are() {
        let chosen = |words: &[&str]| {
            let arguments: Vec<OsString> = [&["words", "--bench"], words].concat().iter().map(OsString::from).collect();
            let arguments = parsed(arguments).unwrap();
            ["sort", "sort of strings", "count"].into_iter().filter(|name| arguments.chooses(name)).count()
        };
        assert_eq!((chosen(&[]), chosen(&["sort"]), chosen(&["sort of", "count"]), chosen(&["x"])), (3, 2, 2, 0));
    }

    #[test]
    fn what_a_harness_of_tests_is_told_is_taken_and_chooses_as_there() {
        let names = ["sort", "sort of strings", "count"];
        let chosen = |told: &[&str]| {
            let told = [&["words"], told].concat();
            let arguments = parsed(&told).unwrap_or_else(|error| panic!("{told:?}: {error}"));
            let chosen: Vec<&str> = names.into_iter().filter(|name| arguments.chooses(name)).collect();
            // A process for a run chooses the same.
            let again = [&["words".to_owned()], arguments.choice().as_slice()].concat();
            let again = parsed(&again).unwrap_or_else(|error| panic!("{again:?}: {error}"));
            assert_eq!(names.into_iter().filter(|name| again.chooses(name)).collect::<Vec<_>>(), chosen, "{told:?}");
            chosen
        };
        assert_eq!(chosen(&["--exact", "sort"]), ["sort"]);
        assert_eq!(chosen(&["--skip", "sort of", "--skip=count"]), ["sort"]);
        assert_eq!(chosen(&["--exact", "--skip", "sort"]), ["sort of strings", "count"]);
        for all in [
            &["--test-threads=1"][..],
            &["--include-ignored"],
            &["--nocapture"],
            &["--no-capture", "--show-output"],
            &["-q", "--format", "terse", "--logfile", "log"],
            &["--test", "-Z", "unstable-options", "--report-time", "--shuffle", "--shuffle-seed", "1"],
            &["--list", "--format=terse"],
        ] {
            assert_eq!(chosen(all), names, "{all:?}");
        }
        assert!(parsed(["words", "--bench", "--nocapture"]).is_err(), "of a benchmark each word means something");
        let ignored = parsed(["words", "--list", "--format", "terse", "--ignored"]).unwrap();
        assert!(!names.into_iter().any(|name| ignored.chooses(name)), "no function is ignored");
    }

    #[test]
    fn a_run_that_fails_ends_the_runs_and_those_before_it_stand() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let results = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/results/two-gpus.json.gz");
        for (begin, stands) in [("test -e \"$2\" && exit 7", true), ("exit 7", false)] {
            // `program --next-run FILE`.
            fs::write(&program, format!("#!/bin/sh\n{begin}\ncp '{}' \"$2\"\n", results.display())).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let arguments = parsed(["words", "--bench", "--runs", "3"]).unwrap();
            match all_runs(&program, &Forward::default(), &arguments) {
                Ok((found, End::Failed)) if stands => assert_eq!(found, Results::read(&results).unwrap()),
                Err(error) if !stands => assert!(matches!(error.downcast_ref(), Some(AlreadyReported(End::Failed)))),
                other => panic!("{begin}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_build_measures_the_functions_that_are_chosen_and_then_those_that_are_open() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let [program, file, told] = ["program", "a.json", "told"].map(|name| folder.path().join(name));
        let kept = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/results/two-gpus.json.gz");
        let copy = format!("gzip -dc '{}' > \"$2\"", kept.display());
        fs::write(&program, format!("#!/bin/sh\necho \"$*\" > '{}'\n{copy}\n", told.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let arguments = parsed(["words", "--bench", "sort"]).unwrap();
        let (build, mut results) = (Build { program, arguments: &arguments }, None);
        build.next(&mut results, &file, &[], &Forward::default()).unwrap();
        assert!(fs::read_to_string(&told).unwrap().trim().ends_with("-- sort"));
        let spec = results.as_ref().unwrap().rows.iter().next().unwrap().spec.clone();
        // The file that it leaves has no further run.
        let ended = build.next(&mut results, &file, &[spec.id], &Forward::default());
        assert!(ended.unwrap_err().to_string().contains("left no run"));
        let told = fs::read_to_string(&told).unwrap();
        assert!(told.contains("--exact -- ") && told.contains(&spec.label), "{told}");
    }

    #[test]
    fn two_functions_of_one_name_are_refused() {
        let twice = Benchmarks::new("a").function("x", || 1).group("another").function("x", || 2);
        assert!(twice.check().unwrap_err().to_string().contains("`x`"));
        assert!(Benchmarks::new("a").function("x", || 1).function("y", || 2).check().is_ok());
    }

    #[test]
    fn results_lie_in_the_target_folder_of_the_program() {
        let target = tempfile::tempdir().unwrap();
        let program = target.path().join("release/deps/words-1234");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        assert_eq!(target_of(&program), program.parent().unwrap());
        fs::write(target.path().join("CACHEDIR.TAG"), "").unwrap();
        assert_eq!(target_of(&program), target.path());
    }
}
