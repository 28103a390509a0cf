//! Says that times are those of a build that is not optimised, where they are.

use std::io::Write;
use std::sync::Once;

/// Says it on the standard error, once in a program, where something is timed.
pub(crate) fn say_if_not() {
    static SAID: Once = Once::new();
    if let Some(notice) = notice(env!("SYNCSCOPE_OPT_LEVEL")) {
        // Whoever read the standard error may have gone away.
        SAID.call_once(|| drop(writeln!(std::io::stderr(), "{notice}")));
    }
}

/// What there is to say of a level of optimisation.
fn notice(level: &str) -> Option<&'static str> {
    (level == "0").then_some(
        "syncscope: this build is not optimised, and times of the host can be more than ten times as long as they are; \
         measure with `--release`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_optimisation_is_told_and_no_other() {
        assert!(notice("0").is_some_and(|notice| notice.contains("--release")));
        assert!(["1", "2", "3", "s"].iter().all(|level| notice(level).is_none()));
        assert!(!env!("SYNCSCOPE_OPT_LEVEL").is_empty());
    }
}
