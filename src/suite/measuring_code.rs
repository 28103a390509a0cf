//! Which code measures an experiment on an engine, and the digest of it: the build script notes the digests of all.
//!
//! A digest is over what runs when samples are taken: the files of the experiment and of experiments that it borrows from,
//! what takes the samples, and the engine. Comments, tests and what is computed of samples later are left out. Paths are
//! from the root of the repository; a folder stands for all files in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What takes the samples of every experiment.
const SHARED: [&str; 9] = [
    "src/syncscope/affinity",
    "src/syncscope/measure",
    "src/syncscope/device",
    "src/syncscope/tensor",
    "src/suite/experiment/bench.rs",
    "src/suite/experiment/each_round.rs",
    "src/suite/experiment/group.rs",
    "src/suite/experiment/host_copy.rs",
    "src/suite/runner/mod.rs",
];
/// What of it takes none.
const LEFT_OUT: [&str; 1] = ["src/syncscope/measure/statistics"];
/// What only an engine runs.
const OF_ENGINE: [(&str, &[&str]); 2] = [
    ("cpu", &["src/syncscope/device/cpu", "src/calls/own.rs"]),
    ("cuda", &["src/syncscope/device/cuda", "src/calls/cuda", "kernels"]),
];
/// The trials of driver calls, and what code that uses them has.
const CALLS: (&str, &str) = ("src/calls", "calls::");
/// The kernels that stand beside the other system's script, and what code that embeds them has.
const KERNELS: (&str, &str) = ("book/peers/pytorch_system/kernels.cu", "kernels.cu");
/// The experiments: a file or a folder each, but for these.
const EXPERIMENTS: &str = "src/suite/experiment";
const NO_EXPERIMENTS: [&str; 5] = ["counts.rs", "formula.rs", "mod.rs", "recorder.rs", "registry.rs"];
/// The system that is measured beside this one, as book/peers/pytorch_system/code.py computes it.
const PEER: [&str; 2] = ["book/peers/pytorch.py", "book/peers/pytorch_system"];

/// The digests of the experiments and engines in the repository at `root`, each by `NAME ENGINE`, and that of the other
/// system by its name.
pub(crate) fn digests(root: &Path) -> Vec<(String, String)> {
    let named = OF_ENGINE.iter().flat_map(|(_, of)| of.iter()).chain(&SHARED).chain(&LEFT_OUT).chain(&PEER);
    let named = named.chain([&KERNELS.0]);
    if let Some(moved) = named.into_iter().find(|path| !root.join(path).exists()) {
        panic!("{moved} is not there: what measures has moved");
    }
    let below = |path: &Path, folder: &str| path.starts_with(root.join(folder));
    let is_harness = |path: &Path| {
        SHARED.iter().any(|shared| below(path, shared)) || NO_EXPERIMENTS.iter().any(|other| path.ends_with(other))
    };
    let mut experiments: Vec<PathBuf> =
        fs::read_dir(root.join(EXPERIMENTS)).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    experiments.sort();
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let (mut found, mut known) = (Vec::new(), BTreeMap::new());
    for path in experiments.iter().filter(|path| !is_harness(path)) {
        let own: String = files(path).iter().map(|file| code(file)).collect();
        let borrows = |other: &&PathBuf| {
            ["super", "experiment"].iter().any(|parent| own.contains(&format!("{parent}::{}::", stem(other))))
        };
        let others = experiments.iter().filter(borrows);
        let uses_calls = own.contains(CALLS.1);
        let kernels = own.contains(KERNELS.1).then(|| root.join(KERNELS.0));
        for (engine, of_engine) in OF_ENGINE {
            let runs = |file: &PathBuf| {
                let is_others =
                    OF_ENGINE.iter().any(|(other, of)| *other != engine && of.iter().any(|of| below(file, of)));
                let is_left_out = LEFT_OUT.iter().any(|left| below(file, left));
                !is_others && !is_left_out && (uses_calls || !below(file, CALLS.0))
            };
            let shared = SHARED.iter().chain([&CALLS.0]).chain(of_engine).map(|path| root.join(path));
            let all = shared
                .chain(others.clone().cloned())
                .chain(kernels.clone())
                .chain([path.clone()])
                .flat_map(|path| files(&path));
            let all: BTreeSet<PathBuf> = all.filter(runs).collect();
            let of_file = |file: &PathBuf| {
                let own = known.entry(file.clone()).or_insert_with(|| digest([code(file)].into_iter()));
                own.to_string()
            };
            let digest = digest(all.iter().map(of_file));
            found.push((format!("{} {engine}", stem(path).replace('_', "-")), format!("{digest:016x}")));
        }
    }
    let peer = PEER.iter().flat_map(|path| files(&root.join(path)));
    let peer = peer.filter_map(|path| match path.extension()?.to_str()? {
        "py" => Some(without_comments(&read(&path), "#")),
        "cu" => Some(without_comments(&read(&path), "//")),
        _ => None,
    });
    let digest = digest(peer);
    found.push(("PyTorch".to_owned(), format!("{digest:016x}")));
    found
}

