//! Every document that comes with the program, whatever it says: what is printed in it stands in its chapter, what it asks
//! is answered, what it claims is judged. The expectations are read from the documents' text.

use serde::Deserialize;
use syncscope::device::Device;
use syncscope_book::document::{ClaimKind, ClaimSubject, Piece, SentenceForm};
use syncscope_book::predicate::ClaimVerdict;
use syncscope_present::units::Unit;
use syncscope_results::{Provenance, Recorded, Selection};
use syncscope_suite::experiment::record_scenarios;
use syncscope_suite::runner::Suite;

use super::*;

/// A document as its text has it: figures are text, whose zeros count.
#[derive(Deserialize)]
struct Printed {
    id: String,
    order: u32,
    source: Option<String>,
    lesson: Option<PrintedLesson>,
    #[serde(default)]
    tables: Vec<PrintedTable>,
    #[serde(default)]
    claims: Vec<PrintedClaim>,
}

#[derive(Deserialize)]
struct PrintedLesson {
    learn: Vec<String>,
    quiz: Vec<PrintedQuestion>,
    next: Vec<String>,
}

#[derive(Deserialize)]
struct PrintedQuestion {
    choices: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct PrintedTable {
    #[serde(default)]
    cases: Vec<PrintedCase>,
    rows: Vec<PrintedRow>,
}

#[derive(Deserialize)]
struct PrintedCase {
    label: String,
}

#[derive(Deserialize)]
struct PrintedRow {
    id: String,
    #[serde(default)]
    published: BTreeMap<String, Option<String>>,
    relative: Option<PrintedRelative>,
}

#[derive(Deserialize)]
struct PrintedRelative {
    #[serde(default)]
    published: BTreeMap<String, Option<String>>,
}

#[derive(Deserialize)]
struct PrintedClaim {
    id: String,
}

fn printed() -> Vec<Printed> {
    let project = carried_book();
    let text = |document: Document| project.text(&format!("documents/{}.yaml", document.id)).unwrap().to_owned();
    let documents: Vec<Printed> =
        documents().into_iter().map(|document| serde_saphyr::from_str(&text(document)).unwrap()).collect();
    assert!(!documents.is_empty());
    documents
}

/// The cells of a row with this identifier, of each case in order: the text of the `class` in each.
fn cells<'a>(chapter: &'a str, id: &str, class: &str) -> Vec<&'a str> {
    let rows = chapter.lines().filter(|line| line.starts_with(&format!("<tr data-id=\"{id}\">")));
    let cell = |row: &'a str| row.split(&format!("<td class=\"{class}\"")).nth(1)?.split("</td>").next();
    rows.map(|row| cell(row).unwrap_or_default()).collect()
}

/// The text of the first span of a class.
fn span<'a>(cell: &'a str, class: &str) -> &'a str {
    cell.split(&format!("<span class=\"{class}\">")).nth(1).and_then(|rest| rest.split("</span>").next()).unwrap_or("")
}

/// Whether `shown` (`25.0359 ms`, `0.95 % of …`) is the figure `printed` (`25.0359e-3`), to the digit.
fn is_shown(printed: &str, shown: &str) -> bool {
    let mut words = shown.split(' ');
    let (number, symbol) = (words.next().unwrap_or_default().replace('−', "-"), words.next().unwrap_or_default());
    let factor = match symbol {
        "ns" => 1e-9,
        "µs" => 1e-6,
        "ms" => 1e-3,
        "%" => 1e-2,
        "s" | "" => 1.0,
        other => panic!("what is `{other}`?"),
    };
    let (Ok(value), Ok(meant)) = (number.parse::<f64>(), printed.parse::<f64>()) else { return false };
    let digits = |text: &str| {
        let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        digits.trim_start_matches('0').to_owned()
    };
    // Zeros that the prefix of the unit brings (`700 µs` for 0.0007) are no digits of the figure.
    let rest = digits(&number).strip_prefix(&digits(printed)).map(str::to_owned);
    let same = rest.is_some_and(|rest| rest.is_empty() || !number.contains('.') && rest.bytes().all(|b| b == b'0'));
    same && (value * factor / meant - 1.0).abs() < 1e-9
}

