//! `report first-steps`: what `cold-start` starts for each sample: a process that makes its first steps on a device and says
//! what they took. Not for users: no help lists it.

use clap::Args;

use super::{End, output};
use syncscope_calls::process::FirstSteps;

/// Make the first steps of a process on a device, and print what each took
#[derive(Args)]
#[command(hide = true)]
pub(super) struct Arguments {
    /// The device
    #[arg(long, value_name = "NAME")]
    device: String,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<End> {
    output::print_json(&FirstSteps::made(&arguments.device)?)?;
    Ok(End::Well)
}
