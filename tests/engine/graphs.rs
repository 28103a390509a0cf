//! What a graph promises on every engine: captured work runs when the graph is launched and not before, as often as it is
//! launched, on memory that lives as long as the graph; and what cannot be captured is refused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use syncscope::device::{Device, HostKind};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;

use crate::failures::{fail_behind, is_gather};
use crate::{Check, ensure};

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("captured_work_runs_at_each_launch_and_not_before", launches),
    ("a_graph_keeps_the_tensors_that_it_uses", keeps),
    ("every_operation_of_a_graph_gives_what_it_gives_outside", operations),
    ("what_cannot_be_captured_is_refused_and_the_stream_goes_on", refuses),
    ("a_capture_that_fails_or_panics_is_given_up", given_up),
    ("the_work_of_a_graph_is_recorded_with_its_launch", recorded),
    ("a_graph_captured_beside_a_held_stream_runs_while_it_is_held", held_beside),
    ("what_another_thread_reads_at_once_is_no_part_of_a_capture", reads_beside_captures),
    ("a_call_of_several_operations_is_captured_as_a_whole_or_not_at_all", whole_calls),
    ("a_failure_is_told_before_a_capture_that_refuses_the_call", failure_in_capture),
    ("a_gate_makes_room_for_graphs_beside_waits_for_the_device", room_beside_waits),
];

fn launches(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let x = stream.ones::<f32>([1000])?;
    let (_, graph) = stream.capture(|| (0..20).try_for_each(|_| x.affine_in_place(1.0, 1.0)))?;
    ensure(graph.len() == 20 && graph.stream().is_same(&stream), || format!("{graph:?}"))?;
    ensure(x.to_vec()?.iter().all(|&x| x == 1.0), || "captured work ran".to_owned())?;
    for launched in 1..4 {
        graph.launch()?;
        let expected = 1.0 + 20.0 * launched as f32;
        let values = x.to_vec()?;
        ensure(values.iter().all(|&x| x == expected), || format!("{} in place of {expected}", values[0]))?;
    }
    x.affine_in_place(0.0, 5.0)?;
    graph.launch()?;
    ensure(x.get([999])?.item()? == 25.0, || "a launch begins from what the tensor holds then".to_owned())
}

fn keeps(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let (y, graph) = stream.capture({
        let x = stream.full::<f32>([1 << 16], 3.0)?;
        move || x.add_scalar(1.0)?.add_scalar(1.0)
    })?;
    // Memory of the size that the graph's tensors have, written after they were dropped.
    for value in 0..8 {
        stream.full::<f32>([1 << 16], f64::from(value))?.sum()?.item()?;
    }
    for _ in 0..3 {
        graph.launch()?;
        let values = y.to_vec()?;
        ensure(values.iter().all(|&y| y == 5.0), || format!("{} in place of 5", values[0]))?;
    }
    graph.launch()?;
    drop(graph);
    ensure(y.get([0])?.item()? == 5.0, || "a graph dropped while it may run".to_owned())
}

fn operations(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let work = || {
        stream.set_seed(5);
        let x = stream.normal::<f32>([72, 40])?;
        let y = x.matmul(&x.reshape([40, 72])?)?.add(&stream.ones::<f32>([72, 72])?)?;
        let sum = y.multiply(&y)?.sum()?;
        Ok((y, sum))
    };
    let ((y, sum), graph) = stream.capture(work)?;
    let (expected, expected_sum) = work()?;
    let (expected, expected_sum) = (expected.to_vec()?, expected_sum.item()?);
    for _ in 0..2 {
        graph.launch()?;
        ensure(y.to_vec()? == expected, || "a product differs".to_owned())?;
        ensure(sum.item()? == expected_sum, || format!("{} and {expected_sum}", sum.item().unwrap_or(f32::NAN)))?;
    }
    Ok(())
}

