//! The clock rate of the processor on which the host measures, as far as the system tells it.
//!
//! Linux tells it under `cpufreq`; where that is missing, as in a virtual machine, `/proc/cpuinfo` may name a rate, which there
//! is often the nominal one. Other systems and processors offer neither.

use std::fs;

use crate::affinity;

/// The rate now, in MHz.
pub fn mhz() -> Option<f64> {
    read().map(|(mhz, _)| mhz)
}

/// Where the rate comes from, in words.
pub(super) fn source() -> &'static str {
    read().map_or("not offered by this machine", |(_, source)| source)
}

/// The rate and where it comes from, of the processor that the measuring thread is kept on; where it is kept on none, of the
/// first.
fn read() -> Option<(f64, &'static str)> {
    let cpu = affinity::measuring().unwrap_or(0);
    let khz = fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"));
    let cpufreq = khz.ok().and_then(|text| positive(&text)).map(|khz| (khz / 1e3, "read from cpufreq"));
    cpufreq.or_else(|| {
        let text = fs::read_to_string("/proc/cpuinfo").ok()?;
        Some((of_cpuinfo(&text, cpu)?, "read from cpuinfo, which may be the nominal rate"))
    })
}

/// The rate that `/proc/cpuinfo` names for a processor.
fn of_cpuinfo(text: &str, cpu: usize) -> Option<f64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(name, number)| name.trim() == "processor" && number.trim().parse() == Ok(cpu))?;
    let mut own = lines.take_while(|(name, _)| name.trim() != "processor");
    own.find(|(name, _)| name.trim() == "cpu MHz").and_then(|(_, mhz)| positive(mhz))
}

fn positive(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpuinfo_names_the_rate_of_the_processor_that_is_asked_for() {
        let text = "processor\t: 0\nmodel name\t: A: b\ncpu MHz\t\t: 2000.5\n\nprocessor\t: 1\ncpu MHz\t\t: 3100.000\n\nprocessor\t: 2\n";
        assert_eq!([0, 1, 2, 3].map(|cpu| of_cpuinfo(text, cpu)), [Some(2000.5), Some(3100.0), None, None]);
        assert_eq!(of_cpuinfo("processor : 0\ncpu MHz : 0.000\n", 0), None, "no rate");
    }

    #[test]
    fn a_rate_is_there_where_a_source_is_named() {
        assert_eq!(mhz().is_none(), source().starts_with("not offered"));
    }
}
