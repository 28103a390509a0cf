//! Steps that have a rule of their own for what must come out: a recording, a failure on request, a full queue. They work on
//! streams of their own, and beside the other threads of the program.

use std::thread;
use std::time::Duration;

use syncscope::device::{Device, Injected, Stream};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;
use syncscope::timeline::Kind;

use crate::Outcome;
use crate::program::How;
use crate::run::actions::kind;
use crate::run::{shared, text};

/// More than fit into a queue.
const MANY: usize = 1500;

/// Whatever other threads do meanwhile: the own work is there, each piece with its call, and no work is without one.
pub(super) fn record(device: &Device, launches: usize) -> Outcome<()> {
    let (stream, _) = shared::stream(device, How::Wrapped)?;
    let x = stream.zeros::<f32>([64]).map_err(text)?;
    let region = || {
        (0..launches).try_for_each(|_| x.affine_in_place(1.0, 1.0))?;
        stream.synchronize()
    };
    let (_, timeline) = device.record(region).map_err(text)?;
    let (work, calls): (Vec<_>, Vec<_>) = timeline.spans.iter().partition(|span| span.kind.is_on_device());
    let known: std::collections::HashSet<_> = calls.iter().map(|call| call.correlation).collect();
    if let Some(stray) = work.iter().find(|span| span.stream.is_none() || !known.contains(&span.correlation)) {
        return Err(format!("work without a stream or without its call is recorded: {stray:?}"));
    }
    let own = |span: &&&syncscope::timeline::Span| span.stream == Some(stream.number());
    let kernels = work.iter().filter(own).filter(|span| span.kind == Kind::Kernel).count();
    let enqueued = calls.iter().filter(own).filter(|span| span.kind == Kind::Enqueue).count();
    match (kernels, enqueued) == (launches, launches) {
        true => Ok(()),
        false => Err(format!("{kernels} kernels and {enqueued} calls of {launches} launches are recorded")),
    }
}

/// The rules: a call that fails has done nothing, and later ones succeed; a lost device fails every later call with the first
/// cause. On an opening of its own, so that only calls of this step are counted.
pub(super) fn inject(device: &Device, what: usize, nth: u64) -> Outcome<()> {
    let what = [Injected::Allocation, Injected::Launch, Injected::Copy, Injected::DeviceLoss][what % 4];
    let device = Device::open(device.name()).map_err(text)?;
    let stream = device.stream().map_err(text)?;
    let x = stream.zeros::<f32>([64]).map_err(text)?;
    let mut buffer = device.host_buffer::<f32>(kind(&device), 64).map_err(text)?;
    stream.synchronize().map_err(text)?;
    device.inject(what, nth);
    let (mut failures, mut value, mut copied) = (Vec::new(), 0.0, 0.0);
    let mut count = |outcome: Result<(), DeviceError>| match outcome {
        Ok(()) => true,
        Err(error) => {
            failures.push(error);
            false
        }
    };
    for _ in 0..6 {
        value += if count(x.affine_in_place(1.0, 1.0)) { 1.0 } else { 0.0 };
        if count(x.copy_to(&mut buffer)) {
            copied = value;
        }
        if let Some(wrong) = buffer.read().ok().map(|content| content[63]).filter(|read| *read != copied) {
            return Err(format!("a buffer holds {wrong} in place of {copied} beside {what:?} of call {nth}"));
        }
        let fresh = made(&stream, value);
        count(fresh);
    }
    let lost = what == Injected::DeviceLoss;
    let injected = |error: &DeviceError| !matches!(error, DeviceError::InvalidArgument { .. });
    let rule = if lost { failures.windows(2).all(|pair| pair[0] == pair[1]) } else { failures.len() <= 1 };
    if !rule || !failures.iter().all(injected) {
        return Err(format!("{what:?} of call {nth} gave {failures:?}"));
    }
    match (x.get([9]).and_then(|x| x.item()), failures.first()) {
        (Ok(read), _) if read == value && (!lost || failures.is_empty()) => Ok(()),
        (Err(error), Some(first)) if lost && error == *first => Ok(()),
        // It may strike here for the first time.
        (Err(_), None) => Ok(()),
        (other, _) => Err(format!("{what:?} of call {nth} left {other:?} in place of {value}, after {failures:?}")),
    }
}

/// A tensor that is made and read is what it should be, or nothing.
fn made(stream: &Stream, value: f32) -> Result<(), DeviceError> {
    let y: Tensor<f32> = stream.full([9], value.into())?;
    let read = y.add_scalar(1.0)?.to_vec()?;
    match read == [value + 1.0; 9] {
        true => Ok(()),
        false => {
            let reason = format!("{read:?} in place of {}", value + 1.0);
            Err(DeviceError::InvalidArgument { operation: "stress", reason })
        }
    }
}

/// While one thread waits for room, questions are answered, other streams work, and nothing that is dropped waits.
pub(super) fn fill(device: &Device) -> Outcome<()> {
    let (held, other) = (device.stream().map_err(text)?, device.stream().map_err(text)?);
    let (x, y) = (held.zeros::<f32>([16]).map_err(text)?, other.ones::<f32>([16]).map_err(text)?);
    let unused = held.zeros::<f32>([32]).map_err(text)?;
    other.synchronize().map_err(text)?;
    let gate = device.gate().map_err(text)?;
    held.wait_gate(&gate).map_err(text)?;
    let outcome = thread::scope(|scope| {
        let fills = scope.spawn(|| (0..MANY).try_for_each(|_| x.affine_in_place(1.0, 1.0)));
        thread::sleep(Duration::from_millis(2));
        drop(unused);
        let meanwhile = held.is_complete().and_then(|complete| {
            y.affine_in_place(2.0, 1.0)?;
            other.is_complete().map(|_| complete)
        });
        gate.open();
        let filled = fills.join().map_err(|_| "a panic of who launches".to_owned())?;
        filled.map_err(text)?;
        meanwhile.map_err(text)
    })?;
    let (value, beside) =
        (x.get([9]).and_then(|x| x.item()).map_err(text)?, y.get([9]).and_then(|y| y.item()).map_err(text)?);
    match (outcome, value == MANY as f32, beside == 3.0) {
        (false, true, true) => Ok(()),
        other => Err(format!("behind a gate: complete, launched, beside: {other:?}, {value}, {beside}")),
    }
}
