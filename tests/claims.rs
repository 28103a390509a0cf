//! The documents' claims, judged by the runs that are kept with the program.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use syncscope::document::Document;
use syncscope::experiment::Outcome;
use syncscope::measure::Verdict;
use syncscope::run::Run;

const H200: &str = "book/results/nvidia-h200.json";
const TWO_H200: &str = "book/results/nvidia-h200-x2.json";

fn kept(name: &str) -> Run {
    Run::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

fn verdict(run: &Run, id: &str) -> Verdict {
    let documents = Document::embedded().unwrap();
    let claims = documents.iter().flat_map(|document| document.claims.iter().map(move |claim| (document, claim)));
    let (document, claim) = claims.into_iter().find(|(_, claim)| claim.id == id).unwrap();
    claim.judge(document, run).verdict
}

#[test]
fn every_known_claim_is_judged() {
    let documents = Document::embedded().unwrap();
    let claims: Vec<&str> = documents.iter().flat_map(|d| &d.claims).map(|claim| claim.id.as_str()).collect();
    for id in [
        "c-idle-delta",
        "c-dispatch-small",
        "c-cost-model",
        "c-branches",
        "c-sync-scope",
        "c-final-sync-orders",
        "c-loop-fair",
        "c-index-blocks",
        "c-pinned-async",
        "c-overlap-max",
        "c-wait-order",
        "c-sync-constant",
        "c-small-hurts",
        "c-item-includes-kernel",
        "c-item-ready-cheap",
        "c-print-slower",
        "c-loop-doubles",
        "c-batch-once",
        "c-datacenter-8192",
        "c-consumer-8192",
        "c-small-52",
        "c-streams-independent",
        "c-item-throughput",
        "c-small-throughput",
        "c-overhead-share",
        "c-stream-synchronize-inside",
        "c-events-right",
    ] {
        assert!(claims.contains(&id), "{id}");
    }
}

#[test]
fn what_the_hardware_and_the_programming_model_decide_is_decided() {
    let run = kept(H200);
    for id in ["c-dispatch-small", "c-sync-scope", "c-item-includes-kernel", "c-streams-independent", "c-events-right"]
    {
        assert!(matches!(verdict(&run, id), Verdict::Confirmed(_)), "{id}: {:?}", verdict(&run, id));
    }
    for id in ["c-final-sync-orders", "c-stream-synchronize-inside", "c-index-blocks", "c-wait-order", "c-loop-doubles"]
    {
        assert!(matches!(verdict(&run, id), Verdict::Refuted(_)), "{id}: {:?}", verdict(&run, id));
    }
    for id in ["c-datacenter-8192", "c-consumer-8192", "c-small-52"] {
        assert_eq!(verdict(&run, id), Verdict::Refuted(0.0), "{id}");
    }
}

#[test]
fn a_claim_about_two_devices_needs_two() {
    let one = verdict(&kept(H200), "c-idle-delta");
    assert!(matches!(&one, Verdict::NotTestable(reason) if reason.contains("one device")), "{one:?}");
    assert!(!matches!(verdict(&kept(TWO_H200), "c-idle-delta"), Verdict::NotTestable(_)));
}

#[test]
fn a_claim_whose_row_is_missing_or_hollow_is_not_judged() {
    let mut run = kept(H200);
    for row in run.experiments.iter_mut().flat_map(|experiment| &mut experiment.rows) {
        match row.id.as_str() {
            "async-frontend.complete" => row.id = "async-frontend.elsewhere".to_owned(),
            "synchronize.loop.complete" => row.outcome = Outcome::Failed { reason: "lost".to_owned() },
            "synchronize.scope.stream" => {
                if let Outcome::Measured { samples, .. } = &mut row.outcome {
                    samples.clear();
                }
            }
            _ => {}
        }
    }
    for id in ["c-dispatch-small", "c-loop-fair", "c-sync-scope"] {
        assert!(matches!(verdict(&run, id), Verdict::NotTestable(_)), "{id}: {:?}", verdict(&run, id));
    }
}

#[test]
fn the_program_prints_every_claim_with_its_numbers() {
    let report = |file: &str| {
        let folder = env!("CARGO_MANIFEST_DIR");
        Command::new(env!("CARGO_BIN_EXE_report")).args(["claims", file]).current_dir(folder).output().unwrap()
    };
    let output = report(H200);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("REFUTED      c-loop-doubles") && text.contains("training_loop.accumulated.big = "),
        "{text}"
    );
    assert_eq!(report("book/results/none.json").status.code(), Some(2));
}
