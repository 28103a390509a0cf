//! `synchronize.scope`: what each kind of synchronization waits for.
//!
//! - *blocks*: a closed gate holds another stream than the one that is synchronized. A call that returns before the gate
//!   opens does not wait for other streams.
//! - times: two streams are kept busy for known times, with an event in the middle of one. For how long each wait blocks
//!   the host shows what it waited for.

use crate::experiment::prelude::*;
use crate::measure::blocks;

pub(super) fn run(patience: Duration) -> [Group; 2] {
    [gated(patience), timed()]
}

/// The stream that is held, and what the host waits for: a stream of its own, a tensor and an event of that stream.
struct Scope {
    held: Stream,
    own: Stream,
    x: Tensor<f32>,
    event: Event,
}

impl Scope {
    fn new(device: &Device) -> Result<Self> {
        let (held, own) = (device.stream()?, device.stream()?);
        let (x, event) = (own.ones([8])?, device.event()?);
        own.record(&event)?;
        Ok(Self { held, own, x, event })
    }
}

fn gated(patience: Duration) -> Group {
    type Wait = fn(&Scope) -> Result<()>;
    let rows: [(&'static str, &str, Wait); 4] = [
        ("synchronize.scope.device.blocks", "Device synchronize, another stream held: blocked", |s| {
            s.own.device().synchronize()
        }),
        ("synchronize.scope.stream.blocks", "Stream synchronize, another stream held: blocked", |s| {
            s.own.synchronize()
        }),
        ("synchronize.scope.item.blocks", "Read a scalar, another stream held: blocked", |s| {
            s.x.get([0])?.item().map(drop)
        }),
        ("synchronize.scope.event.blocks", "Event synchronize, another stream held: blocked", |s| {
            s.event.synchronize()
        }),
    ];
    let mut group = Group::of("Scope of a synchronization", []);
    for (id, label, wait) in rows {
        group = group.observed(id, label, Unit::Ratio, move |device| {
            let scope = Scope::new(device)?;
            // What the call loads is loaded before a gate closes.
            wait(&scope)?;
            Ok(move || Ok(f64::from(blocks(&scope.held, patience, || wait(&scope))?)))
        });
    }
    group.build()
}

/// Two streams: one busy for 2 ms, then an event, then busy for 2 ms more; the other busy for 8 ms.
fn timed() -> Group {
    const EVENT: Duration = Duration::from_millis(2);
    const REST: Duration = Duration::from_millis(2);
    const OTHER: Duration = Duration::from_millis(8);
    let begin = |a: &Stream, b: &Stream, event: &Event| {
        a.spin(EVENT)?;
        a.record(event)?;
        a.spin(REST)?;
        b.spin(OTHER)
    };
    Group::of(
        "Scope of a synchronization",
        [
            ("event_seconds", EVENT.as_secs_f64().into()),
            ("stream_seconds", (EVENT + REST).as_secs_f64().into()),
            ("device_seconds", OTHER.as_secs_f64().into()),
        ],
    )
    .setup(|device| Ok((device.stream()?, device.stream()?, device.event()?)))
    .stopwatch_of("synchronize.scope.event", "Event synchronize", move |(a, b, event), watch| {
        begin(a, b, event)?;
        watch.time(|| event.synchronize())
    })
    .stopwatch_of("synchronize.scope.stream", "Stream synchronize", move |(a, b, event), watch| {
        begin(a, b, event)?;
        watch.time(|| a.synchronize())
    })
    .stopwatch_of("synchronize.scope.device", "Device synchronize", move |(a, b, event), watch| {
        begin(a, b, event)?;
        watch.time(|| a.device().synchronize())
    })
    .build()
}
