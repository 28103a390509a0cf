//! The generator of normals, the same on every engine.
//!
//! Philox 4x32-10: a counter-based generator (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, *Parallel random
//! numbers: as easy as 1, 2, 3*, SC 2011). The key is the seed (low word, high word); the counter of block `b` of
//! sequence `s` is `(b low, b high, s low, s high)`. A block gives four words, from which Box–Muller makes four
//! normals, so that element `i` of a sequence needs block `i / 4` alone:
//!
//! - a word `w` becomes the uniform `u = (w + 0.5) · 2⁻³²` in (0, 1), computed in fp32;
//! - words 0 and 1 give elements 0 and 1, `r·cos(2πu₁)` and `r·sin(2πu₁)` with `r = √(−2 ln u₀)`; words 2 and 3 give
//!   elements 2 and 3 likewise;
//! - the result is rounded once to the tensor's type.
//!
//! Engines agree up to the rounding of their `ln`, `sin` and `cos`.

/// The keys of the ten rounds under the key `seed`.
pub(crate) fn keys(seed: u64) -> [[u32; 2]; 10] {
    const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
    std::array::from_fn(|round| {
        let key = |word: u32, weyl: u32| word.wrapping_add(weyl.wrapping_mul(round as u32));
        [key(seed as u32, WEYL[0]), key((seed >> 32) as u32, WEYL[1])]
    })
}

/// The four words of block `block` of sequence `sequence` under the key `seed`.
pub(crate) fn block(seed: u64, sequence: u64, block: u64) -> [u32; 4] {
    const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
    let mut counter = [block as u32, (block >> 32) as u32, sequence as u32, (sequence >> 32) as u32];
    for key in keys(seed) {
        let first = MULTIPLIERS[0] * u64::from(counter[0]);
        let second = MULTIPLIERS[1] * u64::from(counter[2]);
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ key[1],
            first as u32,
        ];
    }
    counter
}

/// Four normals from the four words of a block.
pub(crate) fn normals(words: [u32; 4]) -> [f32; 4] {
    let [a, b] = box_muller(words[0], words[1]);
    let [c, d] = box_muller(words[2], words[3]);
    [a, b, c, d]
}

fn box_muller(radius: u32, angle: u32) -> [f32; 2] {
    let radius = (-2.0 * uniform(radius).ln()).sqrt();
    let (sin, cos) = (std::f32::consts::TAU * uniform(angle)).sin_cos();
    [radius * cos, radius * sin]
}

/// In fp32 the largest words round to 1, whose logarithm is 0: the radius is then 0, never NaN.
fn uniform(word: u32) -> f32 {
    (word as f32 + 0.5) * (1.0 / 4_294_967_296.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of the reference implementation (Random123, `kat_vectors`, `philox4x32 10`).
    #[test]
    fn blocks_equal_the_reference_vectors() {
        assert_eq!(block(0, 0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(block(u64::MAX, u64::MAX, u64::MAX), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            block(0x299f_31d0_a409_3822, 0x0370_7344_1319_8a2e, 0x85a3_08d3_243f_6a88),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn the_extreme_words_give_finite_normals() {
        for words in [[0; 4], [u32::MAX; 4], [0, u32::MAX, u32::MAX, 0]] {
            assert!(normals(words).iter().all(|x| x.is_finite()), "{words:x?}");
        }
    }
}
