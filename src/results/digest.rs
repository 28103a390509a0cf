//! The digest by which a results file shows that its samples are those that were written.
//!
//! It guards against accidents and careless edits: a copy that was cut, a number that was typed over. It is no signature,
//! since whoever changes samples on purpose can compute it anew.
//!
//! # Method
//! SHA-256 over all rows in the order of the file, in hexadecimal digits: of each series the name of the outcome, and each
//! list of numbers with its length before it. What the rows are called is left out, so that a file whose experiment was
//! renamed is still read. Texts end with a zero byte; numbers are eight bytes, little-endian, a sample as its IEEE 754 bits.

use sha2::{Digest, Sha256};

use super::row::{Columns, Outcome, Row};

/// The digest of the samples of `rows`.
pub(super) fn of_samples(rows: &[Row]) -> String {
    let mut hash = Sha256::new();
    for row in rows {
        for series in &row.series {
            put_outcome(&mut hash, &series.outcome);
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn put_outcome(hash: &mut Sha256, outcome: &Outcome) {
    match outcome {
        Outcome::Measured(measured) => {
            let Columns { samples, order, started, slowdown, warmup, passes, .. } = measured.clone().into();
            put_text(hash, "measured");
            for numbers in [&samples, &started, &warmup] {
                put_numbers(hash, numbers.iter().map(|number| number.to_bits()));
            }
            put_numbers(hash, order.iter().map(|place| u64::from(*place)));
            // In files from before they were recorded there is no list of them, and none in their digest.
            if !slowdown.is_empty() {
                put_numbers(hash, slowdown.iter().map(|times| times.to_bits()));
            }
            if !passes.is_empty() {
                put_numbers(hash, passes.iter().map(|pass| pass.samples as u64));
                put_numbers(hash, passes.iter().map(|pass| pass.began.to_bits()));
                put_numbers(hash, passes.iter().map(|pass| pass.ended.to_bits()));
            }
        }
        Outcome::Derived { samples } => {
            put_text(hash, "derived");
            put_numbers(hash, samples.iter().map(|number| number.to_bits()));
        }
        Outcome::NotApplicable { .. } => put_text(hash, "not-applicable"),
        Outcome::Interrupted => put_text(hash, "interrupted"),
        Outcome::Skipped { .. } => put_text(hash, "skipped"),
        Outcome::Failed { .. } => put_text(hash, "failed"),
    }
}

fn put_text(hash: &mut Sha256, text: &str) {
    hash.update(text);
    hash.update([0]);
}

fn put_numbers(hash: &mut Sha256, numbers: impl ExactSizeIterator<Item = u64>) {
    hash.update((numbers.len() as u64).to_le_bytes());
    numbers.for_each(|number| hash.update(number.to_le_bytes()));
}
