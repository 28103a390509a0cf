//! Rendering, as two commands do it.

use std::path::{Path, PathBuf};

use clap::Args;
use syncscope::book::BookProject;
use syncscope::run::Run;

/// Where the book goes and what it is made of.
#[derive(Args)]
pub(crate) struct Place {
    /// The folder for the book's source and the site; where something is measured, for its results file, too
    #[arg(long, value_name = "DIR", default_value = "target/report")]
    pub(crate) out: PathBuf,
    /// A folder that `report init` made, in place of the book that the program carries
    #[arg(long, value_name = "DIR")]
    course: Option<PathBuf>,
}

impl Place {
    /// What the book is made of. Read before anything is measured: a mistake in it must not cost a run.
    pub(crate) fn course(&self) -> anyhow::Result<BookProject> {
        Ok(match &self.course {
            Some(folder) => BookProject::read(folder)?,
            None => BookProject::embedded()?,
        })
    }
}

/// Renders the book of `runs` into `out` and says where it is and how to open it.
pub(crate) fn render(runs: &[Run], course: &BookProject, out: &Path) -> anyhow::Result<()> {
    let book = syncscope::book::render(runs, course, out)?;
    println!("book: {}", book.index.display());
    println!("to read it: report serve {}", out.display());
    Ok(())
}
