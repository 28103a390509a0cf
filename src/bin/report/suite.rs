//! Which suite a command means: a file, or one that the program carries.

use std::path::Path;

use syncscope::error::SuiteError;
use syncscope::run::Suite;

const CARRIED: [(&str, &str); 2] = [
    ("quick", include_str!("../../../book/suites/quick.yaml")),
    ("full", include_str!("../../../book/suites/full.yaml")),
];

/// The suite of that name or in that file. A file of a carried suite's name comes first only with its folder or ending.
pub(crate) fn load(name: &str) -> Result<Suite, SuiteError> {
    match CARRIED.iter().find(|(carried, _)| *carried == name) {
        Some((name, text)) => Suite::parse(text, &format!("suite `{name}`")),
        None => Suite::read(Path::new(name)),
    }
}
