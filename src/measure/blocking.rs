//! Whether a call blocks: measured, not looked up.
//!
//! # Protocol
//! The stream is held by a closed gate, then the call is made. A watchdog thread opens the gate once the patience is
//! over, whatever happens, so that nothing can hang. A call that comes back before that did not wait for the stream; a
//! call that comes back only after it did.
//!
//! # What it does not cover
//! A call that does not wait for the stream and yet takes longer than the patience is taken for one that blocks: choose
//! the patience well above what the call costs with nothing pending, and call it once before, so that code it loads is
//! loaded (loading may wait for the whole device).

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
    patience: Duration,
    call: impl FnOnce() -> Result<R, DeviceError>,
) -> Result<bool, DeviceError> {
    let gate = stream.device().gate()?;
    let opened = AtomicBool::new(false);
    let (returned, waiting) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        stream.wait_gate(&gate)?;
        let (gate, opened) = (&gate, &opened);
        scope.spawn(move || {
            // An error is the time-out; a message or a hung-up sender is the call's return.
            if waiting.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Timeout) {
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

    const PATIENCE: Duration = Duration::from_millis(30);

    #[test]
    fn a_synchronize_blocks_and_an_enqueue_does_not() {
        let stream = Device::open("cpu:0").unwrap().stream().unwrap();
        assert!(blocks(&stream, PATIENCE, || stream.synchronize()).unwrap());
        assert!(!blocks(&stream, Duration::from_secs(60), || stream.ones::<f32>([4])).unwrap());
        stream.synchronize().unwrap();
    }

    #[test]
    fn a_call_that_fails_leaves_the_gate_open() {
        let stream = Device::open("cpu:0").unwrap().stream().unwrap();
        let failed = blocks::<()>(&stream, PATIENCE, || Err(DeviceError::EventNotReady { reason: "scripted" }));
        assert!(failed.is_err());
        stream.synchronize().unwrap();
    }
}
