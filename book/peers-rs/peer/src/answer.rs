//! What came of the rows, and the file that says so.

use std::path::Path;
use std::{fs, io};

use syncscope::device::Device;
use syncscope_results::{Machine, MetricSpec, Outcome, SYSTEM_SCHEMA_VERSION, System as SystemFile, SystemRow, now};

use crate::System;

/// The outcomes of a plan's rows, by their places. A row without one is not in the file.
pub(crate) struct Answer {
    head: SystemFile,
    pub(crate) outcomes: Vec<Option<Outcome>>,
}

impl Answer {
    /// The answer of a system that begins now, with nothing in it.
    pub(crate) fn of<S: System>(device: &Device, rows: usize) -> Self {
        let head = SystemFile {
            schema_version: SYSTEM_SCHEMA_VERSION,
            name: S::NAME.to_owned(),
            started: now(),
            versions: S::versions(),
            machine: Machine::of(device),
            code: None,
            rows: Vec::new(),
        };
        Self { head, outcomes: vec![None; rows] }
    }

    /// Puts an outcome behind what earlier passes left of the row.
    pub(crate) fn add(&mut self, row: usize, outcome: Outcome) {
        let earlier = self.outcomes[row].take();
        self.outcomes[row] = Some(match earlier {
            Some(earlier) => earlier.followed_by(outcome),
            None => outcome,
        });
    }

    /// Puts the file in place whole: a reader sees the old one or the new one.
    pub(crate) fn write(&self, rows: &[MetricSpec], path: &Path) -> io::Result<()> {
        let row = |(spec, outcome): (&MetricSpec, &Option<Outcome>)| {
            let (id, parameters, unit) = (spec.id.clone(), spec.parameters.clone(), spec.unit);
            outcome.clone().map(|outcome| SystemRow { id, parameters, unit, outcome })
        };
        let rows = rows.iter().zip(&self.outcomes).filter_map(row).collect();
        let text = serde_json::to_string(&SystemFile { rows, ..self.head.clone() })?;
        let new = path.with_extension("new");
        fs::write(&new, text + "\n")?;
        fs::rename(&new, path)
    }
}
