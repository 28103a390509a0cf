//! Reading and writing results files (JSON).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::digest;
use super::run::{Recorded, RecordedTimeline, Results, SCHEMA_VERSION};
use crate::error::FileError;
use crate::files::{Target, packed_as, read_text, text_of, unpacked};

impl Results {
    /// Reads a results file, which may be packed by gzip.
    ///
    /// # Errors
    /// [`FileError`] says whether the file cannot be read, is not whole, or has a version that is not read.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = read_text(path, MAX_BYTES).map_err(|cause| io(path, cause))?;
        Self::parse(&text, path)
    }

    /// Reads results from the content of a file that `path` names in errors.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn of_content(content: &[u8], path: &Path) -> Result<Self, FileError> {
        let text = unpacked(content, MAX_BYTES).and_then(text_of).map_err(|cause| io(path, cause))?;
        Self::parse(&text, path)
    }

    /// Reads results from their text; `path` names it in errors.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str, path: &Path) -> Result<Self, FileError> {
        let origin = path.display().to_string();
        // A checkpoint has pieces behind the file that it began as.
        let (text, pieces) = text.split_at(text.find("\n}\n").map_or(text.len(), |end| end + 3));
        let mut results: Self = of_version(SCHEMA_VERSION, text, &origin, "a whole results file")?;
        let wrong = |message: String| FileError::whole(origin.clone(), message);
        results.check().map_err(wrong)?;
        if results.samples_sha256.take().is_some_and(|stated| stated != results.samples_digest()) {
            return Err(wrong(ALTERED.to_owned()));
        }
        if !pieces.trim().is_empty() {
            // The process that wrote the last may have ended meanwhile.
            let whole = pieces.rfind('\n').map_or("", |end| &pieces[..end]);
            for line in whole.lines() {
                let syntax = |error| FileError::json(&origin, "a piece of a run", &error);
                results.add(serde_json::from_str(line).map_err(syntax)?);
            }
            results.check().map_err(wrong)?;
        }
        Ok(results)
    }

    /// Finds the first reference that leads nowhere, and the first run, row or timeline that contradicts itself.
    fn check(&self) -> Result<(), String> {
        if self.runs.is_empty() {
            return Err("it holds no run".to_owned());
        }
        if self.runs.len() > MAX_RUNS {
            return Err(format!("it holds {} runs, and {MAX_RUNS} are the most", self.runs.len()));
        }
        if self.plan.runs == 0 {
            return Err("its plan is of 0 runs, and one is the fewest".to_owned());
        }
        let mut systems = BTreeMap::new();
        if let Some(run) = self.runs.iter().find(|run| systems.insert(run.id.as_str(), run.system.as_str()).is_some()) {
            return Err(format!("two runs are named `{}`", run.id));
        }
        let all = self.systems().len();
        if all > MAX_SYSTEMS {
            return Err(format!("it holds runs of {all} systems, and {MAX_SYSTEMS} are the most"));
        }
        self.runs.iter().try_for_each(|run| run.check().map_err(|why| format!("the run `{}` {why}", run.id)))?;
        let mut places = HashMap::new();
        for (place, row) in self.rows.iter().enumerate() {
            let title = row.spec.title();
            row.check().map_err(|why| format!("`{title}` {why}"))?;
            let mut seen = HashSet::new();
            for run in row.series.iter().map(|series| series.run.as_str()) {
                let Some(system) = systems.get(run) else {
                    return Err(format!("`{title}` has samples of a run `{run}`, which is not there"));
                };
                let first = *places.entry((title.clone(), *system)).or_insert(place);
                if !seen.insert(run) || first != place && self.rows[first].outcome(run).is_some() {
                    return Err(format!("`{title}` has samples of the run `{run}` twice"));
                }
                if first != place {
                    return Err(format!("`{title}` is two rows of {system}: one row holds what all of its runs left"));
                }
            }
        }
        self.timelines.iter().try_for_each(|scenario| self.check_timeline(scenario, &systems))
    }

    /// Finds what cannot be of a scenario. One that was not recorded may have any name.
    fn check_timeline(&self, scenario: &RecordedTimeline, systems: &BTreeMap<&str, &str>) -> Result<(), String> {
        let RecordedTimeline { run, name, recorded, .. } = scenario;
        if !systems.contains_key(run.as_str()) {
            return Err(format!("`{name}` was recorded by a run `{run}`, which is not there"));
        }
        if matches!(recorded, Recorded::Timeline(_)) && self.rows.of(name).next().is_none() {
            return Err(format!("it holds a timeline of `{name}`, and no row of this name"));
        }
        match scenario.untraced_s.iter().chain(&scenario.traced_s).find(|seconds| **seconds < 0.0) {
            Some(seconds) => Err(format!("a pass of `{name}` took {seconds} s")),
            None => Ok(()),
        }
    }

    /// Claims a file that results are to be written to: one that is not there or is empty, or a results file, which `see` is
    /// shown.
    ///
    /// # Errors
    /// [`FileError::Io`] names the file.
    pub fn claim(path: &Path, see: impl FnOnce(&Self)) -> Result<Target, FileError> {
        Target::claim(path, |there| Self::read(there).inspect(see).is_ok()).map_err(|source| io(path, source))
    }

    /// Writes a results file. Atomic: whoever reads `path` sees the old file or the whole new one. A pipe or a device is
    /// written into, a link followed. A file that holds no results is not replaced.
    ///
    /// # Errors
    /// [`FileError::Io`] or, where the file could be claimed, [`FileError::Unwritten`] names it.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let written = Self::claim(path, |_| ())?.write(&self.to_content(path)?);
        written.map_err(FileError::unwritten(path))
    }

    /// The digest that a file of these samples has.
    pub fn samples_digest(&self) -> String {
        digest::of_samples(&self.rows)
    }

    /// The content of a results file: packed where the name of `path` ends in `.gz`.
    pub fn to_content(&self, path: &Path) -> Result<Vec<u8>, FileError> {
        let wrong = |error: &dyn fmt::Display| FileError::whole(path.display().to_string(), error.to_string());
        let contents = FileContents { results: self, samples_sha256: self.samples_digest() };
        let mut text = serde_json::to_vec_pretty(&contents).map_err(|error| wrong(&error))?;
        text.push(b'\n');
        packed_as(path, text).map_err(|error| wrong(&error))
    }
}

