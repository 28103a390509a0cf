//! Every operation against a float64 reference, in every dtype, on odd shapes.

use half::{bf16, f16};
use libtest_mimic::Failed;
use syncscope::device::{Device, Element, Float, MatmulPrecision, Stream};
use syncscope::tensor::Tensor;

use crate::reference::{SHAPES, close, matmul, philox, rounding, values, widen};
use crate::{Check, ensure};

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("fill_sets_every_element", |d| {
        fill::<f16>(d)?;
        fill::<bf16>(d)?;
        fill::<f32>(d)?;
        fill::<i64>(d)?;
        fill::<u8>(d)
    }),
    ("fill_rounds_once", |d| each_real(d, nearest_fill::<f16>, nearest_fill::<bf16>, nearest_fill::<f32>)),
    ("an_integer_fill_saturates", saturating_fill),
    ("host_values_come_back_unchanged", |d| each_real(d, round_trip::<f16>, round_trip::<bf16>, round_trip::<f32>)),
    ("normals_are_those_of_the_reference", |d| each_real(d, normal::<f16>, normal::<bf16>, normal::<f32>)),
    ("successive_normals_differ_and_repeat_after_set_seed", successive_normals),
    ("matmul_stays_within_its_bound", |d| each_real(d, product::<f16>, product::<bf16>, product::<f32>)),
    ("a_matmul_over_few_terms_stays_within_its_bound", |d| {
        each_real(d, few_terms::<f16>, few_terms::<bf16>, few_terms::<f32>)
    }),
    ("a_matmul_of_integers_is_rounded_once", |d| {
        each_real(d, rounded_once::<f16>, rounded_once::<bf16>, rounded_once::<f32>)
    }),
    ("a_matmul_over_nothing_is_zero", |d| {
        each_real(d, empty_product::<f16>, empty_product::<bf16>, empty_product::<f32>)
    }),
    ("a_product_of_views_is_the_product_of_their_elements", |d| {
        each_real(d, views::<f16>, views::<bf16>, views::<f32>)
    }),
    ("fp32_is_not_rounded_to_tf32_unless_asked_for", true_fp32),
    ("multiplying_by_a_number_keeps_the_sign_of_zero", |d| {
        each_real(d, signed_zero::<f16>, signed_zero::<bf16>, signed_zero::<f32>)
    }),
    ("affine_stays_within_its_bound", |d| each_real(d, affine::<f16>, affine::<bf16>, affine::<f32>)),
    ("elementwise_stays_within_its_bound", |d| {
        each_real(d, elementwise::<f16>, elementwise::<bf16>, elementwise::<f32>)
    }),
    ("the_smallest_numbers_are_not_taken_for_zero", |d| {
        each_real(d, subnormal::<f16>, subnormal::<bf16>, subnormal::<f32>)
    }),
    ("sum_stays_within_its_bound_and_repeats", |d| each_real(d, sum::<f16>, sum::<bf16>, sum::<f32>)),
    ("greater_compares_each_element", |d| each_real(d, greater::<f16>, greater::<bf16>, greater::<f32>)),
    ("any_finds_one_element_wherever_it_is", |d| each_real(d, any::<f16>, any::<bf16>, any::<f32>)),
    ("nonzero_gives_ascending_positions", |d| each_real(d, nonzero::<f16>, nonzero::<bf16>, nonzero::<f32>)),
    ("nonzero_of_many_elements_misses_none", many_nonzero),
    ("gather_takes_rows_in_the_order_asked_for", |d| each_real(d, gather::<f16>, gather::<bf16>, gather::<f32>)),
    ("stack_puts_tensors_behind_each_other", stack),
    ("printing_shows_the_elements", printing),
    ("an_array_has_the_tensors_shape", array),
];

type PerType = fn(&Device) -> Result<(), Failed>;

fn each_real(device: &Device, fp16: PerType, bf16: PerType, fp32: PerType) -> Result<(), Failed> {
    fp16(device)?;
    bf16(device)?;
    fp32(device)
}

