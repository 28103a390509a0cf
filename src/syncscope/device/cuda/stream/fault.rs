//! What kernels report to the host: one cell of pinned memory a stream.
//!
//! A kernel that meets a wrong argument (a row number outside of a matrix) must neither trap, which would end the
//! whole context, nor go unnoticed. It writes here; the host looks at each call on the stream, for the price of one
//! load. A fault stays: what the stream computed since cannot be trusted.
//!
//! Launches that can fail have tickets, in order. Whoever waited for the stream keeps the ticket of the latest launch
//! that it waited for ([`Causes`]): a fault with an earlier ticket is its own failure, too, and a later one is not. A
//! graph's launches keep the tickets that they were captured with, so that a failure in a graph may also be laid to those
//! who waited after the capture and before the launch.
//!
//! A stream that is over and has not failed never will: whoever waited for it forgets it when it waits for another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::device::cuda::driver::HostPiece;
use crate::device::cuda::gpu::Gpu;
use crate::device::cuda::memory::pinned::{Pinned, Purpose};
use crate::device::engine::Result;
use crate::error::DeviceError;

const ROW_OUT_OF_RANGE: u64 = 1;

/// The fault words of a stream, as `kernels/gather.cu` writes them: code, row, rows, ticket.
pub(crate) struct Fault {
    /// With those that it came from; gone in the drop alone.
    cell: Option<(HostPiece, Arc<Pinned>)>,
    /// Whether the stream is over and has not failed.
    is_past: AtomicBool,
}

impl Fault {
    /// Takes a cell and clears it.
    pub(crate) fn new(gpu: &Gpu) -> Result<Self> {
        let cell = gpu.cell(Purpose::Fault)?;
        cell.store(0);
        Ok(Self { cell: Some((cell, gpu.pinned.clone())), is_past: AtomicBool::new(false) })
    }

    /// The stream is over.
    pub(crate) fn end(&self) {
        let has_failed = self.cell.as_ref().is_some_and(|(cell, _)| cell.load(8) != 0);
        self.is_past.store(!has_failed, Ordering::Release);
    }

    /// Fails once a kernel with a ticket up to `ticket` has reported a fault.
    #[inline]
    pub(crate) fn check(&self, ticket: u64, device: &str) -> Result<()> {
        match &self.cell {
            Some((cell, _)) if cell.load(8) != 0 => explain([0, 1, 2, 3].map(|word| cell.word(word)), ticket, device),
            _ => Ok(()),
        }
    }

    /// The address for kernels.
    pub(crate) fn address(&self) -> u64 {
        self.cell.as_ref().map_or(0, |(cell, _)| cell.span().address())
    }
}

#[cfg(test)]
impl Fault {
    /// Of a stream that does not fail.
    pub(crate) fn of_test() -> Self {
        Self { cell: None, is_past: AtomicBool::new(false) }
    }
}

impl Drop for Fault {
    /// The stream is over, so that no kernel writes the cell any more.
    fn drop(&mut self) {
        if let Some((cell, pinned)) = self.cell.take() {
            pinned.return_cell(cell, Purpose::Fault);
        }
    }
}

#[cold]
fn explain([code, row, rows, at]: [u64; 4], ticket: u64, device: &str) -> Result<()> {
    if at > ticket {
        return Ok(());
    }
    let (operation, reason) = match code {
        ROW_OUT_OF_RANGE => {
            ("gather", format!("row number {} is out of range: the matrix has {rows} rows", row.cast_signed()))
        }
        code => ("kernel", format!("unknown fault {code}")),
    };
    Err(DeviceError::WorkFailed { device: device.to_owned(), operation: operation.to_owned(), reason })
}

/// The streams whose failures are one's own, each up to a ticket.
#[derive(Clone, Default)]
pub(crate) struct Causes(Vec<(Arc<Fault>, u64)>);

impl Causes {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fails if one of them has failed.
    #[inline]
    pub(crate) fn check(&self, device: &str) -> Result<()> {
        self.0.iter().try_for_each(|(fault, ticket)| fault.check(*ticket, device))
    }

    /// Adds a stream, up to `ticket`, of which 0 is before the first launch that can fail.
    pub(crate) fn add(&mut self, fault: &Arc<Fault>, ticket: u64) {
        match self.0.iter_mut().find(|(known, _)| Arc::ptr_eq(known, fault)) {
            Some((_, known)) => *known = ticket.max(*known),
            None if ticket > 0 => self.0.push((fault.clone(), ticket)),
            None => {}
        }
    }

    /// Adds those of another, and forgets the streams that are over and have not failed.
    pub(crate) fn merge(&mut self, other: &Self) {
        let may_fail = |fault: &Arc<Fault>| !fault.is_past.load(Ordering::Acquire);
        self.0.retain(|(fault, _)| may_fail(fault));
        other.0.iter().filter(|(fault, _)| may_fail(fault)).for_each(|(fault, ticket)| self.add(fault, *ticket));
    }
}

#[cfg(test)]
impl Causes {
    /// Whether all of another's are among them.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let has = |fault, ticket| self.0.iter().any(|(known, at)| Arc::ptr_eq(known, fault) && *at >= ticket);
        other.0.iter().all(|(fault, ticket)| has(fault, *ticket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_out_of_range_is_told_with_its_number_and_the_number_of_rows() {
        let words = [ROW_OUT_OF_RANGE, (-3_i64).cast_unsigned(), 10, 4];
        let error = explain(words, 4, "cuda:0").unwrap_err();
        assert!(matches!(&error, DeviceError::WorkFailed { operation, .. } if operation == "gather"), "{error}");
        assert!(error.to_string().contains("row number -3 is out of range: the matrix has 10 rows"), "{error}");
    }

    #[test]
    fn a_fault_is_no_failure_of_who_waited_for_earlier_work() {
        assert_eq!(explain([ROW_OUT_OF_RANGE, 9, 3, 5], 4, "cuda:0"), Ok(()));
    }

    /// Two that wait for each other hold what they have in common beyond the end of its stream.
    #[test]
    fn streams_that_are_over_and_have_not_failed_are_forgotten_by_all_who_waited_for_them() {
        let (mut one, mut other) = (Causes::default(), Causes::default());
        for _ in 0..1000 {
            let fault = Arc::new(Fault::of_test());
            let mut recorded = Causes::default();
            recorded.add(&fault, 1);
            one.merge(&recorded);
            other.merge(&one);
            assert!(other.covers(&recorded));
            fault.end();
            one.merge(&other);
        }
        assert!(one.0.len() + other.0.len() <= 2, "{} and {}", one.0.len(), other.0.len());
    }
}