#[test]
fn every_published_figure_stands_in_its_chapter_with_its_digits() {
    let files = whole_source();
    let mut figures = 0;
    for document in printed() {
        let chapter = read(files, &document.id);
        for table in document.tables {
            let cases: Vec<String> = table.cases.into_iter().map(|case| case.label).collect();
            let place = |case: &String| cases.iter().position(|known| known == case).unwrap_or(0);
            for row in table.rows {
                let shown = cells(&chapter, &row.id, "published");
                let relative = row.relative.map(|relative| relative.published).unwrap_or_default();
                for (class, case, figure) in row
                    .published
                    .iter()
                    .map(|(case, figure)| ("value", case, figure))
                    .chain(relative.iter().map(|(case, figure)| ("share", case, figure)))
                {
                    let Some(figure) = figure else { continue };
                    let cell = span(shown[place(case)], class);
                    let (terms, sum) = cell.rsplit_once(" = ").unwrap_or((cell, cell));
                    let found = match figure.split_once(" + ") {
                        None => is_shown(figure, cell),
                        // A sum stands with its terms.
                        Some(_) => {
                            let same = |(printed, shown): (&str, &str)| is_shown(printed, shown);
                            let total: f64 = figure.split(" + ").map(|term| term.parse::<f64>().unwrap()).sum();
                            figure.split(" + ").zip(terms.split(" + ")).all(same) && is_shown(&total.to_string(), sum)
                        }
                    };
                    assert!(found, "{}: {figure} of {} ({case}) is shown as `{cell}`", document.id, row.id);
                    figures += 1;
                }
            }
        }
    }
    assert!(figures > 0, "no document prints a figure");
}

#[test]
fn every_row_of_a_document_stands_in_its_chapter_once_for_each_case() {
    let files = whole_source();
    for document in printed() {
        let chapter = read(files, &document.id);
        for table in &document.tables {
            for row in &table.rows {
                let found = cells(&chapter, &row.id, "measured");
                let expected = table.cases.len().max(1);
                assert!(found.len() >= expected, "{} stands {} times in {}", row.id, found.len(), document.id);
                let has_value = |cell: &&str| ["class=\"value", "✓", "✗"].iter().any(|value| cell.contains(value));
                assert!(found.iter().any(has_value), "{} has no value", row.id);
            }
        }
        assert!(chapter.contains("every row of this chapter was measured"), "{} lacks rows", document.id);
    }
}

#[test]
fn every_document_answers_with_measured_values_whatever_the_verdict() {
    let (results, system) = (fixture::run(), "syncscope");
    for document in documents() {
        assert!(!document.answer.is_empty(), "{} answers nothing", document.id);
        for sentence in &document.answer {
            for text in [&sentence.then, &sentence.otherwise, &sentence.unclear] {
                let pieces = text
                    .filled(&document, &results, system)
                    .unwrap_or_else(|reason| panic!("{}: {reason}", document.id));
                let measured = |piece: &Piece| matches!(piece, Piece::Value { .. });
                assert!(pieces.iter().any(measured), "{}: {text:?}", document.id);
            }
            sentence.said(&document, &results, system).unwrap();
        }
    }
}

#[test]
fn every_claim_has_a_verdict_in_its_chapter_and_on_the_page_of_claims() {
    let results = fixture::run();
    let both = fixture::with_pytorch(fixture::three_runs(results.clone()));
    let files = whole_source();
    let page = read(files, "claims");
    for (document, printed) in documents().iter().zip(printed()) {
        let chapter = read(files, &document.id);
        assert_eq!(document.claims.len(), printed.claims.len(), "{}", document.id);
        for (claim, PrintedClaim { id }) in document.claims.iter().zip(printed.claims) {
            let verdict = claim.judge(document, &results).verdict;
            let unmeasured = matches!(&verdict, ClaimVerdict::NotJudged(reason) if reason.contains("is about PyTorch"));
            assert_eq!(
                unmeasured,
                claim.on == Some(ClaimSubject::Pytorch),
                "{id}: {verdict:?}, and PyTorch was not measured"
            );
            let by_both = claim.judge(document, &both).verdict;
            // What made-up runs came to may be the same in all of them, which shows no scatter.
            let without_scatter = |reason: &str| reason.contains("came to the same value");
            let judged = match &by_both {
                ClaimVerdict::NotJudged(reason) => claim.given.is_some() || without_scatter(reason),
                _ => true,
            };
            assert!(judged, "{id}: {by_both:?}, and every row was measured");
            // The book's own claims stand on the page of claims alone.
            let line = chapter.lines().find(|line| line.ends_with(&format!("](claims.md#{id})")));
            assert_eq!(line.is_some(), !claim.places.is_empty(), "{id}");
            assert!(
                line.is_none_or(|line| line.contains(&format!("<strong>{}</strong>", verdict.name()))),
                "{id}: {line:?}"
            );
            let row = page.lines().find(|line| line.contains(&format!("data-id=\"{id}\"")));
            assert!(row.is_some_and(|row| row.contains(&verdict.name())), "{id} is not on the page of claims: {row:?}");
        }
    }
}

