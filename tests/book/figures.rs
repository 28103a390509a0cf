//! Plots, timelines and their data.

use syncscope_book::document::{DocumentFigure, Matrix, Panel};
use syncscope_book::{bar_plot, drawn, line_plot};
use syncscope_present::{Point, Spacing};
use syncscope_results::{MetricSpec, Outcome, Recorded, RecordedTimeline};

use super::probe::{DOCUMENT, project, results};
use super::*;

#[test]
fn lines_hold_every_point_and_name_the_extremes() {
    let results = fixture::run();
    let documents = documents();
    let panels = documents.iter().flat_map(|document| {
        let panels = document.figures.iter().flat_map(|figure| &figure.panels);
        panels.filter_map(move |panel| Some((document.table(&panel.table)?, panel, panel.lines.as_ref()?)))
    });
    let mut drawn = 0;
    for (table, panel, lines) in panels {
        let (plot, _) = line_plot(table, panel, lines, "M", (&results, &["syncscope"]));
        for (line, series) in plot.lines.iter().zip(&lines.series) {
            let fits = |row: &&syncscope_results::Row| {
                let parameters = &row.spec.parameters;
                row.spec.id == series.id
                    && parameters.contains_key(&lines.x)
                    && series.select.iter().all(|(name, value)| parameters.get(name) == Some(value))
            };
            let mut places: Vec<String> =
                results.rows.iter().filter(fits).map(|row| row.spec.parameters[&lines.x].to_string()).collect();
            places.sort_unstable();
            places.dedup();
            assert!(places.len() > 1 && line.points.len() == places.len(), "{}", series.id);
            assert!(line.points.windows(2).all(|pair| pair[0].x < pair[1].x), "{}", series.id);
            let description = plot.description();
            let value = |point: &Point| point.value.0;
            let least = line.points.iter().min_by(|a, b| value(a).total_cmp(&value(b))).unwrap();
            let largest = line.points.iter().max_by(|a, b| value(a).total_cmp(&value(b))).unwrap();
            for (word, point) in [("least", least), ("largest", largest)] {
                let words = format!("{word} {} at {} {}", point.text, plot.x, plot.place(point.x));
                assert!(description.contains(&words), "{words} is not in {description}");
            }
        }
        drawn += 1;
    }
    assert!(drawn > 0, "no document draws lines");
}

/// The results that come with the program.
fn kept() -> Vec<Results> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../book/results"));
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|file| file.extension().is_some_and(|ending| ending == "gz"))
        .map(|file| Results::read(&file).unwrap())
        .collect()
}

/// The panels of bars of all documents.
fn bars(documents: &[Document]) -> Vec<(&Document, &DocumentFigure, &Panel)> {
    let figures = documents.iter().flat_map(|document| document.figures.iter().map(move |figure| (document, figure)));
    let panels =
        figures.flat_map(|(document, figure)| figure.panels.iter().map(move |panel| (document, figure, panel)));
    panels.filter(|(_, _, panel)| !panel.bars.is_empty()).collect()
}

/// Bars of which a whole group is too short to be seen show nothing: they are a panel of their own, unless that is what they
/// show.
#[test]
fn no_group_of_bars_is_too_short_to_be_seen_unless_its_caption_says_what_that_means() {
    let (documents, mut seen) = (documents(), 0);
    for results in kept() {
        for (document, figure, panel) in bars(&documents) {
            let table = document.table(&panel.table).unwrap();
            let (plot, _) = bar_plot(table, panel, "M", (&results, &results.systems()));
            let longest = |group: &syncscope_present::BarGroup| {
                group.bars.iter().filter_map(|bar| Some(bar.extent?.0)).reduce(f64::max)
            };
            let groups: Vec<f64> = plot.groups.iter().filter_map(longest).collect();
            let [least, most] = [f64::min, f64::max].map(|end| groups.iter().copied().reduce(end).unwrap_or(0.0));
            let is_hidden = least < most / 50.0 && panel.values == Spacing::Linear;
            assert!(
                !is_hidden || ["no bar", "too short to be seen"].iter().any(|says| figure.caption.contains(says)),
                "{}.{}: {least} {most}",
                document.id,
                figure.id
            );
            seen += groups.len();
        }
    }
    assert!(seen > 50, "{seen}");
}

