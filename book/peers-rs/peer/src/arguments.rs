//! What the program is told.

use std::ffi::OsString;
use std::path::PathBuf;

/// Where the plan is, where the answer goes, and whether somebody waits for it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Arguments {
    pub(crate) plan: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) attended: bool,
}

pub(crate) const USAGE: &str = "\
--plan FILE --out FILE [--attended]
  --plan FILE  the rows to measure, as `report plan` prints them
  --out FILE   where to write what was measured (JSON)
  --attended   end when standard input ends, as it does with the program that started this one";

impl Arguments {
    /// Reads them; none where they are not as the usage says.
    pub(crate) fn of(given: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let (mut given, mut plan, mut out, mut attended) = (given.into_iter(), None, None, false);
        while let Some(argument) = given.next() {
            match argument.to_str() {
                Some("--plan") => plan = Some(given.next()?),
                Some("--out") => out = Some(given.next()?),
                Some("--attended") => attended = true,
                _ => return None,
            }
        }
        Some(Self { plan: plan?.into(), out: out?.into(), attended })
    }
}
