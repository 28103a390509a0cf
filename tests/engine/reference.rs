//! Float64 references and the error bounds that the library states.

use libtest_mimic::Failed;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use syncscope::device::Float;

use crate::ensure;

/// The odd sizes on which every operation is checked.
pub(crate) const SHAPES: [&[usize]; 6] = [&[1], &[3], &[127], &[1000, 37], &[0], &[5, 0]];

/// `len` values in (-2, 2) that `T` holds exactly, other ones for each `salt`.
pub(crate) fn values<T: Float>(len: usize, salt: u64) -> Vec<T> {
    let mut random = StdRng::seed_from_u64(salt);
    (0..len).map(|_| T::from_f32(random.random_range(-2.0..2.0))).collect()
}

pub(crate) fn widen<T: Float>(values: &[T]) -> Vec<f64> {
    values.iter().map(|x| f64::from(x.to_f32())).collect()
}

/// `[m, k] · [k, n]`, and the same with absolute values, which scales the error bound.
pub(crate) fn matmul(a: &[f64], b: &[f64], [m, k, n]: [usize; 3]) -> (Vec<f64>, Vec<f64>) {
    let (mut product, mut magnitude) = (vec![0.0; m * n], vec![0.0; m * n]);
    for row in 0..m {
        for inner in 0..k {
            for column in 0..n {
                let term = a[row * k + inner] * b[inner * n + column];
                product[row * n + column] += term;
                magnitude[row * n + column] += term.abs();
            }
        }
    }
    (product, magnitude)
}

/// The four words of a block of Philox 4x32-10 (Salmon et al., SC 2011): the key is the seed, the counter is the block and the
/// sequence, each with its low word first.
pub(crate) fn philox(seed: u64, sequence: u64, block: u64) -> [u32; 4] {
    let halves = |word: u64| [word as u32, (word >> 32) as u32];
    let ([mut key, [a, b]], [c, d]) = ([halves(seed), halves(block)], halves(sequence));
    let mut counter = [a, b, c, d];
    for _ in 0..10 {
        let [low, high] = halves(0xD251_1F53 * u64::from(counter[0]));
        let [other_low, other_high] = halves(0xCD9E_8D57 * u64::from(counter[2]));
        counter = [other_high ^ counter[1] ^ key[0], other_low, high ^ counter[3] ^ key[1], low];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

/// Fails at the first element that is further than `bound(i)` from `expected`.
pub(crate) fn close(what: &str, got: &[f64], expected: &[f64], bound: impl Fn(usize) -> f64) -> Result<(), Failed> {
    ensure(got.len() == expected.len(), || format!("{what}: {} elements, not {}", got.len(), expected.len()))?;
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let within = (got - expected).abs() <= bound(i);
        ensure(within, || format!("{what}: element {i} is {got}, not {expected} ± {}", bound(i)))?;
    }
    Ok(())
}

/// Half a unit in the last place of `value` in `T`, plus the smallest step of fp16.
pub(crate) fn rounding<T: Float>(value: f64) -> f64 {
    f64::from(T::EPSILON) / 2.0 * value.abs() + 6.0e-8
}
