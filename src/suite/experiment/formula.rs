//! How a derived row comes from others.

use crate::results::{Derivation, Expression, FormulaOperand, Parameters};

/// How a derived row is computed, round by round.
///
/// It can be a text alone, as a reader sees it. A word stands for the row of the group, declared before, whose identifier ends
/// with it: of several the last. Other words are numeric parameters of the row.
pub struct Formula {
    pub(super) derivation: Derivation,
    pub(super) text: String,
    pub(super) operands: Vec<FormulaOperand>,
}

impl Formula {
    /// A formula, and the rows that its words stand for: each word with an identifier. [`Expression`] says how it is written.
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

    /// The formula with the rows that its words stand for, where that is not stated; `declared` are those of the group.
    pub(super) fn with_operands<'i, I: DoubleEndedIterator<Item = &'i str>>(
        mut self,
        declared: impl Fn() -> I,
    ) -> Self {
        if let (true, Some(expression)) = (self.operands.is_empty(), Expression::formula(&self.text)) {
            let mut names: Vec<&str> = expression.names().into_iter().collect();
            names.sort_by_key(|name| self.text.find(name));
            let operand = |name: &str| {
                let id = declared().rfind(|id| id.rsplit('.').next() == Some(name))?.to_owned();
                Some(FormulaOperand { name: name.to_owned(), id, parameters: None })
            };
            self.operands = names.into_iter().filter_map(operand).collect();
        }
        self
    }
}

impl<T: Into<String>> From<T> for Formula {
    fn from(text: T) -> Self {
        Self::of(text, [])
    }
}
