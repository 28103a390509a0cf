//! A store of results files: what is collected is there once, whole, and nothing else is.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "fixtures/run.rs"]
mod fixture;
#[path = "fixtures/fleet.rs"]
mod fleet;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use syncscope_results::store::{Collected, Index, Listed, Medians, collect, files, held, machine_of, place_of};
use syncscope_results::{Outcome, Results, RunOutcome};

const SUITE: &str = "title: Few\nsampling: { samples: 12 }\nexperiments: [idle-device: {}]";
const OTHER: &str = "title: Others\nsampling: { samples: 12 }\nexperiments: [idle-device: {}]";

fn on(machine: &str, day: u32) -> Results {
    let started = format!("2026-11-{day:02}T09:30:00Z");
    fleet::measured(SUITE, machine, &started, |_| 1.0 + 0.01 * f64::from(day) + machine.len() as f64)
}

fn collected(sources: &[&Path], store: &Path) -> Collected {
    let sources: Vec<PathBuf> = sources.iter().map(|path| path.to_path_buf()).collect();
    collect(&sources, store, &Results::read).unwrap()
}

/// The content of every file of a store, by its name in it.
fn content(store: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files(store).unwrap().into_iter().map(|file| (file.clone(), fs::read(store.join(file)).unwrap())).collect()
}

#[test]
fn a_measurement_counts_once_whatever_its_machine_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let [job, store] = ["job", "store"].map(|name| folder.path().join(name));
    let files = ["a", "b", "c"].map(|name| {
        let mut results = on("node1", 1);
        for run in &mut results.runs {
            run.environment.host.facts.retain(|(fact, _)| fact != "machine");
            run.environment.host.facts.push(("machine".to_owned(), name.to_owned()));
        }
        fleet::write(&results, &job, &format!("{name}.json"))
    });
    let first = collected(&[&job], &store);
    assert_eq!((first.added.len(), first.duplicates.len()), (1, 2), "{first:?}");
    let again = collected(&[&files[2]], &store);
    assert_eq!((again.added.len(), again.duplicates.len()), (0, 1), "{again:?}");
}

#[test]
fn a_file_without_an_end_is_refused_and_the_others_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let [job, store] = ["job", "store"].map(|name| folder.path().join(name));
    fleet::write(&on("node1", 1), &job, "1.json");
    // More than can be read in a day, and without a byte on the disk.
    fs::File::create(job.join("2.json")).unwrap().set_len(1 << 43).unwrap();
    let collected = collected(&[&job], &store);
    assert_eq!((collected.added.len(), collected.refused.len()), (1, 1), "{collected:?}");
    assert!(collected.refused[0].reason.contains("longer than 256 MB"), "{collected:?}");
}

#[test]
fn folders_of_two_clusters_merge_and_nothing_is_lost_or_counted_twice() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other, store] = ["one", "other", "store"].map(|name| folder.path().join(name));
    for day in 1..=3 {
        fleet::write(&on("node1", day), &one.join("deep/er"), &format!("{day}.json"));
        fleet::write(&on("node22", day), &other, &format!("{day}.json"));
    }
    // Both clusters kept a copy of this one.
    fleet::write(&on("node1", 2), &other, "copy.json");
    let first = collected(&[&one, &other], &store);
    assert_eq!((first.added.len(), first.duplicates.len(), first.refused.len()), (6, 1, 0), "{first:?}");
    assert!(first.duplicates[0].file.ends_with("other/copy.json") || first.duplicates[0].file.ends_with("er/2.json"));
    let kept = content(&store);
    let names: Vec<String> = kept.keys().map(|file| file.display().to_string()).collect();
    assert!(names[0].starts_with("node1/20261101T093000Z-0123456789abcdef-"), "{names:?}");
    let again = collected(&[&one, &other, folder.path()], &store);
    assert_eq!((again.added.len(), again.duplicates.len(), again.refused.len()), (0, 7, 0), "{again:?}");
    assert_eq!(content(&store), kept);
    // Copied side by side, two stores are what collecting makes of them.
    let [alone, both] = ["alone", "both"].map(|name| folder.path().join(name));
    collected(&[&one], &both);
    collected(&[&other], &alone);
    for (file, bytes) in content(&alone) {
        fs::create_dir_all(both.join(&file).parent().unwrap()).unwrap();
        fs::write(both.join(&file), bytes).unwrap();
    }
    assert_eq!(content(&both), kept);
}