/// Reads what a file of this program's own holds (`what`, in errors), of which the version of its schema comes first: only one
/// is read.
pub(super) fn of_version<T: DeserializeOwned>(read: u32, text: &str, origin: &str, what: &str) -> Result<T, FileError> {
    #[derive(Deserialize)]
    struct Versioned {
        schema_version: u64,
    }
    let syntax = |error| FileError::json(origin, what, &error);
    let Versioned { schema_version: found } = serde_json::from_str(text).map_err(syntax)?;
    match found == u64::from(read) {
        true => serde_json::from_str(text).map_err(syntax),
        false => Err(FileError::Version { origin: origin.to_owned(), found, read }),
    }
}

/// What stands in a file.
#[derive(Serialize)]
struct FileContents<'a> {
    #[serde(flatten)]
    results: &'a Results,
    samples_sha256: String,
}

/// Why a file whose digest is another is not read.
const ALTERED: &str = "its samples are not those that were written: their digest is another than `samples_sha256` says; \
                       take the file anew from where it was measured";

/// The most bytes of a results file, or of what another system measured, that are read.
pub const MAX_BYTES: usize = 256 << 20;
/// How many runs one may hold: ten systems, each with as many as a suite may have.
const MAX_RUNS: usize = 10_000;
/// Of how many systems.
const MAX_SYSTEMS: usize = 100;

fn io(path: &Path, cause: std::io::Error) -> FileError {
    FileError::Io { path: path.to_owned(), cause }
}

