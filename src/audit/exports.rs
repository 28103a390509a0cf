//! What is over a budget, for those that read JUnit (CI servers) or SARIF 2.1.0 (code scanning).
//!
//! Sources: the JUnit schema of Jenkins' xUnit plugin; OASIS, *Static Analysis Results Interchange Format (SARIF) Version
//! 2.1.0*.

use std::path::Path;

use serde_json::{Value, json};

use super::places::WaitPlace;
use super::recording::Frame;
use super::report::AuditReport;
use super::steps::Breach;
use crate::clean::line;
use crate::files::read_text;
use crate::present::escape;

/// How each such file begins, and none of another program.
pub(crate) const JUNIT_BEGIN: &str =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"waits\"";
/// What this program calls itself.
const NAME: &str = "syncscope";
/// The most bytes of a SARIF file that are read.
const MOST_SARIF: usize = 64 << 20;

/// A test for each place that waits; those that are over the budget fail.
pub(crate) fn junit(report: &AuditReport, breaches: &[Breach]) -> String {
    let waits: Vec<&WaitPlace> = report.places.iter().filter(|place| place.is_wait()).collect();
    let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let mut out = format!("{JUNIT_BEGIN} tests=\"{}\" failures=\"{}\">\n", waits.len().max(1), breaches.len());
    if waits.is_empty() {
        out.push_str("<testcase classname=\"audit\" name=\"no waits\" time=\"0\"/>\n");
    }
    for place in waits {
        let name = escape(&format!("{} {}", place.call, place.name()));
        out.push_str(&format!("<testcase classname=\"audit\" name=\"{name}\" time=\"{}\">", seconds(place.total_ns)));
        for breach in breaches.iter().filter(|breach| breach.place.key() == place.key()) {
            let message = escape(&breach.why);
            out.push_str(&format!("<failure message=\"{message}\">{}</failure>", escape(&place.advice)));
        }
        out.push_str("</testcase>\n");
    }
    out.push_str("</testsuite>\n</testsuites>\n");
    out
}

/// A result for each place that is over the budget, at its line.
pub(crate) fn sarif(breaches: &[Breach]) -> Value {
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
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": NAME,
                "version": env!("CARGO_PKG_VERSION"),
                "rules": [{ "id": "wait", "shortDescription": { "text": "The host waits for the device" } }],
            }},
            "results": breaches.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

/// Whether a file is SARIF that this program wrote.
pub(crate) fn is_sarif(path: &Path) -> bool {
    let text = read_text(path, MOST_SARIF).unwrap_or_default();
    serde_json::from_str::<Value>(&text).is_ok_and(|value| value["runs"][0]["tool"]["driver"]["name"] == NAME)
}

/// A path as a URI reference: relative to the working folder where it lies within.
fn address(file: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let path = Path::new(file);
    let path = path.strip_prefix(&here).unwrap_or(path).to_string_lossy().into_owned();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte);
    path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