#[test]
fn what_does_not_belong_together_is_refused_by_name_and_the_rest_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (from, store) = (folder.path().join("from"), folder.path().join("store"));
    for day in 1..=3 {
        fleet::write(&on("node1", day), &from, &format!("good{day}.json"));
    }
    let other = fleet::measured(OTHER, "node1", "2026-11-09T09:30:00Z", |_| 1.0);
    fleet::write(&other, &from, "another-suite.json");
    let mut open = on("node1", 4);
    open.runs[0].outcome = RunOutcome::Interrupted;
    fleet::write(&open, &from, "open.json");
    let mut selected = on("node1", 5);
    selected.selection.skip.push("idle-device.busy".to_owned());
    fleet::write(&selected, &from, "selected.json");
    let text = fs::read_to_string(from.join("good1.json")).unwrap();
    fs::write(from.join("cut.json"), &text[..text.len() / 2]).unwrap();
    fs::write(from.join("newer.json"), text.replacen("\"schema_version\": 2", "\"schema_version\": 99", 1)).unwrap();
    let mut altered: serde_json::Value = serde_json::from_str(&text).unwrap();
    altered["rows"][0]["series"][0]["outcome"]["measured"]["samples"][0] = 1.0.into();
    fs::write(from.join("altered.json"), altered.to_string()).unwrap();
    let found = collected(&[&from], &store);
    assert_eq!(found.added.len(), 3, "{found:?}");
    let reasons: Vec<(String, &str)> = found
        .refused
        .iter()
        .map(|refused| (refused.file.file_name().unwrap().to_string_lossy().into_owned(), refused.reason.as_str()))
        .collect();
    for (name, part) in [
        ("altered.json", "its samples are not those that were written"),
        ("another-suite.json", "another suite than the store's `Few`, or other rows"),
        ("cut.json", "not a whole results file"),
        ("newer.json", "schema version 99"),
        ("open.json", "it did not end: the run syncscope-1 was interrupted; resume it"),
        ("selected.json", "or other rows of it"),
    ] {
        assert!(reasons.iter().any(|(file, reason)| file == name && reason.contains(part)), "{name}: {reasons:?}");
    }
    assert_eq!(reasons.len(), 6, "{reasons:?}");
}

/// A pipe that nobody writes into keeps who opens it waiting.
#[test]
#[cfg(unix)]
fn a_pipe_among_the_files_is_named_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let [job, store] = ["job", "store"].map(|name| folder.path().join(name));
    fleet::write(&on("node1", 1), &job, "1.json");
    let pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    pipe(&job.join("pipe.json"));
    let first = collected(&[&job], &store);
    assert_eq!((first.added.len(), first.refused.len()), (1, 1), "{first:?}");
    assert!(first.refused[0].reason.contains("no plain file"), "{first:?}");
    // Before the store's own file, by which its suite is known.
    let there = store.join(&first.added[0].place);
    pipe(&there.with_file_name("0.json"));
    assert_eq!(collected(&[&job], &store).duplicates.len(), 1);
    let index = Index::of(&store, &Results::read, |_, _| Ok::<_, syncscope_results::error::FileError>(())).unwrap();
    assert_eq!((index.files.len(), index.refused.len()), (1, 1));
    // In the place of a file that is to come.
    fs::remove_file(&there).unwrap();
    pipe(&there);
    let error = collect(&[job], &store, &Results::read).unwrap_err().to_string();
    assert!(error.contains("no plain file"), "{error}");
}

#[test]
fn a_store_keeps_its_suite_even_where_most_new_files_have_another() {
    let folder = tempfile::tempdir().unwrap();
    let (from, store) = (folder.path().join("from"), folder.path().join("store"));
    let first = fleet::write(&on("node1", 1), folder.path(), "first.json");
    collected(&[&first], &store);
    for day in 1..=2 {
        let results = fleet::measured(OTHER, "node1", &format!("2026-11-{day:02}T09:30:00Z"), |_| 1.0);
        fleet::write(&results, &from, &format!("{day}.json"));
    }
    let found = collected(&[&from], &store);
    assert_eq!((found.added.len(), found.refused.len()), (0, 2), "{found:?}");
}

