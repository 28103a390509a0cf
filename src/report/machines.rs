//! `report machines`: the machines of a store beside each other, and those that differ from the rest.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::output::Form;
use super::output_file::OutputFile;
use super::{End, recorded};
use crate::files::begins_with;
use crate::present::PAGE_BEGIN;
use crate::results::statistics::FEWEST;
use crate::units::counted;
use syncscope_fleet::{Fleet, page};

/// Compare the machines of a store: which of them differ from the rest?
#[derive(Args)]
#[command(after_help = "\
DIR is a store, as `report collect` makes it. Of each machine the newest file counts. A machine differs where the generalized \
ESD procedure calls its value an outlier of its model, and the value lies beyond the tail of all rows of the model. Where all \
machines are alike, at most 5 % of fleets have a false alarm. With few rows or machines, long tails, two levels or a coarse \
clock, only large differences are named. Models of fewer than 15 machines are not judged.

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
    #[command(flatten)]
    form: Form,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<End> {
    let own_page = OutputFile::asked(arguments.page.as_ref(), begins_with(PAGE_BEGIN))?;
    let mut fleet = Fleet::default();
    let index = recorded::of_store(&arguments.store, |listed, results| fleet.add(listed, results))?;
    let different = fleet.different();
    if let Some(file) = own_page {
        file.write(page(&fleet, &different)?.as_bytes())?;
    }
    let (machines, rows) = (fleet.members.len(), fleet.rows.len());
    // The machines of models that have too few for a judgement.
    let not_judged: usize = fleet.models().values().map(Vec::len).filter(|machines| *machines < FEWEST).sum();
    let facts = json!({
        "machines": machines,
        "rows": rows,
        "different": different,
        "not_judged": not_judged,
        "refused": index.refused,
    });
    arguments.form.print("machines", &facts, || {
        recorded::say_left_out(&index);
        for own in &different {
            say!("{}: {}: {:+.1} % of the rest: {}", own.machine, own.word(), own.percent(), own.row);
        }
        let (machines, rows) = (counted(machines, "machine"), counted(rows, "row"));
        say!("{machines}, {rows}: {} values differ from the rest", different.len());
        if not_judged > 0 {
            say!("not judged: {}, of models with fewer than {FEWEST}", counted(not_judged, "machine"));
        }
    })?;
    Ok(End::Well)
}
