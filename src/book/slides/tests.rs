//! Slides of the results that come with the program, and of others.

use super::super::source::nothing;
use super::*;
use crate::tests::{catalog, project};

fn decks_of(results: &[Results]) -> BTreeMap<String, String> {
    let files = decks(results, &project(), &catalog()).unwrap();
    files.into_iter().map(|(name, content)| (name, String::from_utf8(content).unwrap())).collect()
}

/// The parts of a page, each from a mark on up to the next quote.
fn behind<'a>(page: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    page.split(mark).skip(1).filter_map(|rest| rest.split('"').next())
}

#[test]
fn each_deck_has_all_parts_of_a_lesson_and_says_whose_machine_it_shows() {
    let files = decks_of(&[]);
    let decks: Vec<&String> =
        files.iter().filter(|(name, _)| name.starts_with("lesson-")).map(|(_, page)| page).collect();
    assert_eq!(decks.len(), 6);
    for page in decks {
        for part in [
            "The question",
            "What do you expect?",
            "<svg class=\"plot\"",
            "The answer on",
            "Try it",
            "Quiz 3",
            "Takeaways",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(page.contains("another machine, whose results come with the program"));
        assert!(page.contains("NVIDIA H") && page.contains("class=\"interval\""));
        assert_eq!(page.matches("<section ").count(), page.matches("</section>").count());
    }
}

#[test]
fn the_kept_decks_show_a_figure_and_an_answer_of_each_chapter() {
    for (name, page) in decks_of(&[]).iter().filter(|(name, _)| name.starts_with("lesson-")) {
        let between = |slide: &str, (from, to): (&str, &str)| {
            let found = slide.split_once(from).and_then(|(_, rest)| rest.split_once(to));
            found.map(|(text, _)| text.to_owned()).unwrap_or_default()
        };
        let of = |slide: &str| (between(slide, ("class=\"part\">", "</p>")), between(slide, ("<h2>", "</h2>")));
        let slides: Vec<&str> = page.split("<section ").skip(2).collect();
        let mut titles: Vec<(String, String)> = slides.iter().map(|slide| of(slide)).collect();
        for (chapter, _) in titles.iter().filter(|(_, title)| title == "The question") {
            let has = |mark: &str| slides.iter().any(|slide| of(slide).0 == *chapter && slide.contains(mark));
            assert!(has("<svg class=\"plot\"") && has("The answer on NVIDIA H"), "{name}: {chapter}");
        }
        let all = titles.len();
        titles.sort();
        titles.dedup();
        assert_eq!(titles.len(), all, "{name}: {titles:?}");
    }
}

#[test]
fn no_slide_speaks_of_a_table_or_a_panel_by_a_place_that_only_the_chapter_has() {
    for (name, page) in decks_of(&[]) {
        for sentence in page.split(". ").map(str::to_lowercase) {
            let places =
                ["first panel", "second panel", "last panel", "the other panels", "matrix above", "sizes above"];
            assert!(!places.iter().any(|place| sentence.contains(place)), "{name}: {sentence}");
            let is_of_the_chapter = sentence.contains("chapter") || !sentence.contains(" the table");
            assert!(is_of_the_chapter, "{name}: {sentence}");
        }
    }
}

#[test]
fn links_and_files_of_a_deck_lead_somewhere_and_nowhere_else() {
    let files = decks_of(&[]);
    for (name, page) in files.iter().filter(|(name, _)| name.ends_with(".html")) {
        for link in behind(page, "href=\"").chain(behind(page, "src=\"")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { Some(page) } else { files.get(file) };
            let target = target.unwrap_or_else(|| panic!("{name}: {link}"));
            assert!(anchor.is_empty() || target.contains(&format!("id=\"{anchor}\"")), "{name}: {link}");
        }
    }
}

#[test]
fn an_own_machine_is_named_by_its_name_and_nothing_of_it_is_markup() {
    let mut results = crate::tests::results().clone();
    let evil = "<script>alert(1)</script>";
    results.runs.iter_mut().for_each(|run| run.environment.device.model = evil.to_owned());
    for (name, page) in decks_of(&[results]) {
        assert!(!page.contains("<script>alert"), "{name}");
        assert!(!page.contains("come with the program") || !name.ends_with(".html"), "{name}");
    }
}

#[test]
fn a_machine_that_measured_nothing_has_no_figures_and_no_answers() {
    for (name, page) in decks_of(&[nothing()]) {
        assert!(!page.contains("<svg ") && !page.contains("The answer on"), "{name}");
    }
}

#[test]
fn slides_are_put_beside_a_book_and_replace_what_this_program_made_and_nothing_else() {
    let out = tempfile::tempdir().unwrap();
    let render = || render_slides(&[], &project(), &catalog(), out.path());
    let index = render().unwrap();
    let page = fs::read_to_string(&index).unwrap();
    assert!(page.contains("Content-Security-Policy") && page.contains("script-src 'nonce-"), "{page}");
    assert_eq!(render().unwrap(), index);
    fs::remove_file(out.path().join("slides/.syncscope")).unwrap();
    assert!(matches!(render(), Err(BookError::File(_))));
    assert_eq!(fs::read_to_string(&index).unwrap(), page);
}

#[test]
fn a_lesson_that_names_what_the_book_does_not_have_is_refused_with_its_place() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("course");
    project().write(&folder).unwrap();
    let lessons = folder.join("lessons.yaml");
    let of = |text: &str| {
        fs::write(&lessons, text).unwrap();
        decks(&[nothing()], &BookProject::read(&folder, &project()).unwrap(), &catalog())
    };
    for (text, message) in [
        ("- title: A\n  chapters: [overlp]\n", "overlap"),
        ("- title: A\n  chapters: [overlap]\n  read: [nobody]\n", "lessons.yaml:3:"),
        ("- title: A\n  chapters: [overlap]\n  labs: [06-none]\n", "06-none"),
        ("- title: A\n", "chapters"),
    ] {
        let error = of(text).unwrap_err().to_string();
        assert!(error.contains(message) && error.contains("lessons.yaml"), "{error}");
    }
    let names = |files: BTreeMap<String, Vec<u8>>| files.into_keys().filter(|name| name.starts_with("lesson-")).count();
    assert_eq!(names(of("- title: A\n  chapters: [overlap]\n").unwrap()), 1);
    // Without the file each chapter that is a lesson is one.
    fs::remove_file(&lessons).unwrap();
    let files = decks(&[nothing()], &BookProject::read(&folder, &project()).unwrap(), &catalog()).unwrap();
    assert_eq!(names(files), 8);
}
