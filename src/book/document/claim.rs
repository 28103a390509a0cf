//! Claims of a document: a statement and the predicate that decides it.

use serde::Deserialize;

use super::super::predicate::{Operand, operands_of};
use super::Document;

/// A claim of a document.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The identifier: `c-small-hurts`.
    pub id: String,
    /// What the document claims, in our words (Markdown).
    pub claim: String,
    /// What is true where the claim holds; see [`predicate`](crate::book::predicate).
    pub predicate: String,
    /// What it takes to judge it.
    #[serde(default)]
    pub needs: Needs,
    /// Whether it can be refuted and never confirmed: that a race was not seen does not show that there is none.
    #[serde(default)]
    pub refutable_only: bool,
    /// Why it is expected to hold, or not to (Markdown).
    pub rationale: String,
}

/// What it takes to judge a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Any device.
    #[default]
    AnyDevice,
    /// A GPU: on another engine the claim means nothing.
    Gpu,
}

impl Claim {
    /// Whether it is about published figures and peak rates alone, so that no machine has a say in it.
    pub fn is_about_figures(&self, document: &Document) -> bool {
        let measured = |(_, operand): &(String, Operand)| matches!(operand, Operand::Measured { .. });
        operands_of(&self.predicate, document).is_ok_and(|operands| !operands.iter().any(measured))
    }
}
