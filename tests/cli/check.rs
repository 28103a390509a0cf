//! `report check`: what is wrong with a suite or a document is said with its place, and what a suite runs.

use std::fs;

use serde_json::Value;

use super::{TINY, code, folder_with, report, stderr, stdout};

#[test]
fn a_wrong_suite_is_refused_with_its_place_and_runs_nothing() {
    for (wrong, parts) in [
        (TINY.replace("iterations", "iteratoins"), vec!["suite.yaml:5:", "`iteratoins`", "did you mean `iterations`?"]),
        (TINY.replace("launch-path", "lanch-path"), vec!["suite.yaml:5:", "did you mean `launch-path`?"]),
        (TINY.replace("elements: 8", "elements: 0"), vec!["suite.yaml:5:", "a whole number above 0"]),
        (TINY.replace("elements: 8", "elements: many"), vec!["suite.yaml:5:", "many"]),
        (TINY.replace("title: Tiny", "title: [1]"), vec!["suite.yaml:1:", "expected a text"]),
        (
            TINY.replace("samples: 3", "samples: 9, passes: 2, short_passes: 5"),
            vec!["suite.yaml:3:50: ", "no multiple of `passes`, 2"],
        ),
        ("title: [".to_owned(), vec!["suite.yaml:"]),
    ] {
        let folder = folder_with(&wrong);
        for command in [&["check", "suite.yaml"][..], &["--suite", "suite.yaml", "--out", "out"]] {
            let output = report(command, folder.path());
            let text = stderr(&output);
            assert_eq!(code(&output), 2, "{text}");
            assert!(parts.iter().all(|part| text.contains(part)), "{parts:?}: {text}");
            assert!(!folder.path().join("out").exists());
        }
    }
}

#[test]
fn a_mistake_in_a_course_is_found_with_its_place_before_anything_is_measured() {
    for (right, wrong, parts) in [
        ("order: 9", "ordre: 9", vec!["`ordre`", "did you mean `order`?"]),
        (
            "{id: launch-path.graph.gain}",
            "{id: launch-path.graph.gian}",
            vec!["did you mean `launch-path.graph.gain`?"],
        ),
        ("each: operations", "each: operatoins", vec!["`operatoins`", "did you mean `operations`?"]),
        ("{id: launch-path.graph.gain}", "{id: launch-path.graph.gain, unit: ratio}", vec!["`unit`"]),
    ] {
        let folder = folder_with(TINY);
        assert_eq!(code(&report(&["init", "course"], folder.path())), 0);
        let document = folder.path().join("course/documents/launch-path.yaml");
        let text = std::fs::read_to_string(&document).unwrap();
        assert!(text.contains(right), "{right}: {text}");
        std::fs::write(&document, text.replacen(right, wrong, 1)).unwrap();
        for command in [
            &["--course", "course", "--suite", "suite.yaml", "--device", "cpu:0", "--out", "out"][..],
            &["check", "course"],
            &["check", "--course", "course"],
            &["check", "course/documents/launch-path.yaml"],
        ] {
            let output = report(command, folder.path());
            let text = stderr(&output);
            assert_eq!(code(&output), 2, "{command:?}: {text}");
            // Its line and column stand behind the file's name.
            let place = text.split("course/documents/launch-path.yaml:").nth(1).unwrap_or_default();
            assert!(place.starts_with(|c: char| c.is_ascii_digit()), "{command:?}: {text}");
            assert!(parts.iter().all(|part| text.contains(part)), "{command:?}: {text}");
            assert!(!folder.path().join("out").exists());
        }
    }
}

#[test]
fn what_a_course_names_and_has_not_is_found_by_its_check() {
    for (file, right, wrong, says) in [
        (
            "documents/idle-device.yaml",
            "listings/idle_device.rs",
            "listings/idle_devices.rs",
            "did you mean `listings/idle_device.rs`?",
        ),
        ("book.toml", "[book]", "[boook]", "`boook`"),
        ("src/reading.md", "# How", "{{#include listings/idle_devise.rs}}\n# How", "src/reading.md:1:1: {{#include"),
        ("src/reading.md", "# How", "{{#include listings/idle_devise.rs}}\n# How", "`listings/idle_device.rs`?"),
        ("documents/idle-device.yaml", "order: 0", "order: 1", "the document `async-frontend` has the order 1, too"),
        ("documents/idle-device.yaml", "order: 0", "order: 0\norder: 40", "the key `order` stands twice"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(code(&report(&["init", "course"], folder.path())), 0);
        let file = folder.path().join("course").join(file);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(right), "{}", file.display());
        fs::write(&file, text.replacen(right, wrong, 1)).unwrap();
        let output = report(&["check", "course"], folder.path());
        assert!(code(&output) == 2 && stderr(&output).contains(says), "{wrong}: {}", stderr(&output));
    }
}

