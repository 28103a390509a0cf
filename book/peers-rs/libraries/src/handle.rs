//! What a library makes and ends.

/// A handle, which is ended when it is dropped.
pub(crate) struct Handle<H: Copy> {
    pub(crate) raw: H,
    end: fn(H),
}

impl<H: Copy> Handle<H> {
    /// A handle that `end` ends.
    pub(crate) fn new(raw: H, end: fn(H)) -> Self {
        Self { raw, end }
    }
}

impl<H: Copy> Drop for Handle<H> {
    fn drop(&mut self) {
        (self.end)(self.raw);
    }
}
