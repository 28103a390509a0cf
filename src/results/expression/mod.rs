//! Expressions over named values: how a computed row comes from others, how much work a sample holds, what a claim says, and
//! what stands in a sentence.
//!
//! Numbers, names, `+ - * /`, powers (`**`, `²`, `³`), brackets, `|abs`, and the greatest or least of several:
//! `[a, b]|max` or `max(a, b)`. A formula of a results file is written for a reader: `−`, `·` and `×` are its signs, a hyphen is
//! part of a name, and `a = b` is 1 where both are the same, and else 0.
//!
//! An expression may be anybody's: it has a length.

mod dimension;
mod parse;

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use dimension::Dimension;
pub use parse::{FILTERS, SyntaxError};
use parse::{Notation, Parser};

use super::row::Parameters;

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

/// Which of several values it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The least: `min`.
    Least,
    /// The greatest: `max`.
    Greatest,
}

/// An expression that was read.
///
/// ```
/// use syncscope_results::Expression;
///
/// let value = |word: &str| (word == "size").then_some(10.0);
/// assert_eq!(Expression::formula("2 · size³ / 4").and_then(|formula| formula.evaluate(&value)), Some(500.0));
/// assert_eq!(Expression::formula("2 · width").and_then(|formula| formula.evaluate(&value)), None);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    root: Node,
}

/// A part of an expression, and where it stands in the text.
#[derive(Clone, Debug, PartialEq)]
struct Node {
    part: Part,
    at: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Number(f64),
    /// Where it stands, without brackets around it.
    Name(Range<usize>),
    Negated(Box<Node>),
    Absolute(Box<Node>),
    Extreme(Extreme, Vec<Node>),
    Binary(Operator, Box<[Node; 2]>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Plus,
    Minus,
    Times,
    Over,
    Power,
    Equals,
}

impl Expression {
    /// Reads the formula of a results file; `None` where it is none, such as prose.
    pub fn formula(text: &str) -> Option<Self> {
        Self::read(text, Notation::Formula).ok()
    }

    /// Reads an expression of a document.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        Self::read(text, Notation::Document)
    }

    fn read(text: &str, notation: Notation) -> Result<Self, SyntaxError> {
        let text = text.trim().to_owned();
        let root = Parser::new(&text, notation).whole()?;
        Ok(Self { text, root })
    }

    /// The text of which it was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it comes to where each name has the value that `value` gives; `None` where a name has none. It is no number (NaN)
    /// where a part of it is no finite number, whatever else is made of that part.
    pub fn evaluate(&self, value: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        self.root.evaluate(&self.text, value)
    }

    /// The value in a round, from `0`: a name is an operand's sample of that round, or else a numeric parameter. `None` where an
    /// operand has no such sample, or a name has no value.
    pub fn evaluate_round(
        &self,
        operands: &[(&str, impl AsRef<[f64]>)],
        parameters: &Parameters,
        round: usize,
    ) -> Option<f64> {
        self.evaluate(&|word| match operands.iter().find(|(name, _)| *name == word) {
            Some((_, samples)) => samples.as_ref().get(round).copied(),
            None => parameters.get(word)?.number(),
        })
    }

    /// Its unit, where names have the units that `of` says.
    ///
    /// # Errors
    /// It adds or compares what has different units.
    pub fn dimension(&self, of: &dyn Fn(&str) -> Dimension) -> Result<Dimension, String> {
        self.root.dimension(&self.text, of)
    }

    /// Its names, each once, in the order of the alphabet.
    pub fn names(&self) -> BTreeSet<&str> {
        self.places().into_iter().map(|at| &self.text[at]).collect()
    }

    /// Whether it is a name alone.
    pub fn is_name(&self) -> bool {
        matches!(&self.root.part, Part::Name(at) if *at == self.root.at)
    }

    /// The text with others in the place of names.
    pub fn filled(&self, of: &dyn Fn(&str) -> String) -> String {
        let (mut filled, mut behind) = (String::new(), 0);
        for at in self.places() {
            filled.push_str(&self.text[behind..at.start]);
            filled.push_str(&of(&self.text[at.clone()]));
            behind = at.end;
        }
        filled + &self.text[behind..]
    }

