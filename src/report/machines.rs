//! `report machines`: the machines of a store beside each other, and those that differ from the rest.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::course::CourseArgument;
use super::facts::{Facts, Form};
use super::output_file::OutputFile;
use super::{AppContext, End, recorded};
use crate::book::document::Document;
use crate::error::FileError;
use crate::files::begins_with;
use crate::present::PAGE_BEGIN;
use crate::results::statistics::FEWEST;
use crate::results::{Catalog, Results};
use crate::store::{Index, Refused};
use crate::units::counted;
use syncscope_fleet::{ClaimAt, Different, Fleet, page};

/// Show the machines of a store beside each other: which of them differ from the rest?
#[derive(Args)]
#[command(after_help = "\
DIR is a store, as `report collect` makes it. Of each machine the newest file counts. A machine differs where the \
generalized ESD procedure takes its value out of those of its model; of machines that are alike, at most one fleet in \
twenty has a false alarm, over all machines and rows. Models of fewer than 15 machines are not judged.

Exit codes: 0, 2 where the store cannot be read.

Example:
  report machines results --page machines.html")]
pub(super) struct Arguments {
    /// The store
    #[arg(value_name = "DIR", default_value = "results")]
    store: PathBuf,
    /// Write a page
    #[arg(long, value_name = "FILE.html")]
    page: Option<PathBuf>,
    /// Judge the documents' claims on each machine, too, for the page: this takes longer
    #[arg(long, requires = "page")]
    claims: bool,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    course: CourseArgument,
}

/// What there is.
#[derive(Serialize)]
struct Report<'a> {
    machines: usize,
    rows: usize,
    different: Vec<Different>,
    /// The machines of models that have too few for a judgement.
    not_judged: usize,
    refused: &'a [Refused],
}

impl Facts for Report<'_> {
    const COMMAND: &'static str = "machines";

    fn say(&self) {
        for refused in self.refused {
            say!("left out: {}: {}", refused.file.display(), refused.reason);
        }
        for different in &self.different {
            let word = if different.is_slower { "slower" } else { "faster" };
            let percent = (different.ratio - 1.0) * 100.0;
            say!("{}: {word}: {percent:+.1} % of the rest: {}", different.machine, different.row);
        }
        let (machines, rows) = (counted(self.machines, "machine"), counted(self.rows, "row"));
        say!("{machines}, {rows}: {} values differ from the rest", self.different.len());
        if self.not_judged > 0 {
            say!("not judged: {}, of models with fewer than {FEWEST}", counted(self.not_judged, "machine"));
        }
    }
}

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    let own_page = OutputFile::asked(arguments.page.as_ref(), begins_with(PAGE_BEGIN))?;
    let book = arguments.course.project(context)?;
    let mut documents: Option<Vec<Document>> = None;
    let mut fleet = Fleet::default();
    let index = Index::of(&arguments.store, &recorded::sound, |listed, results| {
        if arguments.claims && documents.is_none() {
            let catalog: Catalog = recorded::catalog_of(&book, std::slice::from_ref(results), context);
            documents = Some(book.documents(&catalog)?);
        }
        let judged = documents.iter().flatten().flat_map(|document| judged(document, results)).collect();
        fleet.add(listed, results, judged);
        Ok::<_, FileError>(())
    })?;
    recorded::some_in(&arguments.store, &index)?;
    if let Some(file) = own_page {
        file.write(page(&fleet).as_bytes())?;
    }
    let (machines, rows, different) = (fleet.members.len(), fleet.rows.len(), fleet.different());
    let not_judged = fleet.models().values().map(Vec::len).filter(|machines| *machines < FEWEST).sum();
    arguments.form.print(&Report { machines, rows, different, not_judged, refused: &index.refused })?;
    Ok(End::Well)
}

/// What a file says of the claims of a document.
fn judged(document: &Document, results: &Results) -> Vec<ClaimAt> {
    let judged = document.claims.iter().map(|claim| ClaimAt {
        id: format!("{}: {}", document.id, claim.id),
        text: claim.claim.trim().to_owned(),
        verdict: claim.judge(document, results).verdict.name(),
    });
    judged.collect()
}
