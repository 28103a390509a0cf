//! Suites, documents, systems, timelines, audits, and what is none of them.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use syncscope::device::Device;
use syncscope::timeline::Timeline;
use syncscope_audit::AuditReport;
use syncscope_book::document::{Document, Names};
use syncscope_book::{Machines, comparison_table, system_table};
use syncscope_report::carried_book;
use syncscope_results::{Outcome, Results, System};
use syncscope_suite::experiment::Registry;
use syncscope_suite::runner::Suite;

use super::mutation::{Change, Seed, change, one_of, shorten, smallest};
use super::results::small_results;
use super::{Uses, catalog, documents, fixture, hold};

const SUITES: [&str; 2] = [include_str!("../../book/suites/quick.yaml"), include_str!("../../book/suites/full.yaml")];

#[test]
fn arbitrary_text_is_neither_results_nor_suite_nor_document_and_ends_in_an_error() {
    let text =
        prop_oneof![vec(any::<u8>(), 0..300), "[\\[\\]{}:,\"&*!a-z0-9 \n.-]{0,200}".prop_map(String::into_bytes)];
    let names = carried_book().names(catalog()).unwrap();
    let registry = Registry::builtin();
    let property = |bytes: Vec<u8>| {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(Results::parse(&text, Path::new("r.json")).is_err());
        prop_assert!(System::parse(&text, "p.json", catalog()).is_err());
        prop_assert!(Document::parse("d.yaml", &text, &names).is_err());
        let _ = Suite::parse(&text, "s.yaml", &registry).map_err(|error| error.to_string());
        Ok(())
    };
    hold(500, &text, property);
}

#[test]
fn a_mutated_system_is_refused_or_can_stand_beside_a_run() {
    let results = Results::parse(&small_results(), Path::new("r.json")).unwrap();
    let measured = |row: &&syncscope_results::Row| matches!(row.series[0].outcome, Outcome::Measured { .. });
    let rows = results.rows.iter().filter(measured).take(3).map(|row| {
        let samples = row.series[0].outcome.values().unwrap();
        let measured = json!({ "samples": samples, "stopped_by": "samples" });
        let (id, parameters, unit) = (&row.spec.id, &row.spec.parameters, row.spec.unit);
        json!({ "id": id, "parameters": parameters, "unit": unit, "outcome": { "measured": measured } })
    });
    let text = json!({
        "schema_version": 2,
        "name": "PyTorch",
        "started": "2026-11-20T09:40:00Z",
        "versions": [["PyTorch", "2.11.0"]],
        "machine": { "model": "Test device", "fingerprint": null, "driver": null, "cpu": null },
        "rows": rows.collect::<Vec<_>>(),
    });
    let (seed, documents, uses) = (Seed::of_json(&text.to_string()), documents(), Uses::default());
    let property = |change| {
        match System::parse(&seed.mutated(&change), "p.json", catalog()) {
            Err(error) => drop(error.to_string()),
            Ok(system) => uses.turn(|used| {
                let (mut results, name) = (results.clone(), system.name.clone());
                if results.attach(system).is_ok() {
                    let _ = system_table(&results, &name).to_markdown();
                    for document in documents.iter().filter(|_| used % 16 == 1) {
                        document.tables.iter().for_each(|table| {
                            let machines = Machines::of(std::slice::from_ref(&results));
                            drop(comparison_table(document, table, &machines).to_html());
                        });
                    }
                }
            }),
        }
        Ok(())
    };
    hold(500, &change(), property);
    uses.end();
}

#[test]
fn a_mutated_document_is_refused_with_its_place_or_can_be_shown() {
    let project = carried_book();
    let names = project.names(catalog()).unwrap();
    let [small, whole] = document_seeds(&names);
    assert!(whole.len() > 2, "{} documents can be read when they are shortened", whole.len());
    let which = one_of(small.len(), small.len() + whole.len());
    let seeds: Vec<Seed> = small.iter().chain(&whole).map(Seed::of).collect();
    let (results, uses) = ([fixture::run()], Uses::default());
    let machines = Machines::of(&results);
    let property = |(which, change): (usize, Change)| {
        match Document::parse("d.yaml", &seeds[which].mutated(&change), &names) {
            Err(error) => prop_assert!(error.to_string().starts_with("d.yaml"), "{error}"),
            Ok(document) => uses.turn(|_| {
                document.tables.iter().for_each(|table| drop(comparison_table(&document, table, &machines).to_html()));
                document.claims.iter().for_each(|claim| drop(claim.judge(&document, &results[0])));
                document.answer.iter().for_each(|sentence| drop(sentence.said(&document, &results[0], "syncscope")));
            }),
        }
        Ok(())
    };
    hold(300, &(which, change()), property);
    uses.end();
}

