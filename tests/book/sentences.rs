//! What the chapters say in sentences, and the first page.

use syncscope::measure::Clock;
use syncscope_book::document::{Piece, Text};
use syncscope_book::takeaways;
use syncscope_results::{Outcome, Parameters, Provenance, Row};

use super::probe::{DOCUMENT, document, project, results};
use super::*;

/// What pieces of a sentence say together.
pub(super) fn words(pieces: &[Piece]) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Words(words) => words.clone(),
        Piece::Value { text, .. } => text.clone(),
    };
    pieces.iter().map(piece).collect()
}

/// A run of the probe, with a slow call that takes this many times the fast one: the more, the less the other takes.
fn once_slow_by(factor: f64) -> Results {
    let mut results = results();
    let samples = |scale: f64, slope: f64| (0..12).map(|round| scale * (1.0 + slope * f64::from(round))).collect();
    fixture::replace(&mut results, "probe.fast", &fixture::measured(samples(1e-6, 1e-3)));
    fixture::replace(&mut results, "probe.slow", &fixture::measured(samples(factor * 1.011e-6, -1e-3)));
    results
}

/// Three runs of it, of which the slow call scatters.
fn slow_by(factor: f64) -> Results {
    let mut results = fixture::with_run(fixture::with_run(once_slow_by(factor), 1.0), 1.0);
    for row in results.rows.iter_mut().filter(|row| row.spec.id == "probe.slow") {
        for (series, scatter) in row.series.iter_mut().zip([1.0, 1.01, 0.99]) {
            series.outcome.values_mut().into_iter().for_each(|sample| *sample *= scatter);
        }
    }
    results
}

fn said(results: &Results) -> String {
    words(&document().answer[0].said(&document(), results, "syncscope").unwrap().pieces)
}

#[test]
fn one_run_answers_with_its_values_and_says_that_another_may_say_otherwise() {
    const ONE_RUN: &str = "One run: another may say otherwise; measure three or more.";
    let (one, three) = (once_slow_by(4.0), slow_by(4.0));
    assert!(said(&one).starts_with("Open, "), "{}", said(&one));
    let chapter = |results: &Results| read(&source_as(&project(DOCUMENT), std::slice::from_ref(results)), "probe");
    assert!(chapter(&one).contains(ONE_RUN) && !chapter(&three).contains(ONE_RUN), "{}", chapter(&one));
    let takeaways = |results: &Results| takeaways(&[document()], results);
    assert_eq!(takeaways(&one).len(), 2);
    assert_eq!(takeaways(&one)[1], ONE_RUN);
    assert_eq!(takeaways(&three).len(), 1);
}

#[test]
fn the_measured_values_choose_what_is_said() {
    assert!(said(&slow_by(4.0)).starts_with("Slow, 4.02 µs or 25.0 %."), "{}", said(&slow_by(4.0)));
    assert!(said(&slow_by(1.0)).starts_with("Fast, 1.01 µs."), "{}", said(&slow_by(1.0)));
    assert!(said(&slow_by(2.0)).starts_with("Open, "), "{}", said(&slow_by(2.0)));
}

#[test]
fn a_claim_that_the_machine_refutes_stands_beside_the_answer() {
    let chapter = |mut results: Results, sign: f64| {
        let outcome = Outcome::Derived { samples: vec![sign * 1e-6; 12] };
        fixture::replace(&mut results, "probe.delta", &outcome);
        let runs = fixture::with_pytorch(fixture::three_runs(results));
        let marked = DOCUMENT.replace("claim: The slow call is slow.", "claim: The `slow` call *can* be slow.");
        read(&source_as(&project(&marked), &[runs]), "probe")
    };
    let words = "This machine contradicts what the text claims";
    assert!(!chapter(results(), 1.0).contains(words));
    let refuted = chapter(results(), -1.0);
    let beside = refuted.split(words).nth(1).unwrap_or_else(|| panic!("{refuted}"));
    let listed = beside.split("</ul>").next().unwrap();
    assert!(listed.contains("<a href=\"claims.html#c-slow\">The slow call can be slow.</a>"), "{listed}");
    assert!(listed.contains("<span class=\"why\">It is said so.</span>"), "a verdict stands with its reason: {listed}");
}

