//! Notes a digest of the code that measures, for each experiment, so that a results file can name it.

#[path = "measuring_code.rs"]
mod measuring_code;

use std::path::Path;

/// The root of the repository, from this folder.
const ROOT: &str = "../..";
/// Where the code lies that measures.
const MEASURES: [&str; 6] = [
    ".",
    "../calls",
    "../syncscope",
    "../../kernels",
    "../../book/peers/pytorch.py",
    "../../book/peers/pytorch_system",
];

fn main() {
    let digests = measuring_code::digests(Path::new(ROOT)).into_iter().map(|(name, digest)| format!("{name}={digest}"));
    println!("cargo::rustc-env=SYNCSCOPE_DIGESTS={}", digests.collect::<Vec<_>>().join(";"));
    MEASURES.iter().for_each(|path| println!("cargo::rerun-if-changed={path}"));
}
