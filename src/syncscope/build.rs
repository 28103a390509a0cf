//! Notes how far the library is optimised, so that it can say where that makes its times long.

fn main() {
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo::rustc-env=SYNCSCOPE_OPT_LEVEL={level}");
    println!("cargo::rerun-if-changed=build.rs");
}