#[test]
fn a_damaged_file_of_the_store_is_named_and_gives_way_to_a_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let file = fleet::write(&on("node1", 1), folder.path(), "1.json");
    let place = store.join(&collected(&[&file], &store).added[0].place);
    let whole = fs::read(&place).unwrap();
    fs::write(&place, &whole[..1000]).unwrap();
    let stray = fleet::write(&on("node1", 2), &store.join("node9"), "stray.json");
    let index =
        Index::of(&store, &Results::read, |_: &Listed, _: &Results| Ok::<_, syncscope_results::error::FileError>(()));
    let index = index.unwrap();
    assert_eq!(index.files.len(), 0);
    let named: Vec<&Path> = index.refused.iter().map(|refused| refused.file.as_path()).collect();
    assert_eq!(named, [place.as_path(), stray.as_path()]);
    assert!(index.refused[1].reason.starts_with("its place is node1/2026"), "{:?}", index.refused);
    assert_eq!(collected(&[&file], &store).added.len(), 1);
    assert_eq!(fs::read(&place).unwrap(), whole);
}

#[test]
fn machines_are_told_apart_by_their_names_and_else_by_what_they_are() {
    let place = |results: &Results| place_of(results).parent().unwrap().to_path_buf();
    assert_eq!(place(&on("node7-gpu3", 1)), Path::new("node7-gpu3"));
    let (upper, lower) = (machine_of(&on("Node", 1)), machine_of(&on("node", 1)));
    assert!(lower == "node" && upper.starts_with("node-") && upper != machine_of(&on("NODE", 1)), "{upper}");
    assert_eq!(place(&on("../../etc", 1)).components().count(), 1);
    let mut nameless = on("x", 1);
    nameless.runs[0].environment.host.facts.clear();
    let mut other = nameless.clone();
    other.runs[0].environment.host.memory_bytes = Some(1);
    assert!(machine_of(&nameless).starts_with("test-device-") && machine_of(&nameless) != machine_of(&other));
    other.runs[0].environment.device.facts[0].1 = "590.00".to_owned();
    other.runs[0].environment.host.memory_bytes = nameless.environment().host.memory_bytes;
    assert_eq!(machine_of(&nameless), machine_of(&other), "a new driver makes no other machine");
}

#[test]
fn the_table_of_medians_has_every_row_of_every_file_with_its_interval() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let files: Vec<PathBuf> =
        (1..=2).map(|day| fleet::write(&on("node1", day), folder.path(), &format!("{day}.json"))).collect();
    collect(&files, &store, &Results::read).unwrap();
    let mut medians = Medians::default();
    let put = |listed: &Listed, results: &Results| {
        medians.put(listed, results).unwrap();
        Ok::<_, syncscope_results::error::FileError>(())
    };
    assert_eq!(Index::of(&store, &Results::read, put).unwrap().files.len(), 2);
    let text = String::from_utf8(medians.finish().unwrap()).unwrap();
    let results = on("node1", 1);
    assert_eq!(text.lines().count(), 1 + 2 * results.rows.len());
    let (spec, metric) = results.lookup().metrics().next().map(|(spec, metric)| (spec, metric.unwrap())).unwrap();
    let estimate = metric.estimate().unwrap();
    let numbers = format!("{},{},{},12,1,measured", estimate.median, estimate.low, estimate.high);
    assert!(text.lines().any(|line| line.contains(&spec.id) && line.ends_with(&numbers)), "{numbers}\n{text}");
}