/// The documents of the book, of which one item of each list is left: of each part of them the smallest one that has it, and
/// the whole. The time of reading grows with the text.
fn document_seeds(names: &Names) -> [Vec<Value>; 2] {
    let project = carried_book();
    let is_read = |value: &Value| Document::parse("d.yaml", &value.to_string(), names).is_ok();
    let whole = documents().into_iter().map(|document| {
        let text = project.text(&format!("documents/{}.yaml", document.id)).unwrap();
        let mut value = serde_saphyr::from_str(text).unwrap();
        shorten(&mut value, 1);
        shorten_prose(&mut value);
        value
    });
    let whole: Vec<Value> = whole.filter(is_read).collect();
    [whole.iter().flat_map(|whole| smallest(whole, is_read)).collect(), whole]
}

/// Leaves the beginning of prose, of which one part is as good as another.
fn shorten_prose(value: &mut Value) {
    const LENGTH: usize = 60;
    match value {
        Value::Array(items) => items.iter_mut().for_each(shorten_prose),
        Value::Object(map) => map.iter_mut().for_each(|(key, value)| match value {
            Value::String(text) if ["question", "method", "caption", "task", "answer"].contains(&key.as_str()) => {
                *text = text.chars().take(LENGTH).collect();
            }
            value => shorten_prose(value),
        }),
        _ => {}
    }
}

/// Suites of one experiment of the book's own ones on both engines, and one of all but those that are left out; and those of
/// experiments with many rows, with which the time of reading grows, and the book's own.
fn suite_seeds() -> [Vec<Value>; 2] {
    let whole = SUITES.map(|text| serde_saphyr::from_str::<Value>(text).unwrap());
    let name = |experiment: &Value| experiment.as_object().unwrap().keys().next().unwrap().clone();
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for suite in &whole {
        let on_cpu = suite["engines"]["cpu"].as_array().unwrap();
        for experiment in suite["experiments"].as_array().unwrap() {
            let mut one = suite.clone();
            one.as_object_mut().unwrap().retain(|key, _| key != "all" && key != "except");
            one["experiments"] = json!([experiment]);
            let same: Vec<&Value> = on_cpu.iter().filter(|own| name(own) == name(experiment)).collect();
            // One that the list of the CPU does not state has the same parameters there.
            if same.is_empty() {
                one.as_object_mut().unwrap().remove("engines");
            } else {
                one["engines"]["cpu"] = json!(same);
            }
            shorten(&mut one, 2);
            let has_few_rows = !["overlap", "sync-points"].contains(&name(experiment).as_str());
            if has_few_rows { small.push(one) } else { large.push(one) }
        }
    }
    let others: BTreeSet<&str> = catalog().ids().filter_map(|id| id.split('.').next()).collect();
    let except: Vec<&str> = others
        .into_iter()
        .filter(|name| !["self-audit", "ceilings", "idle-device", "launch-path"].contains(name))
        .collect();
    let sampling = json!({ "samples": 1 });
    small.push(json!({ "title": "All", "sampling": sampling, "experiments": [{ "launch-path": {} }], "all": true, "except": except }));
    [small, large.into_iter().chain(whole).collect()]
}

#[test]
fn a_mutated_suite_is_refused_or_can_be_used() {
    let ([small, large], registry, uses) = (suite_seeds(), Registry::builtin(), Uses::default());
    for suite in small.iter().chain(&large) {
        Suite::parse(&suite.to_string(), "s.yaml", &registry).unwrap();
    }
    // Also as a person writes it.
    let seeds = small.iter().chain(&large).map(Seed::of).chain(SUITES.map(Seed::of_yaml));
    let seeds: Vec<Seed> = seeds.collect();
    let which = one_of(small.len(), seeds.len());
    let property = |(which, change): (usize, Change)| {
        match Suite::parse(&seeds[which].mutated(&change), "s.yaml", &registry) {
            Err(error) => drop(error.to_string()),
            Ok(suite) => {
                prop_assert!(suite.sampling.validate().is_ok());
                uses.turn(|_| {
                    for engine in ["cpu", "cuda"] {
                        for experiment in suite.experiments_on(engine) {
                            let _ = experiment.plan(engine);
                        }
                    }
                });
            }
        }
        Ok(())
    };
    hold(1_000, &(which, change()), property);
    uses.end();
}

#[test]
fn nesting_and_aliases_without_end_are_refused_in_time() {
    for open in ["[", "{\"a\":", "{\"schema_version\":1,\"partial\":", "{\"traceEvents\":["] {
        assert!(Results::parse(&open.repeat(100_000), Path::new("r.json")).is_err());
        // A trace that is cut off is read as far as it goes, and says so.
        match AuditReport::of_trace(open.repeat(100_000), "t.json") {
            Ok(report) => assert!(report.warnings.iter().any(|warning| warning.contains("cut off")), "{open}"),
            Err(_) => assert!(!open.ends_with('['), "{open}"),
        }
    }
    for text in [
        "[".repeat(100_000),
        "- ".repeat(10_000),
        "title: ".to_owned() + &"{a: ".repeat(10_000),
        (0..60).fold("a0: &a0 [x, x]\n".to_owned(), |text, i| text + &format!("a{0}: &a{0} [*a{i}, *a{i}]\n", i + 1)),
    ] {
        assert!(Suite::parse(&text, "s.yaml", &Registry::builtin()).is_err());
    }
}

