//! A book of a run that measured nothing: what is wrong with a course shows in it before anything is measured.

use super::project::BookProject;
use super::source::Source;
use crate::error::BookError;
use crate::results::{
    Catalog, DeviceDescription, Environment, Host, Plan, Program, Results, Rows, Run, RunOutcome, SCHEMA_VERSION,
    SYNCSCOPE, Selection,
};

/// Makes the book's pages of no measurement at all, and writes nothing.
///
/// # Errors
/// As of rendering: a document, a template, an included file or a setting is wrong.
pub fn check(project: &BookProject, catalog: &Catalog) -> Result<(), BookError> {
    Source::of(&[nothing()], project, catalog).map(drop)
}

/// A run without rows on an unknown machine.
pub(super) fn nothing() -> Results {
    let unknown = || "unknown".to_owned();
    let environment = Environment {
        host: Host { cpu: unknown(), logical_cpus: None, memory_bytes: None, system: None, facts: Vec::new() },
        device: DeviceDescription {
            name: unknown(),
            engine: unknown(),
            model: unknown(),
            memory_bytes: None,
            wait_policy: None,
            facts: Vec::new(),
        },
        program: Program {
            name: SYNCSCOPE.to_owned(),
            version: unknown(),
            libraries: Vec::new(),
            commit: None,
            dirty: None,
            profile: None,
            command: Vec::new(),
            facts: Vec::new(),
        },
        cuda_unavailable: None,
    };
    let run = Run {
        id: SYNCSCOPE.to_owned(),
        system: SYNCSCOPE.to_owned(),
        started: unknown(),
        resumed: Vec::new(),
        environment,
        telemetry: Vec::new(),
        algorithms: Vec::new(),
        order: Vec::new(),
        outcome: RunOutcome::Complete,
    };
    Results {
        schema_version: SCHEMA_VERSION,
        suite: serde_json::json!({ "title": "Nothing measured" }),
        selection: Selection::default(),
        plan: Plan::default(),
        runs: vec![run],
        rows: Rows::default(),
        timelines: Vec::new(),
        samples_sha256: None,
    }
}
