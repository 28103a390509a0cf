//! Functions that fail or are left while a stream is held.

use std::panic::{AssertUnwindSafe, catch_unwind};

use syncscope::device::Device;
use syncscope::error::DeviceError;

use crate::Outcome;
use crate::run::actions::kind;
use crate::run::text;

/// A row that is not there fails the stream, which says so. On an opening of its own, whose `synchronize` nobody else calls.
pub(super) fn failed_stream(device: &Device) -> Outcome<()> {
    let device = Device::open(device.name()).map_err(text)?;
    let stream = device.stream().map_err(text)?;
    let rows = stream.tensor(&[0i64, 99], [2]).map_err(text)?;
    let x = stream.ones::<f32>([3, 2]).map_err(text)?;
    let _ = x.gather(&rows);
    match stream.synchronize() {
        Err(error) if error.to_string().contains("99") => Ok(()),
        other => Err(format!("a row that is not there gave {other:?}")),
    }
}

/// Leaves a function while its stream waits for a gate that was declared before what waits: nothing that is dropped on the
/// way out may wait for the gate.
pub(super) fn leave(device: &Device, how: usize) -> Outcome<()> {
    let refused = match how % 4 {
        0 => leave_with_copy(device),
        1 => catch_unwind(AssertUnwindSafe(|| leave_with_panic(device))).unwrap_or_else(|panic| {
            drop(panic);
            Err(DeviceError::EventNotReady { reason: "left by a panic" })
        }),
        2 => leave_capture(device),
        _ => leave_with_second_device(device),
    };
    match refused {
        Err(DeviceError::InvalidArgument { .. } | DeviceError::EventNotReady { .. }) => Ok(()),
        other => Err(format!("left with {other:?}")),
    }
}

fn leave_with_copy(device: &Device) -> Result<(), DeviceError> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    let mut buffer = device.host_buffer::<f32>(kind(device), 64)?;
    let source = device.host_buffer::<f32>(kind(device), 64)?;
    let x = stream.full::<f32>([64], 2.0)?;
    stream.wait_gate(&gate)?;
    x.copy_to(&mut buffer)?;
    x.copy_from(&source)?;
    x.add(&stream.full::<f32>([65], 1.0)?)?;
    Ok(())
}

fn leave_with_panic(device: &Device) -> Result<(), DeviceError> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    let (_, graph) = stream.capture(|| stream.full::<f32>([500], 1.0)?.add_scalar(1.0))?;
    let event = device.event()?;
    stream.wait_gate(&gate)?;
    graph.launch()?;
    stream.record(&event)?;
    let other = device.stream()?;
    other.wait(&event)?;
    let _pending = other.full::<f32>([500], 1.0)?.sum()?;
    std::panic::resume_unwind(Box::new(()))
}

fn leave_capture(device: &Device) -> Result<(), DeviceError> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    let x = stream.full::<f32>([500], 1.0)?;
    stream.wait_gate(&gate)?;
    stream.capture(|| {
        x.affine_in_place(2.0, 1.0)?;
        x.add(&stream.full::<f32>([501], 1.0)?)
    })?;
    Ok(())
}

fn leave_with_second_device(device: &Device) -> Result<(), DeviceError> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    stream.wait_gate(&gate)?;
    let x = stream.full::<f32>([500], 1.0)?;
    let second = Device::open(device.name())?;
    let sum = second.stream()?.full::<f32>([500], 2.0)?.sum()?.item()?;
    assert!(sum == 1000.0, "a second device gave a sum of {sum}");
    drop(second);
    x.add(&stream.full::<f32>([501], 1.0)?)?;
    Ok(())
}