fn fill<T: Element>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    for shape in SHAPES {
        let ones = stream.ones::<T>(shape)?.to_vec()?;
        let one = stream.full::<T>([1], 1.0)?.item()?;
        let expected: usize = shape.iter().product();
        ensure(ones.len() == expected && ones.iter().all(|x| *x == one), || format!("{} {shape:?}", T::DTYPE))?;
        let threes = stream.full::<T>(shape, 3.0)?.to_vec()?;
        ensure(threes.iter().all(|x| format!("{x}").starts_with('3')), || format!("{} {shape:?} of 3", T::DTYPE))?;
    }
    Ok(())
}

/// Beside the half way between 1 and the next number, by less than an fp32 tells.
fn nearest_fill<T: Float>(device: &Device) -> Result<(), Failed> {
    let (stream, next) = (device.stream()?, 1.0 + T::EPSILON);
    let half = 1.0 + f64::from(T::EPSILON) / 2.0;
    for (value, nearest) in [(half - 1e-12, 1.0), (half, 1.0), (half + 1e-12, next)] {
        let found = stream.full::<T>([9], value)?.to_vec()?;
        ensure(found.iter().all(|x| x.to_f32() == nearest), || format!("{} of {value:e}: {found:?}", T::DTYPE))?;
    }
    Ok(())
}

fn saturating_fill(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    for (value, byte, integer) in [
        (f64::NAN, 0, 0),
        (-1.9, 0, -1),
        (255.9, 255, 255),
        (300.0, 255, 300),
        (1e30, 255, i64::MAX),
        (f64::NEG_INFINITY, 0, i64::MIN),
    ] {
        let found = (stream.full::<u8>([1], value)?.item()?, stream.full::<i64>([1], value)?.item()?);
        ensure(found == (byte, integer), || format!("{value}: {found:?}"))?;
    }
    Ok(())
}

fn round_trip<T: Float>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    for shape in SHAPES.into_iter().chain([&[300_001][..]]) {
        let given = values::<T>(shape.iter().product(), 1);
        let got = stream.tensor(&given, shape)?.to_vec()?;
        ensure(got == given, || format!("{} {shape:?} changed on its way", T::DTYPE))?;
    }
    Ok(())
}

fn normal<T: Float>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    for shape in SHAPES.into_iter().chain([&[70_001][..]]) {
        let len = shape.iter().product();
        let seed = 0x0123_4567_89ab_cdef;
        stream.set_seed(seed);
        let got = widen(&stream.normal::<T>(shape)?.to_vec()?);
        let expected: Vec<f64> = (0..len).map(|i: usize| reference_normal(seed, 0, i as u64)).collect();
        close(&format!("normal {} {shape:?}", T::DTYPE), &got, &expected, |i| rounding::<T>(expected[i]) + 4.0e-5)?;
    }
    Ok(())
}

/// Box–Muller in fp64 on the same words.
fn reference_normal(seed: u64, sequence: u64, i: u64) -> f64 {
    let words = philox(seed, sequence, i / 4);
    let uniform = |word: u32| f64::from(word as f32 + 0.5) * 2f64.powi(-32);
    let pair = if i % 4 < 2 { [words[0], words[1]] } else { [words[2], words[3]] };
    let (radius, angle) = ((-2.0 * uniform(pair[0]).ln()).sqrt(), std::f64::consts::TAU * uniform(pair[1]));
    radius * if i.is_multiple_of(2) { angle.cos() } else { angle.sin() }
}

fn successive_normals(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let (first, second) = (stream.normal::<f32>([64])?.to_vec()?, stream.normal::<f32>([64])?.to_vec()?);
    ensure(first != second, || "two calls drew the same numbers".to_owned())?;
    stream.set_seed(0);
    ensure(stream.normal::<f32>([64])?.to_vec()? == first, || "the seed does not repeat the numbers".to_owned())
}

fn product<T: Float>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let shapes = [[1, 1, 1], [3, 127, 1], [1, 37, 3], [127, 127, 127], [37, 1000, 5], [64, 64, 64], [129, 65, 33]];
    shapes.into_iter().try_for_each(|sizes| product_of::<T>(&stream, sizes))
}

