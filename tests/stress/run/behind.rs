//! Steps with gates of their own: much that is copied, many streams of one tensor, and a stream that fails and is dropped.

use std::thread;

use syncscope::device::{Device, Event, HostKind, Stream};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;

use crate::Outcome;
use crate::run::text;

/// The elements of what is large: more than a piece of a staged read, and enough for two threads to drain.
const LARGE: [usize; 2] = [300_000, 2_200_000];

/// Another length than those of the oracle.
const LEN: usize = 777;

/// One thread copies, in a call that may wait for both gates; this one goes on with the stream, and opens them.
pub(super) fn large(device: &Device, how: usize) -> Outcome<()> {
    let len = LARGE[how / 4 % 2];
    let (copied, beside) = copy_much(device, how, len).map_err(text)?;
    let expected = [2.0, 5.0, 2.0, 3.0][how % 4];
    match copied.len() == len && copied.iter().all(|x| *x == expected) {
        true if beside == (vec![1, 2, 3], vec![3.0; 16], false) => Ok(()),
        true => Err(format!("beside a copy behind gates: {beside:?}")),
        false => Err(format!("a copy behind gates gave {:?} in place of {expected}", copied.first())),
    }
}

/// What was uploaded and computed beside a copy, and whether the stream said that it was complete.
type Beside = (Vec<i64>, Vec<f32>, bool);

fn copy_much(device: &Device, how: usize, len: usize) -> Result<(Vec<f32>, Beside), DeviceError> {
    let (stream, other, event) = (device.stream()?, device.stream()?, device.event()?);
    let (x, y) = (stream.full::<f32>([len], 2.0)?, stream.zeros::<f32>([16])?);
    let mut buffer = device.host_buffer::<f32>(HostKind::Pageable, len)?;
    buffer.write()?.fill(3.0);
    let values = vec![5.0; len];
    let gates = [device.gate()?, device.gate()?];
    for (stream, gate) in [(&stream, 0), (&other, 1), (&stream, 1), (&other, 0)] {
        stream.wait_gate(&gates[gate])?;
    }
    thread::scope(|scope| {
        let copying = scope.spawn(|| match how % 4 {
            0 => x.to_vec(),
            1 => stream.tensor(&values, [len])?.to_vec(),
            2 => {
                x.copy_to(&mut buffer)?;
                Ok(buffer.read()?.to_vec())
            }
            _ => {
                x.copy_from(&buffer)?;
                x.to_vec()
            }
        });
        let goes_on = || {
            y.affine_in_place(1.0, 1.0)?;
            let small = stream.tensor(&[1i64, 2, 3], [3])?;
            stream.record(&event)?;
            gates[0].open();
            y.affine_in_place(2.0, 1.0)?;
            Ok((small, stream.is_complete()?))
        };
        let beside = goes_on();
        gates.iter().for_each(|gate| gate.open());
        let copied = copying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let (small, complete) = beside?;
        Ok((copied, (small.to_vec()?, y.to_vec()?, complete)))
    })
}

/// All of them read it at once, then its home writes it behind all of them, and they behind each other.
pub(super) fn spread(device: &Device, streams: usize) -> Outcome<()> {
    let (read, last, fresh) = use_on_all(device, streams).map_err(text)?;
    let values = |x: &Tensor<f32>, expected: f32| {
        let values = x.to_vec().map_err(text)?;
        match values == [expected; LEN] {
            true => Ok(()),
            false => Err(format!("a tensor of {} streams gave {:?} in place of {expected}", 1 + streams, values[0])),
        }
    };
    read.iter().enumerate().try_for_each(|(i, x)| values(x, 1.0 + i as f32))?;
    values(&last, 3.0 + streams as f32)?;
    values(&fresh, 9.0)
}

/// What each of the streams read, what the last of them wrote, and a tensor made after.
type Used = (Vec<Tensor<f32>>, Tensor<f32>, Tensor<f32>);

fn use_on_all(device: &Device, streams: usize) -> Result<Used, DeviceError> {
    let home = device.stream()?;
    let guests = (0..streams).map(|_| device.stream()).collect::<Result<Vec<_>, _>>()?;
    let gates = [device.gate()?, device.gate()?];
    let behind = |stream: &Stream| {
        let event = device.event()?;
        stream.record(&event).map(|()| event)
    };
    let x = home.full::<f32>([LEN], 1.0)?;
    let made: Event = behind(&home)?;
    let mut read = Vec::new();
    for (i, guest) in guests.iter().enumerate() {
        guest.wait_gate(&gates[i % 2])?;
        guest.wait(&made)?;
        read.push(x.on(guest)?.affine(1.0, i as f32)?);
        home.wait(&behind(guest)?)?;
    }
    x.affine_in_place(3.0, 0.0)?;
    let (mut written, mut last) = (behind(&home)?, x.clone());
    for guest in &guests {
        guest.wait(&written)?;
        last = x.on(guest)?;
        last.affine_in_place(1.0, 1.0)?;
        written = behind(guest)?;
    }
    let last = last.affine(1.0, 0.0)?;
    // With all of it pending; then one of the gates opens.
    drop((x, guests));
    let fresh = home.full::<f32>([LEN], 9.0)?;
    drop((home, made, written));
    gates[0].open();
    Ok((read, last, fresh))
}

/// On an opening of its own, whose `synchronize` nobody else calls.
pub(super) fn outlive(device: &Device, how: usize) -> Outcome<()> {
    let device = Device::open(device.name()).map_err(text)?;
    let (elsewhere, guest) = fail_and_drop(&device, how).map_err(text)?;
    if how < 2 {
        match device.synchronize() {
            Err(error) if error.to_string().contains("99") => {}
            other => return Err(format!("a dropped stream failed and the device said {other:?}")),
        }
        device.synchronize().map_err(|error| format!("the failure of a dropped stream was told again: {error}"))?;
    }
    let values = (elsewhere.to_vec().map_err(text)?, guest.to_vec().map_err(text)?);
    match values == (vec![2.0; 2 * LEN], vec![3.0; LEN]) {
        true => Ok(()),
        false => Err(format!("tensors of a stream that failed: {:?}, {:?}", values.0[0], values.1[0])),
    }
}

/// A tensor of the stream that fails, and one that it used, both on another stream.
fn fail_and_drop(device: &Device, how: usize) -> Result<(Tensor<f32>, Tensor<f32>), DeviceError> {
    let (stream, other, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let (own, guest) = (stream.full::<f32>([2 * LEN], 2.0)?, other.full::<f32>([LEN], 3.0)?);
    let rows = stream.tensor(&[0i64, 99_999], [2])?;
    [&stream, &other].into_iter().try_for_each(Stream::synchronize)?;
    if how.is_multiple_of(2) {
        stream.wait_gate(&gate)?;
    }
    let elsewhere = own.on(&other)?;
    guest.on(&stream)?.affine(2.0, 1.0)?;
    own.reshape([LEN, 2])?.gather(&rows)?;
    // The gate goes last.
    drop((own, rows, stream));
    Ok((elsewhere, guest))
}
