//! An all-reduce over all devices of an engine, which one thread enqueues.
//!
//! # Method
//! Each device is a rank. It has a stream, memory that it reads, and other memory that it writes. One thread enqueues the
//! all-reduce for all ranks within one group of calls, as “Group Calls” in NCCL's user guide asks of a thread with several
//! devices. Each connection is checked once: every rank reads ones, and the sums must be the number of ranks.
//!
//! # Limits
//! The ranks are of one process and one machine, in one thread. Programs with a process for each device pay for a call what
//! one rank pays here.

use super::cuda::NcclRanks;
use super::{Result, Rig, rig};
use syncscope::device::Device;
use syncscope::measure::host_time;

/// An all-reduce over all devices, to be measured.
pub struct AllReduce {
    ranks: NcclRanks,
    #[allow(dead_code, reason = "how threads wait is as it says until it is dropped")]
    rig: Box<dyn Rig>,
}

/// What the first calls of a connection take, in seconds of the host.
#[derive(Clone, Copy, Debug)]
pub struct FirstCalls {
    /// To connect the ranks.
    pub connect: f64,
    /// To enqueue the first all-reduce.
    pub first: f64,
    /// To enqueue the second one, when the first is over.
    pub second: f64,
}

impl AllReduce {
    /// An all-reduce of so many bytes for each rank, connected and checked.
    ///
    /// # Errors
    /// [`NotApplicable`](syncscope::error::DeviceError::NotApplicable) where there is one device, or no library for it.
    pub fn new(device: &Device, bytes: usize) -> Result<Self> {
        let rig = rig(device)?;
        let mut ranks = rig.ranks(bytes)?;
        ranks.connect()?;
        let all_reduce = Self { ranks, rig };
        all_reduce.enqueue()?;
        all_reduce.synchronize()?;
        all_reduce.ranks.check()?;
        Ok(all_reduce)
    }

    /// Enqueues it for all ranks.
    pub fn enqueue(&self) -> Result<()> {
        self.ranks.enqueue()
    }

    /// Waits until it is over on all ranks.
    pub fn synchronize(&self) -> Result<()> {
        self.ranks.synchronize()
    }

    /// Connects the ranks anew.
    pub fn first_calls(&mut self) -> Result<FirstCalls> {
        self.ranks.disconnect();
        let ((), connect) = host_time(|| self.ranks.connect())?;
        let ((), first) = host_time(|| self.ranks.enqueue())?;
        self.ranks.synchronize()?;
        let ((), second) = host_time(|| self.ranks.enqueue())?;
        self.ranks.synchronize()?;
        self.ranks.check()?;
        Ok(FirstCalls { connect, first, second })
    }
}
