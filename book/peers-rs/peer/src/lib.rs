//! Measures the rows of a plan in another crate, as a second system beside `report`.
//!
//! A program says what it measures by the trait [`System`], and [`main`] does the rest: it reads the plan, holds the rows that
//! belong together to one protocol by the library's sampler, and writes the system file. Whether a call waits is seen behind a
//! closed gate ([`Call`]). Begin with `cudarc/src/main.rs` beside this crate.
//!
//! One process is one run. In each pass all groups are measured, in an order that is drawn from the plan's seed. A row that has no
//! meaning in the crate, or needs what is not there, says so and why; a row of another system is not in the file.

#![forbid(unsafe_code)]

mod answer;
mod arguments;
mod call;
pub mod loops;
mod program;
mod run;
#[cfg(test)]
mod tests;
mod texts;

use std::rc::Rc;

pub use call::Call;
pub use program::main;
pub use syncscope;
pub use syncscope::error::CaseError as Error;
pub use syncscope_results::{MetricSpec, Parameter};
pub use texts::{TextRows, Texts};

use syncscope::device::Device;
use syncscope::error::DeviceError;
use syncscope::measure::Case;

/// What came of something in the crate, whose errors are of any type.
pub type Result<T> = std::result::Result<T, Error>;

/// A system that a program measures.
pub trait System: Sized + 'static {
    /// Its name in results files, and in the identifiers of the rows that are about its calls.
    const NAME: &'static str;

    /// What a call is made on: made anew for each.
    type Fixture: 'static;

    /// Its calls by their names: the parameter `call` of a row and, where it has one, its `way`.
    const CALLS: &'static [Calls<Self::Fixture>];

    /// Its rows that are not about calls, by their identifiers.
    const ROWS: &'static [Rows<Self>] = &[];

    /// Its version, under its name, and those of what it stands on.
    fn versions() -> Vec<(String, String)>;

    /// Makes ready what all rows are measured on.
    ///
    /// # Errors
    /// Why nothing can be measured on this device.
    fn open(device: &Device) -> Result<Self>;

    /// What the call of a row is made on.
    ///
    /// # Errors
    /// Why there is none of the row's parameters.
    fn fixture(self: &Rc<Self>, row: &MetricSpec) -> Result<Self::Fixture>;

    /// Whether a row is about one of its calls.
    fn has_call(row: &MetricSpec) -> bool {
        row.id
            .strip_prefix("crate-calls.")
            .and_then(|rest| rest.strip_prefix(Self::NAME))
            .is_some_and(|rest| rest.starts_with('.'))
    }
}

/// Calls by their names.
pub type Calls<F> = &'static [(&'static str, MakeCall<F>)];

/// Makes a call ready.
pub type MakeCall<F> = fn(&Rc<F>) -> Result<Call>;

/// Rows by their identifiers.
pub type Rows<S> = &'static [(&'static str, MakeCase<S>)];

/// Makes the case of a row.
pub type MakeCase<S> = fn(&Rc<S>, &MetricSpec) -> Result<Case<'static>>;

/// That a row cannot be measured here, for this reason.
pub fn not_applicable(reason: &str) -> Error {
    DeviceError::not_applicable("the row", "", reason).into()
}

/// The version to which a manifest pins a dependency, in a line of its own.
pub fn pinned(manifest: &str, dependency: &str) -> String {
    let begin = format!("{dependency} = {{ version = \"=");
    let rest = manifest.lines().find_map(|line| line.strip_prefix(&begin));
    rest.and_then(|rest| rest.split('"').next()).unwrap_or("unknown").to_owned()
}

/// The number of a device of CUDA: of `cuda:0`, 0.
///
/// # Errors
/// It is one of another engine.
pub fn ordinal(device: &Device) -> Result<usize> {
    let number = device.name().strip_prefix("cuda:").and_then(|number| number.parse().ok());
    number.ok_or_else(|| format!("the rows need an NVIDIA GPU, such as cuda:0, and not {}", device.name()).into())
}
