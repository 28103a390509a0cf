//! The device kernels compile, on machines without a device too: NVRTC needs none.
//!
//! Where NVRTC is missing the tests say so and pass, unless `SYNCSCOPE_REQUIRE_NVRTC` is set.
#![cfg(feature = "cuda")]

use syncscope::device::kernels::compile_all;
use syncscope::error::DeviceError;

/// Turing, Ampere, Hopper, Blackwell.
const ARCHITECTURES: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_100"];

#[test]
fn every_kernel_file_compiles_for_every_architecture_that_nvrtc_knows() -> Result<(), DeviceError> {
    for architecture in ARCHITECTURES {
        match compile_all(architecture) {
            Ok(files) => {
                for file in files {
                    assert_eq!(file.cubin.get(..4), Some(b"\x7fELF".as_slice()), "{} is no image", file.file);
                    println!("{}: {} for {architecture}, {} bytes", file.compiler, file.file, file.cubin.len());
                }
            }
            Err(missing @ DeviceError::EngineUnavailable { .. }) => {
                if std::env::var_os("SYNCSCOPE_REQUIRE_NVRTC").is_some() {
                    return Err(missing);
                }
                println!("skipped: {missing}");
                return Ok(());
            }
            // An older NVRTC is no fault of the kernels.
            Err(DeviceError::KernelBuild { log, .. }) if log.contains("invalid value for --gpu-architecture") => {
                println!("skipped: {architecture} is unknown to this NVRTC");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[test]
fn an_unknown_architecture_is_an_error_that_names_the_file_and_shows_the_log() {
    match compile_all("sm_1") {
        Err(DeviceError::KernelBuild { file, architecture, log }) => {
            assert!(file.ends_with(".cu"), "{file}");
            assert_eq!(architecture, "sm_1");
            assert!(log.contains("gpu-architecture"), "{log}");
        }
        Err(missing @ DeviceError::EngineUnavailable { .. }) => println!("skipped: {missing}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_kernels_that_find_nonzeros_compute_on_an_emulator_what_a_loop_computes() {
    emulate("nonzero");
}

#[test]
fn the_kernels_that_take_rows_move_on_an_emulator_what_a_loop_moves() {
    emulate("gather");
}

/// Where no C++ compiler is installed the test says so and passes.
fn emulate(name: &str) {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("a temporary folder: {error}"));
    let program = folder.path().join(name);
    let compiled = std::process::Command::new("c++")
        .args(["-std=c++20", "-O1", "-w"])
        .arg("-I".to_owned() + &root.join("kernels").to_string_lossy())
        .arg(root.join("tests/emulator").join(name).with_extension("cpp"))
        .arg("-o")
        .arg(&program)
        .output();
    let compiled = match compiled {
        Err(missing) => return println!("skipped: there is no C++ compiler here: {missing}"),
        Ok(compiled) => compiled,
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let run =
        std::process::Command::new(&program).output().unwrap_or_else(|error| panic!("{name} does not run: {error}"));
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}
