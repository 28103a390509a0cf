//! `report plan`: prints what a suite measures, for a script that measures the same in another program.

use std::path::PathBuf;

use clap::Args;

use super::course::CourseArgument;
use super::peer::plan_of;
use super::{AppContext, End, UsageError, output};
use crate::runner::Suite;

/// Print the rows of a suite, as the script of another program takes them; needs no device
#[derive(Args)]
#[command(after_help = "\
Example:
  report plan --suite full > plan.json
  python3 book/peers/pytorch.py --plan plan.json --out pytorch.json
  report attach pytorch.json --into results.json")]
pub(super) struct Arguments {
    /// A suite's name: quick, full, or one of the course; or a suite's file
    #[arg(long, value_name = "SUITE", default_value = "quick")]
    suite: PathBuf,
    /// The device that the other program measures
    #[arg(long, value_name = "NAME", default_value = "cuda:0")]
    device: String,
    /// Draws the order of groups and cases
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,
    #[command(flatten)]
    course: CourseArgument,
}

pub(super) fn execute(arguments: &Arguments, carried: &AppContext) -> anyhow::Result<End> {
    let book = arguments.course.project(carried)?;
    let suite = arguments.course.suite(&arguments.suite, &book, carried)?;
    if let Some(refusal) = Suite::refuse_device(&arguments.device) {
        return Err(UsageError(refusal).into());
    }
    let plan = plan_of(&suite, &arguments.device, carried, arguments.seed);
    output::print_json(&plan)?;
    Ok(End::Well)
}
