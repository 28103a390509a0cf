//! `report` without a subcommand: runs a suite, prints a summary, renders the book.

use clap::Args;
use syncscope::experiment::titled;
use syncscope::present::summary;
use syncscope::run::Diagnosed;

use crate::End;
use crate::book::{self, Place};
use crate::run::{What, end_of, measure};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    place: Place,
}

pub(crate) fn execute(arguments: Arguments) -> anyhow::Result<End> {
    let course = arguments.place.course()?;
    let results = arguments.place.out.join("results.json");
    let run = measure(&arguments.what, &results)?;
    let entries = run.suite.experiments_on(&run.environment.device.engine);
    for experiment in &run.experiments {
        if let Some(entry) = entries.iter().find(|entry| entry.name() == experiment.name) {
            print!("{}", summary(entry, &experiment.rows));
        }
    }
    print_diagnoses(&run.diagnoses());
    println!("results: {}", results.display());
    book::render(std::slice::from_ref(&run), &course, &arguments.place.out)?;
    Ok(end_of(&run, &results))
}

/// What is odd about the samples, the first few.
fn print_diagnoses(diagnoses: &[Diagnosed]) {
    const MOST: usize = 10;
    if diagnoses.is_empty() {
        return;
    }
    println!("Diagnoses of samples: {}", diagnoses.len());
    for (id, parameters, diagnosis) in diagnoses.iter().take(MOST) {
        println!("  - {}: {diagnosis}", titled(id, parameters));
    }
    if diagnoses.len() > MOST {
        println!("  and {} more (in the book)", diagnoses.len() - MOST);
    }
    println!();
}
