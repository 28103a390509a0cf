//! What a user of the public types relies on.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Debug;

use syncscope::measure::{Case, Protocol, Sampler};
use syncscope::prelude::*;

#[test]
fn what_debug_writes_holds_no_address() {
    let device = Device::open("cpu:0").unwrap();
    let stream = device.stream().unwrap();
    let (event, gate) = (device.event().unwrap(), device.gate().unwrap());
    let buffer = device.host_buffer::<f32>(HostKind::Pageable, 2).unwrap();
    let tensor = stream.ones::<f32>([2]).unwrap();
    let (_, graph) = stream.capture(|| tensor.add_scalar(1.0)).unwrap();
    let (_, timeline) = device.record(|| tensor.sum()).unwrap();
    let audit = timeline.audit();
    let sampler = Sampler::new(Protocol::samples(3)).sync_between(&device);
    let cases = (Case::new("observed", || 1.0), Case::batched("in batches", || 1));
    let all: [&dyn Debug; 11] =
        [&device, &stream, &event, &gate, &buffer, &tensor, &graph, &timeline, &audit, &sampler, &cases];
    for text in all.map(|value| format!("{value:?}")) {
        assert!(!text.is_empty() && !text.contains("0x"), "{text}");
    }
}

#[test]
fn the_readme_of_the_package_has_its_picture_and_the_changes() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let packaged = text("Cargo.toml");
    let readme = text("README.md");
    let pictures = readme.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    for picture in pictures.filter(|target| target.ends_with(".png")) {
        assert!(folder.join(picture).is_file() && packaged.contains(&format!("\"/{picture}\"")), "{picture}");
    }
    assert!(text("CHANGELOG.md").contains("## Unreleased") && packaged.contains("\"/CHANGELOG.md\""));
}

/// Types, traits and functions that a user can name, not those of an implementation that has its own crate or room.
#[test]
fn one_in_five_of_the_public_types_traits_and_functions_has_an_example_that_runs() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let own = [root.join("bin"), root.join("audit/injected"), root.join("device/cuda")];
    let (mut all, mut begun) = (0, 0);
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if own.contains(&path) {
                continue;
            } else if path.is_dir() {
                folders.push(path);
                continue;
            }
            let (mut has_example, mut is_hidden) = (false, false);
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let item = ["struct ", "enum ", "trait ", "type ", "fn ", "const fn "]
                    .iter()
                    .any(|kind| line.strip_prefix("pub ").is_some_and(|rest| rest.starts_with(kind)));
                match line {
                    "/// ```" | "/// ```no_run" => has_example = true,
                    "#[doc(hidden)]" => is_hidden = true,
                    _ if line.starts_with("//") || line.starts_with("#[") => {}
                    _ => {
                        all += usize::from(item && !is_hidden);
                        begun += usize::from(item && !is_hidden && has_example);
                        (has_example, is_hidden) = (false, false);
                    }
                }
            }
        }
    }
    assert!(all > 300 && begun * 5 >= all, "{begun} of {all}");
}
