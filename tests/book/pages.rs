//! Pages as files: the same anywhere, whole, safe from what a results file holds.

use std::collections::BTreeMap;
use std::process::Command;

use syncscope_present::escape;
use syncscope_results::Outcome;

use super::*;

#[test]
fn the_same_results_make_the_same_bytes_anywhere() {
    let trees = [("UTC", "C", "One"), ("Pacific/Kiritimati", "tr_TR.UTF-8", "Another")].map(|(zone, locale, title)| {
        let out = TempDir::with_prefix(format!("book-{title}")).unwrap();
        let results = out.path().join("results.json");
        fixture::run_with_every_outcome().write(&results).unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "pages::render_where_the_environment_says", "--ignored", "--quiet"])
            .env("SYNCSCOPE_TEST_RESULTS", &results)
            .env("SYNCSCOPE_TEST_OUT", out.path().join("deep").join(title))
            .env("TZ", zone)
            .env("LANG", locale)
            .env("LC_ALL", locale)
            .env("MDBOOK_BOOK__TITLE", title)
            .current_dir(out.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        tree(&out.path().join("deep").join(title))
    });
    let [one, another] = trees;
    assert!(one.len() > 20);
    assert_eq!(one.keys().collect::<Vec<_>>(), another.keys().collect::<Vec<_>>());
    for (path, content) in &one {
        assert!(*content == another[path], "{} differs", path.display());
    }
}

#[test]
#[ignore = "not a test of its own: another runs it in a process with another environment"]
fn render_where_the_environment_says() {
    let path = |name: &str| PathBuf::from(std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set")));
    let results = Results::read(&path("SYNCSCOPE_TEST_RESULTS")).unwrap();
    render(&[results], &carried_book(), &catalog(), &path("SYNCSCOPE_TEST_OUT")).unwrap();
}

/// Puts a text wherever a results file holds one that is shown.
fn with_texts(text: &str) -> Results {
    let mut results = fixture::run_with_every_outcome();
    results.suite["title"] = text.into();
    let run = &mut results.runs[0];
    run.environment.device.model = text.to_owned();
    run.environment.device.facts.push((text.to_owned(), text.to_owned()));
    run.environment.cuda_unavailable = Some(format!("{text}\n\n    {text}"));
    run.environment.program.command.push(text.to_owned());
    run.order[0].failure = Some(text.to_owned());
    for (place, row) in results.rows.iter_mut().enumerate() {
        // An experiment that this program does not know: what is shown of it is what the file says.
        if let Some(rest) = row.spec.id.strip_prefix("launch-path.") {
            row.spec.id = format!("foreign.{rest}");
            (row.spec.group, row.spec.label) = (text.to_owned(), format!("{text} {place}"));
        }
        if let Outcome::Skipped { reason } | Outcome::Failed { reason } = &mut row.series[0].outcome {
            *reason = text.to_owned();
        }
    }
    run_named(&mut results, "launch-path", "foreign", text);
    results
}

fn run_named(results: &mut Results, from: &str, to: &str, summary: &str) {
    let ran = results.runs[0].order.iter_mut().find(|ran| ran.name == from).unwrap();
    (ran.name, ran.summary) = (to.to_owned(), summary.to_owned());
}

#[test]
fn a_hostile_text_is_text_wherever_it_stands() {
    const HOSTILE: &str =
        "<script>alert(1)</script> *a* _b_ [c](http://d) | `e` {{#include book.toml}} # f ]]> &lt; \"'";
    let files = rendered(&with_texts(HOSTILE));
    let plain = rendered(&with_texts("harmless"));
    for (path, html) in pages(&files) {
        let harmless = page(&plain, path.to_str().unwrap());
        for needle in ["<script", "<em>", "<a href=\"http", "<code>"] {
            let count = |html: &str| html.matches(needle).count();
            assert_eq!(count(html), count(harmless), "{needle} in {}", path.display());
        }
        assert!(!html.contains("description = "), "{} includes a file", path.display());
        check_balance(path, html);
    }
    for name in ["machine", "foreign"] {
        let html = page(&files, &format!("site/{name}.html"));
        assert!(html.contains("{{#include book.toml}}") && html.contains("&lt;script&gt;alert(1)"), "{name}");
    }
    assert!(read(&files, "machine").contains("<script>alert(1)</script>"));
}

#[test]
fn every_page_is_balanced_html_with_unique_identifiers() {
    let files = fixture_book();
    assert!(pages(files).count() >= documents().len());
    for (path, html) in pages(files) {
        check_balance(path, html);
        let mut seen = std::collections::BTreeSet::new();
        for id in html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(seen.insert(id), "`{id}` twice in {}", path.display());
        }
    }
}

/// Panics unless every element of `html` that must be closed is, in order.
fn check_balance(path: &Path, html: &str) {
    const VOID: [&str; 8] = ["meta", "link", "br", "hr", "img", "input", "col", "base"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.starts_with("!--") {
            rest = &rest[rest.find("-->").unwrap()..];
            continue;
        }
        let tag = &rest[..rest.find('>').unwrap()];
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap();
        if tag.starts_with('!') || VOID.contains(&name) || tag.ends_with('/') {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "in {} before {}", path.display(), &rest[..80.min(rest.len())]);
        } else if matches!(name, "script" | "style") {
            rest = &rest[rest.find(&format!("</{name}>")).unwrap() + 2..];
        } else {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} not closed in {}", path.display());
}

