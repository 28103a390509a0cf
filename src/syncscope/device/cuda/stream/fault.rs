//! What kernels report to the host: one cell of pinned memory a stream.
//!
//! A kernel that meets a wrong argument (a row number outside of a matrix) must neither trap, which would end the
//! whole context, nor go unnoticed. It writes here; the host looks at each call on the stream, for the price of one
//! load. A fault stays: what the stream computed since cannot be trusted.
//!
//! Launches that can fail have tickets, in order. An event keeps the ticket of the latest launch before its recording
//! ([`Recorded`]): a fault with an earlier ticket is a failure before the event, and a later one is not. A graph's launches keep
//! the tickets that they were captured with, so that a failure in a graph may also be laid to an event that was recorded after
//! the capture and before the launch.

use std::sync::Arc;

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
}

impl Fault {
    /// Takes a cell and clears it.
    pub(crate) fn new(gpu: &Gpu) -> Result<Self> {
        let cell = gpu.cell(Purpose::Fault)?;
        cell.store(0);
        Ok(Self { cell: Some((cell, gpu.pinned.clone())) })
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

/// A point of a stream: the failures before it are those up to a ticket, of which 0 is before the first launch that can fail.
#[derive(Clone)]
pub(crate) struct Recorded {
    pub(crate) fault: Arc<Fault>,
    pub(crate) ticket: u64,
}

impl Recorded {
    /// Fails if work before it has.
    pub(crate) fn check(&self, device: &str) -> Result<()> {
        self.fault.check(self.ticket, device)
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
    fn a_fault_is_no_failure_before_an_earlier_event() {
        assert_eq!(explain([ROW_OUT_OF_RANGE, 9, 3, 5], 4, "cuda:0"), Ok(()));
    }
}