#[cfg(test)]
mod tests {
    use super::super::expression::FormulaOperand;
    use super::super::row::{Outcome, Provenance, Row};
    use super::super::run::{Piece, Run};
    use super::*;
    use crate::measure::Clock;

    /// The first run of a kept file.
    fn kept() -> (String, Results) {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/results/two-gpus.json.gz");
        let mut results = Results::read(&path).unwrap();
        results.runs.truncate(1);
        let run = results.run().id.clone();
        results.rows.iter_mut().for_each(|row| row.series.retain(|series| series.run == run));
        results.rows.retain(|row| !row.series.is_empty());
        results.timelines.clear();
        (text(&results), results)
    }

    fn text(results: &Results) -> String {
        String::from_utf8(results.to_content(Path::new("r.json")).unwrap()).unwrap()
    }

    #[test]
    fn a_version_that_is_not_read_is_named_with_the_one_that_is() {
        let refused = |text: &str| Results::parse(text, Path::new("r.json")).unwrap_err().to_string();
        for found in [1, 999] {
            let error = refused(&format!("{{ \"schema_version\": {found} }}"));
            assert!(error.contains(&format!("has the schema version {found}")) && error.contains("reads 2"), "{error}");
        }
        // Whatever stands there is not held in memory.
        let error = refused(r#"{ "schema_version": [0, 0, 0] }"#);
        assert!(error.starts_with("r.json:1:"), "{error}");
    }

    #[test]
    fn a_packed_file_is_read_as_the_plain_one_and_written_where_the_name_says_so() {
        let (text, results) = kept();
        let packed = results.to_content(Path::new("r.json.gz")).unwrap();
        assert!(packed.len() < text.len() / 4 && packed == results.to_content(Path::new("s.json.gz")).unwrap());
        assert_eq!(Results::of_content(&packed, Path::new("r.json.gz")).unwrap(), results);
        assert_eq!(Results::of_content(text.as_bytes(), Path::new("r.json")).unwrap(), results);
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let (text, results) = kept();
        assert!(text.contains("samples_sha256") && Results::parse(&text, Path::new("r.json")).unwrap() == results);
    }

    #[test]
    fn pieces_behind_a_file_are_read_and_a_part_of_the_last_one_is_left_out() {
        let (text, mut results) = kept();
        let run = Run { id: "syncscope-2".to_owned(), ..results.run().clone() };
        let mut row = results.rows[0].clone();
        row.series[0].run.clone_from(&run.id);
        let first = Piece { run: run.clone(), rows: vec![row.clone()], timelines: Vec::new() };
        row.series[0].outcome = Outcome::Interrupted;
        let second = Piece { run: Run { telemetry: Vec::new(), ..run }, rows: vec![row], timelines: Vec::new() };
        let lines = [&first, &second].map(|piece| piece.to_line().unwrap());
        assert!(lines.concat().is_ascii() && lines.iter().all(|line| line.lines().count() == 1));
        let parsed = |text: String| Results::parse(&text, Path::new("r.json")).unwrap();
        results.add(first);
        assert!(parsed(text.clone() + &lines[0]) == results);
        for end in [1, lines[1].len() / 2, lines[1].len() - 1] {
            assert!(parsed(text.clone() + &lines[0] + &lines[1][..end]) == results, "{end}");
        }
        results.add(second);
        assert!(parsed(text + &lines[0] + &lines[1]) == results);
        assert_eq!(results.rows[0].outcome("syncscope-2"), Some(&Outcome::Interrupted));
        assert_eq!(results.runs[1].telemetry, results.runs[0].telemetry, "what the sensors said is added to");
    }

    #[test]
    fn a_plan_of_no_runs_a_time_that_is_none_and_a_timeline_of_no_row_are_refused_by_their_names() {
        let (text, _) = kept();
        let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
        let nothing = serde_json::json!({ "device": "cpu:0", "source": "", "tracks": [], "spans": [], "dropped": 0,
            "region_ns": 0 });
        let timelines = |name: &str| {
            serde_json::json!([{ "name": name, "run": "syncscope-1", "parameters": {},
            "recorded": { "timeline": nothing } }])
        };
        let id = whole["rows"][0]["spec"]["id"].as_str().unwrap();
        for (place, value, says) in [
            ("/plan", serde_json::json!({ "runs": 0 }), Some("its plan is of 0 runs")),
            (
                "/runs/0/started",
                "yesterday".into(),
                Some("the run `syncscope-1` began at `yesterday`, which is no time"),
            ),
            (
                "/runs",
                vec![whole["runs"][0].clone(); 10_001].into(),
                Some("it holds 10001 runs, and 10000 are the most"),
            ),
            (
                "/runs/0/environment/device/facts",
                vec![serde_json::json!(["a", "b"]); 10_001].into(),
                Some("facts of its environment, and 10000 are the most"),
            ),
            ("/runs/0/started", "2026-13-01T00:00:00Z".into(), Some("which is no time")),
            ("/runs/0/order/0/duration", (-1.0).into(), Some("the run `syncscope-1` took -1 s for `")),
            (
                "/timelines",
                timelines("nothing.at.all"),
                Some("a timeline of `nothing.at.all`, and no row of this name"),
            ),
            ("/timelines", timelines(id), None),
        ] {
            let mut altered = whole.clone();
            altered.as_object_mut().unwrap().entry("timelines").or_insert_with(|| serde_json::json!([]));
            *altered.pointer_mut(place).unwrap_or_else(|| panic!("{place}")) = value;
            let error = Results::parse(&altered.to_string(), Path::new("r.json")).err().map(|error| error.to_string());
            match (says, &error) {
                (Some(says), Some(error)) => assert!(error.starts_with("r.json: ") && error.contains(says), "{error}"),
                (says, error) => assert_eq!((says, error), (None, &None), "{place}"),
            }
        }
    }

    #[test]
    fn a_sample_that_was_typed_over_is_found_and_a_file_without_a_digest_is_read() {
        let (text, mut results) = kept();
        let mut altered: serde_json::Value = serde_json::from_str(&text).unwrap();
        let rows = altered["rows"].as_array_mut().unwrap();
        let outcomes = rows.iter_mut().flat_map(|row| row["series"].as_array_mut().unwrap());
        let mut samples = outcomes.filter_map(|series| series["outcome"].get_mut("measured")?.get_mut("samples"));
        samples.next().unwrap()[0] = 0.125.into();
        let error = Results::parse(&altered.to_string(), Path::new("r.json")).unwrap_err().to_string();
        assert!(error.contains("r.json: its samples are not those that were written"), "{error}");
        altered.as_object_mut().unwrap().remove("samples_sha256");
        let read = Results::parse(&altered.to_string(), Path::new("r.json")).unwrap();
        assert!(read.samples_digest() != results.samples_digest());
        results.rows.reverse();
        assert!(read.samples_digest() != results.samples_digest());
    }

    #[test]
    fn a_parameter_that_stands_twice_is_refused_where_it_does() {
        let (text, _) = kept();
        let start = text.find("\"parameters\": {").unwrap() + "\"parameters\": {".len();
        let twice = format!("{}\"size\": 1, \"size\": 2, {}", &text[..start], &text[start..]);
        let error = Results::parse(&twice, Path::new("r.json")).unwrap_err().to_string();
        assert!(error.starts_with("r.json:") && error.contains("the parameter `size` stands twice"), "{error}");
    }

    #[test]
    fn a_row_that_a_run_measured_twice_is_refused_wherever_it_stands() {
        let (_, mut results) = kept();
        let (row, last) = (results.rows[0].clone(), results.rows.len() - 1);
        results.rows.insert(last, row);
        let text = text(&results);
        let error = Results::parse(&text, Path::new("r.json")).unwrap_err().to_string();
        assert!(error.contains("has samples of the run `syncscope-1` twice"), "{error}");
    }

    #[test]
    fn a_row_that_a_later_run_describes_otherwise_is_one_row_of_its_system() {
        let (_, mut results) = kept();
        let mut later = results.runs[0].clone();
        let (first, id) = (later.id.clone(), "later".to_owned());
        later.id.clone_from(&id);
        results.runs.push(later);
        let mut again: Vec<Row> = results.rows.to_vec();
        for row in &mut again {
            row.spec.label.push_str(" by another name");
            row.series.retain(|series| series.run == first);
            row.series.iter_mut().for_each(|series| series.run.clone_from(&id));
        }
        let rows = results.rows.len();
        again.retain(|row| !row.series.is_empty());
        results.merge(again);
        assert_eq!(results.rows.len(), rows);
        let text = text(&results);
        assert!(Results::parse(&text, Path::new("r.json")).is_ok(), "what was measured can be read");
        assert!(results.rows.iter().all(|row| !row.spec.label.contains("another name")));
    }

    /// A row by hand, in a file by itself.
    fn refused(change: impl FnOnce(&mut Vec<Row>)) -> Option<String> {
        let (_, mut results) = kept();
        let two = |row: &&Row| row.series[0].outcome.values().is_some_and(|values| values.len() > 1);
        let of = |is_derived: bool| {
            let is_kind = |row: &&Row| matches!(row.spec.provenance, Provenance::Derived { .. }) == is_derived;
            results.rows.iter().filter(two).find(is_kind).unwrap().clone()
        };
        let mut rows = vec![of(false), of(true)];
        change(&mut rows);
        let mut second = results.runs[0].clone();
        second.id = "second".to_owned();
        results.runs.push(second);
        results.rows = rows.into();
        let text = text(&results);
        Results::parse(&text, Path::new("r.json")).err().map(|error| error.to_string())
    }

    #[test]
    fn a_row_that_contradicts_itself_is_refused_by_its_name() {
        let operand = || FormulaOperand { name: "a".to_owned(), id: "x.y".to_owned(), parameters: None };
        let work = |amount: f64| Some(crate::Work::launches(amount, "1"));
        assert_eq!(refused(|_| ()), None);
        for (change, says) in [
            (
                Box::new(|rows: &mut Vec<Row>| rows[0].series.clear()) as Box<dyn Fn(&mut Vec<Row>)>,
                "no run left anything",
            ),
            (Box::new(|rows| rows[0].series[0].outcome.samples_mut()[0].order = None), "the places of its samples are"),
            (
                Box::new(|rows| {
                    let slowdown = &mut rows[0].series[0].outcome.samples_mut()[0].slowdown;
                    *slowdown = if slowdown.is_some() { None } else { Some(1.0) };
                }),
                "those that say how slow the host was are",
            ),
            (
                Box::new(|rows| {
                    let samples = rows[0].series[0].outcome.values().unwrap().to_vec();
                    rows[0].series[0].outcome = Outcome::Derived { samples };
                }),
                "is measured, and its samples of the run `syncscope-1` are computed",
            ),
            (
                Box::new(|rows| rows[1].series[0].outcome = rows[0].series[0].outcome.clone()),
                "is computed from other rows, and its samples of the run `syncscope-1` are measured",
            ),
            (
                Box::new(|rows| rows[0].spec.provenance = Provenance::Measured { clock: Clock::Host, iterations: 0 }),
                "0 iterations",
            ),
            (Box::new(|rows| rows[0].spec.work = work(-3.0)), "work of -3"),
            (
                Box::new(|rows| {
                    let Provenance::Derived { operands, .. } = &mut rows[1].spec.provenance else { panic!() };
                    *operands = vec![operand(), operand()];
                }),
                "two rows `a`",
            ),
            (
                Box::new(|rows| {
                    let mut split = rows[0].clone();
                    split.spec.label.push_str(" once more");
                    split.series[0].run = "second".to_owned();
                    rows.push(split);
                }),
                "is two rows of syncscope",
            ),
        ] {
            let message = refused(|rows| change(rows)).unwrap_or_else(|| panic!("{says}"));
            assert!(message.starts_with("r.json:") && message.contains(says), "{says}: {message}");
        }
    }
}