#[test]
fn a_value_in_a_sentence_is_that_of_the_run_and_says_what_is_behind_it() {
    let value = |results: &Results| {
        let pieces = document().answer[0].then.filled(&document(), results, "syncscope").unwrap();
        pieces.into_iter().find_map(|piece| match piece {
            Piece::Value { text, detail, interval } => Some((text, detail, interval)),
            Piece::Words(_) => None,
        })
    };
    let (text, detail, interval) = value(&slow_by(4.0)).unwrap();
    assert_eq!(interval.as_deref(), Some("3.922 … 4.122 µs"));
    assert_eq!(value(&once_slow_by(4.0)).unwrap().2.as_deref(), Some("one run, no interval"));
    assert_eq!(text, "4.02 µs");
    assert!(detail.starts_with("slow.fp16.size_8 = ") && detail.contains("n = 36"), "{detail}");
    assert_eq!(value(&slow_by(8.0)).unwrap().0, "8.04 µs");
}

/// Paper cannot be pointed at.
#[test]
fn a_value_in_a_sentence_has_its_interval_behind_it_in_print() {
    let chapter = read(&source_as(&project(DOCUMENT), &[slow_by(4.0)]), "probe");
    let exercise = chapter.split("<details class=\"exercise\">").nth(1).unwrap();
    for (part, ends) in [(chapter.as_str(), "3.922 … 4.122 µs"), (&chapter, " %"), (exercise, " µs")] {
        let intervals = part.split(" data-interval=\"").skip(1).filter_map(|rest| rest.split('"').next());
        assert!(intervals.clone().any(|interval| interval.contains(" … ") && interval.ends_with(ends)), "{part}");
    }
    let style = include_str!("../../report-templates/syncscope.css");
    let printed = style.split("@media print").skip(1).find(|rules| rules.contains("attr(data-interval)")).unwrap();
    assert!(printed.contains("span.measured[data-interval]::after"), "{printed}");
    // A number of the first page has its interval beside it everywhere.
    assert!(first_page(DOCUMENT, &scattered(2.1)).contains("(2.05 … 2.15 ×, 3 runs)"));
}

#[test]
fn values_and_shares_can_show_their_interval() {
    let said = |document: &Document, text: &str, results: &Results, system: &str| {
        let text: Text = serde_saphyr::from_str(&format!("'{text}'")).unwrap();
        words(&text.filled(document, results, system).unwrap())
    };
    let beside = |results: Results| said(&document(), "{{ slow.fp16.size_8|interval }}", &results, "syncscope");
    assert_eq!(beside(slow_by(4.0)), "4.02 µs (95 % interval: 3.922 … 4.122 µs)");
    assert_eq!(beside(once_slow_by(4.0)), "4.02 µs (one run, no interval)");

    let calls = documents().into_iter().find(|document| document.id == "pytorch-calls").unwrap();
    let results = fixture::with_pytorch(fixture::run());
    let count = |name: &str| said(&calls, &format!("{{{{ {name}.count|count }}}}"), &results, "PyTorch");
    let (part, whole) = (count("missed"), count("agrees"));
    let share = said(&calls, "{{ (missed.count / agrees.count)|share }}", &results, "PyTorch");
    assert!(share.starts_with(&format!("{part} of {whole} (95 % interval: ")) && share.ends_with(" %)"), "{share}");
}

#[test]
fn a_row_of_yes_and_no_is_written_as_trials_and_a_time_has_none() {
    let calls = documents().into_iter().find(|document| document.id == "pytorch-calls").unwrap();
    let results = fixture::with_pytorch(fixture::run());
    let written = |text: &str| {
        let text: Text = serde_saphyr::from_str(&format!("'{text}'")).unwrap();
        text.filled(&calls, &results, "PyTorch").map(|pieces| words(&pieces))
    };
    let item = Parameters::from([("call".to_owned(), "item".into())]);
    let row = results.lookup_of("PyTorch").find("pytorch-calls.blocks", &item, &Parameters::new()).unwrap();
    let trials = row.samples();
    let yes = trials.iter().filter(|trial| **trial == 1.0).count();
    assert_eq!(written("{{ blocks.item|trials }}").unwrap(), format!("{yes} of {} trials", trials.len()));
    assert!(written("{{ ready.item|trials }}").unwrap_err().contains("has no trials"));
}

