//! Events in Chrome's trace format, of which those are kept that an audit uses.
//!
//! Source: *Trace Event Format*, the document of the Chromium project.
//!
//! # Limits
//! An event takes some hundred bytes, and two in a text are enough for one: those of no use are not kept, and of the others
//! [`MAX_EVENTS`] at most. Nothing else is kept that a text can have without end.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::kineto;
use crate::device::kind::Kind;

/// A trace of the most bytes that are read has fewer by the profiler.
const MAX_EVENTS: usize = 5_000_000;
/// The most bytes of what a trace of this library says of itself.
const MAX_OTHER: usize = 1 << 24;
/// The longest time that an event may have, in microseconds: a year. And the farthest from zero.
const YEAR: f64 = 3.2e13;
const FARTHEST: f64 = 4e15;
/// What an audit uses of this library's own traces.
pub(super) const KINDS: [Kind; 5] = [Kind::Enqueue, Kind::Synchronize, Kind::HostWork, Kind::Kernel, Kind::Copy];
pub(super) const NAME_OF_THREAD: &str = "thread_name";

#[derive(Deserialize)]
pub(super) struct Trace<'a> {
    #[serde(rename = "traceEvents", borrow, deserialize_with = "used")]
    pub(super) events: Vec<Event<'a>>,
    #[serde(rename = "otherData", borrow)]
    other: Option<&'a RawValue>,
}

impl<'a> Trace<'a> {
    /// A trace from its text.
    pub(crate) fn parse(text: &'a str) -> serde_json::Result<Self> {
        // The format's other form is the list of events alone.
        match text.trim_start().starts_with('[') {
            true => serde_json::from_str(text).map(|List(events)| Self { events, other: None }),
            false => serde_json::from_str(text),
        }
    }

    /// What a trace of this library says of itself.
    pub(super) fn other(&self) -> Option<serde_json::Value> {
        let other = self.other.filter(|other| other.get().len() <= MAX_OTHER)?;
        serde_json::from_str(other.get()).ok()
    }
}

#[derive(Deserialize)]
struct List<'a>(#[serde(borrow, deserialize_with = "used")] Vec<Event<'a>>);

/// The events that are used.
fn used<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Event<'a>>, D::Error> {
    struct Read<'a>(PhantomData<&'a ()>);
    impl<'de: 'a, 'a> Visitor<'de> for Read<'a> {
        type Value = Vec<Event<'a>>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a list of events")
        }

        fn visit_seq<S: SeqAccess<'de>>(self, mut events: S) -> Result<Self::Value, S::Error> {
            let mut used = Vec::new();
            while let Some(event) = events.next_element::<Event<'a>>()? {
                if event.is_used() {
                    used.push(event);
                }
                if used.len() > MAX_EVENTS {
                    let message = format!("it has more than {MAX_EVENTS} events that are used, the most that are read");
                    return Err(S::Error::custom(message));
                }
            }
            Ok(used)
        }
    }
    deserializer.deserialize_seq(Read(PhantomData))
}

/// An event. There are millions, so nothing of the text is copied that need not be, and of the arguments only some are kept.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(default, borrow)]
    pub(super) ph: Cow<'a, str>,
    #[serde(default, borrow)]
    pub(super) cat: Cow<'a, str>,
    #[serde(default, borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(default, borrow)]
    pub(super) pid: Loose<'a>,
    #[serde(default, borrow)]
    pub(super) tid: Loose<'a>,
    pub(super) ts: Option<f64>,
    dur: Option<f64>,
    #[serde(default, borrow)]
    pub(super) args: Arguments<'a>,
}

/// The arguments that are used.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Arguments<'a> {
    #[serde(borrow)]
    pub(super) correlation: Loose<'a>,
    pub(crate) bytes: Loose<'a>,
    pub(super) context: Loose<'a>,
    pub(super) stream: Loose<'a>,
    pub(super) device: Loose<'a>,
    pub(super) awaits: Loose<'a>,
    pub(crate) name: Loose<'a>,
    pub(super) site: Loose<'a>,
    pub(super) sync: Loose<'a>,
}

/// A value as it stands in the text, which is used if it is a number or a text.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Loose<'a>(&'a str);

impl<'a> Loose<'a> {
    pub(crate) fn number(self) -> Option<u64> {
        self.0.parse().ok()
    }

    pub(super) fn small(self) -> Option<u32> {
        self.0.parse().ok()
    }

    pub(super) fn text(self) -> Cow<'a, str> {
        match self.0.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(plain) if !plain.contains('\\') => Cow::Borrowed(plain),
            Some(_) => Cow::Owned(serde_json::from_str(self.0).unwrap_or_default()),
            None => Cow::default(),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|value| Self(value.get()))
    }
}

impl<'a> Event<'a> {
    /// Whether it is one of those that `kineto` and the reader of own traces look at.
    fn is_used(&self) -> bool {
        match &*self.ph {
            "X" => kineto::is_used(self) || KINDS.iter().any(|kind| kind.name() == self.cat),
            "M" => self.name == NAME_OF_THREAD,
            _ => false,
        }
    }

    /// The process and the thread.
    pub(super) fn track(&self) -> (Loose<'a>, Loose<'a>) {
        (self.pid, self.tid)
    }

    /// When it began and ended, since the first of the trace.
    pub(super) fn times(&self, first: f64) -> (u64, u64) {
        let start = ((self.ts.unwrap_or(first) - first) * 1e3).round().max(0.0) as u64;
        (start, start + (self.dur.unwrap_or(0.0) * 1e3).round() as u64)
    }

    pub(super) fn is_timed(&self) -> bool {
        let has_begun = self.ts.is_some_and(|time| time.abs() < FARTHEST);
        has_begun && self.dur.is_some_and(|time| (0.0..YEAR).contains(&time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_nothing_looks_at_are_not_kept() {
        let used = [
            r#"{"ph":"X","cat":"cuda_runtime","name":"cudaFree","ts":1,"dur":1}"#,
            r#"{"ph":"X","cat":"synchronize","name":"item","ts":1,"dur":1}"#,
            r#"{"ph":"M","name":"thread_name"}"#,
        ];
        let unused = [r#"{"ph":"X","cat":"cpu_op","ts":1,"dur":1}"#, r#"{"ph":"s","cat":"ac2g"}"#, "{}"];
        let text = format!("{{\"traceEvents\":[{},{}]}}", used.join(","), vec![unused.join(","); 1000].join(","));
        let list = format!("[{}]", unused.join(","));
        assert_eq!(Trace::parse(&text).unwrap().events.len(), used.len());
        assert!(Trace::parse(&list).unwrap().events.is_empty());
    }

    #[test]
    fn of_what_is_neither_a_number_nor_a_text_nothing_is_kept_and_the_event_is_read() {
        for other in ["null", "true", "-5", "1.5", "[1, [2]]", "{\"a\": [3]}"] {
            let args = format!("{{\"stream\":{other},\"site\":{other},\"bytes\":7}}");
            let text = format!(
                "[{{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":1,\"dur\":2,\"pid\":{other},\"tid\":\"a\\tb\",\"args\":{args}}}]"
            );
            let trace = Trace::parse(&text).unwrap();
            let [event] = &*trace.events else { panic!("{text}") };
            assert_eq!((event.pid.number(), &*event.pid.text(), &*event.tid.text()), (None, "", "a\tb"), "{text}");
            let Arguments { stream, site, bytes, .. } = &event.args;
            assert_eq!((stream.small(), &*site.text(), bytes.number()), (None, "", Some(7)), "{text}");
            assert!(Trace::parse(&(text + "]")).is_err());
        }
    }
}
