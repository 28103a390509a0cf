//! The steps of a call from closures: what it needs is made anew for each time, and dropped when all work is over.

use super::{Result, Steps};
use syncscope::error::DeviceError;

type Step<T> = Box<dyn FnMut(&mut T) -> Result<()>>;

/// A call with what it needs, of the type `T`, whose drop ends it.
pub(super) struct Made<T> {
    made: Option<T>,
    prepare: Box<dyn FnMut() -> Result<T>>,
    enqueue: Option<Step<T>>,
    call: Step<T>,
}

impl<T: 'static> Made<T> {
    /// A call on what `prepare` makes.
    pub(super) fn new(
        prepare: impl FnMut() -> Result<T> + 'static,
        call: impl FnMut(&mut T) -> Result<()> + 'static,
    ) -> Self {
        Self { made: None, prepare: Box::new(prepare), enqueue: None, call: Box::new(call) }
    }

    /// With this enqueued behind the gate before the call.
    pub(super) fn behind(self, enqueue: impl FnMut(&mut T) -> Result<()> + 'static) -> Self {
        Self { enqueue: Some(Box::new(enqueue)), ..self }
    }

    /// As steps.
    pub(super) fn boxed(self) -> Box<dyn Steps> {
        Box::new(self)
    }
}

impl<T> Made<T> {
    fn step(made: &mut Option<T>, step: &mut Step<T>) -> Result<()> {
        match made {
            Some(made) => step(made),
            None => Err(DeviceError::invalid("call", "it is made before it was prepared")),
        }
    }
}

impl<T> Steps for Made<T> {
    fn prepare(&mut self) -> Result<()> {
        self.made = Some((self.prepare)()?);
        Ok(())
    }

    fn enqueue(&mut self) -> Result<()> {
        self.enqueue.as_mut().map_or(Ok(()), |step| Self::step(&mut self.made, step))
    }

    #[inline]
    fn call(&mut self) -> Result<()> {
        Self::step(&mut self.made, &mut self.call)
    }

    fn finish(&mut self) {
        self.made = None;
    }
}
