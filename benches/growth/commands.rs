//! The commands of `report`, each over files that grow in one way at a time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use syncscope_results::Results;

use super::{Growth, files};

/// How many sizes are timed at least.
const FEWEST: usize = 4;
/// The seconds that the largest takes, where a file may be as large.
const LONG: f64 = 1.0;
/// The least that are told from the scatter of what every size takes.
const LEAST: f64 = 0.2;

type Arguments = &'static [&'static str];

/// What is put together from the results of one file. FILE is that file, and OUT a folder that is not there.
const OF_RESULTS: [(&str, Arguments); 7] = [
    ("render", &["render", "FILE", "--out", "OUT"]),
    ("slides", &["slides", "FILE", "--out", "OUT"]),
    ("claims", &["claims", "FILE", "--json"]),
    ("check", &["check", "FILE"]),
    ("compare", &["compare", "FILE", "FILE"]),
    ("collect", &["collect", "FILE", "--into", "OUT", "--csv", "OUT.csv"]),
    ("submit", &["submit", "FILE", "--out", "OUT.json", "--yes"]),
];

/// What is put together from a store of files.
const OF_STORE: [(&str, Arguments); 3] = [
    ("collect", &["collect", "FILE", "--into", "OUT"]),
    ("history", &["history", "FILE", "--page", "OUT.html"]),
    ("machines", &["machines", "FILE", "--page", "OUT.html"]),
];

const OF_TRACE: [(&str, Arguments); 1] =
    [("audit", &["audit", "--from", "FILE", "--json", "OUT.json", "--html", "OUT.html", "--trace", "OUT.trace.json"])];

const OF_SUITE: [(&str, Arguments); 2] = [("check", &["check", "FILE"]), ("plan", &["plan", "--suite", "FILE"])];

/// Writes something of a size into a folder.
type Write = dyn Fn(usize, &Path) -> PathBuf;

/// A way for what a command reads to grow: its name, the smallest and the largest size, and how such a thing is written into a
/// folder.
struct Way {
    of: String,
    sizes: (usize, usize),
    write: Rc<Write>,
    commands: &'static [(&'static str, Arguments)],
}

/// How the time of each command grows with each of what it reads, of those whose names hold `wanted`.
pub(super) fn grown(wanted: &str) -> impl Iterator<Item = Growth> {
    let all = ways().into_iter().flat_map(|way| {
        way.commands.iter().map(move |(command, arguments)| {
            (format!("{command}, {}", way.of), way.sizes, Rc::clone(&way.write), *arguments)
        })
    });
    let wanted = all.filter(move |(what, ..)| what.contains(wanted));
    wanted.map(|(what, sizes, write, arguments)| growth(what, sizes, &*write, arguments))
}

fn ways() -> Vec<Way> {
    let results = |of: &str, sizes, made: Box<dyn Fn(usize) -> Results>| Way {
        of: of.to_owned(),
        sizes,
        write: Rc::new(move |n, folder: &Path| {
            let path = folder.join("results.json");
            made(n).write(&path).unwrap();
            path
        }),
        commands: &OF_RESULTS,
    };
    let text = |of: &str, sizes, name: &'static str, made: fn(usize) -> String, commands| Way {
        of: of.to_owned(),
        sizes,
        write: Rc::new(move |n, folder: &Path| {
            let path = folder.join(name);
            fs::write(&path, made(n)).unwrap();
            path
        }),
        commands,
    };
    let mut ways = vec![
        results("of n rows", (1_000, 64_000), Box::new(files::rows)),
        results("of n sets of parameters that no text names", (1_000, 64_000), Box::new(files::copies)),
        // No file may hold more.
        results("of n runs", (625, 10_000), Box::new(files::runs)),
        results("of n experiments", (1_000, 64_000), Box::new(files::experiments)),
        results("of a chain of n computed rows", (1_000, 64_000), Box::new(files::chain)),
        results("of n sums of rows", (1_000, 32_000), Box::new(files::sums)),
        results("of n timelines", (50, 1_600), Box::new(files::timelines)),
    ];
    for set in [
        ("one-gpu.json.gz", "launch-path", "operations"),
        ("one-gpu.json.gz", "overlap", "bytes"),
        ("one-gpu.json.gz", "sync-points", "kernel_seconds"),
        ("one-gpu.json.gz", "self-audit", "spin_seconds"),
        ("one-gpu.json.gz", "ceilings", "size"),
        ("calls.json.gz", "driver-calls", "call"),
    ] {
        let of = format!("of {} at n values of {}", set.1, set.2);
        ways.push(results(&of, (100, 12_800), Box::new(move |n| files::sets(n, set))));
    }
    for way in ways.iter_mut().filter(|way| way.of == "of n experiments") {
        way.commands = &OF_RESULTS[1..];
    }
    // A book has no more.
    let shown = results("of n experiments", (25, 200), Box::new(files::experiments));
    ways.push(Way { commands: &OF_RESULTS[..1], ..shown });
    for (of, one_machine) in [("of n days of a machine", true), ("of n machines", false)] {
        let write = move |n: usize, folder: &Path| {
            for i in 0..n {
                let (machine, day) = if one_machine { (0, i) } else { (i, 0) };
                files::of_day(machine, day).write(&folder.join(format!("{i}.json"))).unwrap();
            }
            let store = folder.join("store");
            run(&["collect", "FILE", "--into", "OUT"], folder, &store);
            store
        };
        ways.push(Way { of: of.to_owned(), sizes: (100, 3_200), write: Rc::new(write), commands: &OF_STORE });
    }
    ways.push(text("of a trace of n calls", (1_000, 64_000), "trace.json", files::trace, &OF_TRACE));
    ways.push(text("of a suite of n values", (250, 32_000), "suite.yaml", files::suite, &OF_SUITE));
    ways
}

/// The sizes double until the last takes long or is the largest. What the command takes for nothing is taken off.
fn growth(what: String, (least, most): (usize, usize), write: &Write, arguments: Arguments) -> Growth {
    let time = |n: usize| {
        let folder = tempfile::tempdir().unwrap();
        let file = write(n, folder.path());
        let mut times: Vec<f64> =
            (0..3).map(|i| run(arguments, &file, &folder.path().join(format!("out-{i}")))).collect();
        times.sort_by(f64::total_cmp);
        times[1]
    };
    let none = time(1);
    let mut points: Vec<(usize, f64)> = Vec::new();
    let mut n = least;
    while n <= most && !(points.len() >= FEWEST && points.last().is_some_and(|(_, time)| *time > LONG)) {
        points.push((n, time(n) - none));
        n *= 2;
    }
    points.retain(|(_, time)| *time > LEAST);
    Growth::of(what, points)
}

/// The seconds of all processors that a command takes.
fn run(arguments: &[&str], file: &Path, out: &Path) -> f64 {
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let arguments = arguments.iter().map(|argument| argument.replace("FILE", file).replace("OUT", out));
    let before = of_children();
    let mut command = Command::new(env!("CARGO_BIN_EXE_report"));
    let status = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}");
    of_children() - before
}

/// What the processes took that this one has waited for.
fn of_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // Behind the name, from the state on.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[13..15].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}
