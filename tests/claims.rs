//! The documents' claims, judged by the results that are kept with the program.

#![cfg(feature = "report")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::sync::LazyLock;

use syncscope::book::document::{Claim, Document};
use syncscope::book::{BookProject, claims_text};
use syncscope::experiment::Registry;
use syncscope::measure::Verdict;
use syncscope::results::{Outcome, Results};

const H200: &str = "book/results/nvidia-h200.json";
const TWO_H200: &str = "book/results/nvidia-h200-x2.json";

fn kept(name: &str) -> Results {
    Results::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

fn documents() -> &'static [Document] {
    static DOCUMENTS: LazyLock<Vec<Document>> =
        LazyLock::new(|| BookProject::embedded().documents(&Registry::builtin().catalog("cuda")).unwrap());
    &DOCUMENTS
}

fn claims() -> impl Iterator<Item = (&'static Document, &'static Claim)> {
    documents().iter().flat_map(|document| document.claims.iter().map(move |claim| (document, claim)))
}

fn verdict(results: &Results, id: &str) -> Verdict {
    let found = claims().find(|(_, claim)| claim.id == id);
    let (document, claim) = found.unwrap_or_else(|| panic!("no document claims `{id}`"));
    claim.judge(document, results).verdict
}

#[test]
fn what_the_hardware_and_the_programming_model_decide_is_decided() {
    let results = kept(H200);
    for id in ["c-dispatch-small", "c-sync-scope", "c-item-includes-kernel", "c-streams-independent", "c-events-right"]
    {
        let verdict = verdict(&results, id);
        assert!(matches!(verdict, Verdict::Confirmed(_)), "{id}: {verdict:?}");
    }
    for id in ["c-final-sync-orders", "c-stream-synchronize-inside", "c-index-blocks", "c-wait-order", "c-loop-doubles"]
    {
        let verdict = verdict(&results, id);
        assert!(matches!(verdict, Verdict::Refuted(_)), "{id}: {verdict:?}");
    }
    for id in ["c-datacenter-8192", "c-consumer-8192", "c-small-52"] {
        assert_eq!(verdict(&results, id), Verdict::Refuted(0.0), "{id}");
    }
}

#[test]
fn a_claim_about_two_devices_needs_two() {
    let one = verdict(&kept(H200), "c-idle-delta");
    assert!(matches!(&one, Verdict::NotTestable(reason) if reason.contains("finds one GPU")), "{one:?}");
    assert!(!matches!(verdict(&kept(TWO_H200), "c-idle-delta"), Verdict::NotTestable(_)));
}

#[test]
fn a_claim_whose_row_is_missing_failed_or_hollow_is_not_judged() {
    let mut results = kept(H200);
    for row in &mut results.rows {
        match row.spec.id.as_str() {
            "async-frontend.complete" => row.spec.id = "async-frontend.elsewhere".to_owned(),
            "synchronize.loop.complete" => {
                let failed = Outcome::Failed { reason: "lost".to_owned() };
                row.series.iter_mut().for_each(|series| series.outcome = failed.clone());
            }
            "synchronize.scope.stream" => {
                for series in &mut row.series {
                    if let Outcome::Measured { samples, .. } = &mut series.outcome {
                        samples.clear();
                    }
                }
            }
            _ => {}
        }
    }
    for (id, reason) in
        [("c-dispatch-small", "not in this run"), ("c-loop-fair", "failed: lost"), ("c-sync-scope", "no samples")]
    {
        let verdict = verdict(&results, id);
        assert!(matches!(&verdict, Verdict::NotTestable(why) if why.contains(reason)), "{id}: {verdict:?}");
    }
}

#[test]
fn every_claim_is_printed_with_its_verdict_and_the_numbers_that_decided_it() {
    for name in [H200, TWO_H200] {
        let results = kept(name);
        let text = claims_text(documents(), &results);
        let mut counted = 0;
        for (document, claim) in claims() {
            let judgement = claim.judge(document, &results);
            let start =
                text.find(&format!(" {}: ", claim.id)).unwrap_or_else(|| panic!("{} is not in {text}", claim.id));
            let line = text[..start].lines().last().unwrap();
            assert_eq!(
                line.trim().to_lowercase(),
                judgement.verdict.name().split(" here").next().unwrap(),
                "{}",
                claim.id
            );
            // Up to the next claim: its predicate and each number.
            let about: String = text[start..].lines().skip(1).take_while(|line| line.starts_with("     ")).collect();
            assert!(about.contains(claim.predicate.trim()), "{about}");
            for (operand, value) in &judgement.evidence {
                assert!(about.contains(&format!("{operand} = {value}")), "{operand} of {}", claim.id);
            }
            counted += 1;
        }
        let tally: usize = text
            .lines()
            .last()
            .unwrap()
            .split(", ")
            .map(|part| part.split(' ').next().unwrap().parse::<usize>().unwrap())
            .sum();
        assert_eq!(tally, counted, "{text}");
    }
}

/// That nothing is left to chance: the same file has the same verdicts.
#[test]
fn a_file_has_one_verdict() {
    let results = kept(H200);
    for (document, claim) in claims() {
        assert_eq!(claim.judge(document, &results), claim.judge(document, &results), "{}", claim.id);
    }
}
