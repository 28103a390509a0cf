//! Host memory of a size that a user chose. Where the system has none, that is an error of the call or of the stream: a
//! collection that grows by itself ends the process.

use crate::error::DeviceError;

/// There is no room for so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom {
    pub(crate) requested: usize,
}

impl NoRoom {
    /// For `len` values.
    pub(crate) fn of<T>(len: usize) -> Self {
        Self { requested: len.saturating_mul(size_of::<T>()) }
    }

    /// The error of a call on `device`.
    pub(crate) fn on(self, device: &str) -> DeviceError {
        DeviceError::OutOfMemory { device: device.to_owned(), requested: self.requested, free: None }
    }
}

/// A vector without elements that takes `len` of them.
pub(crate) fn with_room<T>(len: usize) -> Result<Vec<T>, NoRoom> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| NoRoom::of::<T>(len))?;
    Ok(values)
}

/// Finds room for `more` values.
pub(crate) fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<(), NoRoom> {
    let len = values.len().saturating_add(more);
    values.try_reserve(more).map_err(|_| NoRoom::of::<T>(len))
}

/// A copy of `values`.
pub(crate) fn copied<T: Copy>(values: &[T]) -> Result<Vec<T>, NoRoom> {
    let mut copy = with_room(values.len())?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// All `values`, in order.
pub(crate) fn collected<T>(values: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, NoRoom> {
    let mut all = with_room(values.len())?;
    all.extend(values);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_room_for_is_refused_with_its_size_and_changes_nothing() {
        let most = Some(NoRoom { requested: usize::MAX });
        assert_eq!(with_room::<u64>(usize::MAX).err(), most);
        assert_eq!(collected(std::iter::repeat_n(0_u64, usize::MAX)).err(), most);
        let mut values = vec![1_u8, 2];
        assert_eq!(reserve(&mut values, usize::MAX).err(), most);
        assert_eq!(copied(&values), Ok(vec![1, 2]));
    }
}
