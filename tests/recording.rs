//! What a long recording keeps, and what it costs in memory. Alone in its process, whose memory is looked at.

use std::fs;

use syncscope::prelude::*;
use syncscope::timeline::Kind;

const LAUNCHES: usize = 100_000;
const MOST_BYTES: usize = 200_000_000;

/// A line of `/proc/self/status`, in bytes; `None` where there is no such file.
fn memory(line: &str) -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let value = status.lines().find_map(|l| l.strip_prefix(line))?;
    value.split_whitespace().next()?.parse::<usize>().ok().map(|kilobytes| kilobytes * 1024)
}

#[test]
fn a_recording_of_100_000_launches_loses_none_and_stays_small() {
    for device in Device::all().unwrap() {
        let stream = device.stream().unwrap();
        let x = stream.ones::<f32>([16]).unwrap();
        device.record(|| x.affine_in_place(1.0, 1.0)).unwrap();
        // The peak begins anew, where the system allows it.
        let _ = fs::write("/proc/self/clear_refs", "5");
        let before = memory("VmRSS:");
        let (_, timeline) = device.record(|| (0..LAUNCHES).try_for_each(|_| x.affine_in_place(1.0, 1.0))).unwrap();
        let peak = memory("VmHWM:");
        let of = |kind| timeline.spans.iter().filter(|span| span.kind == kind).count();
        assert_eq!(
            (of(Kind::Enqueue), of(Kind::Kernel), timeline.dropped),
            (LAUNCHES, LAUNCHES, 0),
            "{}",
            device.name()
        );
        match before.zip(peak) {
            Some((before, peak)) => {
                let grown = peak.saturating_sub(before);
                println!("{}: {} MB more at the peak", device.name(), grown / 1_000_000);
                assert!(grown < MOST_BYTES, "{}: {grown} bytes more at the peak", device.name());
            }
            None => println!("{}: this system tells nothing of a process's memory", device.name()),
        }
    }
}