fn report(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_report")).args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn the_command_names_what_it_did_and_fails_where_it_refused() {
    let folder = tempfile::tempdir().unwrap();
    for day in 1..=2 {
        fleet::write(&on("node1", day), &folder.path().join("job"), &format!("{day}.json"));
    }
    fs::copy(folder.path().join("job/1.json"), folder.path().join("job/twice.json")).unwrap();
    let output = report(&["collect", "job", "--csv", "medians.csv"], folder.path());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for part in [
        "duplicate: job/twice.json: the same samples as job/1.json",
        "2 added, 1 duplicates, 0 refused",
        "results: 2 files of 1 machines",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let index = fs::read_to_string(folder.path().join("results/index.csv")).unwrap();
    assert_eq!(index.lines().count(), 3, "{index}");
    // It is derived: without it nothing is missing.
    fs::remove_file(folder.path().join("results/index.csv")).unwrap();
    fs::write(folder.path().join("job/notes.json"), "{}").unwrap();
    let output = report(&["collect", "job", "--json"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((facts["files"].as_u64(), facts["duplicates"].as_array().unwrap().len()), (Some(2), 3), "{facts}");
    assert_eq!(facts["refused"][0]["file"], "job/notes.json");
    assert_eq!(fs::read_to_string(folder.path().join("results/index.csv")).unwrap(), index);
    assert_eq!(report(&["collect", "nowhere"], folder.path()).status.code(), Some(2));
}

#[test]
fn a_file_that_lacks_planned_runs_is_taken_and_says_how_many_of_each_system_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut part = fixture::with_pytorch(on("node1", 1));
    let there = part.plan.runs;
    (part.plan.runs, part.plan.with) = (there + 2, vec!["PyTorch".to_owned()]);
    part.write(&folder.path().join("part.json")).unwrap();
    let [own, other] =
        ["syncscope", "PyTorch"].map(|system| format!("{system}: {there} of {} runs are there", there + 2));
    let lacks = format!("{own}; {other}");
    let output = report(&["collect", "part.json"], folder.path());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let place = files(&folder.path().join("results")).unwrap().remove(0);
    assert!(text.contains(&format!("in part: results/{}: {lacks}\n", place.display())), "{text}");
    assert!(text.contains("1 added, 0 duplicates, 0 refused"), "{text}");
    let index = fs::read_to_string(folder.path().join("results/index.csv")).unwrap();
    assert!(index.contains(&format!(",{},{lacks},", 2 * there)), "{index}");
}

#[test]
fn a_file_that_another_went_on_from_counts_once_whatever_was_collected_first() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, other) = (fixture::with_pytorch(on("node1", 1)), on("node1", 2));
    (first.plan.runs, first.plan.with) = (3, vec!["PyTorch".to_owned()]);
    let second = fixture::with_run(first.clone(), 1.01);
    let mut third = fixture::with_run(second.clone(), 0.99);
    third.runs.retain(|run| run.id != "PyTorch-1" || run.system != "PyTorch");
    third.rows.iter_mut().for_each(|row| row.series.retain(|series| series.run != "PyTorch-1"));
    let files = [&first, &second, &third, &other]
        .map(|results| fleet::write(results, folder.path(), &format!("{}.json", results.samples_digest())));
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]] {
        let store = folder.path().join(format!("{order:?}"));
        for place in order {
            assert_eq!(collected(&[&files[place]], &store).added.len(), 1);
        }
        let index = Index::of(&store, &Results::read, |_, _| Ok::<_, syncscope_results::error::FileError>(())).unwrap();
        let place = |results: &Results| place_of(results);
        let mut listed: Vec<PathBuf> = index.files.iter().map(|listed| listed.file.clone()).collect();
        let mut expected = [&second, &third, &other].map(place);
        listed.sort();
        expected.sort();
        assert_eq!(listed, expected, "the third has not all that the second has");
        let [duplicate] = &index.duplicates[..] else { panic!("{index:?}") };
        assert_eq!((&duplicate.file, &duplicate.of), (&store.join(place(&first)), &store.join(place(&second))));
        let missing: Vec<String> = index.files.iter().find(|own| own.file == place(&second)).unwrap().missing.clone();
        assert_eq!(missing, ["syncscope: 2 of 3 runs are there", "PyTorch: 1 of 3 runs are there"]);
    }
}

