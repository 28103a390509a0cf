//! A timeline as a plot: a lane for each thread and each stream.

use syncscope_present::{Lane, LaneSpan, TimelinePlot};

use super::span::{Timeline, Track};

impl Timeline {
    /// The plot with this title; its description names the `machine`.
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let device = Device::open("cpu:0")?;
    /// let stream = device.stream()?;
    /// let (_, timeline) = device.record(|| stream.ones::<f32>([64])?.sum()?.item())?;
    /// let plot = timeline.plot("A read".to_owned(), timeline.device.clone());
    /// assert!(plot.to_svg("read").starts_with("<svg"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn plot(&self, title: String, machine: String) -> TimelinePlot<'_> {
        let empty =
            |track| Lane { name: self.lane_name(track), is_host: self.tracks[track].is_host(), spans: Vec::new() };
        let mut lanes: Vec<Lane<'_>> = (0..self.tracks.len()).map(empty).collect();
        for span in &self.spans {
            if let Some(lane) = lanes.get_mut(span.track) {
                let (kind, start_ns, end_ns) = (span.kind, span.start_ns, span.end_ns);
                lane.spans.push(LaneSpan { kind, name: &span.name, start_ns, end_ns });
            }
        }
        TimelinePlot { title, machine, end_ns: self.end_ns(), lanes }
    }

    /// A thread by its name, a stream by its place among those that are drawn.
    fn lane_name(&self, track: usize) -> String {
        let streams = |track: &&Track| matches!(track, Track::Stream(_));
        match &self.tracks[track] {
            Track::Stream(_) if self.tracks.iter().filter(streams).count() == 1 => "stream".to_owned(),
            Track::Stream(_) => format!("stream {}", self.tracks[..=track].iter().filter(streams).count()),
            other => other.to_string(),
        }
    }
}
