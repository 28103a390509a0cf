//! Failures of streams whose last handle is gone: nobody can ask those streams any more, so that the next wait for the device says
//! what became of their work.

use std::sync::Mutex;

use super::engine::Result;
use crate::device::lock;
use crate::error::DeviceError;

/// What the next wait for a device has to say of streams that are gone.
#[derive(Debug, Default)]
pub(crate) struct Orphaned(Mutex<Option<Untold>>);

/// The first failure, and how many other streams failed: in the same room, however many there are.
#[derive(Debug)]
struct Untold {
    first: DeviceError,
    others: usize,
}

impl Orphaned {
    /// Another stream is gone that had failed, of which nobody was told.
    pub(crate) fn leave(&self, failure: DeviceError) {
        self.leave_if(failure, || true);
    }

    /// As [`leave`](Self::leave), if it `is_untold`, which is asked so that who is told meanwhile waits for it.
    pub(crate) fn leave_if(&self, failure: DeviceError, is_untold: impl FnOnce() -> bool) {
        let mut untold = lock(&self.0);
        if !is_untold() {
            return;
        }
        match &mut *untold {
            Some(untold) => untold.others += 1,
            None => *untold = Some(Untold { first: failure, others: 0 }),
        }
    }

    /// Fails if streams that are gone had failed: once, whoever asks.
    pub(crate) fn tell(&self) -> Result<()> {
        let untold = lock(&self.0).take();
        untold.map_or(Ok(()), |untold| Err(untold.in_one()))
    }
}

impl Untold {
    fn in_one(self) -> DeviceError {
        match self.first {
            DeviceError::WorkFailed { device, operation, reason } if self.others > 0 => {
                let streams = crate::units::counted(self.others, "other stream");
                let reason = format!("{reason}; so did work of {streams} whose last handle is gone");
                DeviceError::WorkFailed { device, operation, reason }
            }
            failure => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_once_and_with_their_number() {
        let failure = |operation: &str| {
            let (device, reason) = ("cpu:0".to_owned(), "broken".to_owned());
            DeviceError::WorkFailed { device, operation: operation.to_owned(), reason }
        };
        let orphaned = Orphaned::default();
        assert_eq!(orphaned.tell(), Ok(()));
        orphaned.leave(failure("sum"));
        assert_eq!(orphaned.tell(), Err(failure("sum")));
        ["gather", "sum", "sum"].into_iter().for_each(|operation| orphaned.leave(failure(operation)));
        let told = orphaned.tell().err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(
            told,
            "work enqueued on cpu:0 failed in `gather`: broken; so did work of 2 other streams whose last handle is gone"
        );
        assert_eq!(orphaned.tell(), Ok(()));
    }
}