#[test]
fn a_document_may_name_what_a_suite_of_its_course_measures_and_no_other_value() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(code(&report(&["init", "course"], folder.path())), 0);
    let document = folder.path().join("course/documents/launch-path.yaml");
    let text = fs::read_to_string(&document).unwrap().replace("operations_100", "operations_77");
    fs::write(&document, text).unwrap();
    let output = report(&["check", "course"], folder.path());
    let message = stderr(&output);
    assert!(
        code(&output) == 2 && message.contains("operations_77`") && message.contains("did you mean `"),
        "{message}"
    );
    let suite = "title: T\nsampling: { samples: 3 }\nexperiments:\n  - launch-path: { operations: [77] }\n";
    fs::write(folder.path().join("course/suites/own.yaml"), suite).unwrap();
    let output = report(&["check", "course"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

#[test]
fn the_schemas_are_json_and_the_carried_suites_are_good() {
    let folder = tempfile::tempdir().unwrap();
    for of in ["suite", "document", "results", "system"] {
        let schema: serde_json::Value = serde_json::from_str(&stdout(&report(&["schema", of], folder.path()))).unwrap();
        assert!(schema["properties"].is_object(), "{of}");
    }
    for what in [&["check"][..], &["check", "quick"], &["check", "full"]] {
        let output = report(what, folder.path());
        assert_eq!(code(&output), 0, "{what:?}: {}", stderr(&output));
    }
}

#[test]
fn a_wrong_name_in_a_document_has_its_line_and_column_in_words_and_as_json() {
    for (right, wrong, line_of, column, near) in [
        ("\norder: ", "\nordre: ", "ordre", 1, "did you mean `order`?"),
        ("    caption:", "    captoin:", "captoin", 5, "did you mean `caption`?"),
        ("\n    rationale:", "\n    rationle:", "rationle", 5, "did you mean `rationale`?"),
        ("    then:", "    thne:", "thne", 5, "did you mean `then`?"),
        ("  takeaways:", "  takeawys:", "takeawys", 3, "did you mean `takeaways`?"),
        ("  next: [sync-points", "  next: [sync-piont", "sync-piont", 10, "did you mean `sync-points`?"),
        // A chapter that the course left out is one that there is.
        ("  next: [sync-points", "  next: [cold-start, sycn-points", "sycn-points", 22, "did you mean `sync-points`?"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(code(&report(&["init", "course"], folder.path())), 0);
        let document = folder.path().join("course/documents/overlap.yaml");
        fs::remove_file(folder.path().join("course/documents/cold-start.yaml")).unwrap();
        let text = fs::read_to_string(&document).unwrap();
        assert!(text.contains(right), "{right}");
        let text = text.replacen(right, wrong, 1);
        let line = 1 + text.lines().position(|line| line.contains(line_of)).unwrap();
        fs::write(&document, text).unwrap();
        let what = "course/documents/overlap.yaml";
        let output = report(&["check", what, "--course", "course", "--json"], folder.path());
        assert_eq!(code(&output), 2);
        let words = stderr(&output);
        assert!(words.starts_with(&format!("error: {what}:{line}:{column}: ")) && words.contains(near), "{words}");
        let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
        let problem = &facts["problem"];
        assert_eq!([&problem["line"], &problem["column"]], [line, column], "{problem}");
        assert_eq!(problem["file"], what);
        assert!(problem["message"].as_str().unwrap().contains(near), "{problem}");
    }
}

#[test]
fn whatever_cannot_be_checked_is_a_problem_in_json_with_a_place_where_it_has_one() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(code(&report(&["init", "course"], folder.path())), 0);
    fs::create_dir(folder.path().join("empty")).unwrap();
    fs::write(folder.path().join("cut.json"), "{\n").unwrap();
    for (what, file, column, says) in [
        ("empty", None, None, "report init DIR` makes a course"),
        ("qucik", None, None, "did you mean `quick`?"),
        ("course/lessons.yaml", None, None, "checked with its course"),
        ("none.yaml", Some("none.yaml"), None, "No such file"),
        ("cut.json", Some("cut.json"), Some(1), "EOF"),
    ] {
        let output = report(&["check", what, "--json"], folder.path());
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        let facts: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{what}: {error}"));
        let problem = &facts["problem"];
        assert_eq!((problem["file"].as_str(), problem["column"].as_u64()), (file, column), "{problem}");
        let message = problem["message"].as_str().unwrap();
        assert!(message.contains(says) && stderr(&output).contains(message), "{message}: {}", stderr(&output));
    }
}

#[test]
fn a_device_that_none_can_be_and_an_empty_list_are_refused_where_they_stand() {
    for (wrong, part) in [
        (TINY.replace("runs: 1", "device: gpu0"), "suite.yaml:2:9: `gpu0` names no device"),
        (TINY.replace("runs: 1", "device: cuda:x"), "suite.yaml:2:9: `cuda:x` names no device"),
        (TINY.replace("[1, 100]", "[]"), "suite.yaml:5:32: an empty list"),
        (
            TINY.replace(
                "launch-path: { operations: [1, 100], elements: 8, iterations: 2 }",
                "launch-path: { operations: [] }",
            ),
            "an empty list",
        ),
    ] {
        let folder = folder_with(&wrong);
        for command in [&["check", "suite.yaml"][..], &["run", "--suite", "suite.yaml", "--device", "cpu:0"]] {
            let output = report(command, folder.path());
            assert_eq!(code(&output), 2, "{command:?}");
            assert!(stderr(&output).contains(part), "{part}: {}", stderr(&output));
        }
    }
}

#[test]
fn what_a_suite_runs_is_listed_with_what_it_does_not_name() {
    let folder = folder_with(&TINY.replace("\n  - ceilings: { copies: [64], sizes: [8], link: [64] }", ""));
    let output = report(&["check", "suite.yaml", "--json"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
    for engine in facts["suites"][0]["engines"].as_array().unwrap() {
        let listed = engine["experiments"].as_array().unwrap().iter();
        let named: Vec<(&str, bool)> =
            listed.map(|own| (own["name"].as_str().unwrap(), own["named"].as_bool().unwrap())).collect();
        assert_eq!(named, [("self-audit", false), ("launch-path", true), ("ceilings", false)]);
    }
    let words = stdout(&report(&["check", "suite.yaml"], folder.path()));
    assert!(words.contains("not named, and run: self-audit"), "{words}");
}

#[test]
fn sizes_default_to_the_engines_and_a_gpus_sizes_on_cpu_warn() {
    let warned = |sizes: &str| {
        let suite = format!("title: T\nsampling: {{ samples: 3 }}\nexperiments:\n  - sync-points: {sizes}\n");
        let folder = folder_with(&suite);
        let output = report(&["check", "suite.yaml", "--json"], folder.path());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
        let engines = facts["suites"][0]["engines"].as_array().unwrap().clone();
        let cpu = engines.into_iter().find(|engine| engine["engine"] == "cpu").unwrap();
        cpu["warnings"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(warned("{}"), Vec::<String>::new());
    let large = warned("{ big: 8192 }");
    assert!(large.iter().any(|text| text.contains("size 8192") && text.contains("min")), "{large:?}");
}

#[test]
fn an_author_s_editor_finds_the_schema_of_each_file_of_a_course() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(code(&report(&["init", "course"], folder.path())), 0);
    assert_eq!(code(&report(&["init", "--rust", "mine"], folder.path())), 0);
    let files = [
        ("course/suites/quick.yaml", ""),
        ("course/documents/overlap.yaml", ""),
        ("mine/documents/sum.yaml", ""),
        ("course/lessons.yaml", "/$defs/CourseLesson"),
        ("course/texts.yaml", "/$defs/PrintedText"),
        ("course/hardware.yaml", "/$defs/Chip"),
    ];
    for (file, part) in files {
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        let schema = text.lines().next().unwrap().strip_prefix("# yaml-language-server: $schema=");
        let schema = folder.path().join(file).with_file_name(schema.unwrap_or_else(|| panic!("{file}")));
        let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
        let part = schema.pointer(part).unwrap_or_else(|| panic!("{file}: {schema}"));
        assert_eq!(part["additionalProperties"], false, "{file}");
        assert!(part["properties"]["title"].is_object() || part["properties"]["model"].is_object(), "{file}");
    }
    assert_eq!(code(&report(&["check", "course"], folder.path())), 0);
}

/// The schema of documents knows what the carried documents state.
#[test]
fn every_key_of_a_carried_document_is_in_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(code(&report(&["init", "course"], folder.path())), 0);
    let schema = fs::read_to_string(folder.path().join("course/schemas/document.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let known = schema["properties"].as_object().unwrap();
    let mut seen = 0;
    for entry in fs::read_dir(folder.path().join("course/documents")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase())) {
            let key = line.split(':').next().unwrap();
            assert!(known.contains_key(key), "{key}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}
