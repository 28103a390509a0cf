//! Samplers for cells: with a budget, so that a notebook runs to its end by itself, and with lines of progress.
//!
//! A cell keeps every line. So a short measurement prints none, and the lines of a long one come at doubled intervals.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::device::{Device, lock};
use crate::measure::{Progress, Protocol, Sampler};
use crate::units::Scale;

/// How many seconds a [`sampler`] may take, unless [`Sampler::with_budget`] says otherwise.
pub const BUDGET: f64 = 20.0;

/// A sampler for cells: it synchronizes `device` between samples, stops after [`BUDGET`] seconds, and prints its progress.
///
/// ```
/// use syncscope::prelude::*;
///
/// let device = Device::open("cpu:0")?;
/// let sampler = notebook::sampler(&device, Protocol::samples(30));
/// # Ok::<(), syncscope::error::DeviceError>(())
/// ```
pub fn sampler(device: &Device, protocol: Protocol) -> Sampler {
    let state: Mutex<Option<(Instant, Pace)>> = Mutex::new(None);
    Sampler::new(protocol).sync_between(device).with_budget(BUDGET).observed_by(Arc::new(move |progress| {
        let mut state = lock(&state);
        let fresh = || (Instant::now(), Pace::default());
        let (begun, pace) = match state.as_mut() {
            Some((_, pace)) if pace.begins_anew(&progress) => state.insert(fresh()),
            _ => state.get_or_insert_with(fresh),
        };
        if let Some(line) = pace.line(&progress, begun.elapsed().as_secs_f64()) {
            println!("{line}");
        }
    }))
}

/// When the next line is due.
#[derive(Clone, Debug, PartialEq)]
struct Pace {
    due: f64,
    warming_up: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self { due: 3.0, warming_up: false }
    }
}

impl Pace {
    /// Whether the first round of a measurement has ended: the sampler is used again.
    fn begins_anew(&self, progress: &Progress) -> bool {
        progress.round == 1 && (progress.warming_up || !self.warming_up)
    }

    fn line(&mut self, progress: &Progress, seconds: f64) -> Option<String> {
        self.warming_up = progress.warming_up;
        if seconds < self.due {
            return None;
        }
        while self.due <= seconds {
            self.due *= 2.0;
        }
        let of = progress.rounds.map(|rounds| format!(" of {rounds}")).unwrap_or_default();
        let round = format!("round {}{of}", progress.round);
        let share = Scale::PERCENT.fixed(progress.share, 0);
        let state = if progress.warming_up { "warming up" } else { &share };
        Some(format!("{state}: {round} after {seconds:.0} s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(warming_up: bool, round: usize) -> Progress {
        Progress { warming_up, round, rounds: Some(100), share: round as f64 / 100.0 }
    }

    #[test]
    fn a_long_measurement_prints_few_lines_and_a_short_one_none() {
        let mut pace = Pace::default();
        let lines: Vec<String> =
            (1..=100).filter_map(|round| pace.line(&progress(false, round), round as f64)).collect();
        assert_eq!(lines.len(), 6, "{lines:?}");
        assert_eq!(lines[0], "3 %: round 3 of 100 after 3 s");
        let mut pace = Pace::default();
        assert!((1..=100).all(|round| pace.line(&progress(false, round), 0.02 * round as f64).is_none()));
    }

    #[test]
    fn a_measurement_begins_with_its_warm_up_or_without_one() {
        let mut pace = Pace::default();
        assert!(pace.begins_anew(&progress(true, 1)) && pace.begins_anew(&progress(false, 1)));
        assert_eq!(pace.line(&progress(true, 2), 4.0).as_deref(), Some("warming up: round 2 of 100 after 4 s"));
        assert!(!pace.begins_anew(&progress(false, 1)), "the first round after its warm-up");
    }
}