fn refuses(device: &Device) -> Result<(), Failed> {
    let (stream, event, gate) = (device.stream()?, device.event()?, device.gate()?);
    let x = stream.ones::<f32>([64])?;
    let buffer = device.host_buffer::<f32>(HostKind::Pageable, 64)?;
    type Call<'a> = (&'a str, Box<dyn Fn() -> Result<(), DeviceError> + 'a>);
    let calls: [Call<'_>; 9] = [
        ("download", Box::new(|| x.sum()?.item().map(drop))),
        ("any", Box::new(|| x.any().map(drop))),
        ("nonzero", Box::new(|| x.nonzero().map(drop))),
        ("upload", Box::new(|| stream.tensor(&[1.0_f32], [1]).map(drop))),
        ("copy_from", Box::new(|| x.copy_from(&buffer))),
        ("record", Box::new(|| stream.record(&event))),
        ("wait_gate", Box::new(|| stream.wait_gate(&gate))),
        ("synchronize", Box::new(|| stream.synchronize())),
        ("capture", Box::new(|| stream.capture(|| Ok(())).map(drop))),
    ];
    for (call, run) in calls {
        let refused = stream.capture(|| {
            x.affine_in_place(2.0, 0.0)?;
            run()
        });
        ensure(matches!(refused, Err(DeviceError::Capturing { call: named }) if named == call), || {
            format!("{call}: {:?}", refused.map(|(_, graph)| graph))
        })?;
        let values = x.to_vec()?;
        ensure(values.iter().all(|&x| x == 1.0), || format!("{call}: {}", values[0]))?;
    }
    Ok(())
}

fn given_up(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let x = stream.ones::<f32>([8])?;
    let failed = stream.capture::<()>(|| {
        x.affine_in_place(2.0, 0.0)?;
        Err(DeviceError::EventNotReady { reason: "scripted" })
    });
    ensure(failed.is_err(), || "an error was lost".to_owned())?;
    let panicking = std::panic::AssertUnwindSafe(|| stream.capture::<()>(|| std::panic::resume_unwind(Box::new(()))));
    ensure(std::panic::catch_unwind(panicking).is_err(), || "a panic was lost".to_owned())?;
    x.affine_in_place(1.0, 1.0)?;
    ensure(x.to_vec()? == [2.0; 8], || "the stream does not go on as before".to_owned())?;
    let (_, graph) = stream.capture(|| Ok(()))?;
    graph.launch()?;
    ensure(graph.is_empty(), || format!("{graph:?}"))?;
    Ok(stream.synchronize()?)
}

fn recorded(device: &Device) -> Result<(), Failed> {
    use syncscope::timeline::Kind;
    let stream = device.stream()?;
    let x = stream.ones::<f32>([16])?;
    let (_, graph) = stream.capture(|| (0..5).try_for_each(|_| x.affine_in_place(1.0, 1.0)))?;
    graph.launch()?;
    stream.synchronize()?;
    let (_, timeline) = device.record(|| graph.launch())?;
    let calls: Vec<_> = timeline.spans.iter().filter(|span| span.kind == Kind::Enqueue).collect();
    let kernels: Vec<_> = timeline.spans.iter().filter(|span| span.kind == Kind::Kernel).collect();
    let one = matches!(calls.as_slice(), [call] if call.name == "Graph::launch"
        && kernels.iter().all(|kernel| kernel.correlation == call.correlation));
    // Events stand around the launch as a whole.
    let expected = if timeline.source.starts_with("events") { 1 } else { 5 };
    ensure(one && kernels.len() == expected, || format!("{timeline:#?}"))
}

fn held_beside(device: &Device) -> Result<(), Failed> {
    // Of one GPU, two openings.
    let other = Device::open(device.name())?;
    let (held, free, gate) = (device.stream()?, other.stream()?, device.gate()?);
    let (x, y) = (held.ones::<f32>([100])?, free.ones::<f32>([100])?);
    held.wait_gate(&gate)?;
    let (_, waits) = held.capture(|| x.affine_in_place(2.0, 0.0))?;
    waits.launch()?;
    let (_, runs) = free.capture(|| y.affine_in_place(3.0, 0.0))?;
    runs.launch()?;
    let value = y.get([99])?.item()?;
    ensure(value == 3.0 && !held.is_complete()?, || format!("{value} in place of 3"))?;
    gate.open();
    ensure(x.get([99])?.item()? == 2.0, || "the graph of the held stream".to_owned())
}

