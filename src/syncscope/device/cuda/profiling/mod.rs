//! What the device did, and what its sensors say.

// The recorder: CUPTI has no interface but that of C.
#[allow(unsafe_code)]
#[cfg(feature = "cupti")]
pub(crate) mod cupti;
#[cfg(feature = "sensors")]
mod others;
#[cfg_attr(not(feature = "sensors"), path = "no_telemetry.rs")]
pub(crate) mod telemetry;
