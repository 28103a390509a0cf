//! How a process ends, whose `main` returns or whose thread ends it, while threads, gates, captures and recordings are in use.
//!
//! Each is a process of this program, which [`child`] makes end so.

use std::cell::RefCell;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use syncscope::device::{Code, Device, HostBuffer, HostKind, Kernel, Launch};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;

use crate::contract::host_kind;
use crate::stuck::LONG;
use crate::{Check, bare_launches, ensure};

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("a_process_ends_whose_gate_was_never_opened", |device| ends(device, "gate")),
    ("a_process_ends_whose_threads_are_at_work", |device| ends(device, "work")),
    ("a_process_ends_by_another_thread_while_threads_are_at_work", |device| ends(device, "elsewhere")),
    ("a_process_ends_within_a_capture_and_a_recording", |device| ends(device, "capture")),
    ("a_process_ends_whose_thread_waits_for_a_gate", |device| ends(device, "wait")),
    ("a_process_ends_within_a_call_of_many_launches", |device| ends(device, "launches")),
    ("a_process_ends_whose_main_thread_keeps_what_its_drop_uses", |device| ends(device, "kept")),
    ("a_kernel_that_writes_outside_loses_the_device_with_its_cause", |device| ends(device, "faults")),
    ("a_process_ends_while_a_kernel_runs_for_seconds", |device| ends(device, "runs")),
    ("a_process_ends_whose_gate_is_closed_while_another_device_is_opened", |device| ends(device, "opening")),
];

/// The device and the ending of a child.
const CHILD: &str = "SYNCSCOPE_TEST_ENDING";

/// How often each ending is tried: what threads do then differs each time.
const TIMES: usize = 3;

