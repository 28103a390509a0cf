//! `report` without a subcommand: runs a suite, prints a summary, renders the book.

use std::collections::BTreeMap;

use clap::Args;

use super::course::{self, CoursePlace};
use super::run::{MeasureArgs, measure};
use super::terminal;
use super::{AppContext, End, failed, output, recorded};
use crate::book::{self, BookProject};
use crate::results::{Diagnosed, MissingReason, Results};
use crate::units::counted;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    what: MeasureArgs,
    #[command(flatten)]
    place: CoursePlace,
    /// Also print all values, as they stand in the book
    #[arg(long)]
    verbose: bool,
}

pub(super) fn execute(arguments: Arguments, context: &AppContext) -> anyhow::Result<End> {
    let Arguments { what, place, verbose } = arguments;
    let book = place.course.project(context)?;
    course::check(&book, context)?;
    let file = place.out.join("results.json");
    course::check_place(&book, &place.out)?;
    let attended = measure(&what, &place.course, &book, &file, context)?;
    let results = &attended.results;
    if verbose {
        print_values(results);
    }
    print_takeaways(results, &book, context, TAKEAWAYS)?;
    print_missing(results);
    say!("results: {}", attended.file.display());
    // Whatever is wrong with the book, the results are there.
    if let Err(error) = course::render(std::slice::from_ref(results), &book, &place.out, context) {
        failed(&error);
        attended.end();
        return Ok(End::Failed);
    }
    Ok(attended.end())
}

/// How many sentences stand at the end of the job. The book has all.
const TAKEAWAYS: usize = 12;

/// The tables of every experiment.
pub(super) fn print_values(results: &Results) {
    for name in results.experiments() {
        output::out(&book::summary(results, name), Some(terminal::TITLE));
    }
}

/// What the documents make of the values, in so many sentences at most.
pub(super) fn print_takeaways(
    results: &Results,
    project: &BookProject,
    context: &AppContext,
    most: usize,
) -> anyhow::Result<()> {
    let documents = project.documents(&recorded::catalog_of(project, std::slice::from_ref(results), context))?;
    let takeaways = book::takeaways(&documents, results);
    if !takeaways.is_empty() {
        output::out("Takeaways:\n", Some(terminal::TITLE));
        takeaways.iter().take(most).for_each(|sentence| say!("  - {sentence}"));
        if takeaways.len() > most {
            say!("  and {} more (in the book)", takeaways.len() - most);
        }
        say!();
    }
    Ok(())
}

/// Why rows were not measured, and how many have unusual samples. What has no meaning in a system is not missing.
fn print_missing(results: &Results) {
    const MOST: usize = 4;
    let lookup = results.lookup();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for absence in lookup.metrics().filter_map(|(_, metric)| metric.err()) {
        if !matches!(absence, MissingReason::NotApplicable(_)) {
            *reasons.entry(absence.to_string()).or_default() += 1;
        }
    }
    for (reason, rows) in reasons.iter().take(MOST) {
        say!("not measured: {}, {reason}", counted(*rows, "row"));
    }
    if reasons.len() > MOST {
        say!("not measured for {} more (in the book)", counted(reasons.len() - MOST, "reason"));
    }
    let diagnoses = results.diagnoses().len();
    if diagnoses > 0 {
        say!(
            "unusual samples: {} (⚠ in the book, which says how on its page of the machine)",
            counted(diagnoses, "row")
        );
    }
}

/// The first few diagnoses of the samples.
pub(super) fn print_diagnoses(diagnoses: &[Diagnosed<'_>]) {
    const MOST: usize = 10;
    if diagnoses.is_empty() {
        return;
    }
    output::out(&format!("Diagnostics: {}\n", diagnoses.len()), Some(terminal::TITLE));
    for (spec, diagnosis) in diagnoses.iter().take(MOST) {
        say!("  - {}: {diagnosis}", spec.title());
    }
    if diagnoses.len() > MOST {
        say!("  and {} more (in the book)", diagnoses.len() - MOST);
    }
    say!();
}
