//! In the place of `telemetry`, in a build without the feature `sensors`: no device has any.

use crate::device::Telemetry;

/// The sensors of one device: there are none.
pub(super) enum Sensors {}

impl Sensors {
    pub(super) fn find(_: String) -> Option<Self> {
        None
    }

    pub(super) fn driver_version(&self) -> Option<String> {
        match *self {}
    }

    pub(super) fn fingerprint(&self) -> Option<String> {
        match *self {}
    }

    pub(super) fn read(&self) -> Option<Telemetry> {
        match *self {}
    }
}
