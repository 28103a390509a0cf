//! The ways in which a host thread can wait for a stream of the CPU engine.

use std::time::{Duration, Instant};

use super::clock::ByHost;
use super::own::CONDITION_VARIABLE;
use super::waiting::{Manner, PATIENCE, Waiting, poll};
use crate::Result;
use syncscope::device::{Event, Stream};
use syncscope::error::DeviceError;

/// Work on a stream of the engine, whose end an event marks.
pub(super) struct OwnWaiting {
    own: Stream,
    beside: Stream,
    end: Event,
}

impl OwnWaiting {
    /// Work on the stream that calls are given.
    pub(super) fn new(own: &Stream) -> Result<Self> {
        let (beside, end) = (own.device().stream()?, own.device().event()?);
        Ok(Self { own: own.clone(), beside, end })
    }
}

impl Waiting for OwnWaiting {
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn begin(&self, _: Manner, length: Duration) -> Result<()> {
        self.own.spin(length)?;
        self.own.record(&self.end)
    }

    fn wait(&self, manner: Manner) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        let over = match manner {
            // The thread that works wakes the one that waits by a condition variable.
            Manner::HostFunction => return self.own.synchronize(),
            Manner::Query => poll(until, || self.own.is_complete())?,
            Manner::Flag => poll(until, || self.end.is_complete())?,
            Manner::Spin | Manner::Yield | Manner::Block | Manner::WaitValue => {
                return Err(DeviceError::not_applicable(
                    format!("the wait mode {}", manner.name()),
                    self.own.device().name(),
                    CONDITION_VARIABLE,
                ));
            }
        };
        over.then_some(()).ok_or_else(|| {
            DeviceError::call_failed(
                self.own.device().name(),
                "is_complete",
                format!("the work was not over after {} s", PATIENCE.as_secs()),
            )
        })
    }

    fn launch_beside(&self) -> Result<()> {
        self.beside.spin(Duration::ZERO)
    }

    fn settle(&self) -> Result<()> {
        self.own.synchronize()?;
        self.beside.synchronize()
    }

    fn ended(&self) -> Result<ByHost> {
        let never = || DeviceError::EventNotReady { reason: "no work was begun" };
        self.end.reached()?.map(|at| ByHost { at, within: Duration::ZERO }).ok_or_else(never)
    }
}