fn product_of<T: Float>(stream: &Stream, [m, k, n]: [usize; 3]) -> Result<(), Failed> {
    let (a, b) = (values::<T>(m * k, 2), values::<T>(k * n, 3));
    let (expected, magnitude) = matmul(&widen(&a), &widen(&b), [m, k, n]);
    let out = stream.tensor(&a, [m, k])?.matmul(&stream.tensor(&b, [k, n])?)?;
    ensure(out.shape() == [m, n], || format!("the shape is {:?}", out.shape()))?;
    let bound = |i: usize| rounding::<T>(expected[i]) + k as f64 * f64::from(f32::EPSILON) * magnitude[i];
    close(&format!("{} [{m}, {k}] · [{k}, {n}]", T::DTYPE), &widen(&out.to_vec()?), &expected, bound)
}

/// Inner sizes of 1 to 4: a sum so short leaves little room for an error.
fn few_terms<T: Float>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    for (m, n) in [(1, 1), (1, 500), (64, 64), (33, 129), (500, 1), (256, 300)] {
        (1..=4).try_for_each(|k| product_of::<T>(&stream, [m, k, n]))?;
    }
    Ok(())
}

/// Sums of small integers are exact in fp32 in any order, so that the result is the exact one, rounded once: a sum whose
/// parts were rounded to fp16 or bf16 differs. The first half of the terms adds up to some thousands, which the second
/// takes away again.
fn rounded_once<T: Float>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    for [m, k, n] in [[8, 30_000, 8], [64, 16_384, 32], [1, 20_001, 16]] {
        let ones: Vec<T> = vec![T::from_f32(1.0); m * k];
        let term = |l: usize, column: usize| {
            let size = ((l * 7919 + column * 104_729) % 6007 % 3) as i64;
            if l < k / 2 { size } else { -size }
        };
        let b: Vec<T> = (0..k * n).map(|i| T::from_f32(term(i / n, i % n) as f32)).collect();
        let got = stream.tensor(&ones, [m, k])?.matmul(&stream.tensor(&b, [k, n])?)?.to_vec()?;
        let exact: Vec<i64> = (0..n).map(|column| (0..k).map(|l| term(l, column)).sum()).collect();
        let wrong = got.iter().enumerate().find(|(i, x)| **x != T::from_f32(exact[i % n] as f32));
        ensure(wrong.is_none(), || format!("{} [{m}, {k}] · [{k}, {n}]: {wrong:?}", T::DTYPE))?;
    }
    Ok(())
}

fn signed_zero<T: Float>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let x = stream.tensor(&[-0.0, 0.0, -3.0].map(T::from_f32), [3])?;
    for (factor, expected) in [(1.0, [-0.0, 0.0, -3.0]), (-1.0, [0.0, -0.0, 3.0]), (0.0, [-0.0, 0.0, -0.0])] {
        let got = x.multiply_scalar(factor)?.to_vec()?;
        let bits = |x: f32| x.to_bits();
        let same = got.iter().zip(expected).all(|(x, expected)| bits(x.to_f32()) == bits(expected));
        ensure(same, || format!("{} times {factor}: {got:?}", T::DTYPE))?;
    }
    Ok(())
}

fn empty_product<T: Float>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let out = stream.empty::<T>([3, 0])?.matmul(&stream.empty::<T>([0, 2])?)?;
    ensure(widen(&out.to_vec()?) == [0.0; 6], || format!("{out}"))?;
    let none = stream.empty::<T>([0, 4])?.matmul(&stream.ones::<T>([4, 2])?)?;
    ensure(none.to_vec()?.is_empty() && none.shape() == [0, 2], || format!("{none:?}"))
}

