//! An experiment and a document of the tests' own, so that what the built-in ones measure and say can change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use syncscope_present::units::Unit;
use syncscope_suite::experiment::{Experiment, Group, Registry};

use super::*;

/// Pairs of a fast and a slow call.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Probe {}

impl Experiment for Probe {
    const NAME: &'static str = "probe";
    const SUMMARY: &'static str = "What a fast and a slow call cost";

    fn groups(&self, _: &str) -> Vec<Group> {
        let mut groups = Vec::new();
        for dtype in ["fp16", "fp32"] {
            for size in [8_usize, 64, 512] {
                let pair = Group::of("Pairs", [("dtype", dtype.into()), ("size", size.into())])
                    .host_time("probe.fast", "Fast call", |_| Ok(|| Ok(())))
                    .host_time("probe.slow", "Slow call", |_| Ok(|| Ok(())))
                    .difference("probe.delta", "Slow − fast", ["probe.slow", "probe.fast"])
                    .derived("probe.gain", "Slow / fast", Unit::Ratio, "slow / fast");
                groups.push(pair.build());
            }
        }
        let counts = Group::of("Counts", []).observed("probe.count", "Calls", Unit::Number, |_| Ok(|| Ok(1.0)));
        groups.push(counts.build());
        groups
    }
}

/// A document that names rows, parameters and figures in every place where it can.
pub(super) const DOCUMENT: &str = "\
id: probe
order: 101
title: A probe
source: probe.txt
gpu: Printed GPU
question: What does it cost?
answer:
  - if: slow.fp16.size_8 > 2 * fast.fp16.size_8
    then: Slow, {{ slow.fp16.size_8 }} or {{ (fast.fp16.size_8 / slow.fp16.size_8)|percent }}.
    else: Fast, {{ fast.fp16.size_8 }}.
    unclear: Open, {{ delta.fp16.size_8 }}.
headline: {value: gain.fp16.size_8, form: times, caption: as slow, timeline: probe.slow}
method: Both are called.
tables:
  - id: pairs
    title: Pairs
    caption: Compare them.
    published_with: {size: 8}
    cases:
      - {label: half, select: {dtype: fp16}}
      - {label: single, select: {dtype: fp32}}
    rows:
      - {id: probe.fast, published: {half: 14.0e-6, single: 2.10e-5}}
      - id: probe.slow
        published_with: {dtype: fp16}
        published: {half: 28.00e-6}
        relative: {to: probe.fast, published: {half: 0.5}}
  - id: gains
    title: Gains
    caption: Over the size.
    each: size
    rows:
      - {id: probe.gain, published_with: { dtype: fp16 }}
figures:
  - id: drawn-bars
    title: Bars
    caption: Both calls.
    panels:
      - {table: pairs, bars: [probe.slow]}
  - id: drawn-lines
    title: Lines
    caption: The gain.
    panels:
      - table: gains
        lines:
          x: size
          series:
            - {id: probe.gain, select: {dtype: fp32}}
            - {id: probe.gain, label: again, predicts: probe.gain}
  - id: drawn-timeline
    title: Timeline
    caption: One pass.
    panels:
      - {timeline: probe.slow}
claims:
  - id: c-slow
    claim: The slow call is slow.
    kind: sign
    on: pytorch
    places: ['000:46']
    tests: [delta.fp16.size_64 > 0]
    rationale: It is said so.
  - id: c-printed
    claim: The printed figure fits.
    kind: arithmetic
    tests: [published.pairs.half.fast < 1e-3, peak.h100.fp16 > 1e12]
    rationale: It is printed so.
exercises:
  - task: Add {{ fast.fp32.size_8 }}.
    answer: It is {{ slow.fp32.size_8 }}.
";

/// Results of the probe alone.
pub(super) fn results() -> Results {
    fixture::run_of(&Registry::new().with::<Probe>())
}

/// The program's own project with the document.
pub(super) fn project(document: &str) -> BookProject {
    carried_book().with_file("documents/probe.yaml", document)
}

/// The document, as it is read.
pub(super) fn document() -> Document {
    let documents = project(DOCUMENT).documents(&catalog()).unwrap();
    documents.into_iter().find(|document| document.id == "probe").unwrap()
}
