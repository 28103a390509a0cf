//! The formulas of a results file: how a computed row comes from others, and how much work a sample holds.
//!
//! A formula is written for a reader and computed as it is written: numbers, `+ − · × / =`, brackets, `²` and `³`,
//! `max(a, b)`, and words, which stand for rows or for parameters. `a = b` is 1 where both are the same, and else 0.

use std::iter::Peekable;
use std::str::Chars;

use serde::{Deserialize, Serialize};

use super::row::{Outcome, Parameters};

/// A row that a formula names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormulaOperand {
    /// The word of the formula.
    pub name: String,
    /// The identifier of the row.
    pub id: String,
    /// The parameters of the row, where they are not those of the row that is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Parameters>,
}

/// The most bytes of a formula: a file may come from anybody, and brackets are read by recursion.
const MOST_BYTES: usize = 200;

const MAX: &str = "max";

/// What a formula comes to where each word has the value that `value` gives. `None` where it is no formula, or has a word
/// without a value.
///
/// ```
/// use syncscope_results::evaluate;
///
/// let value = |word: &str| (word == "size").then_some(10.0);
/// assert_eq!(evaluate("2 · size³ / 4", &value), Some(500.0));
/// assert_eq!(evaluate("2 · width", &value), None);
/// ```
pub fn evaluate(formula: &str, value: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
    if formula.len() > MOST_BYTES {
        return None;
    }
    Reader { text: formula.chars().peekable(), value }.whole()
}

/// The value of a row's formula in a round, from `0`: a word is an operand's sample of that round, or else a numeric parameter
/// of the row. `None` where an operand has no such sample, or as [`evaluate`] says.
pub(super) fn evaluate_round(
    formula: &str,
    operands: &[(&str, &[f64])],
    parameters: &Parameters,
    round: usize,
) -> Option<f64> {
    evaluate(formula, &|word| match operands.iter().find(|(name, _)| *name == word) {
        Some((_, samples)) => samples.get(round).copied(),
        None => parameters.get(word)?.number(),
    })
}

/// What a row's formula comes to in each round that all of its operands have.
pub fn computed(formula: &str, operands: &[(&str, &[f64])], parameters: &Parameters) -> Outcome {
    let rounds = operands.iter().map(|(_, samples)| samples.len()).min().unwrap_or(0);
    let samples = (0..rounds).map(|round| evaluate_round(formula, operands, parameters, round));
    match samples.collect::<Option<Vec<f64>>>() {
        Some(samples) if samples.iter().all(|sample| sample.is_finite()) => Outcome::Derived { samples },
        Some(_) => Outcome::Failed { reason: format!("the formula `{formula}` gives no number in a round") },
        None => Outcome::Failed { reason: format!("the formula `{formula}` has a word that stands for nothing") },
    }
}

/// Computes a formula while it reads it; `None` where it is none.
struct Reader<'a> {
    text: Peekable<Chars<'a>>,
    value: &'a dyn Fn(&str) -> Option<f64>,
}

impl Reader<'_> {
    fn whole(&mut self) -> Option<f64> {
        let left = self.sum()?;
        let value = if self.take('=') { f64::from(u8::from(left == self.sum()?)) } else { left };
        self.next().is_none().then_some(value)
    }

    fn next(&mut self) -> Option<char> {
        while self.text.next_if_eq(&' ').is_some() {}
        self.text.peek().copied()
    }

    fn take(&mut self, sign: char) -> bool {
        self.next() == Some(sign) && self.text.next().is_some()
    }

    fn sum(&mut self) -> Option<f64> {
        let mut sum = self.product()?;
        loop {
            if self.take('+') {
                sum += self.product()?;
            } else if self.take('−') {
                sum -= self.product()?;
            } else {
                return Some(sum);
            }
        }
    }

    fn product(&mut self) -> Option<f64> {
        let mut product = self.power()?;
        loop {
            if self.take('·') || self.take('×') {
                product *= self.power()?;
            } else if self.take('/') {
                product /= self.power()?;
            } else {
                return Some(product);
            }
        }
    }

    fn power(&mut self) -> Option<f64> {
        let base = if self.take('(') { self.bracket()? } else { self.word()? };
        Some(match (self.take('²'), self.take('³')) {
            (true, _) => base.powi(2),
            (_, true) => base.powi(3),
            _ => base,
        })
    }

    /// A sum, up to the end of its bracket.
    fn bracket(&mut self) -> Option<f64> {
        let sum = self.sum()?;
        self.take(')').then_some(sum)
    }

    fn word(&mut self) -> Option<f64> {
        self.next();
        let mut word = String::new();
        while let Some(letter) = self.text.next_if(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.')) {
            word.push(letter);
        }
        if word == MAX && self.take('(') {
            let first = self.sum()?;
            return if self.take(',') { Some(first.max(self.bracket()?)) } else { None };
        }
        word.parse().ok().or_else(|| (self.value)(&word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(word: &str) -> Option<f64> {
        [("a", 2.0), ("each-step", 3.0), ("t1", 5.0)]
            .into_iter()
            .find(|(name, _)| *name == word)
            .map(|(_, value)| value)
    }

    #[test]
    fn a_formula_is_computed_as_it_is_written() {
        for (formula, expected) in [
            ("a − t1", -3.0),
            ("t1 + a·(t1 − 1)", 13.0),
            ("a³ + t1² × 2", 58.0),
            ("max(a, 2.5)", 2.5),
            ("each-step × 1000 / a", 1500.0),
            ("(t1 − a) / (1 + a)", 1.0),
            ("a = 2", 1.0),
            ("a = t1", 0.0),
        ] {
            assert_eq!(evaluate(formula, &value), Some(expected), "{formula}");
        }
    }

    #[test]
    fn what_is_no_formula_has_no_value() {
        let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
        for formula in
            ["launch of 8 − launch of 1", "a, less what else is known", "a − unknown", "(a", "", "a b", &deep]
        {
            assert_eq!(evaluate(formula, &value), None, "{formula}");
        }
    }
}