/// The files in a folder, or the file itself, in the order of their names.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let mut paths: Vec<PathBuf> =
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().flat_map(|path| files(path)).collect()
}

/// What a file of Rust or CUDA C++ has beside comments on lines of their own, and the tests at its end.
fn code(path: &Path) -> String {
    let text = read(path);
    let tests = ["mod tests", "pub(super) mod tests"].map(|module| format!("\n#[cfg(test)]\n{module}"));
    let end = tests.iter().filter_map(|tests| text.find(tests)).min().unwrap_or(text.len());
    without_comments(&text[..end], "//")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The lines that do not begin with `comment`.
fn without_comments(text: &str, comment: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with(comment)).flat_map(|line| [line, "\n"]).collect()
}

/// FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo), 64 bits, of texts.
pub(crate) fn digest(texts: impl Iterator<Item = String>) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    texts.fold(0xcbf2_9ce4_8422_2325, |hash, text| text.bytes().fold(hash, step))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A copy of the sources, of which one can be changed.
    fn copy() -> tempfile::TempDir {
        let (root, folder) = (Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")), tempfile::tempdir().unwrap());
        for file in ["src/syncscope", "src/calls", "src/suite", "kernels", "book/peers"]
            .iter()
            .flat_map(|path| files(&root.join(path)))
        {
            let to = folder.path().join(file.strip_prefix(root).unwrap());
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(file, to).unwrap();
        }
        folder
    }

    /// The names of the digests that a line at the beginning of a file changes.
    fn changed_by(folder: &Path, file: &str, line: &str) -> BTreeSet<String> {
        let (path, before) = (folder.join(file), digests(folder));
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{line}\n{text}")).unwrap();
        let after = digests(folder);
        fs::write(&path, text).unwrap();
        before.into_iter().zip(after).filter(|(before, after)| before != after).map(|(before, _)| before.0).collect()
    }

    #[test]
    fn a_line_of_code_changes_the_digests_of_what_it_runs_in_and_no_others() {
        let folder = copy();
        let all: BTreeSet<String> = digests(folder.path()).into_iter().map(|(name, _)| name).collect();
        let of = |is_in: &dyn Fn(&str, &str) -> bool| -> BTreeSet<String> {
            all.iter()
                .filter(|name| name.split_once(' ').is_some_and(|(name, engine)| is_in(name, engine)))
                .cloned()
                .collect()
        };
        let with_calls =
            ["cold-start", "driver-calls", "layers", "memory-ways", "multi-device", "wait-modes", "wait-parts"];
        let calls = |name: &str| with_calls.contains(&name);
        let changed = |file: &str| changed_by(folder.path(), file, "let changed = 1;");
        let harness =
            ["bench.rs", "each_round.rs", "group.rs", "host_copy.rs"].map(|file| format!("{EXPERIMENTS}/{file}"));
        let neutral = ["device/stream.rs", "measure/sampler.rs", "tensor/mod.rs", "affinity/mod.rs"];
        let neutral = neutral.map(|file| format!("src/syncscope/{file}"));
        for file in harness.iter().chain(&neutral).map(String::as_str).chain(["src/suite/runner/mod.rs"]) {
            assert_eq!(changed(file), of(&|_, _| true), "{file}");
        }
        assert_eq!(changed("src/syncscope/device/cpu/queue.rs"), of(&|_, engine| engine == "cpu"));
        let kernel =
            files(&folder.path().join("kernels"))[0].strip_prefix(folder.path()).unwrap().display().to_string();
        for file in ["src/syncscope/device/cuda/gpu.rs", kernel.as_str()] {
            assert_eq!(changed(file), of(&|_, engine| engine == "cuda"), "{file}");
        }
        let (trials, own) = (format!("{}/catalogue.rs", CALLS.0), format!("{}/own.rs", CALLS.0));
        assert_eq!(changed(&trials), of(&|name, _| calls(name)));
        assert_eq!(changed(&own), of(&|name, engine| calls(name) && engine == "cpu"));
        assert_eq!(changed("src/suite/experiment/layers.rs"), of(&|name, _| name == "layers"));
        assert_eq!(changed("src/suite/experiment/overlap/pipeline.rs"), of(&|name, _| name == "overlap"));
        let borrowed = of(&|name, _| ["idle-device", "multi-device"].contains(&name));
        assert_eq!(changed("src/suite/experiment/idle_device.rs"), borrowed);
        assert_eq!(changed("book/peers/pytorch.py"), BTreeSet::from(["PyTorch".to_owned()]));
        let timed = of(&|name, _| name == "self-audit").into_iter().chain(["PyTorch".to_owned()]);
        assert_eq!(changed(KERNELS.0), timed.collect());
        for file in ["src/suite/runner/length.rs", "src/syncscope/measure/statistics/mod.rs", "src/syncscope/error.rs"]
        {
            assert_eq!(changed(file), BTreeSet::new(), "{file}");
        }
        let comment = changed_by(folder.path(), "src/suite/experiment/bench.rs", "// A comment.");
        assert_eq!(comment, BTreeSet::new());
    }
}
