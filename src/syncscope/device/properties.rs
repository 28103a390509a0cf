//! What is known of a device, and what its sensors say.

/// What is known of a device without asking it again.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Properties {
    /// The name it is opened by: `cuda:0`.
    pub name: String,
    /// The hardware: `NVIDIA H200`.
    pub model: String,
    /// The engine's name: `cuda`, `cpu`.
    pub engine: &'static str,
    /// Its memory in bytes, where the engine can tell.
    pub memory_bytes: Option<u64>,
    /// The size of its last cache before the memory in bytes, where the engine can tell.
    pub cache_bytes: Option<u64>,
    /// How a blocked host thread waits: `spin`, `yield`, `blocking`, `condition variable`. It sets what a synchronization costs.
    pub wait_policy: String,
    /// Further facts for the reader of a results file, in order: driver, library versions, architecture, …
    pub facts: Vec<(String, String)>,
}

/// What a device's sensors said at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Telemetry {
    /// Clock of the multiprocessors in MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Clock of the memory in MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Temperature of the chip in °C.
    pub temperature_c: Option<u32>,
    /// Power drawn in watts.
    pub power_w: Option<f64>,
    /// Why the clocks are held back, in the driver's words; empty when they are not.
    pub throttle_reasons: Vec<String>,
    /// How many other processes compute on the device, where that can be told.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub other_processes: Option<u32>,
    /// The bytes of the device's memory that no process holds that the driver lists, where that can be told.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub unlisted_bytes: Option<u64>,
}