    /// Where its names stand, in the order of the text.
    fn places(&self) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        self.root.each(&mut |part| {
            if let Part::Name(at) = part {
                found.push(at.clone())
            }
        });
        found
    }
}

impl Node {
    fn children(&self) -> &[Node] {
        match &self.part {
            Part::Number(_) | Part::Name(_) => &[],
            Part::Negated(inner) | Part::Absolute(inner) => std::slice::from_ref(inner),
            Part::Extreme(_, nodes) => nodes,
            Part::Binary(_, nodes) => nodes.as_slice(),
        }
    }

    fn each(&self, visit: &mut dyn FnMut(&Part)) {
        visit(&self.part);
        self.children().iter().for_each(|node| node.each(visit));
    }

    fn evaluate(&self, text: &str, value: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        let children: Vec<f64> =
            self.children().iter().map(|node| node.evaluate(text, value)).collect::<Option<_>>()?;
        // `max` and `min` drop what is no number, a power of 0 makes 1 of it, and what is divided by infinity is 0.
        if children.iter().any(|child| !child.is_finite()) {
            return Some(f64::NAN);
        }
        Some(match (&self.part, children.as_slice()) {
            (Part::Number(number), _) => *number,
            (Part::Name(at), _) => value(&text[at.clone()])?,
            (Part::Negated(_), [inner]) => -inner,
            (Part::Absolute(_), [inner]) => inner.abs(),
            (Part::Extreme(extreme, _), values) => {
                values.iter().copied().reduce(if *extreme == Extreme::Least { f64::min } else { f64::max })?
            }
            (Part::Binary(operator, _), [left, right]) => match operator {
                Operator::Plus => left + right,
                Operator::Minus => left - right,
                Operator::Times => left * right,
                Operator::Over => left / right,
                Operator::Power => left.powf(*right),
                Operator::Equals => f64::from(u8::from(left == right)),
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(word: &str) -> Option<f64> {
        [("a", 2.0), ("each-step", 3.0), ("t1", 5.0), ("x.y_1", -4.0)]
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
            assert_eq!(Expression::formula(formula).unwrap().evaluate(&value), Some(expected), "{formula}");
        }
    }

    #[test]
    fn an_expression_of_a_document_is_computed_as_it_is_written() {
        for (text, expected) in [
            ("a-t1", -3.0),
            ("-x.y_1|abs + 2e-1 * 10", 6.0),
            ("t1 - a - 1 / 4", 2.75),
            ("-a ** 2", 4.0),
            ("a ** 3 ** 2", 64.0),
            ("(a - t1)|abs / [a, t1]|max", 0.6),
            ("[a, t1, x.y_1]|min + 5", 1.0),
        ] {
            assert_eq!(Expression::parse(text).unwrap().evaluate(&value), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_formula_with_a_part_that_is_no_finite_number_has_none_either() {
        for text in
            ["max(0 / 0, 256)", "min(256, 0 / 0)", "min(1 / 0, 256)", "(0 / 0) ** 0", "1 ** (0 / 0)", "a / (1 / 0)"]
        {
            assert!(Expression::parse(text).unwrap().evaluate(&value).is_some_and(f64::is_nan), "{text}");
        }
        assert!(Expression::formula("0 / 0 = 1").unwrap().evaluate(&value).is_some_and(f64::is_nan));
    }

    #[test]
    fn what_is_no_formula_has_no_value() {
        let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
        for text in ["launch of 8 − launch of 1", "a, less what else is known", "a − unknown", "(a", "", "a b", &deep]
        {
            assert_eq!(Expression::formula(text).and_then(|formula| formula.evaluate(&value)), None, "{text}");
        }
    }

    #[test]
    fn texts_stand_in_the_place_of_whole_names() {
        let expression = Expression::parse(" (small.a / small.a.b - 1e-3)|abs ").unwrap();
        assert_eq!(expression.names().into_iter().collect::<Vec<_>>(), ["small.a", "small.a.b"]);
        assert_eq!(expression.filled(&|name| format!("<{name}>")), "(<small.a> / <small.a.b> - 1e-3)|abs");
        assert!(!expression.is_name() && Expression::parse("a.b").unwrap().is_name());
    }
}
