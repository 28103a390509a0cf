//! `report lab check`, with a program in the place of the kernel's.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{code, names, of_crate, program, report, stderr};

const CHECK: [&str; 5] = ["lab", "check", "lab.ipynb", "--prefix", "environment"];

/// A folder with a lab and an environment whose kernel is `script`; the lab's cells of code.
fn folder(script: &str) -> (tempfile::TempDir, usize) {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(of_crate("notebooks/00-quick-start.ipynb")).unwrap();
    fs::write(folder.path().join("lab.ipynb"), &text).unwrap();
    let kernel = folder.path().join("environment/share/jupyter/kernels/syncscope");
    fs::create_dir_all(kernel.join("warm")).unwrap();
    fs::create_dir(folder.path().join("tmp")).unwrap();
    let own = kernel.join("notebook-runner");
    fs::write(kernel.join("dependency.toml"), "").unwrap();
    fs::write(&own, format!("#!/bin/sh\n{script}")).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(kernel.join("kernel.json"), serde_json::json!({ "argv": [own] }).to_string()).unwrap();
    let lab: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cells = lab["cells"].as_array().unwrap().iter().filter(|cell| cell["cell_type"] == "code").count();
    (folder, cells)
}

#[test]
fn the_kernel_is_asked_for_each_cell_and_gives_the_points() {
    let (folder, cells) = folder("cat \"$2\" > asked; cat answer");
    let answer = |said: &str| fs::write(folder.path().join("answer"), said).unwrap();
    answer(&serde_json::json!(vec![(); cells]).to_string());
    let output = report(&CHECK, folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let asked: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("asked")).unwrap()).unwrap();
    assert_eq!(asked["cells"].as_array().unwrap().len(), cells);
    answer("[]");
    let output = report(&CHECK, folder.path());
    assert!(stderr(&output).contains(&format!("the kernel ran 0 of {cells} cells")), "{}", stderr(&output));
}

#[test]
fn a_kernel_that_ends_before_it_has_read_what_it_is_asked_for_is_an_error() {
    let (folder, _) = folder("exit 3");
    let output = report(&CHECK, folder.path());
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("the kernel does not run cells"), "{}", stderr(&output));
}

#[test]
fn a_check_that_is_killed_leaves_nothing_behind_and_the_notebook_as_it_was() {
    let (folder, _) = folder("cat \"$2\" > /dev/null; echo $$ > begun.new; mv begun.new begun; exec sleep 600");
    let before = fs::read(folder.path().join("lab.ipynb")).unwrap();
    let begun = folder.path().join("begun");
    let tmp = folder.path().join("tmp");
    let mut check = program(folder.path());
    let mut check = check.args(CHECK).env("TMPDIR", &tmp).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until(&begun);
    check.kill().unwrap();
    check.wait().unwrap();
    // The stand-in has no part in this.
    let stand_in = fs::read_to_string(&begun).unwrap();
    assert!(Command::new("kill").arg(stand_in.trim()).status().unwrap().success());
    assert_eq!(names(&tmp), Vec::<String>::new());
    assert_eq!(names(folder.path()), ["begun", "environment", "lab.ipynb", "tmp"]);
    assert_eq!(fs::read(folder.path().join("lab.ipynb")).unwrap(), before);
}

fn until(file: &Path) {
    let begun = Instant::now();
    while !file.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} is not there", file.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}
