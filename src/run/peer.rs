//! What another program measured of the same work on the same machine: a *peer* of a run.
//!
//! A peer comes as a file of its own (JSON), such as `book/peers/pytorch.py` writes. Its rows have the shape of a run's:
//! identifiers, parameters, raw samples. The file may come from anywhere: its version is checked first, then that every
//! row is one that the program knows, in that row's unit, with samples that can be estimated.
//!
//! A peer stands beside a run only where both were measured on one machine: what both of them name (the device's model,
//! its fingerprint, the driver, the host's processor) must be the same.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::comparability::Mismatch;
use super::results::Run;
use crate::error::PeerError;
use crate::experiment::{Entry, Lookup, MissingReason, Row, RowPlan, titled};

/// The version of the schema of peers that this program reads.
const PEER_SCHEMA_VERSION: u32 = 1;

/// The fact of a run's device that tells the GPUs of one machine apart.
pub const FINGERPRINT: &str = "fingerprint";

/// What another program measured on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// The version of this schema.
    pub schema_version: u32,
    /// The program: `PyTorch`.
    pub name: String,
    /// When it began, in UTC, RFC 3339.
    pub started: String,
    /// The versions of the program and of what it stands on, in order.
    pub versions: Vec<(String, String)>,
    /// Where it ran.
    pub machine: PeerMachine,
    /// What it measured, by the identifiers and parameters of the experiments' rows.
    pub rows: Vec<Row>,
}

/// Where a peer ran, as far as its program could tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerMachine {
    /// The device's hardware: `NVIDIA H200`.
    pub model: String,
    /// What tells the device from others of its model.
    pub fingerprint: Option<String>,
    /// The version of the device's driver.
    pub driver: Option<String>,
    /// The model of the host's processor.
    pub cpu: Option<String>,
}

/// The one part that every version shares.
#[derive(Deserialize)]
struct Versioned {
    schema_version: serde_json::Value,
}

impl Peer {
    /// Reads a peer's file.
    ///
    /// # Errors
    /// [`PeerError`] says whether the file cannot be read, is not whole, has a version that is not read, or holds a row
    /// that means nothing here.
    pub fn read(path: &Path) -> Result<Self, PeerError> {
        let text = std::fs::read_to_string(path).map_err(|source| PeerError::Io { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// Reads a peer from its text; `path` names it in errors.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str, path: &Path) -> Result<Self, PeerError> {
        let syntax = |error: serde_json::Error| PeerError::Syntax {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            message: error.to_string(),
        };
        let versioned: Versioned = serde_json::from_str(text).map_err(syntax)?;
        if versioned.schema_version != PEER_SCHEMA_VERSION {
            let (path, found) = (path.to_owned(), versioned.schema_version.to_string());
            return Err(PeerError::Version { path, found, supported: PEER_SCHEMA_VERSION });
        }
        let peer: Self = serde_json::from_str(text).map_err(syntax)?;
        peer.check().map_err(|message| PeerError::Content { path: path.to_owned(), message })?;
        Ok(peer)
    }

    /// Finds the first thing in it that means nothing here.
    fn check(&self) -> Result<(), String> {
        if self.name.trim().is_empty() {
            return Err("`name` names no program".to_owned());
        }
        if self.rows.is_empty() {
            return Err("it holds no rows".to_owned());
        }
        let (plans, mut titles) = (plans(), BTreeSet::new());
        for row in &self.rows {
            let title = titled(&row.id, &row.parameters);
            let plan = plans.iter().find(|plan| plan.id == row.id).ok_or_else(|| unknown(&row.id, &plans))?;
            if plan.unit != row.unit {
                return Err(format!("`{title}` is in {:?}, and here in {:?}", row.unit, plan.unit));
            }
            if let Some(MissingReason::Inconsistent(message)) = row.metric().and_then(|metric| metric.estimate()).err()
            {
                return Err(message);
            }
            if !titles.insert(title.clone()) {
                return Err(format!("`{title}` stands there twice"));
            }
        }
        Ok(())
    }

    /// Its rows, to find things in.
    pub fn lookup(&self) -> Lookup<'_> {
        Lookup::new(&self.rows)
    }

    /// The versions in words: `PyTorch 2.11.0, CUDA 13.0`.
    pub fn versions_in_words(&self) -> String {
        self.versions.iter().map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>().join(", ")
    }

    /// What of its machine is not as in `run`: of what both name.
    pub fn mismatches(&self, run: &Run) -> Vec<Mismatch> {
        let (environment, machine) = (&run.environment, &self.machine);
        let pairs = [
            ("device model", Some(machine.model.as_str()), Some(environment.device.model.as_str())),
            ("GPU (by its fingerprint)", machine.fingerprint.as_deref(), environment.device.fact(FINGERPRINT)),
            ("driver", machine.driver.as_deref(), environment.device.fact("driver")),
            ("host processor", machine.cpu.as_deref(), Some(environment.host.cpu.as_str())),
        ];
        let differs = |(what, peer, run): (&str, Option<&str>, Option<&str>)| {
            let (peer, run) = (peer?, run?);
            (peer != run).then(|| Mismatch { what: what.to_owned(), a: peer.to_owned(), b: run.to_owned() })
        };
        pairs.into_iter().filter_map(differs).collect()
    }
}

impl Run {
    /// Puts a peer beside the run; an earlier one of the same name gives way.
    ///
    /// # Errors
    /// What differs between the machine of the peer and that of the run.
    pub fn put_peer(&mut self, peer: Peer) -> Result<(), Vec<Mismatch>> {
        let mismatches = peer.mismatches(self);
        if !mismatches.is_empty() {
            return Err(mismatches);
        }
        self.peers.retain(|other| other.name != peer.name);
        self.peers.push(peer);
        Ok(())
    }
}

/// The rows of all experiments.
fn plans() -> Vec<RowPlan> {
    let entries: Vec<Entry> = Entry::NAMES.iter().filter_map(|name| Entry::default_for(name, "cuda")).collect();
    entries.iter().flat_map(|entry| entry.experiment().rows()).collect()
}

/// That there is no such row, with the one whose name is most like it.
fn unknown(id: &str, plans: &[RowPlan]) -> String {
    let likeness = |plan: &&RowPlan| strsim::jaro_winkler(id, plan.id);
    let best = plans.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b))).filter(|plan| likeness(plan) > 0.7);
    let nearest = best.map(|plan| format!("; did you mean `{}`?", plan.id)).unwrap_or_default();
    format!("no experiment leaves a row `{id}`{nearest}")
}
