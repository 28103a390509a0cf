//! The listings of the book compile and run as they stand.

/// A listing as a module of its own, with its `main` reachable.
macro_rules! listing {
    ($name:ident, $file:literal) => {
        mod $name {
            include!(concat!("../book/src/listings/", $file));

            #[test]
            fn runs() {
                main().unwrap();
            }
        }
    };
}

listing!(sync_points, "sync_points.rs");
listing!(idle_device, "idle_device.rs");
listing!(async_frontend, "async_frontend.rs");
listing!(synchronize, "synchronize.rs");
listing!(overlap, "overlap.rs");