/// What is advised of a run in a table: the cells below the heads.
fn advised(results: Results) -> Vec<Vec<String>> {
    const ADVICE: &str = "advice:\n  title: Which one\n  caption: C\n  columns: [case, choice, slow]\n  rows:\n    - case: a | b\n      \
                          choose: {if: slow.fp16.size_8 / fast.fp16.size_8 > 2, then: The fast one., else: Either., unclear: Open.}\n      \
                          values: ['{{ slow.fp16.size_8 }}']\n";
    let chapter = read(&source_as(&project(&format!("{DOCUMENT}{ADVICE}")), &[results]), "probe");
    let (_, table) =
        chapter.split_once("| case | choice | slow |\n|---|---|---|\n").unwrap_or_else(|| panic!("{chapter}"));
    let lines = table.lines().take_while(|line| line.starts_with('|'));
    lines.map(|line| line.trim_matches(['|', ' ']).split(" | ").map(str::to_owned).collect()).collect()
}

#[test]
fn the_measured_values_choose_what_is_advised_case_by_case() {
    for (factor, choice, value) in
        [(4.0, "The fast one.", ">4.02 µs<"), (1.0, "Either.", ">1.01 µs<"), (2.0, "Open.", "µs<")]
    {
        let rows = advised(slow_by(factor));
        assert_eq!((rows.len(), rows[0].len(), rows[0][0].as_str(), rows[0][1].as_str()), (1, 3, "a \\| b", choice));
        assert!(rows[0][2].contains(value), "{rows:?}");
    }
}

#[test]
fn advice_about_rows_that_a_run_lacks_says_so_in_their_cells() {
    let mut results = slow_by(4.0);
    results.rows.retain(|row| row.spec.id != "probe.fast");
    let rows = advised(results);
    assert!(rows[0][1].starts_with("Not answered here: ") && rows[0][2].contains(">4.02 µs<"), "{rows:?}");
}

/// A figure of one system is no figure of another.
#[test]
fn where_a_file_has_several_systems_each_answers_by_its_own_rows_under_its_own_name() {
    let all = measured_thrice();
    let files = source(&all);
    let mut exercises = 0;
    for document in documents() {
        let chapter = read(&files, &document.id);
        let answers = chapter.split("<div class=\"answers\">").nth(1).unwrap();
        // The first use of a term on a page is a link.
        let answers =
            answers.split("\n</div>\n").next().unwrap().replace("[syncscope](glossary.md#syncscope)", "syncscope");
        for system in ["syncscope", "PyTorch"] {
            assert!(answers.contains(&format!(", {system}:**")), "{}: {answers}", document.id);
        }
        exercises += chapter.matches(", PyTorch:* ").count();
    }
    assert!(exercises > 10, "{exercises}");
}

