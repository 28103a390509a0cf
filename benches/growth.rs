//! How the time of what reads files grows with their size: `cargo bench --bench growth`.
//!
//! Each is timed at sizes that double; the exponent is the slope of the logarithms (least squares). n log n has one of
//! about 1.1 here. It ends with 1 where an exponent is above 1.35.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use syncscope::measure::Samples;
use syncscope::present::TimelinePlot;
use syncscope::timeline::Timeline;

const MOST: f64 = 1.35;

fn main() -> ExitCode {
    let sizes = |first: usize| (0..6).map(move |doubled| first << doubled).collect::<Vec<usize>>();
    let picture = |n| {
        let timeline = recorded(n);
        time(|| {
            TimelinePlot { title: "T".to_owned(), machine: "M".to_owned(), timeline: &timeline }.to_svg("p").unwrap()
        })
    };
    let path = |n| {
        let timeline = recorded(n);
        time(|| timeline.critical_path())
    };
    let estimate = |n| {
        let samples: Vec<f64> = (0..n).map(|i| 1.0 + ((i * 7919) % n) as f64).collect();
        time(|| Samples::new("a", samples.clone()).unwrap().estimate())
    };
    let grown = [
        ("the picture of a timeline of n spans", exponent(&sizes(8_000), picture)),
        ("the critical path of n spans", exponent(&sizes(8_000), path)),
        ("the estimate of n samples", exponent(&sizes(32_000), estimate)),
    ];
    for (what, (exponent, last)) in &grown {
        println!("{what}: n^{exponent:.2}, {:.0} ms at the largest", last * 1e3);
    }
    ExitCode::from(u8::from(grown.iter().any(|(_, (exponent, _))| *exponent > MOST)))
}

/// The least of three times, in seconds.
fn time<T>(run: impl Fn() -> T) -> f64 {
    let once = || {
        let begun = Instant::now();
        black_box(run());
        begun.elapsed().as_secs_f64()
    };
    (0..3).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// The exponent of the growth, and the time at the largest size.
fn exponent(sizes: &[usize], time: impl Fn(usize) -> f64) -> (f64, f64) {
    let times: Vec<f64> = sizes.iter().map(|n| time(*n)).collect();
    let points: Vec<(f64, f64)> = sizes.iter().zip(&times).map(|(n, t)| ((*n as f64).ln(), t.ln())).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>()
        / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>();
    (slope, times.last().copied().unwrap_or_default())
}

/// A timeline of about `n` spans on eight streams, with many names, waits and synchronization points.
fn recorded(n: usize) -> Timeline {
    let spans: Vec<serde_json::Value> = (0..n / 2)
        .flat_map(|i| {
            let (start, stream) = (i as u64 * 100, i % 8);
            let kind = if i % 50 == 0 { "synchronize" } else { "enqueue" };
            let work = if i % 20 == 0 { "wait" } else { "kernel" };
            [
                serde_json::json!({ "name": format!("call {i}"), "kind": kind, "track": 0, "start_ns": start,
                    "end_ns": start + 60, "correlation": i, "stream": stream }),
                serde_json::json!({ "name": format!("kernel {i}"), "kind": work, "track": 1 + stream,
                    "start_ns": start + 30, "end_ns": start + 700, "correlation": i, "stream": stream }),
            ]
        })
        .collect();
    let tracks: Vec<serde_json::Value> = std::iter::once(serde_json::json!({ "host": "main" }))
        .chain((0..8).map(|stream| serde_json::json!({ "stream": stream })))
        .collect();
    let timeline = serde_json::json!({ "device": "cuda:0", "source": "made up", "tracks": tracks, "spans": spans,
        "dropped": 0, "region_ns": n as u64 * 50 });
    serde_json::from_value(timeline).unwrap()
}
