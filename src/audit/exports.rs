//! What is over a budget, for those that read JUnit (CI servers) or SARIF 2.1.0 (code scanning).
//!
//! Sources: the JUnit schema of Jenkins' xUnit plugin; OASIS, *Static Analysis Results Interchange Format (SARIF) Version
//! 2.1.0*.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};

use super::recording::Frame;
use super::report::AuditReport;
use super::verdict::{Breach, Verdict};
use crate::clean::line;
use crate::present::escape;

/// How each such file begins, and none of another program.
pub const JUNIT_BEGIN: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"waits\"";
/// What this program calls itself.
const NAME: &str = "syncscope";
/// The most bytes of a SARIF file that are read.
pub const MAX_SARIF_BYTES: usize = 64 << 20;

/// A test for each place that waits, of which those that are over the budget fail; and one for what was not held, which is
/// skipped where nothing was asked for.
pub fn junit(report: &AuditReport, verdict: &Verdict) -> String {
    let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let test = |name: &str, ns: u64, within: &str| {
        format!(
            "<testcase classname=\"audit\" name=\"{}\" time=\"{}\">{within}</testcase>\n",
            escape(name),
            seconds(ns)
        )
    };
    let breaches: HashMap<_, &Breach> = verdict.breaches.iter().map(|breach| (breach.place.key(), breach)).collect();
    let mut tests: Vec<String> = Vec::new();
    for place in report.places.iter().filter(|place| place.is_wait()) {
        let failure = breaches
            .get(&place.key())
            .map(|breach| format!("<failure message=\"{}\">{}</failure>", escape(&breach.why), escape(&place.advice)));
        tests.push(test(&format!("{} {}", place.call, place.name()), place.total_ns, &failure.unwrap_or_default()));
    }
    let is_asked = !verdict.held_to.is_empty();
    if !verdict.unheld.is_empty() {
        let reasons = escape(&verdict.unheld.join("; "));
        let (name, what) = if is_asked { (verdict.held_to, "failure") } else { ("the recording", "skipped") };
        tests.push(test(name, 0, &format!("<{what} message=\"{reasons}\"/>")));
    }
    if tests.is_empty() {
        tests.push(test("no waits", 0, ""));
    }
    let failures = verdict.breaches.len() + usize::from(is_asked && !verdict.unheld.is_empty());
    format!(
        "{JUNIT_BEGIN} tests=\"{}\" failures=\"{failures}\" skipped=\"{}\">\n{}</testsuite>\n</testsuites>\n",
        tests.len(),
        usize::from(!is_asked && !verdict.unheld.is_empty()),
        tests.concat()
    )
}

/// A result for each place that is over the budget, at its line, and for each reason why it is not known whether there are more.
pub fn sarif(verdict: &Verdict) -> Value {
    let result = |breach: &Breach| {
        let place = &breach.place;
        let text = format!("{} waits for the device ({}): {}", place.call, breach.why, place.advice);
        let mut result = json!({ "ruleId": "wait", "level": "error", "message": { "text": line(&text) } });
        let at = place.stack.iter().find(|frame| frame.place() == place.place);
        if let Some(Frame { file, line: number, .. }) = at.filter(|frame| frame.line > 0) {
            let uri = address(file);
            result["locations"] = json!([{
                "physicalLocation": { "artifactLocation": { "uri": uri }, "region": { "startLine": number } }
            }]);
        }
        result
    };
    let level = if verdict.held_to.is_empty() { "warning" } else { "error" };
    let unheld = verdict
        .unheld_words()
        .map(|words| json!({ "ruleId": "not-held", "level": level, "message": { "text": line(&words) } }));
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": NAME,
                "version": env!("CARGO_PKG_VERSION"),
                "rules": [
                    { "id": "wait", "shortDescription": { "text": "The host waits for the device" } },
                    { "id": "not-held", "shortDescription": { "text": "It is not known whether the host waits" } },
                ],
            }},
            "results": verdict.breaches.iter().map(result).chain(unheld).collect::<Vec<_>>(),
        }],
    })
}

/// Whether a text is SARIF that this program wrote.
pub fn is_sarif(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value["runs"][0]["tool"]["driver"]["name"] == NAME)
}

/// A path as a URI reference: relative to the working folder where it lies within, else with its scheme if it is absolute.
fn address(file: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let path = Path::new(file);
    let path = path.strip_prefix(&here).unwrap_or(path).to_string_lossy().into_owned();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte);
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    let coded =
        path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    scheme.to_owned() + &coded.collect::<String>()
}
