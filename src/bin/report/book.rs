//! Rendering, as two commands do it.

use std::path::Path;

use syncscope::run::Run;

/// Renders the book of `runs` into `out` and says where it is.
pub(crate) fn render(runs: &[Run], out: &Path) -> anyhow::Result<()> {
    let book = syncscope::book::render(runs, out)?;
    println!("book: {}", book.index.display());
    Ok(())
}
