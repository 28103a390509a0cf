//! Budgets, baselines, and what is written for CI.

use std::fs;
use std::path::Path;
use std::process::Output;

use super::{at, audit, json, said, train};

fn held(folder: &Path, budget: &str, more: &[&str]) -> Output {
    fs::write(folder.join("budget.yaml"), budget).unwrap();
    let script = train();
    let arguments = [&["--stacks", "all", "--budget", "budget.yaml"], more, &["--", "python3", &script]].concat();
    audit(&arguments).current_dir(folder).output().unwrap()
}

#[test]
fn a_budget_fails_on_a_planted_wait_with_its_place_and_passes_where_it_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let place = at("cuda.cuMemcpyDtoHAsync_v2(PAGEABLE");
    let budget = "step: { range: step }\nwaits: 0\n";
    let output = held(folder.path(), budget, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains(&format!("error: {place} (cuMemcpyDtoHAsync_v2): step 1 waits once, for 2.000 ms")));
    assert_eq!(said(&output).matches("error: ").count(), 1, "{}", said(&output));

    // Two places wait in the whole run, one of them in steps.
    let allow = "allow:\n  - { place: train.py, reason: it is a test }\n";
    assert_eq!(held(folder.path(), &format!("{budget}{allow}"), &[]).status.code(), Some(0));
    for (budget, code) in [
        ("step: { range: step }\nskip_first: 2\nwaits: 0\n", 1),
        ("step: { range: step }\nmilliseconds: 2.5\n", 0),
        ("step: { range: step }\nmilliseconds: 1.5\n", 1),
        ("waits: 4\n", 0),
        ("waits: 3\n", 1),
        // What finds nothing to hold is no pass.
        ("step: { range: another }\nwaits: 0\n", 1),
        ("step: { range: step }\nskip_first: 3\nwaits: 0\n", 1),
    ] {
        let output = held(folder.path(), budget, &[]);
        assert_eq!(output.status.code(), Some(code), "{budget}: {}", said(&output));
    }
}

#[test]
fn an_empty_or_misspelt_budget_is_refused_before_the_program_runs() {
    let folder = tempfile::tempdir().unwrap();
    for (budget, word) in [
        ("skip_first: 1\n", "it limits nothing"),
        ("waitz: 1\n", "waitz"),
        ("waits: 1\nstep: {}\n", "a single key"),
        ("waits: 1\nstep: { lime: a }\n", "did you mean `line`?"),
        ("milliseconds: -1\n", "from 0 on"),
        ("waits: 1\nallow:\n  - { place: train.py, reason: \" \" }\n", "`allow[0]` states no `reason`"),
        ("waits: 1\nallow:\n  - { place: \"\", reason: it is a test }\n", "`allow[0]` states no `place`"),
    ] {
        let output = held(folder.path(), budget, &[]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(word), "{}", said(&output));
    }
}

#[test]
fn a_baseline_fails_on_new_places_only() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let script = train();
        let arguments = [&["--stacks", "all"], more, &["--", "python3", &script]].concat();
        audit(&arguments).current_dir(folder.path()).output().unwrap()
    };
    assert_eq!(run(&["--json", "old.json"]).status.code(), Some(0));
    assert_eq!(run(&["--baseline", "old.json"]).status.code(), Some(0));
    // Lines that have moved are no new places, unless there are more of them in their function.
    let kept = fs::read_to_string(folder.path().join("old.json")).unwrap();
    let moved = |text: &str| kept.replace(text, &format!("{text}9"));
    fs::write(folder.path().join("old.json"), moved(&at("cuda.cuMemFree_v2()"))).unwrap();
    assert_eq!(run(&["--baseline", "old.json"]).status.code(), Some(0));
    fs::write(
        folder.path().join("old.json"),
        moved(&at("cuda.cuMemFree_v2()")).replace("\"function\": \"main\"", "\"function\": \"other\""),
    )
    .unwrap();
    assert_eq!(run(&["--baseline", "old.json"]).status.code(), Some(1));
    // What a call waited for at its place depends on what was pending.
    fs::write(folder.path().join("old.json"), kept.replacen("\"wait\"", "\"copy\"", 1)).unwrap();
    assert_eq!(run(&["--baseline", "old.json"]).status.code(), Some(0));
    // An allocation that did not wait is no wait.
    fs::write(folder.path().join("old.json"), kept.replace("\"wait\"", "\"allocate\"")).unwrap();
    assert_eq!(run(&["--baseline", "old.json"]).status.code(), Some(1));
    fs::write(folder.path().join("old.json"), kept).unwrap();
    let mut old = json(&folder.path().join("old.json"));
    old["places"].as_array_mut().unwrap().retain(|place| place["call"] != "cuMemFree_v2");
    fs::write(folder.path().join("old.json"), old.to_string()).unwrap();
    let output = run(&["--baseline", "old.json"]);
    assert_eq!(output.status.code(), Some(1));
    let errors: Vec<_> = said(&output).lines().filter(|line| line.starts_with("error:")).map(str::to_owned).collect();
    assert_eq!(errors, [format!("error: {} (cuMemFree_v2): the baseline does not have it", at("cuda.cuMemFree_v2()"))]);
}
