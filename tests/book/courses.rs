//! A course of one's own: `report init`, and what may be changed in it.

use std::fs;

use super::*;

fn written() -> (TempDir, PathBuf) {
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("course");
    BookProject::embedded().unwrap().write(&folder).unwrap();
    (parent, folder)
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{} has no {from}", path.display());
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn a_new_course_renders_as_the_program_s_own_does() {
    let (_parent, folder) = written();
    for part in ["book.toml", "src/model.md", "documents/overlap.yaml", "templates/chapter.md.j2", "suites/quick.yaml"]
    {
        assert!(folder.join(part).is_file(), "{part}");
    }
    let files = rendered_as(&BookProject::read(&folder).unwrap(), &[fixture::run()]);
    assert!(files == *fixture_book());
}

#[test]
fn a_folder_that_holds_anything_is_left_alone() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("mine.txt"), "mine").unwrap();
    let error = BookProject::embedded().unwrap().write(folder.path()).unwrap_err().to_string();
    assert!(error.contains("the folder is not empty"), "{error}");
    assert_eq!(tree(folder.path()).len(), 1);
}

#[test]
fn a_changed_document_and_template_change_the_book() {
    let (_parent, folder) = written();
    replace(&folder.join("documents/overlap.yaml"), "title: Host, device", "title: My own words on host, device");
    replace(&folder.join("templates/chapter.md.j2"), "## What runs", "## What my course runs");
    fs::remove_file(folder.join("documents/what-blocks.yaml")).unwrap();
    let files = rendered_as(&BookProject::read(&folder).unwrap(), &[fixture::run()]);
    let chapter = page(&files, "site/overlap.html");
    assert!(chapter.contains("My own words on host") && chapter.contains("What my course runs"));
    assert!(!files.contains_key(Path::new("site/what-blocks.html")));
}

#[test]
fn a_mistake_names_its_file_and_line() {
    for (file, from, to, expected) in [
        ("documents/overlap.yaml", "order: 3", "ordre: 3", "documents/overlap.yaml:"),
        (
            "documents/overlap.yaml",
            "{{ double_buffer.total }}",
            "{{ double_bufer.total }}",
            "`double_bufer.total` names no",
        ),
        ("documents/overlap.yaml", "{{ double_buffer.total }}", "{{ 2 * double_buffer.total }}", "neither as `time`"),
        ("templates/claims.md.j2", "{{ table }}", "{{ tabel }}", "templates/claims.md.j2"),
    ] {
        let (_parent, folder) = written();
        replace(&folder.join(file), from, to);
        let error = BookProject::read(&folder)
            .and_then(|course| syncscope::book::Source::of(&[fixture::run()], &course).map(drop));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let (_parent, folder) = written();
    fs::remove_file(folder.join("templates/landing.md.j2")).unwrap();
    let course = BookProject::read(&folder).unwrap();
    let error = syncscope::book::Source::of(&[fixture::run()], &course).unwrap_err().to_string();
    assert!(error.contains("landing.md.j2"), "{error}");
}

#[test]
fn an_edit_link_leads_to_what_a_page_is_made_of() {
    let (_parent, folder) = written();
    replace(
        &folder.join("book.toml"),
        "[output.html]\n",
        "[output.html]\nedit-url-template = \"https://e.org/{path}\"\n",
    );
    fs::remove_file(folder.join("documents/synchronize.yaml")).unwrap();
    let files = rendered_as(&BookProject::read(&folder).unwrap(), &[fixture::run()]);
    for (name, origin) in [
        ("overlap", "src/../documents/overlap.yaml"),
        ("synchronize", "src/../templates/chapter.md.j2"),
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
fn an_experiment_without_a_document_has_a_chapter_with_all_its_rows_and_plots() {
    for name in ["async-frontend", "overlap", "sync-points"] {
        let mut course = BookProject::embedded().unwrap();
        course.documents.retain(|document| document.id != name);
        let run = fixture::run();
        let files = rendered_as(&course, std::slice::from_ref(&run));
        let chapter = page(&files, &format!("site/{name}.html"));
        for row in run.rows().filter(|row| row.id.starts_with(&format!("{name}."))) {
            assert!(chapter.contains(&format!("data-id=\"{}\"", row.id)), "{}", row.id);
        }
        assert!(chapter.contains("<svg class=\"plot\"") && chapter.contains("No text is mirrored here"));
        pages::check_balance(Path::new(name), chapter);
        let summary = page(&files, "book/src/SUMMARY.md");
        assert!(summary.find("# Beyond the documents") < summary.find(&format!("({name}.md)")));
    }
}

#[test]
fn two_documents_of_one_name_are_refused() {
    let text = |origin: &str| (origin.to_owned(), include_bytes!("../../book/documents/synchronize.yaml").as_slice());
    let error = Document::all([text("a.yaml"), text("b.yaml")].into_iter()).unwrap_err().to_string();
    assert!(error.contains("b.yaml") && error.contains("`synchronize`"), "{error}");
}
