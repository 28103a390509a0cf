//! Claims of a document: a statement, where it stands, what it is about, and the tests that decide it.

use serde::Deserialize;

use super::Document;
use super::text::{PrintedText, TextPlace};
use crate::in_order::grouped;
use crate::results::Parameters;

/// A claim of a document.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The identifier: `c-small-hurts`.
    pub id: String,
    /// Where the text says it; nowhere where the claim is the document's own.
    #[serde(default)]
    pub places: Vec<TextPlace>,
    /// What the text claims, in our words, with every qualifier of the text (Markdown).
    pub claim: String,
    /// What kind of statement it is, which decides how it is tested.
    pub kind: ClaimKind,
    /// What it is about; nothing of a machine where the kind is `arithmetic`.
    pub on: Option<ClaimSubject>,
    /// What has to hold, each as a quantity with its bounds; see [`predicate`](crate::predicate).
    pub tests: Vec<String>,
    /// The parameters for which each test is made, one case each.
    #[serde(default)]
    pub cases: Vec<Parameters>,
    /// In place of cases, a parameter: each test is made for every value of it in the results.
    pub each: Option<String>,
    /// Whether the cases are compared with each other, instead of each with the bounds.
    pub compare: Option<Compare>,
    /// What has to hold for the claim to have a meaning: a test.
    pub given: Option<String>,
    /// Quantities to stand beside the verdict, which do not decide it.
    #[serde(default)]
    pub shown: Vec<String>,
    /// Why it is so, or why it is not, in sentences that are true whatever the verdict (Markdown). The first one stands beside
    /// the claim wherever it is refuted.
    pub rationale: String,
}

/// What kind of statement a claim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// It holds in every case.
    Always,
    /// It can be so: one case is enough.
    Exists,
    /// A figure or a range that the text has from its own machine.
    Value,
    /// The direction of a difference.
    Sign,
    /// A formula that the text calls conceptual: how far it misses.
    Model,
    /// It follows from printed figures and datasheets alone.
    Arithmetic,
    /// What happens inside a call, as it was recorded.
    Implementation,
}

/// What a claim is about, and so on which system's samples it is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimSubject {
    /// PyTorch.
    Pytorch,
    /// What CUDA does itself, for every program: PyTorch shows it where it was measured, and else the system that the file
    /// is about.
    Cuda,
    /// The program that was measured, on whatever device.
    Program,
}

/// How cases are compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// One less the other.
    Difference,
    /// One over the other.
    Ratio,
}

impl ClaimKind {
    /// In a word, as a document writes it.
    pub fn name(self) -> &'static str {
        ["always", "exists", "value", "sign", "model", "arithmetic", "implementation"][self as usize]
    }
}

impl ClaimSubject {
    /// In words.
    pub fn words(self) -> &'static str {
        // In the order of the subjects.
        ["PyTorch", "CUDA", "the measured program"][self as usize]
    }
}

/// Words without the marks of Markdown, in one line.
fn plain(text: &str) -> String {
    text.replace(['*', '`'], "").split_whitespace().collect::<Vec<&str>>().join(" ")
}

impl Claim {
    /// Whether it is about printed figures and peak rates alone, so that no machine has a say in it.
    pub fn is_about_figures(&self) -> bool {
        self.kind == ClaimKind::Arithmetic
    }

    /// What it claims, without the marks of Markdown.
    pub fn plain(&self) -> String {
        plain(&self.claim)
    }

    /// Why it is so, or why it is not, and how that is tested, without the marks of Markdown.
    pub fn why(&self) -> String {
        plain(&self.rationale)
    }

    /// The first sentence of that.
    pub fn reason(&self) -> String {
        let all = self.why();
        let end = all.match_indices(". ").map(|(place, _)| place + 1).next();
        all[..end.unwrap_or(all.len())].to_owned()
    }

    /// Where it stands: each text once, with its title, its date and the lines.
    pub fn sources(&self, document: &Document) -> Vec<String> {
        let texts = grouped(self.places.iter().map(|place| (place.text.as_str(), place)));
        let source = |(name, places): (&str, Vec<&TextPlace>)| {
            let text = document.names.texts.get(name);
            let text = text.map_or_else(|| name.to_owned(), PrintedText::dated);
            format!("{text}, {}", TextPlace::lines(&places))
        };
        texts.into_iter().map(source).collect()
    }
}
