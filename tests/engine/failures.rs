//! Wrong arguments are errors at once; failed work is an error of the next call on its stream, and hangs nobody.

use libtest_mimic::Failed;
use syncscope::device::{Device, HostKind};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;

use crate::{Check, ensure};

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("shapes_that_do_not_fit_are_refused", shapes),
    ("a_row_number_that_the_host_knows_is_checked_at_once", known_rows),
    ("a_failure_on_the_device_reaches_the_next_call_and_stays", device_failure),
    ("a_failed_stream_holds_up_no_other", other_streams_go_on),
    ("a_failed_copy_is_an_error_of_reading_its_buffer", failed_copy),
    ("a_shape_whose_size_wraps_around_is_refused", wrapping_shape),
    ("a_device_that_is_not_there_is_named_with_those_that_are", missing_device),
    ("a_tensor_too_large_for_any_memory_is_refused", too_large),
];

fn shapes(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let (a, b) = (stream.ones::<f32>([2, 3])?, stream.ones::<f32>([2, 3])?);
    let refused = [
        a.matmul(&b).is_err(),
        a.add(&stream.ones::<f32>([3, 2])?).is_err(),
        a.get([2, 0]).is_err(),
        a.reshape([7]).is_err(),
        a.item().is_err(),
        Tensor::<f32>::stack(&[]).is_err(),
        stream.tensor(&[1.0f32], [2]).is_err(),
        a.assign(&a).is_err(),
    ];
    ensure(refused.iter().all(|r| *r), || format!("{refused:?}"))?;
    a.sum()?.item()?;
    Ok(())
}

fn known_rows(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let refused = stream.ones::<f32>([3, 2])?.index_select(&[0, 3]);
    ensure(matches!(refused, Err(DeviceError::InvalidArgument { .. })), || format!("{refused:?}"))?;
    stream.synchronize()?;
    Ok(())
}

fn fail(stream: &syncscope::device::Stream) -> Result<DeviceError, Failed> {
    let rows = stream.tensor(&[0i64, 99], [2])?;
    stream.ones::<f32>([3, 2])?.gather(&rows)?;
    stream.synchronize().err().ok_or_else(|| "a row number outside of the tensor was taken".into())
}

fn device_failure(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let error = fail(&stream)?;
    let text = error.to_string();
    ensure(text.contains("gather") && text.contains("99"), || text.clone())?;
    for again in [stream.spin(std::time::Duration::ZERO), stream.is_complete().map(drop), stream.synchronize()] {
        ensure(again == Err(error.clone()), || format!("{again:?} instead of {error}"))?;
    }
    let event = device.event()?;
    let _ = stream.record(&event);
    event.synchronize()?;
    Ok(())
}

fn other_streams_go_on(device: &Device) -> Result<(), Failed> {
    let (broken, sound) = (device.stream()?, device.stream()?);
    fail(&broken)?;
    let event = device.event()?;
    let _ = broken.record(&event);
    sound.wait(&event)?;
    let sum = sound.ones::<f32>([5])?.sum()?.item()?;
    ensure(sum == 5.0, || format!("the other stream computed {sum}"))
}

fn failed_copy(device: &Device) -> Result<(), Failed> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    let kind = if device.properties().engine == "cpu" { HostKind::Pageable } else { HostKind::Pinned };
    let mut buffer = device.host_buffer::<f32>(kind, 4)?;
    let rows = stream.tensor(&[0i64, 99], [2])?;
    let x = stream.ones::<f32>([3, 2])?;
    x.gather(&rows.reshape([2])?)?;
    stream.synchronize().err().ok_or("a row number outside of the tensor was taken")?;
    // The same with the failure still to come when the copy is enqueued.
    let held = device.stream()?;
    let (x, rows) = (held.ones::<f32>([3, 2])?, held.tensor(&[0i64, 99], [2])?);
    held.wait_gate(&gate)?;
    x.gather(&rows)?.copy_to(&mut buffer)?;
    gate.open();
    let read = buffer.read().map(|values| values.to_vec());
    ensure(read.is_err(), || format!("a failed copy was read as {read:?}"))
}

fn wrapping_shape(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let pair = stream.ones::<f32>([2])?;
    ensure(pair.reshape([(1 << 63) + 1, 2]).is_err(), || "a shape of 2⁶⁴ + 2 elements passed for 2".to_owned())?;
    let none = stream.empty::<f32>([0])?;
    ensure(none.reshape([1 << 32, 1 << 32]).is_err(), || "a shape of 2⁶⁴ elements passed for none".to_owned())?;
    let tall = stream.empty::<f32>([1 << 40, 0])?;
    ensure(tall.to_string() == "[]", || tall.to_string())?;
    ensure(device.host_buffer::<f32>(HostKind::Pageable, usize::MAX / 4).is_err(), || "all memory was given".to_owned())
}

fn missing_device(device: &Device) -> Result<(), Failed> {
    for name in ["cuda:77", "cpu:77", "tpu:0", "cpu", "cpu:x", ""] {
        let error = Device::open(name).err().ok_or_else(|| format!("`{name}` was opened"))?.to_string();
        ensure(error.contains(&format!("`{name}`")) && error.contains("cpu:0"), || error.clone())?;
    }
    let listed = Device::list().iter().any(|d| d.name == device.name());
    ensure(listed, || format!("{} is not listed", device.name()))
}

fn too_large(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let error = stream.empty::<f32>([usize::MAX / 4, 9]).err().ok_or("a shape that overflows was taken")?;
    ensure(matches!(error, DeviceError::InvalidArgument { .. }), || error.to_string())?;
    let error = stream.empty::<f32>([1 << 45]).err().ok_or("128 TiB were allocated")?;
    ensure(matches!(error, DeviceError::OutOfMemory { .. }), || error.to_string())?;
    stream.ones::<f32>([4])?.sum()?.item()?;
    Ok(())
}
