//! The Chrome trace: JSON that Perfetto (<https://ui.perfetto.dev>) and `chrome://tracing` read.
//!
//! Source: *Trace Event Format*, the document of the Chromium project. A timeline is one process of that format for the
//! host and one for the device, each track a thread; spans are complete events (`ph` `X`, `ts` and `dur` in
//! microseconds). An arrow (`ph` `s` and `f`, the latter bound to its enclosing slice) leads from each call to its first
//! work. All else is in `args`.
//!
//! # Limits
//! The format nests the slices of a thread: it cannot show two spans of one track that overlap without nesting. Kernels of
//! one stream never do.

use std::collections::{HashMap, HashSet};

use super::span::{Span, Timeline, Track};
use crate::clean::line;

impl Timeline {
    /// The timeline as a Chrome trace in JSON.
    pub fn to_trace(&self) -> String {
        to_trace(&[("", self)])
    }
}

/// How every trace of this program begins, which tells it from other files.
pub const TRACE_BEGIN: &str = r#"{"displayTimeUnit":"ns","otherData":{"timelines":["#;

/// Timelines as one Chrome trace in JSON, each with its name. Each has its own clock, which begins at 0.
pub fn to_trace(timelines: &[(&str, &Timeline)]) -> String {
    let events: Vec<String> =
        (0..).zip(timelines).flat_map(|(place, (name, timeline))| Traced { place, name, timeline }.events()).collect();
    let other = |(name, timeline): &(&str, &Timeline)| {
        let [name, device, source] = [name, &*timeline.device, &*timeline.source].map(quoted);
        format!(r#"{{"name":{name},"device":{device},"source":{source},"dropped":{}}}"#, timeline.dropped)
    };
    let other: Vec<String> = timelines.iter().map(other).collect();
    format!("{TRACE_BEGIN}{}]}},\n\"traceEvents\":[\n{}\n]}}\n", other.join(","), events.join(",\n"))
}

/// A timeline and its place among those of a trace.
struct Traced<'a> {
    place: u32,
    name: &'a str,
    timeline: &'a Timeline,
}

