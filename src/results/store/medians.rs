//! All rows of a store as CSV: a line for each row of each file, with the median of a run and its 95 % interval.

use super::Listed;
use crate::clean;
use crate::{Results, in_words};

const HEADINGS: &[u8] =
    b"machine,model,driver,commit,started,system,row,parameters,unit,median,low,high,samples,runs,state\n";

/// The lines, as they come.
#[derive(Debug)]
pub struct Medians(csv::Writer<Vec<u8>>);

/// The headings.
impl Default for Medians {
    fn default() -> Self {
        Self(csv::Writer::from_writer(HEADINGS.to_vec()))
    }
}

impl Medians {
    /// Adds the rows of a file, of each of its systems. Values are in the base unit; `low` and `high` are empty where there
    /// are too few samples for an interval.
    ///
    /// # Errors
    /// They cannot be written into memory.
    pub fn put(&mut self, listed: &Listed, results: &Results) -> Result<(), csv::Error> {
        let [commit, driver] = [&listed.commit, &listed.driver].map(|fact| fact.as_deref().unwrap_or(""));
        for system in results.systems() {
            for (spec, metric) in results.lookup_of(system).metrics() {
                let estimate = metric.and_then(|metric| metric.estimate());
                let numbers = estimate.as_ref().map(|estimate| {
                    let end = |end: f64| if estimate.is_interval() { end.to_string() } else { String::new() };
                    let (low, high) = (end(estimate.low), end(estimate.high));
                    [estimate.median.to_string(), low, high, estimate.n.to_string(), estimate.runs.to_string()]
                });
                let state = estimate.as_ref().err().map_or_else(|| "measured".to_owned(), ToString::to_string);
                let [median, low, high, samples, runs] = numbers.unwrap_or_default();
                let (parameters, unit) = (in_words(&spec.parameters), spec.unit.base());
                let (machine, model, started) = (&*listed.machine, &*listed.model, &*listed.started);
                let of_file = [machine, model, driver, commit, started, system];
                let of_row = [&spec.id, &parameters, unit, &median, &low, &high, &samples, &runs, &state];
                let record = of_file.into_iter().chain(of_row);
                self.0.write_record(record.map(|cell| clean::cell(cell).into_owned()))?;
            }
        }
        Ok(())
    }

    /// The text of all lines.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn finish(self) -> Result<Vec<u8>, csv::Error> {
        self.0.into_inner().map_err(|error| csv::Error::from(error.into_error()))
    }
}