fn views<T: Float>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let (rows, size) = (3, 17);
    let given = values::<T>(rows * size * size, 4);
    let all = stream.tensor(&given, [rows, size, size])?;
    let part = |i: usize| widen(&given[i * size * size..(i + 1) * size * size]);
    let (expected, magnitude) = matmul(&part(1), &part(2), [size, size, size]);
    let got = all.get([1])?.matmul(&all.get([2])?)?;
    let bound = |i: usize| rounding::<T>(expected[i]) + size as f64 * f64::from(f32::EPSILON) * magnitude[i];
    close(&format!("{} views", T::DTYPE), &widen(&got.to_vec()?), &expected, bound)?;
    let shifted = all.get([1])?.affine(2.0, 1.0)?.to_vec()?;
    let expected: Vec<f64> = part(1).iter().map(|x| 2.0 * x + 1.0).collect();
    close(&format!("{} affine of a view", T::DTYPE), &widen(&shifted), &expected, |_| 5.0 * f64::from(T::EPSILON))
}

/// 1 + 2⁻²⁰ is 1 in tf32: its product with 1 tells the two apart.
fn true_fp32(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let fine = 1.0 + 2f32.powi(-20);
    let (x, one) = (stream.full::<f32>([64, 64], f64::from(fine))?, stream.tensor(&identity(64), [64, 64])?);
    let exact = x.matmul(&one)?.to_vec()?;
    ensure(exact.iter().all(|x| *x == fine), || format!("fp32 lost bits: {}", exact[0]))?;
    if device.properties().engine == "cpu" {
        let refused = x.matmul_in(&one, MatmulPrecision::Tf32).is_err();
        return ensure(refused, || "the CPU engine took tf32".to_owned());
    }
    let coarse = x.matmul_in(&one, MatmulPrecision::Tf32)?.to_vec()?;
    ensure(coarse.iter().all(|x| (*x - fine).abs() < 2e-3), || format!("tf32 gave {}", coarse[0]))
}

fn identity(size: usize) -> Vec<f32> {
    (0..size * size).map(|i| if i / size == i % size { 1.0 } else { 0.0 }).collect()
}

fn affine<T: Float>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    for shape in SHAPES {
        let given = values::<T>(shape.iter().product(), 5);
        let x = stream.tensor(&given, shape)?;
        let expected: Vec<f64> = widen(&given).iter().map(|x| x * 1.5 - 0.25).collect();
        let bound = |i: usize| rounding::<T>(expected[i]) + 4.0 * f64::from(f32::EPSILON) * 4.0;
        close(&format!("affine {} {shape:?}", T::DTYPE), &widen(&x.affine(1.5, -0.25)?.to_vec()?), &expected, bound)?;
        x.affine_in_place(1.5, -0.25)?;
        close(&format!("in place {} {shape:?}", T::DTYPE), &widen(&x.to_vec()?), &expected, bound)?;
    }
    Ok(())
}

fn elementwise<T: Float>(device: &Device) -> Result<(), Failed> {
    type Reference = fn(f64, f64) -> f64;
    let stream = device.stream()?;
    for shape in SHAPES {
        let len = shape.iter().product();
        let (a, b) = (values::<T>(len, 6), values::<T>(len, 7));
        let (x, y) = (stream.tensor(&a, shape)?, stream.tensor(&b, shape)?);
        let results: [(Tensor<T>, Reference); 3] =
            [(x.add(&y)?, |a, b| a + b), (x.subtract(&y)?, |a, b| a - b), (x.multiply(&y)?, |a, b| a * b)];
        for (result, reference) in results {
            let expected: Vec<f64> = widen(&a).iter().zip(widen(&b)).map(|(a, b)| reference(*a, b)).collect();
            let bound = |i: usize| rounding::<T>(expected[i]) + 4.0 * f64::from(f32::EPSILON) * 4.0;
            close(&format!("{} {shape:?}", T::DTYPE), &widen(&result.to_vec()?), &expected, bound)?;
        }
    }
    Ok(())
}

