//! The files of a course beside its documents, and budgets.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use syncscope_audit::Budget;
use syncscope_book::document::{Hardware, Texts};
use syncscope_book::{BookProject, Source};
use syncscope_report::carried_book;
use syncscope_results::Results;
use syncscope_results::yaml;

use super::mutation::{Change, Seed, change};
use super::results::small_results;
use super::{Uses, catalog, hold};

/// A course without documents, of which each file that is not prose is changed.
#[test]
fn a_mutated_file_of_a_course_is_refused_or_there_is_a_book_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("course");
    carried_book().write(&place).unwrap();
    for below in ["documents", "notebooks", "src/listings"] {
        let _ = fs::remove_dir_all(place.join(below));
        fs::create_dir(place.join(below)).unwrap();
    }
    let lab = include_str!("../../notebooks/00-quick-start.ipynb");
    fs::write(place.join("notebooks/lab.ipynb"), lab).unwrap();
    fs::write(place.join("lessons.yaml"), "- title: A\n  chapters: []\n  read: [measuring]\n  labs: [lab]\n").unwrap();
    let read = |name: &str| fs::read_to_string(place.join(name)).unwrap();
    let seeds = [
        ("book.toml", Seed::of_text(&read("book.toml"))),
        ("lessons.yaml", Seed::of_yaml(&read("lessons.yaml"))),
        ("hardware.yaml", Seed::of_yaml(&read("hardware.yaml"))),
        ("texts.yaml", Seed::of_yaml(&read("texts.yaml"))),
        ("notebooks/lab.ipynb", Seed::of_json(lab)),
    ];
    let results = [Results::parse(&small_results(), Path::new("r.json")).unwrap()];
    let uses = Uses::default();
    let property = |(which, change): (usize, Change)| {
        let (name, seed) = &seeds[which];
        let old = fs::read(place.join(name)).unwrap();
        fs::write(place.join(name), seed.mutated(&change)).unwrap();
        match BookProject::read(&place, &carried_book()) {
            Err(error) => prop_assert!(error.to_string().contains("course"), "{error}"),
            Ok(project) => uses.turn(|used| {
                // Dear: a part of them is enough.
                if used % 16 == 0 {
                    drop(Source::of(&results, &project, catalog()).map_err(|error| error.to_string()));
                }
            }),
        }
        fs::write(place.join(name), old).unwrap();
        Ok(())
    };
    hold(60, &(0..seeds.len(), change()), property);
    uses.end();
}

#[test]
fn mutated_hardware_texts_and_budgets_are_refused_with_their_place_or_can_be_used() {
    const BUDGET: &str =
        "waits: 2\nmilliseconds: 0.5\nstep: { range: train }\nallow:\n  - { place: a.py, reason: logged }\n";
    let seeds = [
        Seed::of_yaml(include_str!("../../book/hardware.yaml")),
        Seed::of_yaml(include_str!("../../book/texts.yaml")),
        Seed::of_yaml(BUDGET),
    ];
    let property = |(which, change): (usize, Change)| {
        let text = seeds[which].mutated(&change);
        let error = match which {
            0 => Hardware::parse("budget.yaml", &text).map(drop),
            1 => Texts::parse("budget.yaml", &text).map(drop),
            _ => yaml::parse::<Budget>(&text, "budget.yaml").map(drop),
        };
        if let Err(error) = error {
            prop_assert!(error.to_string().contains("budget.yaml"), "{error}");
        }
        Ok(())
    };
    hold(600, &(0..seeds.len(), change()), property);
}
