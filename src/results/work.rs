//! The least work that lies in a row.
//!
//! A row says where it is measured how much work a sample holds (bytes, floating-point operations, launches) and by what
//! formula: what cannot be left out, operands read once, results written once, no temporary.

use serde::{Deserialize, Serialize};

use crate::units::Unit;

/// What limits a row.
///
/// ```
/// use syncscope_results::Limit;
///
/// assert_eq!((Limit::Launch.counts(), Limit::Launch.name()), ("launches", "the best launch rate of the run"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Bytes read and written by a copy on the device.
    Copy,
    /// Floating-point operations of a matmul.
    Matmul,
    /// Bytes over PCIe (or NVLink) to the device.
    ToDevice,
    /// Bytes over PCIe (or NVLink) to the host.
    ToHost,
    /// Kernel launches by the host.
    Launch,
}

impl Limit {
    /// The peak rate's name, as it stands behind a share.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Copy => "the best copy rate of the run",
            Limit::Matmul => "the best matmul rate of the run",
            Limit::ToDevice => "the best host-to-device rate of the run",
            Limit::ToHost => "the best device-to-host rate of the run",
            Limit::Launch => "the best launch rate of the run",
        }
    }

    /// What is counted.
    pub fn counts(self) -> &'static str {
        match self {
            Limit::Copy | Limit::ToDevice | Limit::ToHost => "bytes",
            Limit::Matmul => "floating-point operations",
            Limit::Launch => "launches",
        }
    }
}

/// The least work that lies in a sample of a row.
///
/// ```
/// use syncscope_results::{Limit, Work};
///
/// let work = Work::matmul(2.0 * 512_f64.powi(3), "2 · size³");
/// assert_eq!((work.limit, work.limit.counts()), (Limit::Matmul, "floating-point operations"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// What limits the row.
    pub limit: Limit,
    /// How much work a sample holds, in what the limit counts.
    pub amount: f64,
    /// The formula by which it follows from the row's parameters, for a reader.
    pub formula: String,
    /// The bytes of a tensor of the row: rows of tensors at least as large share its peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Whether the row searches for the peak rate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub peak: bool,
}

impl Work {
    /// `amount` launches.
    pub fn launches(amount: f64, formula: &str) -> Self {
        Self::of(Limit::Launch, amount, formula)
    }

    /// `amount` floating-point operations of matmuls.
    pub fn matmul(amount: f64, formula: &str) -> Self {
        Self::of(Limit::Matmul, amount, formula)
    }

    /// `amount` bytes read and written on the device, by tensors of `tensor` bytes.
    pub fn copy(amount: f64, formula: &str, tensor: f64) -> Self {
        Self { bytes: Some(tensor), ..Self::of(Limit::Copy, amount, formula) }
    }

    /// `amount` bytes to the device, by transfers of `tensor` bytes.
    pub fn to_device(amount: f64, formula: &str, tensor: f64) -> Self {
        Self { bytes: Some(tensor), ..Self::of(Limit::ToDevice, amount, formula) }
    }

    /// `amount` bytes to the host, by transfers of `tensor` bytes.
    pub fn to_host(amount: f64, formula: &str, tensor: f64) -> Self {
        Self { bytes: Some(tensor), ..Self::of(Limit::ToHost, amount, formula) }
    }

    /// Marks the row as one that searches for the peak rate.
    #[must_use]
    pub fn as_peak(self) -> Self {
        Self { peak: true, ..self }
    }

    fn of(limit: Limit, amount: f64, formula: &str) -> Self {
        Self { limit, amount, formula: formula.to_owned(), bytes: None, peak: false }
    }

    /// The rate of a sample of `value` in `unit`.
    pub(super) fn rate(&self, value: f64, unit: Unit) -> f64 {
        match unit {
            Unit::BytesPerSecond | Unit::FlopsPerSecond => value,
            _ => self.amount / value,
        }
    }
}