#[test]
fn a_mutated_timeline_is_refused_or_can_be_followed_drawn_and_written_as_a_trace() {
    let (seed, uses) = (Seed::of_json(&serde_json::to_string(&fixture::timeline()).unwrap()), Uses::default());
    let property = |change| {
        let Ok(timeline) = serde_json::from_str::<Timeline>(&seed.mutated(&change)) else { return Ok(()) };
        uses.turn(|_| {
            let path = timeline.critical_path();
            assert!(path.segments.windows(2).all(|pair| pair[0].end_ns <= pair[1].end_ns));
            let trace: Result<Value, _> = serde_json::from_str(&timeline.to_trace());
            assert!(trace.is_ok());
            let plot = timeline.plot("T".to_owned(), "M".to_owned());
            assert!(plot.to_svg("p").starts_with("<svg"));
        });
        Ok(())
    };
    hold(1_000, &change(), property);
    uses.end();
}

#[test]
fn a_mutated_audit_is_refused_or_can_be_a_page() {
    let (seed, uses) = (Seed::of_json(include_str!("../audit/kineto-audit.json")), Uses::default());
    let property = |change| {
        match AuditReport::parse(&seed.mutated(&change), "a.json") {
            Err(error) => prop_assert!(error.to_string().starts_with("a.json"), "{error}"),
            // A chapter of a book is made of the same parts.
            Ok(audit) => uses.turn(|_| {
                let page = audit.to_html("");
                assert!(!page.contains("<script") && !page.contains("{{#"));
            }),
        }
        Ok(())
    };
    hold(1_000, &change(), property);
    uses.end();
}

#[test]
fn mutated_traces_are_refused_or_give_a_readable_audit() {
    let device = Device::open("cpu:0").unwrap();
    let stream = device.stream().unwrap();
    let (_, own) = device.record(|| stream.ones::<f32>([64])?.sum()?.item()).unwrap();
    let seeds = [Seed::of_json(include_str!("../audit/kineto.json")), Seed::of_json(&own.to_trace())];
    let uses = Uses::default();
    let property = |(which, change): (usize, Change)| {
        let text = seeds[which].mutated(&change);
        match AuditReport::of_trace(&text, "t.json") {
            Err(error) => prop_assert!(error.to_string().starts_with("t.json"), "{error}"),
            Ok(audit) => uses.turn(|_| {
                let kept = serde_json::to_string(&audit).unwrap();
                assert!(kept.len() < 64 * text.len() + 100_000, "{} bytes of {}", kept.len(), text.len());
                assert!(AuditReport::parse(&kept, "a.json").is_ok(), "{kept}");
                let page = audit.to_html("");
                assert!(!page.contains("<script") && !page.contains("{{#"));
            }),
        }
        Ok(())
    };
    hold(1_000, &(0..seeds.len(), change()), property);
    uses.end();
}

/// The bytes of an export of Nsight Systems with some of them changed, and cut off or not.
#[cfg(feature = "nsys")]
#[test]
fn mutated_nsys_exports_are_refused_or_give_a_readable_audit() {
    let trace: Value = serde_json::from_str(include_str!("../audit/kineto.json")).unwrap();
    let seeds = ["VACUUM", "PRAGMA page_size = 512"].map(|first| super::export::Export::of(&trace).with(first).bytes());
    let uses = Uses::default();
    let property = |(which, changes, cut): (usize, Vec<(usize, u8)>, Option<usize>)| {
        let mut bytes = seeds[which].clone();
        let length = bytes.len();
        changes.iter().for_each(|(place, byte)| bytes[place % length] = *byte);
        bytes.truncate(cut.map_or(length, |cut| cut % length));
        match AuditReport::of_trace(&bytes, "t.sqlite") {
            Err(error) => prop_assert!(error.to_string().starts_with("t.sqlite"), "{error}"),
            Ok(audit) => uses.turn(|_| {
                let kept = serde_json::to_string(&audit).unwrap();
                assert!(kept.len() < 64 * bytes.len() + 100_000, "{} bytes of {}", kept.len(), bytes.len());
                assert!(AuditReport::parse(&kept, "a.json").is_ok(), "{kept}");
                let page = audit.to_html("");
                assert!(!page.contains("<script") && !page.contains("{{#"));
            }),
        }
        Ok(())
    };
    // What has a meaning stands at the beginnings of pages, so half of the changes are within the first.
    let place = prop_oneof![0..8_192_usize, any::<usize>()];
    let cut = prop_oneof![4 => Just(None), 1 => any::<usize>().prop_map(Some)];
    hold(1_000, &(0..seeds.len(), vec((place, any::<u8>()), 0..12), cut), property);
    uses.end();
}
