//! A project of an author's own: a copy of the program's, and what may be changed in it.

use super::*;

fn written() -> (TempDir, PathBuf) {
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("project");
    carried_book().write(&folder).unwrap();
    (parent, folder)
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{} has no {from}", path.display());
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

fn project(folder: &Path) -> BookProject {
    BookProject::read(folder, &carried_book()).unwrap()
}

#[test]
fn a_new_project_renders_as_the_program_s_own_does() {
    let (_parent, folder) = written();
    for part in
        ["book.toml", "hardware.yaml", "texts.yaml", "src/model.md", "templates/chapter.md.j2", "suites/quick.yaml"]
    {
        assert!(folder.join(part).is_file(), "{part}");
    }
    let results = fixture::run_with_every_outcome();
    assert!(source_as(&project(&folder), std::slice::from_ref(&results)) == source(&results));
}

#[test]
fn a_folder_that_holds_anything_is_left_alone() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("mine.txt"), "mine").unwrap();
    let error = carried_book().write(folder.path()).unwrap_err().to_string();
    assert!(error.contains("the folder is not empty"), "{error}");
    assert_eq!(tree(folder.path()).len(), 1);
}

#[test]
fn a_changed_document_template_suite_and_hardware_are_those_of_the_book() {
    let (_parent, folder) = written();
    let [first, second, ..] = &documents()[..] else { panic!("there are two documents") };
    let document = folder.join(format!("documents/{}.yaml", first.id));
    replace(&document, &format!("title: {}", first.title), "title: My own words");
    replace(&folder.join("templates/chapter.md.j2"), "# {{ title }}", "# My course: {{ title }}");
    replace(&folder.join("suites/quick.yaml"), "title: ", "title: Mine, ");
    replace(&folder.join("hardware.yaml"), "NVIDIA H100 SXM", "My own chip");
    fs::remove_file(folder.join(format!("documents/{}.yaml", second.id))).unwrap();
    let project = project(&folder);
    let files = source_as(&project, &[fixture::run()]);
    assert!(read(&files, &first.id).starts_with("# My course: My own words\n"));
    assert!(!read(&files, "SUMMARY").contains(&second.title));
    assert!(read(&files, "sources").contains("| My own chip |"));
    let (name, suite) = project.suite("quick").unwrap();
    assert!(name.ends_with("project/suites/quick.yaml") && suite.contains("title: Mine, "), "{name}");
}

#[test]
fn a_mistake_in_a_template_or_a_part_that_is_gone_names_its_file() {
    let (_parent, folder) = written();
    replace(&folder.join("templates/claims.md.j2"), "{{ document.title }}", "{{ documnet.title }}");
    let refused = |folder: &Path| {
        let error = Source::of(&[fixture::run()], &project(folder), &catalog()).unwrap_err().to_string();
        assert!(error.contains("templates/claims.md.j2"), "{error}");
    };
    refused(&folder);
    fs::remove_file(folder.join("templates/claims.md.j2")).unwrap();
    let project = project(&folder);
    let error = Source::of(&[fixture::run()], &project, &catalog()).unwrap_err().to_string();
    assert!(error.contains("claims.md.j2"), "{error}");
}

#[test]
fn an_edit_link_leads_to_what_a_page_is_made_of() {
    let (_parent, folder) = written();
    let template = "[output.html]\nedit-url-template = \"https://e.org/{path}\"\n";
    replace(&folder.join("book.toml"), "[output.html]\n", template);
    let [first, second, ..] = &documents()[..] else { panic!("there are two documents") };
    fs::remove_file(folder.join(format!("documents/{}.yaml", second.id))).unwrap();
    let files = rendered_as(&project(&folder), &[fixture::run()]);
    for (name, origin) in [
        (&*first.id, &*format!("src/../documents/{}.yaml", first.id)),
        (&*second.id, "src/../templates/chapter.md.j2"),
        ("claims", "src/../templates/claims.md.j2"),
        ("model", "src/model.md"),
    ] {
        let html = page(&files, &format!("site/{name}.html"));
        assert!(html.contains(&format!("https://e.org/{origin}")), "{name}");
        assert!(folder.join(origin).is_file(), "{origin}");
    }
}

/// What a new experiment has before anybody writes of it.
#[test]
fn an_experiment_without_a_document_has_a_chapter_with_all_its_rows_plots_and_data() {
    let (_parent, folder) = written();
    fs::remove_dir_all(folder.join("documents")).unwrap();
    fs::create_dir(folder.join("documents")).unwrap();
    let registry = Registry::builtin().with::<probe::Probe>();
    let results = fixture::run_of(&registry);
    let files = source_as(&project(&folder), std::slice::from_ref(&results));
    let summary = read(&files, "SUMMARY");
    for entry in registry.ready() {
        let chapter = read(&files, entry.name);
        let own = results.rows.iter().filter(|row| row.spec.experiment() == entry.name);
        for row in own.filter(|row| row.spec.group != foreign::SAME_CODE) {
            assert!(chapter.contains(&format!("data-id=\"{}\"", row.spec.id)), "{}", row.spec.id);
            assert!(chapter.contains(&row.spec.label), "{}", row.spec.label);
        }
        assert!(chapter.contains("<svg class=\"plot\""));
        for place in chapter.split("href=\"data/").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(files.contains_key(Path::new(&format!("book/src/data/{place}"))), "{place}");
        }
        assert!(summary.find("# Reference") < summary.find(&format!("({}.md)", entry.name)));
    }
}

#[test]
fn two_documents_of_one_name_are_refused() {
    let project = probe::project(probe::DOCUMENT).with_file("documents/twin.yaml", probe::DOCUMENT);
    let error = project.documents(&catalog()).unwrap_err().to_string();
    assert!(error.contains("book/documents/twin.yaml") && error.contains("`probe`"), "{error}");
}

#[test]
fn a_link_to_a_page_that_there_is_not_is_refused_with_the_nearest_page() {
    let (_parent, folder) = written();
    let model = folder.join("src/model.md");
    let text = fs::read_to_string(&model).unwrap();
    let line = text.matches('\n').count() + 2;
    fs::write(&model, text + "\nSee [the words](glosary.md#event).\n").unwrap();
    let results = fixture::run_with_every_outcome();
    let error = Source::of(&[results], &project(&folder), &catalog()).err().unwrap().to_string();
    let says = "its link to `glosary.md` leads to no page; did you mean `glossary.md`?";
    assert_eq!(error, format!("{}:{line}:17: {says}", model.display()));
}

#[test]
fn a_notebook_is_in_the_place_of_no_other_page() {
    for name in ["claims", "README", "streams"] {
        let project = carried_book().with_file(format!("notebooks/{name}.ipynb"), r#"{"nbformat": 4, "cells": []}"#);
        let refused = Source::of(&[fixture::run()], &project, &catalog()).unwrap_err().to_string();
        assert!(refused.contains(&format!("notebooks/{name}.ipynb")) && refused.contains("rename"), "{refused}");
    }
}
