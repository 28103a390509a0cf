//! What a library makes and ends.

/// A handle, which is ended when it is dropped.
pub(crate) struct Handle<H: Copy> {
    raw: H,
    end: fn(H),
}

impl<H: Copy> Handle<H> {
    /// A handle that `end` ends.
    pub(crate) fn new(raw: H, end: fn(H)) -> Self {
        Self { raw, end }
    }

    /// By a call: a closure that took the field alone would take a copy of it, and the handle would end before.
    pub(crate) fn raw(&self) -> H {
        self.raw
    }
}

impl<H: Copy> Drop for Handle<H> {
    fn drop(&mut self) {
        (self.end)(self.raw);
    }
}