fn ends(device: &Device, ending: &str) -> Result<(), Failed> {
    for _ in 0..TIMES {
        let mut child = Command::new(std::env::current_exe()?)
            .env(CHILD, format!("{} {ending}", device.name()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let late = Instant::now() + LONG;
        let status = loop {
            match child.try_wait()? {
                Some(status) => break status,
                None if Instant::now() > late => {
                    child.kill()?;
                    child.wait()?;
                    return Err("the process does not end".into());
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        ensure(status.success(), || format!("the process ended with {status}"))?;
    }
    Ok(())
}

/// The kernel `own` of a source; nothing on a device that runs none.
fn kernel(device: &Device, source: &str) -> Result<Option<Kernel>, DeviceError> {
    match device.load(&Code::cuda("own.cu", source)) {
        Err(DeviceError::NotApplicable { .. }) => Ok(None),
        module => module?.kernel("own").map(Some),
    }
}

/// Where this process is a child, makes ready what it ends with, and says so.
pub(crate) fn child() -> Result<bool, DeviceError> {
    let Ok(asked) = std::env::var(CHILD) else { return Ok(false) };
    let Some((device, ending)) = asked.split_once(' ') else { return Ok(true) };
    // Before the library keeps anything for this thread: so it is dropped after that.
    KEPT.with(|kept| drop(kept.borrow()));
    let device = Device::open(device)?;
    let (stream, gate) = (device.stream()?, device.gate()?);
    let x = stream.ones::<f32>([1000])?;
    x.sum()?.item()?;
    if ending == "elsewhere" {
        // A process's first recording registers what must not come before the end that is tried.
        device.record(|| x.sum()?.item())?;
    }
    let (ready, is_ready) = mpsc::channel();
    match ending {
        "gate" => {
            let mut buffer = device.host_buffer::<f32>(HostKind::Pinned, 1000).or_else(|_| {
                // The CPU engine has pageable memory alone.
                device.host_buffer::<f32>(HostKind::Pageable, 1000)
            })?;
            stream.wait_gate(&gate)?;
            x.copy_to(&mut buffer)?;
            std::mem::forget((gate, buffer));
        }
        "work" | "elsewhere" => (0..6).for_each(|which| {
            let (device, ready) = (device.clone(), ready.clone());
            thread::spawn(move || work(which, &device, &ready));
        }),
        "capture" => {
            let held = device.stream()?;
            held.wait_gate(&gate)?;
            held.ones::<f32>([100])?;
            thread::spawn(move || {
                let _ = stream.capture(|| {
                    x.affine_in_place(1.0, 1.0)?;
                    device.record(|| -> Result<(), DeviceError> {
                        let _ = ready.send(0);
                        loop {
                            thread::park();
                        }
                    })
                });
            });
            let _ = is_ready.recv();
            std::mem::forget(gate);
        }
        "faults" => {
            if let Some(kernel) = kernel(&device, "extern \"C\" __global__ void own(float* x) { x[1ull << 44] = 1; }")?
            {
                kernel.launch(&stream, Launch::new([1; 3], [1; 3]), (&x,))?;
                let says = |failed: Option<DeviceError>| {
                    failed.is_some_and(|error| error.to_string().contains("ILLEGAL_ADDRESS"))
                };
                if !says(stream.synchronize().err()) || !says(device.stream().err()) || !says(x.sum().err()) {
                    return Err(DeviceError::invalid("own", "what it did is not said"));
                }
            }
        }
        "runs" => {
            let source = "extern \"C\" __global__ void own(float* x) {
                long long begin = clock64();
                while (clock64() - begin < 4000000000ll) {}
                *x = 1;
            }";
            if let Some(kernel) = kernel(&device, source)? {
                kernel.launch(&stream, Launch::new([1; 3], [1; 3]), (&x,))?;
                drop(x);
            }
        }
        "launches" => {
            thread::spawn(move || {
                let _ = ready.send(0);
                // An engine without such a call is asked for a stack of as many parts.
                let _ = bare_launches(&stream, 50_000_000).map(drop);
                let _ = Tensor::stack(&vec![x; 2_000_000]);
            });
            let _ = is_ready.recv();
            thread::sleep(Duration::from_millis(50));
        }
        "kept" => KEPT.with(|kept| {
            let is_over = Arc::new(AtomicBool::new(false));
            let (over, busy) = (is_over.clone(), x.clone());
            let worker = thread::spawn(move || {
                while !over.load(Ordering::Relaxed) && busy.affine_in_place(1.0, 0.0).is_ok() {
                    // A queue may have no end.
                    thread::sleep(Duration::from_micros(50));
                }
            });
            let mut buffer = device.host_buffer::<f32>(host_kind(&device), 1000)?;
            stream.spin(Duration::from_millis(50))?;
            x.copy_to(&mut buffer)?;
            let large = stream.ones::<f32>([4 << 20])?;
            *kept.borrow_mut() = Some(Kept { x, large, buffer: Some(buffer), is_over, worker: Some(worker) });
            Ok::<(), DeviceError>(())
        })?,
        "opening" => {
            thread::spawn(move || {
                stream.wait_gate(&gate)?;
                x.affine_in_place(1.0, 0.0)?;
                let _ = ready.send(0);
                loop {
                    thread::park();
                }
                #[allow(unreachable_code, reason = "says what the errors are")]
                Ok::<(), DeviceError>(())
            });
            let _ = is_ready.recv();
            let engine = format!("{}:", device.properties().engine);
            let names = Device::list().into_iter().map(|listed| listed.name);
            let other = names.into_iter().find(|name| name.starts_with(&engine) && *name != device.name());
            thread::spawn(|| other.map(|other| Device::open(&other).map(drop)));
            thread::sleep(Duration::from_millis(20));
        }
        _ => {
            stream.wait_gate(&gate)?;
            let other = gate.clone();
            thread::spawn(move || {
                let _ = ready.send(0);
                let _ = stream.synchronize();
            });
            let _ = is_ready.recv();
            // As long as it takes to stand in the wait.
            thread::sleep(Duration::from_millis(20));
            std::mem::forget(other);
        }
    }
    if ending == "work" {
        is_ready.iter().take(60).for_each(drop);
    }
    if ending == "elsewhere" {
        // A library's first search registers what must not come before the end that is tried.
        is_ready.iter().filter(|which| *which == SEARCHES).take(2).for_each(drop);
        let _ = thread::spawn(|| std::process::exit(0)).join();
    }
    Ok(true)
}

/// What a main thread keeps, which uses the library when it is dropped.
struct Kept {
    x: Tensor<f32>,
    large: Tensor<f32>,
    buffer: Option<HostBuffer<f32>>,
    is_over: Arc<AtomicBool>,
    worker: Option<thread::JoinHandle<()>>,
}

thread_local! {
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

impl Drop for Kept {
    /// Beside the worker, which is then waited for.
    fn drop(&mut self) {
        let read = [self.x.to_vec().map(|x| x.len()), self.large.to_vec().map(|large| large.len())];
        drop(self.buffer.take());
        self.is_over.store(true, Ordering::Relaxed);
        let joined = self.worker.take().map(thread::JoinHandle::join);
        if read != [Ok(1000), Ok(4 << 20)] || !matches!(joined, Some(Ok(()))) {
            std::process::abort();
        }
    }
}

/// The thread at work whose products are searched.
const SEARCHES: usize = 2;

/// Calls without an end; those that fail as the process ends are nobody's.
fn work(which: usize, device: &Device, ready: &mpsc::Sender<usize>) {
    let work = || {
        let stream = device.stream()?;
        let (x, m, mut searched) = (stream.ones::<f32>([100_000])?, stream.ones::<f32>([64, 64])?, 0);
        loop {
            match which {
                0 => drop(x.affine(1.0, 1.0)?.to_vec()?),
                1 => stream.capture(|| x.affine_in_place(1.0, 0.0))?.1.launch()?,
                SEARCHES => {
                    // Each is the first of its shape, which is searched.
                    searched += 1;
                    drop(m.get([0])?.reshape([1, 64])?.matmul(&stream.ones::<f32>([64, searched])?)?);
                }
                3 => device.synchronize()?,
                4 => {
                    let gate = device.gate()?;
                    stream.wait_gate(&gate)?;
                }
                _ => drop(device.record(|| x.sum()?.item())?),
            }
            let _ = ready.send(which);
        }
    };
    let _: Result<(), DeviceError> = work();
}
