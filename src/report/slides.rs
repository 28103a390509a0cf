//! `report slides`: makes slides of the course's lessons from results files, without a device.

use std::path::PathBuf;

use clap::Args;

use super::course::{self, CoursePlace};
use super::{AppContext, End, argument, invocation, recorded};
use crate::book;

/// Make a deck of slides for each lesson of the course; needs no device
#[derive(Args)]
#[command(after_help = "Examples:
  report slides target/report/results.json
  report slides --out my-lessons
  report slides results.json --course my-course --out my-lessons")]
pub(super) struct Arguments {
    /// Results files; without any, the slides show the results of a GPU that come with the program
    #[arg(value_name = "RESULTS.json")]
    results: Vec<PathBuf>,
    #[command(flatten)]
    place: CoursePlace,
}

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    let (project, out) = (arguments.place.course.project(context)?, &arguments.place.out);
    course::check_apart(&project, out)?;
    book::check_place(out, book::SLIDES)?;
    let all = arguments.results.iter().map(|path| recorded::shown(path)).collect::<Result<Vec<_>, _>>()?;
    let rendered = book::render_slides(&all, &project, &recorded::catalog_of(&project, &all, context), out);
    let index = rendered.map_err(course::unwritten)?;
    say!("slides: {}", index.display());
    say!("to show them: {} serve {}", invocation(), argument(index.parent().unwrap_or(out)));
    Ok(End::Well)
}
