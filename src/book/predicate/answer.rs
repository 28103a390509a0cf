//! Whether a system has no part in an answer.
//!
//! Each system of a file answers by its own rows. Rows may have no meaning in one, such as calls of another program: that one
//! then says nothing, where a row that was only not measured is said to be missing.

use super::operand::Operand;
use super::operands_of;
use super::source::source;
use super::test::Test;
use crate::document::Document;
use crate::results::{MissingReason, Parameters, Results};

/// Whether measurements that tests name have no meaning in the system that the file is about.
pub(crate) fn is_foreign(tests: &str, document: &Document, results: &Results) -> bool {
    let lookup = results.lookup();
    let foreign = |operand: &Operand| {
        matches!(source(operand, results, &lookup, &Parameters::new()), Err(MissingReason::NotApplicable(_)))
    };
    let names_foreign = |test: &Test| {
        let operands = operands_of(&test.quantity, document);
        operands.is_ok_and(|operands| operands.iter().any(|(_, operand)| foreign(operand)))
    };
    Test::all(tests).is_ok_and(|tests| tests.iter().any(names_foreign))
}
