//! What the driver says of every stream and event of a program that hangs, and what new streams can do beside it.
//!
//! A question may hang, too. So each is asked on a thread of its own, which is left behind if it does not come back.
//!
//! New streams tell what kind of hang it is. All of them end: one stream alone is stuck. Some end: streams share what is
//! stuck. None ends: a call holds a lock of the driver, or the device as a whole waits.

use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use syncscope::device::Device;
use syncscope::error::DeviceError;

use crate::program::{DEVICES, Id};
use crate::run::{Object, World, lock};

/// How long an answer may take.
const ANSWER: Duration = Duration::from_millis(300);

/// As many as there are connections to a device, unless the environment says otherwise.
const NEW_STREAMS: usize = 8;

type Probe = fn(&Device) -> Result<(), DeviceError>;

/// A kernel alone; a copy to the device; a copy to the host.
const PROBES: [(&str, Probe); 3] = [
    ("a kernel", |device| {
        let stream = device.stream()?;
        stream.spin(Duration::ZERO)?;
        stream.synchronize()
    }),
    ("an upload", |device| {
        let stream = device.stream()?;
        let _x = stream.tensor(&[1.0f32; 64], [64])?;
        stream.synchronize()
    }),
    ("a read", |device| device.stream()?.ones::<f32>([64])?.to_vec().map(drop)),
];

impl World {
    /// By stream: whether it is idle, and how far its steps are. A step without an event says whether its call has returned.
    pub(super) fn states(self: &Arc<Self>) -> String {
        let mut said = String::new();
        for id in 0..self.objects.len() {
            let stream = self.ask(move |world| match &*lock(&world.objects[id]) {
                Some(Object::Stream(stream)) => Some(stream.clone()),
                _ => None,
            });
            let Some(Some(stream)) = stream else { continue };
            let idle = self.ask(move |_| stream.is_complete());
            let idle = idle.map_or("does not say whether it is idle".to_owned(), |idle| format!("idle: {idle:?}"));
            let _ = write!(said, "\nstream {id}, {}: {idle}", self.program.steps[id]);
            let steps = self.program.steps.iter().enumerate().filter(|(_, step)| step.stream == Some(id));
            for (step, what) in steps {
                let _ = write!(said, "\n    {step:3} {}: {what}", self.state(step));
            }
        }
        for device in 0..DEVICES {
            for (name, probe) in PROBES {
                let ended: String = (0..NEW_STREAMS)
                    .map(|_| match self.ask(move |world| probe(&world.devices[device])) {
                        Some(Ok(())) => "ends ".to_owned(),
                        Some(Err(error)) => format!("{error} "),
                        None => "hangs ".to_owned(),
                    })
                    .collect();
                let _ = write!(said, "\n{name} on new streams of device {device}: {ended}");
            }
        }
        said
    }

    fn state(self: &Arc<Self>, step: Id) -> &'static str {
        let event = self.ask(move |world| world.events[step].get().map(|event| event.is_complete()));
        match event {
            None => "its event does not answer",
            Some(Some(Ok(true))) => "complete",
            Some(Some(Ok(false))) => "enqueued and pending",
            Some(Some(Err(_))) => "failed",
            Some(None) if self.progress().done[step] => "returned",
            Some(None) if self.at.iter().any(|at| at.load(Ordering::Relaxed) == step + 1) => "in its call",
            Some(None) => "not begun",
        }
    }

    /// The answer to a question, if it comes in time.
    fn ask<T: Send + 'static>(self: &Arc<Self>, question: impl FnOnce(&Self) -> T + Send + 'static) -> Option<T> {
        let (answer, answered) = mpsc::channel();
        let world = Arc::clone(self);
        std::thread::spawn(move || answer.send(question(&world)));
        answered.recv_timeout(ANSWER).ok()
    }
}
