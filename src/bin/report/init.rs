//! `report init`: begins a course author's own folder.

use std::path::PathBuf;

use clap::Args;
use syncscope::book::BookProject;

use crate::End;

/// Begin a course of your own: suites, documents, templates and prose in a folder, which renders as it is
#[derive(Args)]
#[command(after_help = "Example:\n  report init my-course\n  report --course my-course --out target/my-course")]
pub(crate) struct Arguments {
    /// The folder: one that is empty, or not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn execute(arguments: Arguments) -> anyhow::Result<End> {
    let folder = arguments.folder;
    BookProject::embedded()?.write(&folder)?;
    let name = folder.display();
    println!("course: {name}");
    println!("to measure and render it: report --course {name} --suite {name}/suites/quick.yaml --out target/course");
    println!("to render results that you have: report render RESULTS.json --course {name} --out target/course");
    Ok(End::Well)
}
