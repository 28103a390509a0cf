//! Whether normals are distributed as normals are, and independent of their neighbours: 10⁸ numbers of a GPU, 10⁶ of the CPU
//! engine, which computes the same ones more slowly.
//!
//! All seeds are fixed: a check that passes once passes always. Limits are at five standard errors, which a right
//! generator exceeds for one seed in some hundred thousand.

use libtest_mimic::Failed;
use syncscope::device::Device;

use crate::{Check, ensure};

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("normals_follow_the_normal_distribution", distribution),
    ("normals_have_the_moments_of_the_normal_distribution", moments),
    ("normals_are_not_correlated_with_their_neighbours", lags),
];

/// Standard errors.
const LIMIT: f64 = 5.0;

const SEQUENCES: usize = 10;

/// Has `each` see every number, a sequence at a time.
fn numbers(device: &Device, mut each: impl FnMut(&[f32])) -> Result<f64, Failed> {
    let sequence = if device.properties().engine == "cpu" { 100_000 } else { 10_000_000 };
    let stream = device.stream()?;
    stream.set_seed(20_261_121);
    for _ in 0..SEQUENCES {
        each(&stream.normal::<f32>([sequence])?.to_vec()?);
    }
    Ok((SEQUENCES * sequence) as f64)
}

/// Kolmogorov and Smirnov, over a grid: the largest distance between the shares of numbers below its points and the
/// distribution, whose value at `1 - 10⁻⁶` is `√(ln(2·10⁶) / 2n)` for the whole line, and less for a grid.
fn distribution(device: &Device) -> Result<(), Failed> {
    const STEPS: usize = 500; // to 1
    const REACH: usize = 6;
    let mut counts = vec![0_u64; 2 * REACH * STEPS + 2];
    let count = numbers(device, |values| {
        for &x in values {
            let place = ((f64::from(x) + REACH as f64) * STEPS as f64).floor() + 1.0;
            counts[(place.max(0.0) as usize).min(2 * REACH * STEPS + 1)] += 1;
        }
    })?;
    let (mut below, mut distance) = (0_u64, 0.0_f64);
    for (edge, number) in counts.iter().take(2 * REACH * STEPS + 1).enumerate() {
        below += number;
        let x = edge as f64 / STEPS as f64 - REACH as f64;
        let expected = 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        distance = distance.max((below as f64 / count - expected).abs());
    }
    let limit = (2e6_f64.ln() / (2.0 * count)).sqrt();
    println!("{}: distance {distance:.2e}, limit {limit:.2e}", device.name());
    ensure(distance < limit, || format!("a distance of {distance} over {count} numbers"))
}

/// The first four moments: 0, 1, 0, 3, whose standard errors are `√(var(xᵏ) / n)` with variances 1, 2, 15, 96.
fn moments(device: &Device) -> Result<(), Failed> {
    let mut sums = [0.0_f64; 4];
    let count = numbers(device, |values| {
        for &x in values {
            let x = f64::from(x);
            for (sum, power) in sums.iter_mut().zip([x, x * x, x * x * x, x * x * x * x]) {
                *sum += power;
            }
        }
    })?;
    for (power, (sum, (expected, variance))) in
        sums.iter().zip([(0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0)]).enumerate()
    {
        let off = (sum / count - expected) / (variance / count).sqrt();
        println!("{}: moment {} is off by {off:.2} standard errors", device.name(), power + 1);
        ensure(off.abs() < LIMIT, || format!("moment {} is off by {off} standard errors", power + 1))?;
    }
    Ok(())
}

/// Correlations with the neighbours of a block of four, of a pack, a warp and a thread block, of the values and of their
/// squares (a shared radius would show there): standard errors `1 / √n`.
fn lags(device: &Device) -> Result<(), Failed> {
    const LAGS: [usize; 9] = [1, 2, 3, 4, 8, 32, 128, 1024, 4096];
    let (mut plain, mut squared) = ([0.0_f64; LAGS.len()], [0.0_f64; LAGS.len()]);
    let mut pairs = [0.0_f64; LAGS.len()];
    numbers(device, |values| {
        for (i, lag) in LAGS.into_iter().enumerate() {
            for (&x, &y) in values.iter().zip(&values[lag..]) {
                let (x, y) = (f64::from(x), f64::from(y));
                plain[i] += x * y;
                // Of variance 2 each.
                squared[i] += (x * x - 1.0) * (y * y - 1.0) / 2.0;
            }
            pairs[i] += (values.len() - lag) as f64;
        }
    })?;
    for (i, lag) in LAGS.into_iter().enumerate() {
        let [value, square] = [plain[i], squared[i]].map(|sum| sum / pairs[i].sqrt());
        println!("{}: lag {lag}: {value:.2} and {square:.2} standard errors", device.name());
        ensure(value.abs() < LIMIT && square.abs() < LIMIT, || format!("lag {lag}: {value}, {square}"))?;
    }
    Ok(())
}
