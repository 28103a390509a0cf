//! `report` without a subcommand: runs a suite, prints a summary, renders the book.

use clap::Args;

use super::course::{self, CoursePlace};
use super::run::{MeasureArgs, measure};
use super::terminal;
use super::{AppContext, End, failed, output, recorded};
use crate::book::{self, BookProject};
use crate::results::{Diagnosed, Results};

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    what: MeasureArgs,
    #[command(flatten)]
    place: CoursePlace,
}

pub(super) fn execute(arguments: Arguments, context: &AppContext) -> anyhow::Result<End> {
    let Arguments { what, place } = arguments;
    let book = place.course.project(context)?;
    course::check(&book, context)?;
    let file = place.out.join("results.json");
    course::check_place(&book, &place.out)?;
    let attended = measure(&what, &place.course, &book, &file, context)?;
    let results = &attended.results;
    print_summary(results, &book, context)?;
    print_diagnoses(&results.diagnoses());
    say!("results: {}", attended.file.display());
    // Whatever is wrong with the book, the results are there.
    if let Err(error) = course::render(std::slice::from_ref(results), &book, &place.out, context) {
        failed(&error);
        attended.end();
        return Ok(End::Failed);
    }
    Ok(attended.end())
}

/// The tables of every experiment, and what the documents make of them.
pub(super) fn print_summary(results: &Results, project: &BookProject, context: &AppContext) -> anyhow::Result<()> {
    for name in results.experiments() {
        output::out(&book::summary(results, name), Some(terminal::TITLE));
    }
    let documents = project.documents(&recorded::catalog_of(project, std::slice::from_ref(results), context))?;
    let takeaways = book::takeaways(&documents, results);
    if !takeaways.is_empty() {
        output::out("Takeaways:\n", Some(terminal::TITLE));
        takeaways.iter().for_each(|sentence| say!("  - {sentence}"));
        say!();
    }
    Ok(())
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
