//! What a user of the public types relies on.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Debug;

use syncscope::measure::{Case, Protocol, Sampler};
use syncscope::prelude::*;

#[test]
fn what_debug_writes_holds_no_address() {
    let device = Device::open("cpu:0").unwrap();
    let stream = device.stream().unwrap();
    let (event, gate) = (device.event().unwrap(), device.gate().unwrap());
    let buffer = device.host_buffer::<f32>(HostKind::Pageable, 2).unwrap();
    let tensor = stream.ones::<f32>([2]).unwrap();
    let (_, graph) = stream.capture(|| tensor.add_scalar(1.0)).unwrap();
    let (_, timeline) = device.record(|| tensor.sum()).unwrap();
    let audit = timeline.audit();
    let sampler = Sampler::new(Protocol::samples(3)).sync_between(&device);
    let cases = (Case::observed("observed", || 1.0), Case::new("in batches", || 1));
    let all: [&dyn Debug; 11] =
        [&device, &stream, &event, &gate, &buffer, &tensor, &graph, &timeline, &audit, &sampler, &cases];
    for text in all.map(|value| format!("{value:?}")) {
        assert!(!text.is_empty() && !text.contains("0x"), "{text}");
    }
}

/// In a process with little room: what the test allocates of one size until there is no more, and then of a smaller one, leaves room
/// for small things alone.
#[test]
#[cfg(target_os = "linux")]
fn no_memory_is_an_error_and_never_ends_the_process() {
    const NAME: &str = "no_memory_is_an_error_and_never_ends_the_process";
    const LITTLE: &str = "SYNCSCOPE_LITTLE_ROOM";
    if std::env::var_os(LITTLE).is_some() {
        return with_little_room();
    }
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -v 1000000; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    let output = limited.args([NAME, "--exact", "--test-threads=1"]).env(LITTLE, "1").output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success() && said[0].contains("1 passed"), "{}: {said:?}", output.status);
}

#[cfg(target_os = "linux")]
fn with_little_room() {
    /// 64 MiB of fp32, of which the square has sides of 4,096.
    const LARGE: usize = 16 << 20;
    const SIDE: usize = 4096;
    const SMALLER: usize = LARGE / 8;
    fn none<T: Debug>(outcome: Result<T, DeviceError>) {
        assert!(matches!(outcome, Err(DeviceError::OutOfMemory { .. })), "{outcome:?}");
    }
    let device = Device::open("cpu:0").unwrap();
    let [stream, changes, multiplies, copies] = [(); 4].map(|()| device.stream().unwrap());
    let x = stream.ones::<f32>([LARGE]).unwrap();
    let square = x.reshape([SIDE, SIDE]).unwrap().on(&multiplies).unwrap();
    let (column, host) = (multiplies.ones::<f32>([SIDE, 1]).unwrap(), vec![1.0_f32; LARGE]);
    let (height, rows) = (stream.ones::<f32>([1, 1]).unwrap(), vec![0_usize; LARGE / 2]);
    let mut buffer = device.host_buffer::<f32>(HostKind::Pageable, LARGE).unwrap();
    // Whoever is given the content may never give it back.
    std::mem::forget(buffer.read().unwrap());
    stream.synchronize().unwrap();

    let small_things = vec![0_u8; 16 << 20];
    let until_none = |len| -> Vec<Tensor<f32>> { std::iter::from_fn(|| stream.empty([len]).ok()).collect() };
    let mut large = until_none(LARGE);
    let _smaller = until_none(SMALLER);
    drop(small_things);

    none(x.to_vec());
    none(x.to_array());
    assert!(x.to_string().contains("no room"), "{x}");
    none(height.index_select(&rows));
    none(buffer.write().map(|_| ()));
    // For the tensor there is room, and none for what the stream takes along.
    drop(large.pop().unwrap());
    none(stream.tensor(&host, [LARGE]));
    large.push(stream.empty([LARGE]).unwrap());
    assert_eq!(x.get([0]).unwrap().item(), Ok(1.0), "the stream goes on");

    // What a worker allocates fails its stream, and no other.
    let on_changes = x.on(&changes).unwrap();
    on_changes.affine_in_place(2.0, 0.0).unwrap();
    none(changes.synchronize());
    none(on_changes.get([0]).unwrap().item());
    let product = square.matmul(&column).unwrap();
    none(product.to_vec());
    assert_eq!(x.get([0]).unwrap().item(), Ok(1.0));
    let held = x.on(&copies).unwrap();
    held.copy_to(&mut buffer).unwrap();
    none(copies.synchronize());
    none(buffer.read().map(|_| ()));
}

/// Types, traits and functions that a user can name, not those of an engine.
#[test]
fn one_in_five_of_the_public_types_traits_and_functions_has_an_example_that_runs() {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("src/syncscope");
    let own = [root.join("device/cuda"), root.join("kernels")];
    let (mut all, mut begun) = (0, 0);
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if own.contains(&path) {
                continue;
            } else if path.is_dir() {
                folders.push(path);
                continue;
            }
            let (mut has_example, mut is_hidden) = (false, false);
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let item = ["struct ", "enum ", "trait ", "type ", "fn ", "const fn "]
                    .iter()
                    .any(|kind| line.strip_prefix("pub ").is_some_and(|rest| rest.starts_with(kind)));
                match line {
                    "/// ```" | "/// ```no_run" => has_example = true,
                    "#[doc(hidden)]" => is_hidden = true,
                    _ if line.starts_with("//") || line.starts_with("#[") => {}
                    _ => {
                        all += usize::from(item && !is_hidden);
                        begun += usize::from(item && !is_hidden && has_example);
                        (has_example, is_hidden) = (false, false);
                    }
                }
            }
        }
    }
    assert!(all > 50 && begun * 5 >= all, "{begun} of {all}");
}