/// Such an operation runs, or is refused; its result is of no use to a graph.
fn reads_beside_captures(device: &Device) -> Result<(), Failed> {
    const READS: usize = 10_000;
    let stream = device.stream()?;
    let (x, y, over) = (stream.ones::<f32>([64])?, stream.zeros::<f32>([64])?, AtomicBool::new(false));
    let read = || match x.any().and_then(|any| Ok((any, x.nonzero()?.len()))) {
        Ok((true, 64)) | Err(DeviceError::Capturing { .. }) => Ok(()),
        told => Err(format!("{told:?}")),
    };
    thread::scope(|scope| {
        let captures = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let (_, graph) = stream.capture(|| (0..4).try_for_each(|_| y.affine_in_place(1.0, 1.0)))?;
                ensure(graph.len() == 4, || format!("a graph of four operations has {}", graph.len()))?;
                thread::yield_now();
            }
            Ok::<_, Failed>(())
        });
        let read = (0..READS).try_for_each(|_| read());
        over.store(true, Ordering::Relaxed);
        captures.join().map_err(|_| "the capturing thread panicked")??;
        Ok(read?)
    })
}

/// The calls of another thread: whoever looks finds all of their operations in a graph, or none.
fn whole_calls(device: &Device) -> Result<(), Failed> {
    const CALLS: usize = 5000;
    let stream = device.stream()?;
    let (x, over) = (stream.ones::<f32>([8, 8])?, AtomicBool::new(false));
    thread::scope(|scope| {
        let captures = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let (_, graph) = stream.capture(|| {
                    thread::yield_now();
                    Ok(())
                })?;
                ensure(graph.len().is_multiple_of(2), || format!("calls of two operations make {}", graph.len()))?;
                thread::yield_now();
            }
            Ok::<_, Failed>(())
        });
        let made = (0..CALLS).try_for_each(|_| {
            Tensor::stack(&[x.clone(), x.clone()])?;
            x.mean()?;
            match x.index_select(&[7, 0]) {
                Err(DeviceError::Capturing { .. }) => Ok(()),
                made => made.map(drop),
            }
        });
        over.store(true, Ordering::Relaxed);
        captures.join().map_err(|_| "the capturing thread panicked")??;
        Ok(made?)
    })
}

fn failure_in_capture(device: &Device) -> Result<(), Failed> {
    let (stream, event, gate) = (device.stream()?, device.event()?, device.gate()?);
    let x = stream.ones::<f32>([64])?;
    fail_behind(&stream, &gate)?;
    stream.record(&event)?;
    let mut told = Vec::new();
    let captured = stream.capture(|| {
        gate.open();
        told.push(("the event", event.synchronize()));
        told.push(("a wait", stream.synchronize()));
        told.push(("a read", x.to_vec().map(drop)));
        told.push(("a search", x.any().map(drop)));
        told.push(("a recording", stream.record(&event)));
        told.push(("a question", stream.is_complete().map(drop)));
        told.push(("an operation", x.affine_in_place(1.0, 1.0)));
        told.push(("a wait, again", stream.synchronize()));
        Ok(())
    });
    is_gather("the capture", captured.map(drop))?;
    told.into_iter().try_for_each(|(call, outcome)| is_gather(call, outcome))
}

/// By a capture of its own, once there were so many graphs.
fn room_beside_waits(device: &Device) -> Result<(), Failed> {
    let (busy, stream, over) = (device.stream()?, device.stream()?, AtomicBool::new(false));
    let x = stream.zeros::<f32>([16])?;
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                busy.spin(Duration::from_millis(2))?;
                device.synchronize()?;
            }
            Ok::<_, DeviceError>(())
        });
        let made = (0..10).try_for_each(|_| {
            (0..40).try_for_each(|_| stream.capture(|| x.affine_in_place(1.0, 1.0)).map(drop))?;
            // As long as it takes to stand in a wait for the whole device. One that stands there later makes the test easier.
            thread::sleep(Duration::from_millis(10));
            device.gate().map(drop)
        });
        over.store(true, Ordering::Relaxed);
        waits.join().map_err(|_| "the waiting thread panicked")??;
        Ok(made?)
    })
}