/// A reader of a plot of one system would take what it does for what all do.
#[test]
fn each_system_that_measured_what_a_plot_draws_is_in_it_and_the_readers_own_first() {
    let (documents, mut several) = (documents(), 0);
    for results in kept() {
        let figures =
            documents.iter().flat_map(|document| document.figures.iter().map(move |figure| (document, figure)));
        for (document, figure) in figures {
            for panel in figure.panels.iter().filter(|panel| panel.matrix.is_none() && panel.timeline.is_none()) {
                let series = panel.lines.iter().flat_map(|lines| &lines.series).map(|series| &series.id);
                let ids: Vec<&String> = panel.bars.iter().chain(series).collect();
                let measured = |system: &&str| {
                    let lookup = results.lookup_of(system);
                    let is_drawn = |spec: &MetricSpec| panel.roofline || ids.contains(&&spec.id);
                    lookup.specs().filter(|spec| is_drawn(spec)).any(|spec| lookup.of(spec).is_ok())
                };
                let mut systems: Vec<&str> = results.systems().into_iter().filter(measured).collect();
                if systems.len() < 2 {
                    continue;
                }
                systems.rotate_left(1);
                let drawn = drawn(document.table(&panel.table), panel, "M", &results, "p").pictures.concat();
                // A roofline needs a matmul.
                if drawn.is_empty() {
                    continue;
                }
                let places: Vec<Option<usize>> = systems.iter().map(|system| drawn.find(system)).collect();
                assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{}.{}", document.id, figure.id);
                several += 1;
            }
        }
    }
    assert!(several > 20, "{several}");
}

/// On a logarithmic axis equal distances are equal ratios.
#[test]
fn a_caption_speaks_of_equal_distances_only_where_the_axis_is_linear() {
    for document in documents() {
        for figure in document.figures.iter().filter(|figure| figure.caption.contains("far apart")) {
            let spacing = |panel: &Panel| panel.lines.as_ref().map_or(panel.values, |lines| lines.values);
            let is_linear = figure.panels.iter().all(|panel| spacing(panel) == Spacing::Linear);
            assert!(is_linear, "{}.{}", document.id, figure.id);
        }
    }
}

#[test]
fn a_panel_of_which_nothing_was_measured_is_left_out_with_one_sentence() {
    let mut results = results();
    results.rows.retain(|row| row.spec.id != "probe.gain");
    let chapter = read(&source_as(&project(DOCUMENT), &[results]), "probe");
    let sentence = "Left out, since nothing of it was measured on Test device: “Gains” (not in this run).";
    assert_eq!(chapter.matches(sentence).count(), 1, "{chapter}");
    assert!(!chapter.contains(">again<"), "{chapter}");
}

/// The CPU engine has neither all calls nor all sizes.
#[test]
fn no_picture_of_a_run_is_without_a_value_and_no_table_is_of_what_the_run_lacks() {
    let suite = carried_book().suite("reference").map(|(_, text)| text.to_owned()).unwrap();
    let results = fixture::synthetic(&suite, "cpu", fixture::plausible);
    let files = source(&results);
    let mut drawn = 0;
    for document in documents() {
        if !files.contains_key(Path::new(&format!("book/src/{}.md", document.id))) {
            continue;
        }
        let chapter = read(&files, &document.id);
        for matrix in chapter.split("<div class=\"matrix\">").skip(1).filter_map(|rest| rest.split("</div>").next()) {
            assert!([">✓<", ">✗<"].iter().any(|mark| matrix.contains(mark)), "{}: {matrix}", document.id);
            drawn += 1;
        }
    }
    assert!(drawn > 0);
}

/// Which calls wait is up to the driver.
#[test]
fn a_matrix_names_the_driver() {
    for document in documents() {
        let has_matrix = document.figures.iter().flat_map(|figure| &figure.panels).any(|panel| panel.matrix.is_some());
        let named = read(whole_source(), &document.id).contains("<figcaption>Test device · driver 580.00");
        assert_eq!(named, has_matrix, "{}", document.id);
    }
}

const COLUMN_LEFT_OUT: &str =
    "A column of syncscope on Test device is left out, since no row has a meaning in it: it is PyTorch's own call.";

/// The run of the fixture with PyTorch, whose own calls have no meaning in another system.
fn with_pytorch_alone() -> Results {
    let mut results = fixture::with_pytorch(fixture::run());
    let own = Outcome::NotApplicable { reason: "it is PyTorch's own call".to_owned() };
    let ids: Vec<String> = results.rows.iter().map(|row| row.spec.id.clone()).collect();
    for id in ids.iter().filter(|id| id.starts_with("pytorch-calls.") && !id.contains(".same.")) {
        fixture::replace(&mut results, id, &own);
    }
    results
}

