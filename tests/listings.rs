//! The listings of the book compile and run as they stand; those in Python, which need a GPU, compile. Those in CUDA C++ need
//! `nvcc`: `.ci/run` compiles them. `tests/listings-gpu` runs both on a GPU.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::path::Path;

/// Each listing as a module of its own, with its `main` reachable.
macro_rules! listings {
    ($($name:ident: $file:literal,)+) => {
        $(
            mod $name {
                include!(concat!("../book/src/listings/", $file));

                #[test]
                fn runs() {
                    main().unwrap();
                }
            }
        )+

        const FILES: &[&str] = &[$($file),+];
    };
}

listings! {
    audit_region: "audit_region.rs",
    async_frontend: "async_frontend.rs",
    idle_device: "idle_device.rs",
    overlap: "overlap.rs",
    sync_points: "sync_points.rs",
    synchronize: "synchronize.rs",
}

#[test]
fn every_listing_of_the_book_runs_here() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/src/listings");
    let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // These need a GPU: examples of the packages that have their crates, and modules of them, which compile.
    let examples = ["cudarc_loop.rs", "first_stream.rs", "one_number.rs", "pinned_drop.rs"];
    let modules = ["cudarc_calls.rs", "candle_calls.rs", "burn_calls.rs"];
    let needs_gpu = |name: &str| examples.contains(&name) || modules.contains(&name);
    let names = names.filter(|name| name.ends_with(".rs") && !needs_gpu(name));
    assert_eq!(names.collect::<BTreeSet<_>>(), FILES.iter().map(|file| (*file).to_owned()).collect());
}

#[test]
fn every_listing_in_python_is_python() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/src/listings");
    let compile = "import sys; compile(open(sys.argv[1]).read(), sys.argv[1], 'exec')";
    let paths = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let listings: Vec<_> = paths.filter(|path| path.extension().is_some_and(|ending| ending == "py")).collect();
    assert!(!listings.is_empty());
    for listing in listings {
        let output = std::process::Command::new("python3").args(["-c", compile]).arg(&listing).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
