//! What each type shows at the end of a cell.
//!
//! Places in the program are left out, except where they are what is listed: in a cell they are lines of a file that the
//! kernel generates.

use syncscope_present::notebook::{estimated, table_of};
use syncscope_present::{
    Bar, BarGroup, BarPlot, Cell, Column, Histogram, Line, LinePlot, Page, Role, Show, Spacing, Table, TableGroup,
    TableRow, displayed,
};

use crate::device::{Device, Element};
use crate::measure::{Compared, Comparison, Rounds, Samples, Swept, Verdict, host_time};
use crate::tensor::Tensor;
use crate::timeline::{Audit, SyncPoint, Timeline};
use crate::units::{Scale, Unit, counted};

/// How many synchronization points of an audit are listed.
const LISTED: usize = 20;

displayed!(Device, Samples, Rounds, Compared, Comparison, Swept, Verdict, Timeline, Audit);

impl<T: Element> Tensor<T> {
    /// Synchronization point: shows it, with its elements, in a cell of a notebook.
    pub fn evcxr_display(&self) {
        Page::new().show(self).evcxr_display();
    }
}

impl Show for Device {
    fn on(&self, page: Page) -> Page {
        let properties = self.properties();
        let mut facts = vec![
            ("hardware".to_owned(), properties.model.clone()),
            ("engine".to_owned(), properties.engine.to_owned()),
        ];
        facts.extend(properties.memory_bytes.map(|b| ("memory".to_owned(), Unit::Bytes.format(b as f64, 4))));
        facts.push(("wait policy of the host".to_owned(), properties.wait_policy.clone()));
        facts.extend(properties.facts.iter().cloned());
        let facts = facts.into_iter().map(|(name, fact)| (name, Cell::Text(fact)));
        page.show(&Table::facts(&properties.name, ["property", "value"], facts))
    }
}

impl<T: Element> Show for Tensor<T> {
    fn on(&self, page: Page) -> Page {
        let (text, held) = match host_time(|| Ok::<_, crate::error::DeviceError>(self.to_string())) {
            Ok((text, seconds)) => (text, Unit::Seconds.format(seconds, 3)),
            Err(error) => return page.note(error),
        };
        let stream = format!("stream {} of {}", self.stream().number(), self.stream().device().name());
        page.note(format!("{} of shape {:?}, {stream}", T::DTYPE, self.shape()))
            .verbatim(text)
            .note(format!("Reading the elements synchronized: it blocked the host for {held}."))
    }
}

impl Show for Samples {
    fn on(&self, page: Page) -> Page {
        let estimate = self.estimate();
        page.show(&table_of("Samples", "median", vec![estimated(self.name(), &estimate, self.unit(), false)])).show(
            &Histogram {
                title: format!("{}, n = {}", self.name(), self.len()),
                unit: self.unit(),
                samples: self.values().to_vec(),
                estimate,
            },
        )
    }
}

impl Show for Rounds {
    fn on(&self, page: Page) -> Page {
        let sets: Vec<&Samples> = self.sets.iter().collect();
        let rows = sets.iter().map(|set| estimated(set.name(), &set.estimate(), set.unit(), false)).collect();
        let page = page.show(&table_of("Cases, sampled in alternation", "median", rows));
        bars(&sets).iter().fold(page, |page, bars| page.show(bars))
    }
}

impl Show for Comparison {
    fn on(&self, page: Page) -> Page {
        let (a, b) = self.samples();
        let difference = format!("{} − {}", b.name(), a.name());
        let rows = vec![
            estimated(a.name(), &self.a, a.unit(), false),
            estimated(b.name(), &self.b, b.unit(), false),
            estimated(&difference, &self.difference, a.unit(), true),
        ];
        let page = page.show(&table_of("Two cases and their paired difference", "median", rows));
        bars(&[a, b]).iter().fold(page, |page, bars| page.show(bars)).note(self)
    }
}

impl Show for Compared {
    fn on(&self, page: Page) -> Page {
        self.iter().fold(page, |page, comparison| page.show(comparison))
    }
}

impl Show for Swept {
    /// The table, and a line for each case where the values of the axis are numbers.
    fn on(&self, page: Page) -> Page {
        let page = page.show(&self.table());
        let numbers: Option<Vec<f64>> = self.points.iter().map(|(value, _)| value.parse().ok()).collect();
        let Some(numbers) = numbers else { return page };
        let names = self.points.first().into_iter().flat_map(|(_, sets)| sets).map(Samples::name);
        let line = |(place, name): (usize, &str)| {
            let estimate = |(_, sets): &(String, Vec<Samples>)| sets.get(place).map(Samples::estimate);
            let points = numbers.iter().zip(self.points.iter().map(estimate));
            Line::measured(name, &points.filter_map(|(at, estimate)| Some((*at, estimate?))).collect::<Vec<_>>())
        };
        let title = format!("Times by {}", self.axis);
        page.show(&LinePlot::of_times(&title, &self.axis, names.enumerate().map(line).collect()))
    }
}

impl Show for Verdict {
    fn on(&self, page: Page) -> Page {
        page.note(match self {
            Verdict::Confirmed(share) | Verdict::Refuted(share) | Verdict::Inconclusive(share) => {
                format!("Verdict: {self}. The statement holds in {} of the resamples.", Scale::PERCENT.fixed(*share, 1))
            }
            Verdict::NotTestable(_) => format!("Verdict: {self}."),
        })
    }
}