/// Products of normal numbers, and sums, between the smallest number of a type and its smallest normal one.
fn subnormal<T: Float>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let halves = std::iter::successors(Some(1.0_f64), |x| Some(x / 2.0)).take_while(|x| T::nearest(*x).to_f32() > 0.0);
    let (smallest, smallest_fp32) = (halves.last().ok_or("there is no number")?, f64::from(f32::from_bits(1)));
    let root = smallest.log2() / 2.0;
    let scaled = |salt, by: f64| -> Vec<T> {
        values::<T>(500, salt).iter().map(|x| T::nearest(f64::from(x.to_f32()) * by)).collect()
    };
    let (a, b) = (scaled(14, root.ceil().exp2()), scaled(15, 8.0 * root.floor().exp2()));
    let (x, y) = (stream.tensor(&a, [500])?, stream.tensor(&b, [500])?);
    let products: Vec<f64> = widen(&a).iter().zip(widen(&b)).map(|(a, b)| a * b).collect();
    let factor = T::nearest(8.0 * root.floor().exp2()).to_f32();
    let scaled_products: Vec<f64> = widen(&a).iter().map(|a| a * f64::from(factor)).collect();
    let bound = |_| smallest / 2.0 + smallest_fp32;
    close(&format!("multiply {}", T::DTYPE), &widen(&x.multiply(&y)?.to_vec()?), &products, bound)?;
    close(&format!("affine {}", T::DTYPE), &widen(&x.affine(factor, 0.0)?.to_vec()?), &scaled_products, bound)?;
    let small = x.multiply(&y)?;
    let doubled: Vec<f64> = widen(&small.to_vec()?).iter().map(|x| 2.0 * x).collect();
    close(&format!("add {}", T::DTYPE), &widen(&small.add(&small)?.to_vec()?), &doubled, |_| 0.0)?;
    let total = f64::from(small.get([0])?.sum()?.item()?);
    ensure(2.0 * total == doubled[0], || format!("sum {}: {total:e}, not half of {:e}", T::DTYPE, doubled[0]))
}

fn sum<T: Float>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    for shape in SHAPES.into_iter().chain([&[1_000_003][..]]) {
        let given = values::<T>(shape.iter().product(), 8);
        let x = stream.tensor(&given, shape)?;
        let total = x.sum()?.item()?;
        ensure(total.to_bits() == x.sum()?.item()?.to_bits(), || "two sums of one tensor differ".to_owned())?;
        let (exact, magnitude) = widen(&given).iter().fold((0.0, 0.0), |(s, m), x| (s + x, m + x.abs()));
        let terms = (given.len().max(1) as f64).log2().ceil() + 128.0 + given.len() as f64 / 1_048_576.0;
        let bound = terms * f64::from(f32::EPSILON) * magnitude;
        close(&format!("sum {} {shape:?}", T::DTYPE), &[f64::from(total)], &[exact], |_| bound)?;
    }
    Ok(())
}

fn greater<T: Float>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    for shape in SHAPES {
        let given = values::<T>(shape.iter().product(), 9);
        let got = stream.tensor(&given, shape)?.gt(0.5)?.to_vec()?;
        let expected: Vec<u8> = given.iter().map(|x| u8::from(x.to_f32() > 0.5)).collect();
        ensure(got == expected, || format!("greater {} {shape:?}", T::DTYPE))?;
    }
    Ok(())
}

fn any<T: Float>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let len = 100_003;
    ensure(!stream.zeros::<T>([len])?.any()?, || "found one among zeros".to_owned())?;
    ensure(!stream.empty::<T>([0])?.any()?, || "found one in an empty tensor".to_owned())?;
    for position in [0, 1, 511, 65_536, len - 1] {
        let mut one = vec![T::from_f32(0.0); len];
        one[position] = T::from_f32(-1.0);
        let x = stream.tensor(&one, [len])?;
        ensure(x.any()?, || format!("{}: missed the one at {position}", T::DTYPE))?;
    }
    let positions = stream.tensor(&[0i64, 0, 256], [3])?;
    ensure(positions.any()? && positions.nonzero()?.to_vec()? == [2], || "i64 is read otherwise".to_owned())?;
    let zeros = stream.tensor(&[T::from_f32(-0.0), T::from_f32(0.0)], [2])?;
    ensure(!zeros.any()?, || "took minus zero for one".to_owned())?;
    ensure(stream.full::<T>([2], f64::NAN)?.any()?, || "took NaN for zero".to_owned())
}