/// A run of an earlier program may lack one of the rows.
#[test]
fn a_row_that_no_run_has_makes_no_column_and_is_named_once() {
    let mut results = with_pytorch_alone();
    results.rows.retain(|row| row.spec.id != "pytorch-calls.blocks-other");
    let chapter = read(&source(&results), "pytorch-calls");
    assert!(chapter.contains(COLUMN_LEFT_OUT), "{chapter}");
    let counts = chapter.split_once("This table counts").unwrap().1.split("</table>").next().unwrap();
    assert!(counts.contains("Waited for the gate") && !counts.contains("Waited for another stream"), "{counts}");
    let lacking = chapter.split_once("id=\"the-runs-shown-here\"").unwrap().1.split("</details>").next().unwrap();
    assert_eq!(lacking.matches("Waited for another stream").count(), 1, "{lacking}");
}

/// Calls of another program: its table has a column for it alone, its answer counts them, its claims are judged on it alone.
#[test]
fn rows_that_have_a_meaning_in_another_system_alone_stand_in_its_column_alone() {
    let results = with_pytorch_alone();
    let chapter = read(&source(&results), "pytorch-calls");
    let note = COLUMN_LEFT_OUT;
    // Each of the two tables says so once: that of what the gate and the mode say, and that of the times.
    let (before, times) = chapter.split_once("{#times}").unwrap();
    assert_eq!([before, times].map(|part| part.matches("it is PyTorch's own call").count()), [1, 1], "{chapter}");
    let table = chapter.split("id=\"calls\"").nth(1).and_then(|rest| rest.split("</details>").next()).unwrap();
    assert!(table.contains(note) && !table.contains("class=\"ratio\"") && table.contains("class=\"peer\""), "{table}");
    let yes = |id: &str| {
        let rows = results.rows.iter().filter(|row| row.spec.id == format!("pytorch-calls.{id}"));
        rows.filter(|row| row.outcome("PyTorch-1").unwrap().values().unwrap()[0] == 1.0).count()
    };
    let [agree, missed, alarms, waits] = ["agrees", "missed", "false-alarm", "blocks"].map(yes);
    // Waits and silences are counted apart.
    for (part, whole) in [(missed, waits), (alarms, agree + missed + alarms - waits)] {
        let tally = format!(">{part} of {whole} (95 % ");
        assert!(chapter.contains(&tally), "{tally} is not in {chapter}");
    }
}

#[test]
fn bars_take_their_unit_from_the_rows() {
    let start = DOCUMENT.find("    cases:").unwrap();
    let end = DOCUMENT.find("    rows:").unwrap();
    let document = format!("{}{}", &DOCUMENT[..start], &DOCUMENT[end..])
        .replace("{id: probe.fast, published: {half: 14.0e-6, single: 2.10e-5}}", "{id: probe.count}")
        .replace("        published: {half: 28.00e-6}\n", "")
        .replace("        relative: {to: probe.fast, published: {half: 0.5}}\n", "")
        .replace("bars: [probe.slow]", "bars: [probe.count]")
        .replace("published.pairs.half.fast < 1e-3, ", "");
    let mut results = results();
    fixture::replace(&mut results, "probe.count", &fixture::measured(vec![42.0; 12]));
    let chapter = read(&source_as(&project(&document), &[results]), "probe");
    let described = chapter.split("<desc ").nth(1).unwrap().split("</desc>").next().unwrap();
    assert!(described.ends_with(" Calls 42."), "{described}");
}

#[test]
fn a_recorded_scenario_is_drawn_with_its_trace_and_data() {
    let mut results = results();
    results.timelines = vec![fixture::recorded("probe.slow")];
    let text = serde_json::to_string(&results).unwrap();
    assert!(Results::parse(&text, Path::new("r.json")).unwrap() == results);
    let files = rendered_as(&project(DOCUMENT), std::slice::from_ref(&results));
    let chapter = page(&files, "site/probe.html");
    for part in ["Timeline of", "fill (enqueue)", "took 1.00 ms untraced and 2.00 ms traced", "made up"] {
        assert!(chapter.contains(part), "{part} is missing");
    }
    let trace = "traces/probe.slow-1.trace.json";
    assert!(chapter.contains(&format!("href=\"{trace}\"")));
    assert_eq!(files[&Path::new("site").join(trace)], fixture::timeline().to_trace().into_bytes());
    let data = page(&files, "site/data/probe.slow-1.csv");
    let spans: Vec<&str> = data.lines().skip(1).collect();
    assert_eq!(
        spans,
        [
            "\"host, main\",fill,enqueue,1000,4000",
            "\"host, main\",Stream::synchronize,synchronize,5000,92000",
            "stream 1,fill,kernel,6000,90000"
        ]
    );
}

