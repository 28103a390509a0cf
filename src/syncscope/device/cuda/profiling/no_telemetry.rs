//! In the place of `telemetry`, in a build without the feature `sensors`: no device has any.

use crate::device::Telemetry;

/// The sensors of one device: there are none.
pub(crate) enum Sensors {}

impl Sensors {
    pub(crate) fn find(_: String) -> Option<Self> {
        None
    }

    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        match *self {}
    }

    pub(crate) fn read(&self) -> Option<Telemetry> {
        match *self {}
    }
}
