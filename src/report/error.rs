//! Errors of the other crates, and how they are made.

pub(crate) use syncscope_book::error::{BookError, explained};
pub(crate) use syncscope_results::error::{DeviceError, FileError, at};

#[cfg(test)]
mod tests {
    use super::*;
    use syncscope::error::MeasureError;

    #[test]
    fn a_cause_is_said_once_wherever_the_message_holds_it() {
        let io = || std::io::Error::other("the disk is full");
        let file = FileError::Io { path: "a.yaml".into(), cause: io() };
        // Whoever prints the chain of causes says it once, too.
        assert_eq!(format!("{:#}", anyhow::Error::new(file)), "a.yaml: the disk is full");
        let case = MeasureError::Case { case: "copy".to_owned(), cause: Box::new(io()) };
        assert_eq!(format!("{:#}", anyhow::Error::new(case)), "case `copy`: the disk is full");
        let held = anyhow::Error::new(io()).context("the disk is full, so nothing is written").context("b.yaml");
        assert_eq!(explained(&held), "b.yaml: the disk is full, so nothing is written");
        let apart = anyhow::Error::new(io()).context("b.yaml");
        assert_eq!(explained(&apart), "b.yaml: the disk is full");
    }
}
