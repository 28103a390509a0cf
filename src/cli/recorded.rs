//! Reading results files as this program understands them, and the rows that texts may name.

use std::path::Path;

use super::Carried;
use crate::error::FileError;
use crate::results::{Catalog, Results};
use crate::runner::describe;

/// Reads a results file. What an older file does not say of its rows and experiments comes from those of this program.
///
/// # Errors
/// As [`Results::read`].
pub(super) fn read(path: &Path, carried: &Carried) -> Result<Results, FileError> {
    let mut results = Results::read(path)?;
    describe(&mut results, &carried.registry);
    Ok(results)
}

/// The rows that there could be: those of the files, which may hold experiments that this program does not have, and
/// those of its own experiments.
pub(super) fn catalog(all: &[Results], carried: &Carried) -> Catalog {
    let engine = all.first().map_or("cuda", |results| &results.environment().device.engine);
    carried.registry.catalog(engine).with_results(all)
}
