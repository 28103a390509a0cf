//! Numbers for programs: which, and which of them a type holds exactly.

use syncscope::device::DType;

use crate::oracle::REAL;

/// Elements of tensors: below and above a warp, a tile, and what an upload takes without waiting.
pub(super) const LENGTHS: [usize; 8] = [1, 5, 64, 64, 1000, 1000, 4096, 40_000];

/// More than the driver copies aside of pageable memory, in fp32, and than a piece of a staged read.
pub(super) const LARGE: usize = 300_000;

pub(super) fn is_real(dtype: DType) -> bool {
    REAL.contains(&dtype)
}

pub(super) fn dtype(number: usize) -> DType {
    [DType::F32, DType::F32, DType::F16, DType::BF16, DType::U8, DType::I64][number % 6]
}

pub(super) fn length(number: usize) -> usize {
    LENGTHS[number % LENGTHS.len()]
}

/// -2 to 3.
pub(super) fn small(number: usize) -> i64 {
    (number % 6) as i64 - 2
}

/// Numbers of a type, many of them 0.
pub(super) fn numbers(seed: usize, len: usize, dtype: DType) -> Vec<i64> {
    let number = |i: usize| {
        let word = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(seed.wrapping_mul(0xD134_2543_DE82_EF95));
        let word = (word ^ (word >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40;
        if word.is_multiple_of(3) { 0 } else { (word / 3 % 7) as i64 - if dtype == DType::U8 { 0 } else { 3 } }
    };
    (0..len).map(number).collect()
}

/// Whether a type holds all the integers exactly.
pub(super) fn fits(dtype: DType, values: &[i64]) -> bool {
    let most = match dtype {
        DType::F16 => 1 << 11,
        DType::BF16 => 1 << 8,
        DType::F32 => 1 << 22,
        DType::I64 => i64::MAX,
        DType::U8 => 255,
    };
    values.iter().all(|x| x.abs() <= most && (dtype != DType::U8 || *x >= 0))
}
