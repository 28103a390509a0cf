//! The listings of the book compile and run as they stand.

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
    async_frontend: "async_frontend.rs",
    idle_device: "idle_device.rs",
    overlap: "overlap.rs",
    sync_points: "sync_points.rs",
    synchronize: "synchronize.rs",
}

#[test]
fn every_listing_of_the_book_runs_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("book/src/listings");
    let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.collect::<BTreeSet<_>>(), FILES.iter().map(|file| (*file).to_owned()).collect());
}
