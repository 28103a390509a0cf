//! Why a plot could not be drawn.

/// Why a plot could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("the plot could not be drawn: {message}")]
pub struct PlotError {
    /// What the drawing library reported.
    pub message: String,
}