#[test]
fn a_render_that_fails_leaves_the_earlier_book() {
    let out = TempDir::new().unwrap();
    let results = [fixture::run()];
    render(&results, &carried_book(), &catalog(), out.path()).unwrap();
    let before = tree(out.path());
    assert!(render(&[], &carried_book(), &catalog(), out.path()).is_err());
    // mdBook keeps the name `print` for itself, and says so only when it builds.
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("project");
    carried_book().write(&folder).unwrap();
    let summary = folder.join("templates/summary.md.j2");
    fs::write(&summary, fs::read_to_string(&summary).unwrap() + "[Printed](print.md)\n").unwrap();
    fs::write(folder.join("src/print.md"), "# Printed\n").unwrap();
    let source = Source::of(&results, &BookProject::read(&folder, &carried_book()).unwrap(), &catalog());
    let error = source.and_then(|source| source.write(out.path())).unwrap_err().to_string();
    assert!(error.contains("print.md is reserved"), "{error}");
    assert!(before == tree(out.path()));
}

#[test]
fn a_document_s_listing_stands_in_its_chapter_as_it_is() {
    let files = whole_source();
    let languages = [("py", "python", "PyTorch"), ("cu", "cpp", "CUDA C++"), ("rs", "rust,noplayground", "Rust")];
    let mut shown = BTreeMap::new();
    for document in documents() {
        let chapter = page(files, &format!("book/src/{}.md", document.id));
        for listing in &document.listings {
            let of_it = |(ending, ..): &(&str, &str, &str)| listing.ends_with(&format!(".{ending}"));
            let (_, fence, language) = languages.into_iter().find(of_it).unwrap();
            let text = carried_book().text(&format!("src/{listing}")).unwrap().to_owned();
            assert!(chapter.contains(&format!("```{fence}\n{}\n```", text.trim_end())), "{listing}");
            assert!(chapter.contains(&format!("<p class=\"language\">In {}</p>", escape(language))), "{listing}");
            *shown.entry(language).or_insert(0) += 1;
        }
    }
    assert!(shown.len() == languages.len() && shown["CUDA C++"] == shown["Rust"], "{shown:?}");
    assert!(!page(fixture_book(), "site/sync-points.html").contains("play-button"));
}

#[test]
fn a_page_links_the_first_use_of_a_term() {
    let files = fixture_book();
    let linked = |html: &str| html.matches("href=\"glossary.html#pending\"").count();
    let chapters: Vec<usize> = pages(files)
        .filter(|(path, _)| !path.ends_with("print.html") && !path.ends_with("glossary.html"))
        .map(|(_, html)| linked(html))
        .collect();
    assert!(chapters.contains(&1) && chapters.iter().all(|count| *count <= 1), "{chapters:?}");
    assert!(page(files, "site/glossary.html").contains("id=\"pending\""));
}

#[test]
fn the_page_to_print_is_the_course_unfolded_and_leads_nowhere_that_is_not_there() {
    let files = fixture_book();
    let print = page(files, "site/print.html");
    for (heading, is_there) in [("Synchronization points", true), ("Glossary", true), ("Peak rates measured", false)] {
        let shown = print.contains(&format!(">{heading}</a></h1>"));
        assert_eq!(shown, is_there, "{heading}");
    }
    assert!(print.contains("<details open") && !print.contains("<details class"), "a part is folded");
    let ids: std::collections::BTreeSet<&str> =
        print.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let links = print.split(" href=\"#").skip(1).filter_map(|rest| rest.split('"').next());
    for link in links {
        assert!(ids.contains(link), "#{link}");
    }
}

#[test]
fn a_link_to_a_chapter_that_is_left_out_is_no_link() {
    let whole = page(whole_source(), "book/src/memory.md");
    assert!(whole.contains("[The calls for memory](driver-calls.md)"), "{whole}");
    let mut results = fixture::run();
    results.rows.retain(|row| row.spec.experiment() != "driver-calls");
    let files = source(&results);
    let part = page(&files, "book/src/memory.md");
    assert!(part.contains("The calls for memory are measured") && !part.contains("driver-calls"), "{part}");
    assert!(part.contains("](overlap.md)"));
}

/// What a reader folds out on the screen stands under the figure that shows it; in a lesson, what no figure shows stands in the
/// details behind it.
#[test]
fn a_table_is_folded_under_the_figure_that_draws_it() {
    for document in documents() {
        let chapter = page(whole_source(), &format!("book/src/{}.md", document.id));
        for table in document.tables.iter().filter(|table| !table.opens) {
            let drawn = document.figures.iter().flat_map(|figure| &figure.panels).any(|panel| panel.draws(table));
            let folded = chapter.contains(&format!("<details class=\"table\" id=\"{}\">", table.id));
            assert_eq!(folded, drawn || document.lesson.is_some(), "{} of {}", table.id, document.id);
        }
    }
}