impl Show for Timeline {
    fn on(&self, page: Page) -> Page {
        let share = |share: f64| Cell::Text(Scale::PERCENT.fixed(share, 0));
        let time = |ns: u64| Cell::Text(Unit::Seconds.format(ns as f64 * 1e-9, 3));
        let path = self.critical_path();
        let facts = [
            ("completion time", time(self.end_ns())),
            ("device busy", share(self.device_busy_share())),
            ("host blocked", share(self.host_stalled_share())),
            ("critical path on the device", time(path.device_ns)),
            ("critical path on the host", time(path.host_ns + path.sync_ns)),
            // A table marks no code.
            ("source of device times", Cell::Text(self.source.replace('`', ""))),
        ];
        let facts = facts.into_iter().map(|(name, fact)| (name.to_owned(), fact));
        let page = page.show(&self.plot("Timeline".to_owned(), self.device.clone())).show(&Table::facts(
            "Shares and critical path",
            ["quantity", "value"],
            facts,
        ));
        if self.dropped > 0 { page.note(lost(self.dropped)) } else { page }
    }
}

impl Show for Audit {
    fn on(&self, page: Page) -> Page {
        let row = |(number, point): (usize, &SyncPoint)| TableRow {
            id: None,
            label: format!("{number}. {}", point.name),
            cells: vec![
                Cell::Text(point.kind.to_string()),
                Cell::Text(Unit::Seconds.format(point.blocked_ns as f64 * 1e-9, 3)),
                Cell::Text(point.pending.to_string()),
            ],
        };
        let headings = ["call", "kind", "blocked the host for", "pending at its start"];
        let columns = headings
            .iter()
            .enumerate()
            .map(|(at, heading)| Column::new(if at == 0 { Role::Label } else { Role::Fact }, *heading));
        let rows = (1..).zip(&self.sync_points).take(LISTED).map(row).collect();
        let table = Table {
            title: "Synchronization points".to_owned(),
            columns: columns.collect(),
            groups: vec![TableGroup { label: None, rows }],
        };
        let (count, share) = (self.sync_points.len(), Scale::PERCENT.fixed(self.stalled_share, 0));
        let unlisted = if count > LISTED { format!(", {} of them not listed", count - LISTED) } else { String::new() };
        let page = page.show(&table).note(format!(
            "{}{unlisted}. The host was blocked for {share} of the time.",
            counted(count, "synchronization point")
        ));
        match self.dropped {
            0 => page,
            dropped => page.note(format!("{} Synchronization points may be missing.", lost(dropped))),
        }
    }
}

/// That a recording is not whole.
fn lost(records: u64) -> String {
    format!("The recording lost {}.", counted(records, "record"))
}

/// The medians of cases of one unit.
fn bars(sets: &[&Samples]) -> Option<BarPlot> {
    let unit = sets.first()?.unit();
    let bar = |set: &&Samples| {
        let estimate = set.estimate();
        let interval = estimate.is_interval().then_some((estimate.low, estimate.high));
        Bar::new(set.name(), estimate.median, interval, unit.format(estimate.median, 3))
    };
    sets.iter().all(|set| set.unit() == unit).then(|| BarPlot {
        title: "Medians with their intervals".to_owned(),
        machine: "this device".to_owned(),
        unit,
        spacing: Spacing::Linear,
        groups: vec![BarGroup { label: String::new(), bars: sets.iter().map(bar).collect() }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(name: &str, from: u32) -> Samples {
        Samples::new(name, (0..30).map(|i| 1e-6 * f64::from(from + i * 7 % 30)).collect()).unwrap()
    }

    #[track_caller]
    fn shown(value: &impl Show) -> (String, String) {
        let page = Page::new().show(value);
        assert!(!page.to_text().is_empty() && page.to_html().lines().all(|line| !line.trim().is_empty()));
        (page.to_html(), page.to_text())
    }

    #[test]
    fn a_device_a_tensor_a_timeline_and_an_audit_show_themselves() {
        let device = Device::open("cpu:0").unwrap();
        let stream = device.stream().unwrap();
        assert!(shown(&device).1.contains("CPU engine"));
        let (sum, timeline) = device.record(|| stream.ones::<f32>([2, 3])?.sum()?.item()).unwrap();
        let (html, text) = shown(&timeline);
        assert!(sum == 6.0 && html.contains("<img ") && text.contains("host blocked"), "{text}");
        assert!(shown(&timeline.audit()).1.contains("1 synchronization point. "));
        let (html, text) = shown(&stream.ones::<f32>([2, 3]).unwrap());
        assert!(
            text.contains("fp32 of shape [2, 3]") && text.contains("[1.0, 1.0, 1.0]") && html.contains("synchronized"),
            "{text}"
        );
    }

    #[test]
    fn samples_have_a_histogram_and_cases_have_bars() {
        let (a, b) = (samples("a", 10), samples("b", 90));
        let (html, text) = shown(&a);
        assert!(html.contains("<img ") && text.contains("Histogram of 30 samples"), "{text}");
        let comparison = Comparison::new(a, b).unwrap();
        let (html, text) = shown(&comparison);
        assert!(html.contains("<img ") && text.contains("b − a") && text.contains("b = 4.27 × a"), "{text}");
        assert!(shown(&comparison.a).1.contains("n = 30"));
    }

    #[test]
    fn a_difference_that_may_be_none_is_not_a_number() {
        let (_, text) = shown(&Comparison::new(samples("a", 10), samples("b", 10)).unwrap());
        assert!(text.contains("not distinguishable from 0"), "{text}");
    }

    #[test]
    fn a_verdict_says_how_often_its_statement_holds() {
        assert!(shown(&Verdict::Refuted(0.011)).1.starts_with("Verdict: refuted. The statement holds in 1.1 %"));
        assert!(shown(&Verdict::NotTestable("too few".to_owned())).1.contains("not testable here: too few"));
    }
}
