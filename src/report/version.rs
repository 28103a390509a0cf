//! `--version`: from what the program was built, with which features, and whether it finds CUDA here.

use super::program;
use syncscope::device::Device;

/// The features that the library can be built with, and whether it was.
const FEATURES: [(&str, bool); 2] = [("nsys", cfg!(feature = "nsys")), ("symbols", cfg!(feature = "symbols"))];

/// What `--version` prints.
pub(crate) fn text() -> String {
    let commit = option_env!("SYNCSCOPE_COMMIT").unwrap_or("unknown: not built from a checkout");
    let dirty = if option_env!("SYNCSCOPE_DIRTY") == Some("true") { ", with uncommitted changes" } else { "" };
    let features: Vec<&str> = FEATURES.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    let cuda = match Device::cuda_unavailable() {
        Some(reason) => format!("not found: {reason}"),
        None => {
            let gpus = Device::list().into_iter().filter(|device| device.name.starts_with("cuda:"));
            gpus.map(|gpu| format!("{} {}", gpu.name, gpu.model)).collect::<Vec<_>>().join(", ")
        }
    };
    let (program, version) = (program(), env!("CARGO_PKG_VERSION"));
    format!("{program} {version}\ncommit: {commit}{dirty}\nfeatures: {features}\nCUDA: {cuda}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_that_the_library_can_be_built_with_is_listed() {
        let manifest: toml::Table = toml::from_str(include_str!("Cargo.toml")).unwrap();
        let declared = manifest["features"].as_table().unwrap().keys().map(String::as_str);
        let mut declared: Vec<&str> = declared.filter(|name| *name != "default").collect();
        declared.sort_unstable();
        assert_eq!(FEATURES.map(|(name, _)| name).as_slice(), declared);
    }
}