/// A factor between a call that has returned and work that is complete compares two things that nobody would choose between.
#[test]
fn both_sides_of_a_factor_end_with_the_return_of_a_call_or_both_with_complete_work() {
    let ends_early = |name: &str| {
        let name = name.replace('_', "-");
        ["dispatch", "host-free", "enqueue", ".free"].iter().any(|end| name.contains(end))
    };
    let documents = documents();
    let headlines = documents.iter().filter_map(|document| document.headline.as_ref());
    let mut factors: Vec<(String, String)> = headlines
        .filter(|headline| headline.form == SentenceForm::Times)
        .filter_map(|headline| headline.value.split_once(" / "))
        .map(|(one, other)| (one.to_owned(), other.to_owned()))
        .collect();
    for spec in catalog().specs() {
        let Provenance::Derived { operands, .. } = &spec.provenance else { continue };
        if let (Unit::Ratio, [one, other]) = (spec.unit, operands.as_slice()) {
            factors.push((one.id.clone(), other.id.clone()));
        }
    }
    assert!(factors.len() > 10, "{factors:?}");
    let wrong: Vec<_> = factors.iter().filter(|(one, other)| ends_early(one) != ends_early(other)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// What can be so is refuted by no case, and what is said to be so always is not confirmed by one.
#[test]
fn a_claim_that_says_can_is_of_the_kind_that_asks_for_one_case() {
    let says = |claim: &str| {
        let words: Vec<&str> = claim.split(|letter: char| !letter.is_alphanumeric()).collect();
        words.iter().any(|word| ["can", "may", "might"].contains(word))
            || ["Not all ", "if this is necessary"].iter().any(|part| claim.contains(part))
    };
    let claims = documents().into_iter().flat_map(|document| document.claims);
    let wrong: Vec<String> =
        claims.filter(|claim| says(&claim.claim) != (claim.kind == ClaimKind::Exists)).map(|claim| claim.id).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// No machine has a say in what printed figures show.
#[test]
fn a_claim_about_figures_has_one_verdict_and_counts_for_no_machine() {
    let machines = [fixture::run(), fixture::run()];
    let page = read(&source_as(&carried_book(), &machines), "claims");
    let claims = documents().into_iter().flat_map(|document| document.claims);
    let of_texts = claims.filter(|claim| !claim.places.is_empty());
    let (figures, others): (Vec<_>, Vec<_>) = of_texts.partition(|claim| claim.kind == ClaimKind::Arithmetic);
    for claim in &figures {
        let row = page.lines().find(|line| line.contains(&format!("data-id=\"{}\"", claim.id))).unwrap();
        // Beside the claim.
        assert_eq!(row.matches("<td").count(), 2, "{row}");
    }
    let counted = |line: &str| -> usize {
        let totals = line.rsplit(": ").next().unwrap().trim_end_matches('.');
        totals.split(", ").map(|part| part.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum()
    };
    let totals: Vec<usize> = page
        .lines()
        .filter(|line| line.starts_with("- On ") || line.starts_with("- From printed figures"))
        .map(counted)
        .collect();
    assert_eq!(totals, [others.len(), others.len(), figures.len()]);
}

/// Medians of differences are no differences of medians, and a reader who subtracts has to know that.
#[test]
fn a_difference_beside_its_two_times_says_that_it_is_taken_round_by_round() {
    let documents = documents();
    let said = documents.iter().flat_map(|document| &document.answer);
    let texts = said.flat_map(|said| [&said.then, &said.otherwise, &said.unclear]);
    let texts: Vec<String> = texts
        .map(|text| format!("{text:?}"))
        .filter(|text| text.contains(".delta }}") && text.contains("difference is"))
        .collect();
    assert!(!texts.is_empty() && texts.iter().all(|text| text.contains("ound by round")), "{texts:#?}");
}

/// What CUDA does is asked of the program that was measured, so that no other one is named where none was.
#[test]
fn no_verdict_names_a_system_that_was_not_measured_unless_the_claim_is_about_it() {
    let mut emulated = fixture::run();
    emulated.runs[0].environment.device.engine = "cpu".to_owned();
    for results in [fixture::run(), emulated, fixture::with_pytorch(fixture::run())] {
        for document in documents() {
            for claim in document.claims.iter().filter(|claim| claim.on != Some(ClaimSubject::Pytorch)) {
                let judgement = claim.judge(&document, &results);
                for judgement in std::iter::once(&judgement).chain(judgement.beside.as_deref()) {
                    assert!(
                        results.systems().contains(&judgement.system.as_str()),
                        "{}: {}",
                        claim.id,
                        judgement.system
                    );
                }
            }
        }
    }
}

/// Nobody knows a text by the name of its file: that stands with its title on the page of sources.
#[test]
fn texts_are_cited_by_title_and_date_and_their_files_on_the_sources_page() {
    let texts = carried_book().texts().unwrap();
    for document in documents() {
        let Some(file) = &document.source else { continue };
        let text = texts.of_file(file).unwrap();
        for name in [document.id.as_str(), "claims", "sources"] {
            assert!(read(whole_source(), name).contains(&text.dated()), "{name} does not name {}", text.title);
        }
        for path in whole_source().keys().filter(|path| path.extension().is_some_and(|end| end == "md")) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert_eq!(read(whole_source(), name).contains(file.as_str()), name == "sources", "{name}");
        }
    }
}

#[test]
fn the_chapters_stand_in_the_order_that_their_documents_state() {
    let summary = read(whole_source(), "SUMMARY");
    let place = |id: &str| summary.find(&format!("({id}.md)")).unwrap_or_else(|| panic!("{id} is not in {summary}"));
    let mut printed = printed();
    printed.sort_by_key(|document| (document.source.is_none() && document.lesson.is_none(), document.order));
    let chapters = printed.iter().map(|document| document.id.as_str());
    let places: Vec<usize> = ["README"].into_iter().chain(chapters).chain(["claims", "machine"]).map(place).collect();
    assert!(places.is_sorted(), "{summary}");
}

#[test]
fn the_course_is_a_part_of_its_own_and_what_is_for_reference_another() {
    let summary = read(whole_source(), "SUMMARY");
    let (before, reference) = summary.split_once("# Reference").unwrap();
    let course = before.split("# Course").nth(1).unwrap().split("# Labs").next().unwrap();
    for document in printed() {
        let link = format!("({}.md)", document.id);
        let is_course = document.source.is_some() || document.lesson.is_some();
        assert_eq!((course.contains(&link), reference.contains(&link)), (is_course, !is_course), "{link}");
    }
}

/// A chapter of the course asks before it shows, and says at its end what to keep in mind.
#[test]
fn a_chapter_of_the_course_is_a_lesson() {
    let lessons: Vec<(String, PrintedLesson)> =
        printed().into_iter().filter_map(|document| Some((document.id, document.lesson?))).collect();
    assert_eq!(lessons.len(), 8);
    for (id, lesson) in lessons {
        let chapter = read(whole_source(), &id);
        let place = |part: &str| chapter.find(part).unwrap_or_else(|| panic!("{id} has no {part}"));
        let parts = ["**You learn**", "## Predict", "type=\"radio\"", "## What was measured", "## Takeaways"];
        let folded = ["id=\"quiz\"", "id=\"exercises\"", "id=\"what-runs\""];
        let places: Vec<usize> = parts.into_iter().chain(folded).map(place).collect();
        assert!(places.is_sorted() && chapter.contains("<svg"), "{id}: {places:?}");
        assert!(!lesson.learn.is_empty() && lesson.quiz.len() == 3, "{id}");
        let choices: usize = lesson.quiz.iter().map(|question| question.choices.len()).sum();
        assert_eq!(chapter.matches("<details class=\"choice\">").count(), choices, "{id}");
        assert_eq!(chapter.matches("**Right.**").count(), 3, "{id}");
        for next in lesson.next {
            assert!(chapter.contains(&format!("]({next}.md)")), "{id} does not lead to {next}");
        }
        assert!(!chapter.contains("Not answered here"), "{id}");
    }
}

#[test]
fn every_page_of_the_book_is_in_its_table_of_contents_once() {
    let files = whole_source();
    let summary = read(files, "SUMMARY");
    let pages = files.keys().filter_map(|path| path.to_str()?.strip_prefix("book/src/")?.strip_suffix(".md"));
    for name in pages.filter(|name| *name != "SUMMARY") {
        assert_eq!(summary.matches(&format!("]({name}.md)")).count(), 1, "{name}");
    }
}

/// Every timeline that a document draws is one that an experiment records.
#[test]
fn every_timeline_of_the_documents_is_recorded() {
    let documents = documents();
    let figures = documents.iter().flat_map(|document| &document.figures);
    let only: Vec<String> = figures.flat_map(|f| &f.panels).filter_map(|panel| panel.timeline.clone()).collect();
    let (origin, quick) = carried_book().suite("quick").map(|(name, text)| (name, text.to_owned())).unwrap();
    let suite = Suite::parse(&quick, &origin, &Registry::builtin()).unwrap();
    let device = Device::open("cpu:0").unwrap();
    let selection = Selection { only: only.clone(), skip: Vec::new() };
    let experiments = suite.experiments_on("cpu").iter();
    let recorded: Vec<_> =
        experiments.flat_map(|experiment| record_scenarios(experiment.as_ref(), &selection, &device, "run")).collect();
    for name in only {
        let found = recorded.iter().find(|scenario| scenario.name == name);
        let found = found.unwrap_or_else(|| panic!("no experiment records {name}"));
        assert!(matches!(found.recorded, Recorded::Timeline(_)), "{found:?}");
        assert_eq!(found.untraced_s.len(), found.traced_s.len());
    }
}
