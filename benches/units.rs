//! What it costs to write numbers and to estimate medians: `cargo bench --bench units`.
//!
//! In the form in which a crate outside measures its own functions.

use std::hint::black_box;
use std::process::ExitCode;

use syncscope::measure::{Case, Samples};
use syncscope_present::units::Unit;
use syncscope_report::Benchmarks;

fn main() -> ExitCode {
    let values: Vec<f64> = (0..1000).map(|i| 1e-6 * f64::from(i * 7919 % 1000 + 1)).collect();
    Benchmarks::new("units")
        .group("one number")
        .function("add", || black_box(1.5_f64) + black_box(2.5))
        .function("scale of a time", || Unit::Seconds.scale(black_box(14.4e-6)))
        .function("write a time", || Unit::Seconds.format(black_box(14.4e-6), 3))
        .group("a thousand samples")
        .function("sum", || black_box(&values).iter().sum::<f64>())
        .case(Case::new("keep", || Samples::new("values", black_box(&values).clone())))
        .function_with(
            "sort",
            || values.clone(),
            |mut values| {
                values.sort_by(f64::total_cmp);
                values
            },
        )
        .main()
}