#[test]
fn the_one_file_among_many_that_contradicts_itself_is_named_by_each_command() {
    let suite = "title: Few\nsampling: { samples: 12 }\nexperiments: [launch-path: {}]";
    let folder = tempfile::tempdir().unwrap();
    let job = folder.path().join("job");
    let made = |machine: &str| fleet::measured(suite, machine, "2026-11-01T09:30:00Z", |_| machine.len() as f64);
    // Each machine has one letter more, and so its own samples.
    (1..=9).for_each(|length| drop(fleet::write(&made(&"m".repeat(length)), &job, &format!("{length}.json"))));
    let mut wrong = made("wrong-machine");
    let of = |outcome: &Outcome| matches!(outcome, Outcome::Derived { .. });
    let row = wrong.rows.iter_mut().find(|row| of(&row.series[0].outcome)).unwrap();
    let title = row.spec.title();
    let Outcome::Derived { samples } = &mut row.series[0].outcome else { unreachable!() };
    samples[7] += 1.0;
    // It is whole and has the digest of its samples, so nothing but its formula speaks against it.
    fleet::write(&wrong, &job, "5b.json");
    let said = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let collected = report(&["collect", "job"], folder.path());
    assert_eq!(collected.status.code(), Some(1));
    let text = said(&collected);
    assert!(text.contains(&format!("refused: job/5b.json: it contradicts itself: {title} holds ")), "{text}");
    assert!(text.contains("in round 8 of the run") && text.contains("9 added, 0 duplicates, 1 refused"), "{text}");
    // Somebody copies it into the store by hand.
    let place = place_of(&wrong);
    fs::create_dir_all(folder.path().join("results").join(place.parent().unwrap())).unwrap();
    fs::copy(job.join("5b.json"), folder.path().join("results").join(&place)).unwrap();
    for (command, count) in
        [("collect", "results: 9 files of 9 machines"), ("machines", "9 machines, "), ("history", "9 files, ")]
    {
        let store = if command == "collect" { &["--into", "results"][..] } else { &["results"] };
        let text = said(&report(&[&[command], store].concat(), folder.path()));
        let line = format!("results/{}: it contradicts itself: {title} holds ", place.display());
        assert!(text.contains(&line) && text.contains(count), "{command}: {text}");
    }
}

/// Collects these folders into `store` at once: each waits for the store before the first may have it.
fn at_once<const N: usize>(jobs: [&str; N], folder: &Path) -> [Output; N] {
    let gate = held(&folder.join("store"), Duration::ZERO).unwrap().unwrap();
    let started = jobs.map(|job| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_report"));
        command.args(["collect", job, "--into", "store"]).current_dir(folder);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(process.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        assert!(said.contains("another report collects into store"), "{said}");
        process
    });
    drop(gate);
    started.map(|process| process.wait_with_output().unwrap())
}

#[test]
fn of_two_that_collect_at_once_into_a_new_store_all_files_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    for day in 1..=6 {
        fleet::write(&on("node1", day), &folder.path().join(format!("job{}", day % 2)), &format!("{day}.json"));
    }
    // One of them has both jobs.
    fs::copy(folder.path().join("job0/2.json"), folder.path().join("job1/copy.json")).unwrap();
    let outputs = at_once(["job0", "job1"], folder.path());
    let said = outputs.map(|output| (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()));
    assert!(said.iter().all(|(code, _)| *code == Some(0)), "{said:?}");
    assert_eq!(said.iter().filter(|(_, text)| text.contains(", 1 duplicates, 0 refused")).count(), 1, "{said:?}");
    let index = fs::read_to_string(folder.path().join("store/index.csv")).unwrap();
    assert_eq!((index.lines().count(), files(&folder.path().join("store")).unwrap().len()), (1 + 6, 6), "{index}");
}

#[test]
fn of_two_suites_that_are_collected_at_once_a_new_store_takes_one() {
    let folder = tempfile::tempdir().unwrap();
    for day in 1..=3 {
        fleet::write(&on("node1", day), &folder.path().join("job"), &format!("{day}.json"));
        let other = fleet::measured(OTHER, "node1", &format!("2026-11-{day:02}T09:30:00Z"), |_| 1.0);
        fleet::write(&other, &folder.path().join("other"), &format!("{day}.json"));
    }
    let codes = at_once(["job", "other"], folder.path()).map(|output| output.status.code());
    assert!([[Some(0), Some(1)], [Some(1), Some(0)]].contains(&codes), "{codes:?}");
    let there = files(&folder.path().join("store")).unwrap();
    let suites: Vec<_> =
        there.iter().map(|file| Results::read(&folder.path().join("store").join(file)).unwrap().suite).collect();
    assert!(suites.len() == 3 && suites.iter().all(|suite| *suite == suites[0]), "{there:?}");
}
