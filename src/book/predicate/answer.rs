//! The system that an answer is about.
//!
//! An answer is about the system that the file is about. Rows may have no meaning in that one, such as calls of another
//! program: then the answer is about the other system that measured them.

use minijinja::Environment;

use super::operand::Operand;
use super::quantity::ResolvedExpression;
use super::source::source;
use super::{names_in, operands_in};
use crate::book::document::Document;
use crate::results::{MissingReason, Parameters, Results};

impl<'a> ResolvedExpression<'a> {
    /// The quantity in an answer: by the rows of the system that the file is about. Where these have no meaning in it, by
    /// those of another system that measured all of them.
    pub(in crate::book) fn of_answer(
        environment: &Environment<'_>,
        expression: &str,
        document: &Document,
        results: &'a Results,
    ) -> Result<Self, String> {
        let systems = results.systems();
        let of = |system| Self::of_names(environment, expression, document, results, system, &Parameters::new());
        let own = of(results.run().system.as_str());
        if own.is_ok() || !is_foreign(environment, expression, document, results) {
            return own;
        }
        systems.into_iter().skip(1).find_map(|system| of(system).ok()).map_or(own, Ok)
    }
}

/// Whether measurements in an expression have no meaning in the system that the file is about.
fn is_foreign(environment: &Environment<'_>, expression: &str, document: &Document, results: &Results) -> bool {
    let lookup = results.lookup();
    let foreign = |operand: &Operand| {
        matches!(source(operand, results, &lookup, &Parameters::new()), Err(MissingReason::NotApplicable(_)))
    };
    let operands = names_in(environment, expression).and_then(|names| operands_in(expression, &names, document));
    operands.is_ok_and(|operands| operands.iter().any(|(_, operand)| foreign(operand)))
}