#[test]
fn a_scenario_that_was_not_recorded_says_why() {
    let mut results = results();
    let chapter = |results: &Results| read(&source_as(&project(DOCUMENT), std::slice::from_ref(results)), "probe");
    assert!(chapter(&results).contains("not recorded in this run"));
    let recorded = Recorded::Failed("the reason".to_owned());
    results.timelines = vec![RecordedTimeline { recorded, ..fixture::recorded("probe.slow") }];
    assert!(chapter(&results).contains("not recorded: the reason"));
}

#[test]
fn every_chapter_has_a_plot_and_every_plot_its_data() {
    let mut results = fixture::run();
    for scenario in
        documents().iter().flat_map(|d| &d.figures).flat_map(|f| &f.panels).filter_map(|p| p.timeline.as_ref())
    {
        results.timelines.push(fixture::recorded(scenario));
    }
    let files = source(&results);
    for document in documents() {
        let chapter = read(&files, &document.id);
        let is_drawn = ["<svg class=\"plot\"", "<div class=\"matrix\">"].iter().any(|plot| chapter.contains(plot));
        assert!(is_drawn, "{} has no plot", document.id);
        assert!(!chapter.contains("not recorded"), "{}", document.id);
        let has_data = |panel: &Panel| panel.timeline.is_none();
        for figure in document.figures.iter().filter(|figure| figure.panels.iter().any(&has_data)) {
            let place = format!("data/{}-{}-1.csv", document.id, figure.id);
            assert!(chapter.contains(&format!("href=\"{place}\"")), "{place}");
            let text = page(&files, &format!("book/src/{place}"));
            let drawn = figure.panels.iter().flat_map(|panel| {
                let lines = panel.lines.iter().flat_map(|lines| &lines.series).map(|series| &series.id);
                let cells = panel.matrix.iter().flat_map(Matrix::ids);
                panel.bars.iter().chain(lines).chain(cells)
            });
            for id in drawn {
                assert!(text.lines().any(|line| line.starts_with(&format!("{id},"))), "{id} is not in {place}");
            }
        }
    }
}

#[test]
fn the_data_of_a_plot_are_the_values_of_the_run_in_base_units() {
    let mut results = results();
    let samples: Vec<f64> = (0..12).map(|round| 1e-3 + 1e-6 * f64::from(round)).collect();
    fixture::replace(&mut results, "probe.slow", &fixture::measured(samples.clone()));
    let files = source_as(&project(DOCUMENT), &[results]);
    let text = page(&files, "book/src/data/probe-drawn-bars-1.csv");
    let mut lines = text.lines();
    let heads = "row,what,parameters,system,unit,value,low,high,n,state,runs,spread_of_runs,spread_of_samples,share_of_peak,source,notes";
    assert_eq!(lines.next(), Some(heads));
    let line = lines.next().unwrap();
    let numbers: Vec<&str> = line.rsplit(',').skip(6).take(6).collect();
    let [state, n, high, low, value, unit] = numbers[..] else { panic!("{line}") };
    assert!(line.starts_with("probe.slow,Slow call,\"dtype fp16, size 8\","), "{line}");
    assert_eq!((state, n, unit), ("measured", "12", "s"));
    // The ranks of a 95 % interval of a median of twelve samples are the third and the tenth.
    let expected = [(samples[5] + samples[6]) / 2.0, samples[2], samples[9]];
    for (shown, expected) in [value, low, high].into_iter().zip(expected) {
        assert!((shown.parse::<f64>().unwrap() - expected).abs() < 1e-12, "{line}");
    }
}

/// The probe's document with another panel in the place of its lines.
fn with_panel(panel: &str) -> String {
    let start = DOCUMENT.find("      - table: gains\n        lines:").unwrap();
    let end = DOCUMENT.find("  - id: drawn-timeline").unwrap();
    format!("{}{panel}{}", &DOCUMENT[..start], &DOCUMENT[end..])
}

/// The descriptions of the pictures of a chapter.
fn described(document: &str, results: &Results) -> Vec<String> {
    let chapter = read(&source_as(&project(document), std::slice::from_ref(results)), "probe");
    let pictures = chapter.split("<desc ").skip(1).map(|rest| rest.split("</desc>").next().unwrap().to_owned());
    pictures.collect()
}

const LINES: &str = "      - table: pairs
        lines: {x: size, series: [{id: probe.slow, label: slow, select: {dtype: fp32}}]}
";

