//! What the device did, and what its sensors say.

#[cfg(feature = "cupti")]
mod activity;
#[cfg_attr(not(feature = "cupti"), path = "no_cupti.rs")]
pub(crate) mod cupti;
#[cfg_attr(not(feature = "sensors"), path = "no_telemetry.rs")]
pub(crate) mod telemetry;
