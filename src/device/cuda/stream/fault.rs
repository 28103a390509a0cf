//! What kernels report to the host: one cell of pinned memory a stream.
//!
//! A kernel that meets a wrong argument (a row number outside of a matrix) must neither trap, which would end the
//! whole context, nor go unnoticed. It writes here; the host looks at each call on the stream, for the price of one
//! load. A fault stays: what the stream computed since cannot be trusted.

use crate::device::cuda::memory::pinned::Cell;
use crate::device::engine::Result;
use crate::error::DeviceError;

/// As `kernels/gather.cu` writes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Words {
    code: u32,
    unused: u32,
    row: i64,
    rows: i64,
}

const ROW_OUT_OF_RANGE: u32 = 1;

/// The fault words of a stream.
pub(crate) struct Fault(Cell);

impl Fault {
    /// Takes a cell and clears it.
    pub(crate) fn new(cell: Cell) -> Self {
        // Safety: a cell holds the words and is aligned for them; nothing enqueued writes it yet.
        unsafe { cell.host::<Words>().write_volatile(Words::default()) };
        Self(cell)
    }

    /// Fails once a kernel has reported a fault.
    #[inline]
    pub(crate) fn check(&self, device: &str) -> Result<()> {
        // Safety: the cell is live; the device writes the code as one aligned word.
        let code = unsafe { self.0.host::<u32>().read_volatile() };
        if code == 0 { Ok(()) } else { Err(self.decode(device)) }
    }

    /// The address for kernels.
    pub(crate) fn device(&self) -> u64 {
        self.0.device()
    }

    pub(crate) fn cell(&self) -> Cell {
        self.0
    }

    #[cold]
    fn decode(&self, device: &str) -> DeviceError {
        // Safety: as in `check`; the kernel wrote the other words before the code.
        let words = unsafe { self.0.host::<Words>().read_volatile() };
        explain(words, device)
    }
}

fn explain(words: Words, device: &str) -> DeviceError {
    let (operation, reason) = match words.code {
        ROW_OUT_OF_RANGE => {
            ("gather", format!("row number {} is out of range: the matrix has {} rows", words.row, words.rows))
        }
        code => ("kernel", format!("unknown fault {code}")),
    };
    DeviceError::WorkFailed { device: device.to_owned(), operation: operation.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_out_of_range_is_told_with_its_number_and_the_number_of_rows() {
        let words = Words { code: ROW_OUT_OF_RANGE, unused: 0, row: -3, rows: 10 };
        let error = explain(words, "cuda:0");
        assert!(matches!(&error, DeviceError::WorkFailed { operation, .. } if operation == "gather"), "{error}");
        assert!(error.to_string().contains("row number -3 is out of range: the matrix has 10 rows"), "{error}");
    }

    #[test]
    fn the_words_lie_where_the_kernel_writes_them() {
        assert_eq!(
            [0, 8, 16, 24],
            [
                std::mem::offset_of!(Words, code),
                std::mem::offset_of!(Words, row),
                std::mem::offset_of!(Words, rows),
                size_of::<Words>(),
            ]
        );
    }
}
