//! Traces of other profilers: what is found in them is what they say.

mod kinds;
mod planted;
mod simulated;

use std::fs;
use std::io::Write;

use serde_json::{Value, json};

use super::super::places::{Reason, WaitPlace};
use super::super::report::{HostShare, JudgedCalls};
use super::*;

/// An event of a trace.
fn event(category: &str, name: &str, (ts, dur): (f64, f64), args: &Value) -> Value {
    json!({ "ph": "X", "cat": category, "name": name, "pid": 10, "tid": 7, "ts": ts, "dur": dur, "args": args })
}

fn call(name: &str, times: (f64, f64), number: u64) -> Value {
    event("cuda_runtime", name, times, &json!({ "correlation": number }))
}

fn kernel(times: (f64, f64), number: u64) -> Value {
    event("kernel", "k", times, &json!({ "device": 0, "context": 1, "stream": 7, "correlation": number }))
}

fn copy(name: &str, times: (f64, f64), number: u64, bytes: u64) -> Value {
    let args = json!({ "device": 0, "context": 1, "stream": 7, "correlation": number, "bytes": bytes });
    event("gpu_memcpy", name, times, &args)
}

fn function(name: &str, times: (f64, f64)) -> Value {
    event("python_function", name, times, &Value::Null)
}

fn trace_of(events: &[Value]) -> String {
    json!({ "schemaVersion": 1, "traceEvents": events }).to_string()
}

/// The recording of a text, its report, and what is known of its calls.
fn read_text(text: &[u8]) -> (ProgramRecording, AuditReport, Vec<JudgedCalls>) {
    let recording = of_reader(text, "trace.json").unwrap().0;
    let (report, judged) = AuditReport::of(&recording, "trace.json", None);
    for process in &report.processes {
        let sum = |shares: &[HostShare]| shares.iter().map(|share| share.ns).sum::<u64>();
        assert_eq!(sum(&process.host), process.wall_ns, "each nanosecond has one row");
        for device in &process.devices {
            assert_eq!(device.kernels_ns + device.copies_ns + sum(&device.idle), process.wall_ns);
        }
    }
    (recording, report, judged)
}

fn report_of(events: &[Value]) -> AuditReport {
    read_text(trace_of(events).as_bytes()).1
}

/// The places: where, the call, why, how often, and for how many microseconds in all.
fn found(report: &AuditReport) -> Vec<(&str, &str, Reason, u64, u64)> {
    fn one(place: &WaitPlace) -> (&str, &str, Reason, u64, u64) {
        (&place.place, &place.call, place.reason, place.count, place.total_ns / 1_000)
    }
    report.places.iter().map(one).collect()
}