#[test]
fn two_systems_stand_in_one_picture_or_of_many_lines_in_one_each() {
    let results = fixture::with_pytorch(results());
    let together = described(&with_panel(LINES), &results).join("\n");
    assert!(
        together.contains("slow, syncscope, 3 points") && together.contains("slow, PyTorch, 3 points"),
        "{together}"
    );
    let [half, fast] = ["probe.slow, label: half, select: {dtype: fp16}", "probe.fast, select: {dtype: fp16}"];
    let many = LINES.replace("}}]", &format!("}}}}, {{id: {half}}}, {{id: {fast}}}]"));
    let apart = described(&with_panel(&many), &results);
    assert_eq!(apart.iter().filter(|words| words.contains(" slow, 3 points")).count(), 2, "{apart:?}");
    let files = source_as(&project(&with_panel(LINES)), &[results]);
    let data = page(&files, "book/src/data/probe-drawn-lines-1.csv");
    for system in ["syncscope", "PyTorch"] {
        let rows = data.lines().filter(|line| line.contains(&format!(",{system},s,"))).count();
        assert_eq!(rows, 3, "{data}");
    }
}

#[test]
fn bars_of_two_systems_are_told_apart_by_their_names() {
    let document = with_panel("      - {table: pairs, bars: [probe.slow]}\n");
    let words = described(&document, &fixture::with_pytorch(results())).join("\n");
    assert!(words.contains("half: PyTorch ") && words.contains(", syncscope "), "{words}");
    // What is compared within a system stands together.
    let document = with_panel("      - {table: pairs, bars: [probe.slow, probe.fast]}\n");
    let words = described(&document, &fixture::with_pytorch(results())).join("\n");
    assert!(words.contains("PyTorch, half: Slow call ") && words.contains("syncscope, half: Slow call "), "{words}");
}

#[test]
fn what_exceeds_the_parameter_is_drawn_in_its_unit_and_a_rate_is_one_over_the_time() {
    let mut results = results();
    fixture::replace(&mut results, "probe.slow", &fixture::measured(vec![70.0; 12]));
    let excess = LINES.replace("x: size", "x: size, unit: seconds, shows: excess");
    let words = described(&with_panel(&excess), &results).join("\n");
    assert!(words.contains("least −442.0 s at size 512 s, largest 62.00 s at size 8 s"), "{words}");
    let rate = LINES.replace("x: size", "x: size, shows: rate");
    let words = described(&with_panel(&rate), &results).join("\n");
    assert!(words.contains("least 0.01429 at size 8"), "{words}");
    let wrong = LINES.replace("x: size", "x: size, shows: excess");
    let error = project(&with_panel(&wrong)).documents(&catalog()).unwrap_err().to_string();
    assert!(error.contains("whose unit is another"), "{error}");
}

#[test]
fn what_has_no_meaning_on_the_machine_is_left_out_and_one_line_says_why() {
    let mut results = results();
    let outcome = Outcome::NotApplicable { reason: "there is no link".to_owned() };
    fixture::replace(&mut results, "probe.gain", &outcome);
    fixture::replace(&mut results, "probe.slow", &outcome);
    let chapter = read(&source_as(&project(DOCUMENT), &[results]), "probe");
    let body = &chapter[..chapter.find("id=\"the-runs-shown-here\"").unwrap()];
    assert!(body.contains("left out: “again”") || body.contains("left out: “Slow / fast”"), "{body}");
    let cells = body.matches("class=\"state\">not applicable").count();
    // The document prints a figure for the slow call, of one of its cases.
    assert_eq!(cells, 1, "{body}");
    assert!(body.contains("“Slow call” (single), since there is no link"), "{body}");
}

#[test]
fn a_roofline_names_its_roofs_and_its_data_hold_the_rates() {
    let results = fixture::run();
    let files = source(&results);
    let chapter = read(&files, "ceilings");
    for part in ["fp16, roof (", "fp32, roof (", "operations per byte"] {
        assert!(chapter.contains(part), "{part} is missing in {chapter}");
    }
    let data = page(&files, "book/src/data/ceilings-roofline-1.csv");
    assert!(data.contains("operations per byte") && data.contains(",FLOP/s,"), "{data}");
}

#[test]
fn every_page_of_the_cpu_engine_says_that_it_is_an_emulation() {
    let mut results = fixture::run();
    results.runs[0].environment.device.engine = "cpu".to_owned();
    let files = source(&results);
    let notice = "<div class=\"emulation\"";
    for name in ["README", "claims", "machine", "reading", "sources", "overlap", "ceilings"] {
        assert_eq!(read(&files, name).matches(notice).count(), 1, "{name}");
    }
    assert!(!read(&files, "SUMMARY").contains(notice));
    assert!(!read(&source(&fixture::run()), "overlap").contains(notice));
}