#[test]
fn each_system_of_the_kept_results_is_named_in_what_is_said_of_it_in_the_end() {
    let kept =
        Results::read(&Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/results/two-gpus.json.gz"))
            .unwrap();
    let said = takeaways(&documents(), &kept);
    assert!(said.iter().all(|line| line.starts_with("syncscope: ") || line.starts_with("PyTorch: ")), "{said:#?}");
    let measured = |document: &&Document| kept.run().order.iter().any(|ran| ran.name == document.id);
    let mut both = 0;
    for document in documents().iter().filter(measured) {
        for sentence in &document.answer {
            let pieces = ["syncscope", "PyTorch"].map(|system| sentence.said(document, &kept, system));
            both += usize::from(pieces.iter().all(Result::is_ok));
            for (system, said_of) in ["syncscope", "PyTorch"].into_iter().zip(pieces) {
                let Ok(said_of) = said_of else { continue };
                let text = words(&said_of.pieces).split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(said.contains(&format!("{system}: {text}")), "{system}: {text}");
            }
        }
    }
    assert!(both > 0);
}

#[test]
fn what_was_not_measured_is_said_in_place_of_an_answer() {
    let mut results = results();
    results.rows.retain(|row| row.spec.id != "probe.slow");
    let chapter = read(&source_as(&project(DOCUMENT), &[results]), "probe");
    assert!(
        chapter.contains("Not answered here: “Fast call” was not measured")
            || chapter.contains("Not answered here: “Slow call” was not measured (not in this run)."),
        "{chapter}"
    );
}

#[test]
fn exercises_are_folded_and_hold_values() {
    let files = fixture_book();
    for document in documents() {
        let chapter = page(files, &format!("site/{}.html", document.id));
        let folded = chapter.matches("<details class=\"exercise\">").count();
        assert!(folded > 0 && folded == document.exercises.len(), "{}", document.id);
        assert!(!chapter.contains("{{") && !chapter.contains("}}"), "{}", document.id);
    }
    let files = source_as(&project(DOCUMENT), &[slow_by(4.0)]);
    let chapter = read(&files, "probe");
    let answer = chapter.split("<details class=\"exercise\">").nth(1).unwrap();
    assert!(answer.contains("It is ") && answer.contains(">4.02 µs</span>"), "{answer}");
}

/// The first page of the probe's book, of results whose gain in each round is a function of it.
fn first_page(document: &str, gain: &dyn Fn(usize) -> f64) -> String {
    let mut results = results();
    fixture::replace(&mut results, "probe.gain", &Outcome::Derived { samples: (0..12).map(gain).collect() });
    read(&source_as(&project(document), &[fixture::three_runs(results)]), "README")
}

/// The first page of three runs, of which each has its own gain.
fn first_page_of(document: &str, gain: impl Fn(usize, usize) -> f64) -> String {
    let mut results = fixture::three_runs(results());
    for row in results.rows.iter_mut().filter(|row| row.spec.id == "probe.gain") {
        for (run, series) in row.series.iter_mut().enumerate() {
            series.outcome = Outcome::Derived { samples: (0..12).map(|round| gain(round, run)).collect() };
        }
    }
    read(&source_as(&project(document), &[results]), "README")
}

/// The rows of all experiments in three runs, of which each row scatters by itself, with PyTorch beside them.
fn measured_thrice() -> Results {
    let mut results = fixture::three_runs(fixture::run());
    // What was observed, yes or no, stays as it is.
    let is_timed = |row: &&mut Row| !matches!(row.spec.provenance, Provenance::Measured { clock: Clock::Observed, .. });
    for (place, row) in results.rows.iter_mut().filter(is_timed).enumerate() {
        for (run, series) in row.series.iter_mut().enumerate() {
            let factor = 1.0 + 1e-4 * ((7 * place + 5 * run) % 11) as f64;
            series.outcome.values_mut().into_iter().for_each(|sample| *sample *= factor);
        }
    }
    fixture::with_pytorch(results)
}

fn scattered(around: f64) -> impl Fn(usize) -> f64 {
    move |round| around + 0.01 * (round * 7 % 12) as f64 - 0.055
}

#[test]
fn the_first_page_has_three_effects_a_timeline_and_three_ways_to_start() {
    let mut results = measured_thrice();
    let documents = documents();
    let headlines = documents.iter().filter_map(|document| document.headline.as_ref());
    let scenario = headlines.clone().find_map(|headline| headline.timeline.as_ref()).unwrap();
    results.timelines.push(fixture::recorded(scenario));
    let first = read(&source(&results), "README");
    assert!(headlines.count() > 3);
    assert_eq!(first.matches("<span class=\"big\">").count(), 3, "{first}");
    assert!(first.contains("Three of the "), "{first}");
    assert!(first.contains("Timeline of") && first.contains("cargo run --release --bin report"));
    assert_eq!(first.matches("; syncscope: ").count(), 3, "{first}");
    for way in ["My program is slow:", "Measure this machine, or my kernel:", "Understand it:"] {
        assert_eq!(first.matches(&format!("<strong>{way}</strong>")).count(), 1, "{way}");
    }
    assert!(!first.contains("was not measured") && !first.contains("another machine"), "{first}");
}

#[test]
fn an_effect_is_a_number_with_its_interval_and_what_follows_from_it() {
    let document = DOCUMENT.replace("caption: as slow", "caption: as slow, above: Do less., below: Do more.");
    let above = first_page(&document, &scattered(2.1));
    assert!(above.contains(">2.10 ×<") && above.contains("(2.05 … 2.15 ×, 3 runs)"), "{above}");
    assert!(above.contains("Do less.") && !above.contains("Do more."), "{above}");
    let below = first_page(&document, &scattered(0.5));
    assert!(below.contains("Do more.") && !below.contains("Do less."), "{below}");
}

#[test]
fn what_may_be_no_difference_is_no_effect_of_the_first_page() {
    let none = first_page(DOCUMENT, &scattered(1.0));
    let line = none.lines().find(|line| line.contains("may be no difference")).unwrap();
    assert!(line.contains("probe.html") && !none.contains("as slow"), "{none}");
    // A share of which the runs say no more than that it is below all, or below nothing.
    let wide = DOCUMENT.replace("form: times", "form: percent");
    let wide = first_page_of(&wide, |_, run| [0.02, 0.05, 0.4][run]);
    assert!(!wide.contains("as slow") && wide.contains("may be no difference"), "{wide}");
    // One run says nothing of another.
    let one = read(&source_as(&project(DOCUMENT), &[results()]), "README");
    assert!(!one.contains("as slow") && one.contains("one run: another may say otherwise"), "{one}");
}

#[test]
fn the_first_page_shows_the_three_effects_farthest_from_none() {
    let all = measured_thrice();
    let first = read(&source(&all), "README");
    let list = first.split("<ol class=\"effects\">").nth(1).unwrap().split("</ol>").next().unwrap();
    let shown = list.split("<a href=\"").skip(1).filter_map(|rest| rest.split(".html").next());
    let least = |document: &Document| {
        let number = document.headline.as_ref()?.said(document, &all, "syncscope").ok()?;
        Some((number.is_steady, number.effect.least()?, document.id.clone()))
    };
    let mut expected: Vec<_> = documents().iter().filter_map(least).collect();
    expected.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
    let expected: Vec<String> = expected.into_iter().take(3).map(|(.., id)| id).collect();
    assert!(!expected.is_empty());
    assert_eq!(shown.collect::<Vec<&str>>(), expected);
}

#[test]
fn a_number_of_the_first_page_that_was_not_measured_says_why() {
    let mut results = results();
    results.rows.retain(|row| row.spec.id != "probe.gain");
    let first = read(&source_as(&project(DOCUMENT), &[results]), "README");
    assert!(first.contains("“Slow / fast” was not measured (not in this run)"), "{first}");
}

/// A reader without a GPU is shown one, and the own run as what it is.
#[test]
fn the_first_page_without_a_gpu_leads_with_the_kept_gpu_results() {
    let mut own = fixture::three_runs(fixture::run());
    for run in &mut own.runs {
        run.environment.device.engine = "cpu".to_owned();
        run.environment.device.model = "The emulation".to_owned();
    }
    let first = read(&source(&own), "README");
    let (lead, rest) = first.split_once("Your run: The emulation").unwrap_or_else(|| panic!("{first}"));
    assert!(lead.contains("Measured on another machine:</strong> an NVIDIA H"), "{lead}");
    assert!(lead.contains("; syncscope: ") && lead.contains("<svg") && !lead.contains("The emulation"), "{lead}");
    assert!(rest.contains("the times are not a GPU's") && !rest.contains("PyTorch: "), "{rest}");
    assert!(!first.contains("class=\"verdict"), "{first}");
    // Where a GPU was measured, too, no other one is shown.
    let both = read(&source_as(&carried_book(), &[own, fixture::three_runs(fixture::run())]), "README");
    assert!(!both.contains("another machine") && !both.contains("Your run"), "{both}");
}

#[test]
fn a_chapter_beyond_the_texts_stands_where_a_run_measured_its_rows() {
    let whole = fixture::run();
    let of_words =
        |document: &&Document| document.source.is_none() && document.tables.is_empty() && document.figures.is_empty();
    for document in documents().iter().filter(of_words) {
        let mut without = whole.clone();
        without.rows.retain(|row| row.spec.experiment() != document.id);
        let contents = |results: &Results| read(&source(results), "SUMMARY");
        let link = format!("({}.md)", document.id);
        assert!(
            !contents(&without).contains(&link) && read(whole_source(), "SUMMARY").contains(&link),
            "{}",
            document.id
        );
        // Its tables are those of the experiment: the document has words alone.
        let chapter = read(whole_source(), &document.id);
        for row in whole.rows.iter().filter(|row| row.spec.experiment() == document.id) {
            assert!(chapter.contains(&format!("data-id=\"{}\"", row.spec.id)), "{}", row.spec.id);
        }
    }
}

/// What samples of a machine may refute stands in no text that is the same on every machine.
#[test]
fn no_fixed_text_says_what_a_machine_may_refute() {
    // A full queue makes the last launch wait; events also hold the gaps around a kernel; a cost has no length everywhere.
    let refuted = ["dispatch time alone", "the work alone", "Device events time the kernel", "costs microseconds"];
    let texts = ["synchronize", "sync-points", "self-audit", "overlap", "async-frontend", "ceilings", "launch-path"];
    for name in texts {
        let chapter = read(whole_source(), name).split_whitespace().collect::<Vec<_>>().join(" ");
        for words in refuted {
            assert!(!chapter.contains(words), "{name} says “{words}”");
        }
    }
}

/// The answer of a chapter is of the samples: each of its three texts says another thing.
#[test]
fn the_three_texts_of_an_answer_differ() {
    for document in documents() {
        for sentence in &document.answer {
            let texts = [&sentence.then, &sentence.otherwise, &sentence.unclear];
            let differ = texts[0] != texts[1] && texts[1] != texts[2] && texts[0] != texts[2];
            assert!(differ, "{}: {}", document.id, sentence.condition);
        }
    }
}