impl Traced<'_> {
    fn events(&self) -> Vec<String> {
        let of = |what: &str| if self.name.is_empty() { what.to_owned() } else { format!("{}: {what}", self.name) };
        let (host, device) = (2 * self.place + 1, 2 * self.place + 2);
        let mut events = vec![
            named("process_name", host, 0, &of("host")),
            named("process_name", device, 0, &of(&self.timeline.device)),
        ];
        for (place, track) in self.timeline.tracks.iter().enumerate() {
            let (process, thread) = (self.process(track), place + 1);
            events.push(named("thread_name", process, thread, &track.to_string()));
            events.push(format!(
                r#"{{"name":"thread_sort_index","ph":"M","pid":{process},"tid":{thread},"args":{{"sort_index":{thread}}}}}"#
            ));
        }
        let mut reached = HashSet::new();
        let calls = self.timeline.spans.iter().filter(|span| !span.kind.is_on_device());
        let calls: HashMap<u64, &Span> = calls.filter_map(|call| Some((call.correlation?, call))).collect();
        for span in &self.timeline.spans {
            events.push(self.complete(span));
            let first = span.correlation.filter(|_| span.kind.is_on_device()).filter(|&c| reached.insert(c));
            if let Some((id, call)) = first.and_then(|id| Some((id, *calls.get(&id)?))) {
                events.push(self.arrow("s", "", id, call));
                events.push(self.arrow("f", r#","bp":"e""#, id, span));
            }
        }
        events
    }

    fn complete(&self, span: &Span) -> String {
        let (process, thread) = self.thread(span);
        let mut args = vec![format!("\"kind\":{}", quoted(span.kind.name()))];
        let numbers = [
            ("stream", span.stream.map(u64::from)),
            ("bytes", span.bytes),
            ("correlation", span.correlation),
            ("awaits", span.awaits),
        ];
        args.extend(numbers.iter().filter_map(|(name, value)| Some(format!("\"{name}\":{}", (*value)?))));
        let sync = span.sync.map(|sync| sync.to_string());
        let texts = [("sync", &sync), ("site", &span.site), ("detail", &span.detail)];
        args.extend(texts.iter().filter_map(|(name, text)| Some(format!("\"{name}\":{}", quoted(text.as_ref()?)))));
        format!(
            r#"{{"name":{},"cat":{},"ph":"X","ts":{},"dur":{},"pid":{process},"tid":{thread},"args":{{{}}}}}"#,
            quoted(&span.name),
            quoted(span.kind.name()),
            microseconds(span.start_ns),
            microseconds(span.duration_ns()),
            args.join(",")
        )
    }

    fn arrow(&self, phase: &str, more: &str, id: u64, span: &Span) -> String {
        let ((process, thread), at) = (self.thread(span), microseconds(span.start_ns));
        format!(
            r#"{{"name":"launch","cat":"launch","ph":"{phase}","id":"{}","ts":{at},"pid":{process},"tid":{thread}{more}}}"#,
            // Perfetto reads an identifier in quotes as hexadecimal. It is unique within the whole trace.
            format_args!("{:#x}", u64::from(self.place) << 40 | id)
        )
    }

    fn thread(&self, span: &Span) -> (u32, usize) {
        let host = 2 * self.place + 1;
        (self.timeline.tracks.get(span.track).map_or(host, |track| self.process(track)), span.track.saturating_add(1))
    }

    fn process(&self, track: &Track) -> u32 {
        2 * self.place + if track.is_host() { 1 } else { 2 }
    }
}

fn named(what: &str, process: u32, thread: usize, name: &str) -> String {
    let name = quoted(name);
    format!(r#"{{"name":"{what}","ph":"M","pid":{process},"tid":{thread},"args":{{"name":{name}}}}}"#)
}

/// Nanoseconds as microseconds, exactly.
fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// A JSON string of one line.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in line(text).chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::super::by_hand::{span, timeline};
    use super::*;
    use crate::timeline::Kind;
    use serde_json::Value;

    fn events(timeline: &Timeline) -> Vec<Value> {
        let trace: Value = serde_json::from_str(&timeline.to_trace()).unwrap();
        trace["traceEvents"].as_array().unwrap().clone()
    }

    fn of<'a>(events: &'a [Value], phase: &str) -> Vec<&'a Value> {
        events.iter().filter(|event| event["ph"] == phase).collect()
    }

    fn example() -> Timeline {
        let mut call = span(Kind::Enqueue, 0, (1_500, 2_000), 7);
        call.name = "a \"quoted\" \\ name\n".to_owned();
        call.site = Some("src/main.rs:3".to_owned());
        timeline(vec![call, span(Kind::Kernel, 0, (4_001, 9_000), 7), span(Kind::Kernel, 0, (9_000, 9_500), 7)])
    }

    #[test]
    fn a_span_is_a_complete_event_in_microseconds() {
        let events = events(&example());
        let complete = of(&events, "X");
        assert_eq!(complete.len(), 3);
        assert_eq!((complete[0]["ts"].as_f64(), complete[0]["dur"].as_f64()), (Some(1.5), Some(0.5)));
        assert_eq!(complete[0]["name"], "a \"quoted\" \\ name");
        assert_eq!(complete[0]["args"]["site"], "src/main.rs:3");
        assert_eq!(complete[1]["ts"].as_f64(), Some(4.001));
        for event in complete {
            for field in ["name", "cat", "ts", "dur", "pid", "tid", "args"] {
                assert!(!event[field].is_null(), "{field} is missing in {event}");
            }
        }
    }

    #[test]
    fn one_arrow_leads_from_a_call_to_its_first_work() {
        let events = events(&example());
        let (starts, ends) = (of(&events, "s"), of(&events, "f"));
        assert_eq!((starts.len(), ends.len()), (1, 1));
        assert_eq!(
            (&starts[0]["id"], &starts[0]["name"], &starts[0]["cat"]),
            (&ends[0]["id"], &ends[0]["name"], &ends[0]["cat"])
        );
        assert_eq!((starts[0]["ts"].as_f64(), ends[0]["ts"].as_f64()), (Some(1.5), Some(4.001)));
        assert_eq!(ends[0]["bp"], "e");
        assert_ne!(starts[0]["pid"], ends[0]["pid"]);
    }

    #[test]
    fn processes_and_threads_have_names() {
        let events = events(&example());
        let names: Vec<_> =
            of(&events, "M").iter().filter_map(|e| e["args"]["name"].as_str()).map(str::to_owned).collect();
        assert_eq!(names, ["host", "cpu:0", "host, main", "stream 0", "stream 1"]);
    }
}
