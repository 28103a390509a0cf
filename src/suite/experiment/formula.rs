//! How a derived row comes from others.

use crate::results::{Derivation, FormulaOperand, Parameters};

/// How a derived row is computed, round by round.
pub struct Formula {
    pub(super) derivation: Derivation,
    pub(super) text: String,
    pub(super) operands: Vec<FormulaOperand>,
}

impl Formula {
    /// A formula as a reader sees it, and the rows that its words stand for: each word with an identifier. Other words are
    /// numeric parameters of the row. [`Expression`](crate::results::Expression) says how it is written.
    pub fn of<const N: usize>(text: impl Into<String>, operands: [(&str, &'static str); N]) -> Self {
        let operand =
            |(name, id): (&str, &str)| FormulaOperand { name: name.to_owned(), id: id.to_owned(), parameters: None };
        let operands = operands.into_iter().map(operand).collect();
        Self { derivation: Derivation::Computation, text: text.into(), operands }
    }

    /// The formula as a computation of this kind.
    #[must_use]
    pub fn is(self, derivation: Derivation) -> Self {
        Self { derivation, ..self }
    }

    /// The formula with the operand of this name from the row with these parameters, in place of the group's.
    #[must_use]
    pub fn from_row(mut self, name: &str, parameters: &Parameters) -> Self {
        let named = self.operands.iter_mut().filter(|operand| operand.name == name);
        named.for_each(|operand| operand.parameters = Some(parameters.clone()));
        self
    }
}
