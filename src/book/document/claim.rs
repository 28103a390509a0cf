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
    /// What it is about; of a document with a text behind it, PyTorch where nothing else is said.
    #[serde(default)]
    pub on: Option<On>,
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

/// What a claim is about, and so on which system's samples it is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum On {
    /// PyTorch.
    Pytorch,
    /// What CUDA does itself, for every program: the system that the file is about shows it.
    Cuda,
}

impl Claim {
    /// The system whose samples decide, where it is not the one that the file is about.
    pub fn system(&self, document: &Document) -> Option<&'static str> {
        let of_text = document.source.is_some() && !self.is_about_figures(document);
        let about = self.on.or(of_text.then_some(On::Pytorch));
        (about == Some(On::Pytorch)).then_some("PyTorch")
    }

    /// Whether it is about published figures and peak rates alone, so that no machine has a say in it.
    pub fn is_about_figures(&self, document: &Document) -> bool {
        let measured = |(_, operand): &(String, Operand)| matches!(operand, Operand::Measured { .. });
        operands_of(&self.predicate, document).is_ok_and(|operands| !operands.iter().any(measured))
    }
}