fn nonzero<T: Float>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    for shape in SHAPES {
        let mut given = values::<T>(shape.iter().product(), 10);
        for (i, value) in given.iter_mut().enumerate() {
            if i % 3 != 1 {
                *value = T::from_f32(0.0);
            }
        }
        let got = stream.tensor(&given, shape)?.nonzero()?;
        let expected: Vec<i64> = (0..).zip(&given).filter(|(_, x)| x.to_f32() != 0.0).map(|(i, _)| i).collect();
        ensure(got.shape() == [expected.len()], || format!("{} {shape:?}: shape {:?}", T::DTYPE, got.shape()))?;
        ensure(got.to_vec()? == expected, || format!("nonzero {} {shape:?}", T::DTYPE))?;
    }
    Ok(())
}

fn many_nonzero(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    for (len, period) in [(3_000_001usize, 1usize), (3_000_001, 1000), (1_048_576, 2), (4097, 4096)] {
        let given: Vec<u8> = (0..len).map(|i| u8::from(i % period == 0)).collect();
        let got = stream.tensor(&given, [len])?.nonzero()?.to_vec()?;
        let expected: Vec<i64> = (0..len as i64).step_by(period).collect();
        ensure(got == expected, || format!("{len} elements, every {period}th: {} found", got.len()))?;
    }
    Ok(())
}

fn gather<T: Float>(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    // Narrow rows, and wide ones of one piece and of several, which begin at every alignment.
    for shape in [&[5][..], &[4, 3], &[7, 2, 3], &[5, 33], &[3, 1026], &[3, 8192], &[4, 9999]] {
        let given = values::<T>(shape.iter().product(), 11);
        let width = given.len() / shape[0];
        let rows = [2, 0, 2, shape[0] - 1];
        let got = stream.tensor(&given, shape)?.index_select(&rows)?;
        let expected: Vec<T> = rows.iter().flat_map(|r| given[r * width..(r + 1) * width].to_vec()).collect();
        ensure(got.shape()[0] == 4 && got.to_vec()? == expected, || format!("gather {} {shape:?}", T::DTYPE))?;
    }
    let none = stream.ones::<T>([4, 3])?.index_select(&[])?;
    ensure(none.shape() == [0, 3] && none.to_vec()?.is_empty(), || "no rows gave some".to_owned())
}

fn stack(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let scalars = (0..5).map(|i| stream.full::<f32>([], f64::from(i))).collect::<Result<Vec<_>, _>>()?;
    ensure(Tensor::stack(&scalars)?.to_vec()? == [0.0, 1.0, 2.0, 3.0, 4.0], || "the scalars moved".to_owned())?;
    let mean = Tensor::stack(&scalars)?.mean()?.item()?;
    ensure(mean == 2.0, || format!("their mean is {mean}"))?;
    let odd = [stream.ones::<f16>([3])?, stream.zeros::<f16>([3])?];
    let stacked = Tensor::stack(&odd)?;
    ensure(stacked.shape() == [2, 3] && widen(&stacked.to_vec()?) == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0], || {
        format!("{stacked}")
    })
}

fn printing(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let pair = stream.ones::<f32>([1, 2])?.multiply(&stream.ones::<f32>([1, 2])?)?.add_scalar(2.0)?;
    ensure(pair.to_string() == "[[3.0, 3.0]]", || pair.to_string())?;
    let scalar = stream.full::<f32>([2], 135.125)?.get([1])?;
    ensure(scalar.to_string() == "135.125", || scalar.to_string())?;
    let long = stream.zeros::<f32>([2000])?.to_string();
    ensure(long == "[0.0, 0.0, 0.0, …, 0.0, 0.0, 0.0]", || long.clone())
}

fn array(device: &Device) -> Result<(), Failed> {
    let given = values::<f32>(12, 12);
    let array = device.stream()?.tensor(&given, [3, 4])?.to_array()?;
    ensure(array.shape() == [3, 4] && array.iter().copied().eq(given), || format!("{array}"))
}
