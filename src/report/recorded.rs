//! Reading results files as this program understands them, and the rows that texts may name.

use std::path::Path;

use jiff::{Timestamp, ToSpan};

use super::{AppContext, UsageError, argument, invocation};
use crate::book::BookProject;
use crate::error::FileError;
use crate::results::{Catalog, MetricSpec, Results};
use crate::runner::Suite;
use crate::store::{Index, Listed, Refused};
use crate::units::counted;

/// Reads a results file from which something is concluded: one that contradicts itself is refused.
///
/// # Errors
/// As [`Results::read`], and where a computed row does not follow from the samples beside it.
pub(super) fn sound(path: &Path) -> Result<Results, FileError> {
    let results = Results::read(path)?;
    contradiction(path, &results).map_or(Ok(results), Err)
}

/// Reads a results file to show it: of one that contradicts itself that is said, too.
///
/// # Errors
/// As [`Results::read`].
pub(super) fn shown(path: &Path) -> Result<Results, FileError> {
    let results = Results::read(path)?;
    if let Some(error) = contradiction(path, &results) {
        alert!("{error}");
    }
    Ok(results)
}

/// That a computed row of a file does not follow from the samples beside it, where one does not.
pub(super) fn contradiction(path: &Path, results: &Results) -> Option<FileError> {
    let first = results.recompute().contradictions.into_iter().next()?;
    Some(FileError::whole(path.display().to_string(), format!("it contradicts itself: {first}")))
}

/// Refuses results of a day that is to come, where a clock was wrong: what is new, and which file is the newest, they would decide
/// for ever. Clocks may differ by a day.
fn of_the_past(path: &Path) -> Result<Results, FileError> {
    let results = sound(path)?;
    let tomorrow = Timestamp::now().saturating_add(24.hours()).unwrap_or(Timestamp::MAX);
    let started = &results.run().started;
    if started.parse::<Timestamp>().is_ok_and(|started| started > tomorrow) {
        let message = format!("it began at {started}, which is to come: a clock was wrong");
        return Err(FileError::whole(path.display().to_string(), message));
    }
    Ok(results)
}

/// Hands on each results file of a store that counts, and lists them. A store of which none does is refused, with the reason.
pub(super) fn of_store(store: &Path, mut add: impl FnMut(&Listed, &Results)) -> anyhow::Result<Index> {
    let index = Index::of(store, &of_the_past, |listed, results| {
        add(listed, results);
        Ok::<_, FileError>(())
    })?;
    let place = store.display();
    let message = match (index.files.is_empty(), index.refused.first()) {
        (false, _) => return Ok(index),
        (true, None) => {
            let (program, argument) = (invocation(), argument(store));
            format!(
                "{place}: there is no results file in this store; `{program} collect DIR --into {argument}` puts some there"
            )
        }
        (true, Some(Refused { file, reason })) => {
            let files = counted(index.refused.len(), "file");
            format!("{place}: {files} left out, and no other is there. The first, {}: {reason}", file.display())
        }
    };
    Err(UsageError(message).into())
}

/// Says which files of a store do not count, and why.
pub(super) fn say_left_out(index: &Index) {
    for Refused { file, reason } in &index.refused {
        say!("left out: {}: {reason}", file.display());
    }
}

/// The rows that there could be: those of the files, which may hold experiments that this program does not have, and
/// those of its own experiments.
pub(super) fn catalog(all: &[Results], context: &AppContext) -> Catalog {
    let engine = all.first().map_or("cuda", |results| &results.environment().device.engine);
    context.registry.catalog(engine).with_results(all)
}

/// The rows that documents of `book` may name: also those of its suites, whose parameters are its own.
pub(super) fn catalog_of(book: &BookProject, all: &[Results], context: &AppContext) -> Catalog {
    // What is wrong with a suite is said where it is read.
    let parsed = |(origin, text): (String, &str)| Suite::parse(text, &origin, &context.registry).ok();
    let suites: Vec<Suite> = book.suites().filter_map(|name| book.suite(name)).filter_map(parsed).collect();
    let planned = |suite: &Suite| -> Vec<MetricSpec> {
        let on = |engine| suite.experiments_on(engine).iter().map(move |own| own.plan(engine));
        ["cuda", "cpu"].into_iter().flat_map(on).flatten().collect()
    };
    catalog(all, context).with(suites.iter().flat_map(planned))
}
