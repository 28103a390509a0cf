//! Whether a call blocks: measured, not looked up.
//!
//! # Protocol
//! A closed gate holds the stream, then the call is made. A watchdog thread opens the gate when the timeout is over,
//! whatever happens, so that nothing can hang. A call that returns before that did not wait for the stream; a call that
//! returns only after that did.
//!
//! # What it does not cover
//! A call that does not wait for the stream but takes longer than the timeout counts as one that blocks. Choose the
//! timeout well above the cost of the call with nothing pending. Make the call once before: loading its code may wait for
//! the whole device.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::device::Stream;
use crate::error::DeviceError;

/// Whether `call` waits for the work pending on `stream`.
///
/// # Errors
/// The call's own, and those of the stream.
pub fn blocks<R>(
    stream: &Stream,
    timeout: Duration,
    call: impl FnOnce() -> Result<R, DeviceError>,
) -> Result<bool, DeviceError> {
    let gate = stream.device().gate()?;
    let opened = AtomicBool::new(false);
    let (returned, waiting) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        stream.wait_gate(&gate)?;
        let (gate, opened) = (&gate, &opened);
        scope.spawn(move || {
            // The sender is dropped when the call has returned.
            if waiting.recv_timeout(timeout) == Err(mpsc::RecvTimeoutError::Timeout) {
                opened.store(true, Ordering::SeqCst);
            }
            gate.open();
        });
        let result = call();
        let blocked = opened.load(Ordering::SeqCst);
        drop(returned);
        result.map(|_| blocked)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;

    const TIMEOUT: Duration = Duration::from_millis(30);

    #[test]
    fn a_synchronize_blocks_and_an_enqueue_does_not() {
        let stream = Device::open("cpu:0").unwrap().stream().unwrap();
        assert!(blocks(&stream, TIMEOUT, || stream.synchronize()).unwrap());
        assert!(!blocks(&stream, Duration::from_secs(60), || stream.ones::<f32>([4])).unwrap());
        stream.synchronize().unwrap();
    }

    #[test]
    fn a_call_that_fails_leaves_the_gate_open() {
        let stream = Device::open("cpu:0").unwrap().stream().unwrap();
        let failed = blocks::<()>(&stream, TIMEOUT, || Err(DeviceError::EventNotReady { reason: "scripted" }));
        assert!(failed.is_err());
        stream.synchronize().unwrap();
    }
}
