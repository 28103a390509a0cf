//! Ctrl-C: the first asks the run to end after the current sample, the second ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

use super::End;

/// A flag that Ctrl-C sets.
pub(super) fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    ctrlc::set_handler(move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(End::Interrupted as i32);
        }
        eprintln!("\nending after the current sample; what was measured is kept (again to quit at once)");
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(flag)
}
