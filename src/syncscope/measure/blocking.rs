//! What is done while a gate holds streams, and whether a call blocks: measured, not looked up.
//!
//! # Protocol
//! A closed gate holds the streams, then the call is made. A watchdog thread opens the gate when the timeout is over,
//! whatever happens, so that nothing can hang. A call that returns before that did not wait for the streams; a call that
//! returns only after that did.
//!
//! # What it does not cover
//! A call that does not wait for the stream but takes longer than the timeout counts as one that blocks. Choose the
//! timeout well above the cost of the call with nothing pending. Make the call once before: loading its code may wait for
//! the whole device.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::affinity;
use crate::device::{Device, Gate, Stream};
use crate::error::DeviceError;

/// How long the calls behind a gate may take before it is opened for them.
const PATIENCE: Duration = Duration::from_secs(10);

/// A closed gate that holds streams, in the hands of who is to open it.
pub struct Hold<'a> {
    gate: &'a Gate,
    opened: &'a AtomicBool,
}

impl Hold<'_> {
    /// Lets the streams go on.
    pub fn open(&self) {
        self.opened.store(true, Ordering::SeqCst);
        self.gate.open();
    }
}

/// Whether `call` waits for the work pending on `stream`.
///
/// ```
/// use std::time::Duration;
/// use syncscope::measure::blocks;
/// use syncscope::prelude::*;
///
/// let stream = Device::open("cpu:0")?.stream()?;
/// let x = stream.ones::<f32>([4])?;
/// assert!(blocks(&stream, Duration::from_millis(100), || x.to_vec())?);
/// # Ok::<(), syncscope::error::DeviceError>(())
/// ```
///
/// # Errors
/// The call's own, and those of the stream.
pub fn blocks<R>(
    stream: &Stream,
    timeout: Duration,
    call: impl FnOnce() -> Result<R, DeviceError>,
) -> Result<bool, DeviceError> {
    hold_for(stream.device(), &[stream], timeout, |_| call()).map(|(_, blocked)| blocked)
}

/// What `call` gives that begins while a gate holds `streams`, and opens it or returns.
///
/// # Errors
/// The call's own, those of the streams, and one where the call waited for what the gate held, as the driver may do at any
/// call: the gate is then opened after 10 s. [`DeviceError::InvalidArgument`] without a stream.
pub fn held<R>(streams: &[&Stream], call: impl FnOnce(&Hold<'_>) -> Result<R, DeviceError>) -> Result<R, DeviceError> {
    let Some(first) = streams.first() else {
        let reason = "there is no stream that a gate could hold".to_owned();
        return Err(DeviceError::invalid("held", reason));
    };
    match hold_for(first.device(), streams, PATIENCE, call)? {
        (result, false) => Ok(result),
        (_, true) => Err(DeviceError::call_failed(
            first.device().name(),
            "a call behind a closed gate",
            format!("it waited for the gate, which was opened after {} s", PATIENCE.as_secs()),
        )),
    }
}

/// What `call` gives, and whether the gate had to be opened for it.
pub(super) fn hold_for<R>(
    device: &Device,
    streams: &[&Stream],
    timeout: Duration,
    call: impl FnOnce(&Hold<'_>) -> Result<R, DeviceError>,
) -> Result<(R, bool), DeviceError> {
    let gate = device.gate()?;
    let (opened, late) = (AtomicBool::new(false), AtomicBool::new(false));
    let (returned, waiting) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        streams.iter().try_for_each(|stream| stream.wait_gate(&gate))?;
        let hold = Hold { gate: &gate, opened: &opened };
        let (gate, opened, late) = (&gate, &opened, &late);
        let watchdog = move || {
            // The sender is dropped when the call has returned.
            if waiting.recv_timeout(timeout) == Err(mpsc::RecvTimeoutError::Timeout) {
                late.store(!opened.load(Ordering::SeqCst), Ordering::SeqCst);
            }
            gate.open();
        };
        affinity::beside(scope, watchdog)?;
        let result = call(&hold);
        let late = late.load(Ordering::SeqCst);
        drop(returned);
        result.map(|result| (result, late))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(30);

    #[test]
    fn a_synchronize_blocks_and_an_enqueue_does_not() {
        let stream = Device::open("cpu:0").unwrap().stream().unwrap();
        assert!(blocks(&stream, TIMEOUT, || stream.synchronize()).unwrap());
        assert!(!blocks(&stream, Duration::from_secs(60), || stream.ones::<f32>([4])).unwrap());
        stream.synchronize().unwrap();
    }

    #[test]
    fn a_gate_that_the_call_opens_is_not_opened_for_it() {
        let stream = Device::open("cpu:0").unwrap().stream().unwrap();
        let waits_then_returns = |hold: &Hold<'_>| {
            hold.open();
            stream.synchronize()?;
            // Longer than the timeout, which ends while the gate is open.
            std::thread::sleep(TIMEOUT * 2);
            Ok(())
        };
        assert_eq!(hold_for(stream.device(), &[&stream], TIMEOUT, waits_then_returns), Ok(((), false)));
        assert_eq!(hold_for(stream.device(), &[&stream], TIMEOUT, |_| stream.synchronize()), Ok(((), true)));
        assert_eq!(held(&[&stream], |_| stream.ones::<f32>([4]).map(|x| x.len())), Ok(4));
    }

    #[test]
    fn without_a_stream_there_is_nothing_to_hold() {
        let refused = held(&[], |_| Ok(()));
        assert!(matches!(refused, Err(DeviceError::InvalidArgument { operation: "held", .. })), "{refused:?}");
    }

    #[test]
    fn a_call_that_fails_leaves_the_gate_open() {
        let stream = Device::open("cpu:0").unwrap().stream().unwrap();
        let failed = blocks::<()>(&stream, TIMEOUT, || Err(DeviceError::EventNotReady { reason: "scripted" }));
        assert!(failed.is_err());
        stream.synchronize().unwrap();
    }
}
