//! Progress of a run: a bar on a terminal, lines where standard error is none.

use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};

use super::sent::Sender;
use super::terminal::is_quiet;
use crate::experiment::RunObserver;
use crate::measure::Progress;
use crate::results::{Parameters, Piece, Row, titled};

/// Shows which rows are being measured and how far their sampling has come, and sends on what a run leaves.
pub(super) struct RunBar {
    bar: ProgressBar,
    /// Where what is measured goes, if it is kept.
    sender: Option<Arc<Sender>>,
}

impl RunBar {
    pub(super) fn new(sender: Option<Arc<Sender>>) -> Self {
        let bar = if is_quiet() { ProgressBar::hidden() } else { ProgressBar::new(1000) };
        // The template is a constant: were it wrong, indicatif's own style would do.
        let template = "[{elapsed_precise}] {prefix} {bar:24} {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self { bar, sender }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl RunObserver for RunBar {
    /// Where there is no terminal, a line says so.
    fn experiment(&self, place: usize, of: usize, name: &str) {
        if self.bar.is_hidden() {
            note!("{}/{of} {name}", place + 1);
        }
        self.bar.set_prefix(format!("{}/{of}", place + 1));
        self.bar.set_message(name.to_owned());
    }

    fn group(&self, rows: &[&str], parameters: &Parameters) {
        let first = rows.first().copied().unwrap_or_default();
        let more = if rows.len() > 1 { format!(" and {} more", rows.len() - 1) } else { String::new() };
        self.bar.set_message(titled(&format!("{first}{more}"), parameters));
        self.bar.set_position(0);
    }

    fn progress(&self, progress: Progress) {
        self.bar.set_position((progress.share * 1000.0) as u64);
    }

    fn measured(&self, rows: &[Row]) {
        self.sender.iter().for_each(|sender| sender.measured(rows));
    }

    fn keep(&self, piece: &Piece) {
        self.sender.iter().for_each(|sender| sender.piece(piece));
    }
}
