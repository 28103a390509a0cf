//! What engines, rows and readers rest on and no compiler checks, read from the sources.

#![allow(clippy::expect_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use syncscope_results::MetricSpec;
use syncscope_suite::experiment::Registry;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The functions of a kernel file by their names, each with its body; kernels are those declared `__global__`.
fn functions(source: &str) -> Vec<(String, bool, String)> {
    let plain: String =
        source.lines().map(|line| line.split("//").next().unwrap_or(line)).collect::<Vec<_>>().join("\n");
    let (mut found, mut past) = (Vec::new(), 0);
    for (place, _) in plain.match_indices(") {") {
        // What stands within a function is a part of it.
        if place < past {
            continue;
        }
        let head_from = plain[..place].rfind(['}', ';']).map_or(0, |at| at + 1);
        let head = &plain[head_from..place];
        if !head.contains("__device__") && !head.contains("__global__") {
            continue;
        }
        let open = place + 2;
        let mut depth = 0usize;
        let end = plain[open..].char_indices().find_map(|(at, c)| match c {
            '{' => {
                depth += 1;
                None
            }
            '}' => {
                depth -= 1;
                (depth == 0).then_some(open + at)
            }
            _ => None,
        });
        // The parameters begin at the parenthesis that matches; those of `__launch_bounds__` come before the name.
        let name_end = head.match_indices('(').map(|(at, _)| at).rfind(|at| {
            let before = head[..*at].trim_end();
            !before.ends_with("__launch_bounds__") && !before.ends_with("__align__")
        });
        let name = name_end.map(|at| head[..at].trim_end().rsplit([' ', '\n', '*', '\\']).next().unwrap_or(""));
        if let (Some(name), Some(end)) = (name, end) {
            past = end;
            found.push((name.to_owned(), head.contains("__global__"), plain[open + 1..end].to_owned()));
        }
    }
    found
}

/// A launch may start while the kernel before it ends: until `wait_for_previous` it may touch no memory that another kernel
/// writes. Each kernel calls it, itself or by the one function that it consists of, and before it the only statements are
/// declarations of numbers that follow from its arguments and its place.
#[test]
fn every_kernel_waits_for_the_one_before_it_before_it_touches_memory() {
    let mut kernels = 0;
    for file in files(&root().join("kernels"), ".cu") {
        let source = text(&file).replace("\\\n", "\n");
        let functions = functions(&source);
        for (name, _, body) in functions.iter().filter(|(_, kernel, _)| *kernel) {
            kernels += 1;
            let place = || format!("{name} in {}", file.display());
            let body = match body.contains("wait_for_previous();") {
                true => body,
                false => {
                    let callee = body.trim().split(['(', '<']).next().unwrap_or("").trim();
                    let callee = callee.split_once("##").map_or(callee, |(family, _)| family);
                    let found = functions.iter().find(|(other, kernel, _)| other == callee && !kernel);
                    &found.unwrap_or_else(|| panic!("{} calls {callee:?}, which is not found", place())).2
                }
            };
            let (before, _) =
                body.split_once("wait_for_previous();").unwrap_or_else(|| panic!("{} does not wait", place()));
            for touch in ["[", "->", "atomic", "load", "store", "__ldcs", "*out", "*count"] {
                // Shared memory is the block's own.
                let own = before.lines().filter(|line| !line.contains("__shared__"));
                let touched = own.clone().find(|line| line.contains(touch));
                assert!(touched.is_none(), "{} has {touch:?} before it waits: {touched:?}", place());
            }
            // A multiplication is written with spaces on both sides.
            let reached = before.as_bytes().windows(2).any(|pair| pair[0] == b'*' && pair[1].is_ascii_alphabetic());
            assert!(!reached, "{} follows a pointer before it waits: {before}", place());
        }
    }
    assert!(kernels >= 15, "only {kernels} kernels were found");
}

/// The rooms above the driver know no name of CUDA's, so that an engine for another GPU writes the driver room and the
/// kernels anew.
#[test]
fn only_the_rooms_of_the_driver_name_it_and_hold_unsafe_code() {
    let cuda = root().join("src/syncscope/device/cuda");
    let calls = root().join("src/calls/cuda/driver");
    for file in files(&root().join("src"), ".rs") {
        let allowed = [
            cuda.join("driver"),
            cuda.join("profiling/cupti"),
            // What is lent to another library has its types.
            cuda.join("lend.rs"),
            calls.clone(),
            root().join("src/audit/injected"),
            root().join("src/audit/no_wait"),
        ];
        if allowed.iter().any(|allowed| file.starts_with(allowed)) {
            continue;
        }
        let source = text(&file);
        let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            let is_unsafe = line.contains("unsafe ") || line.contains("unsafe{");
            assert!(!is_unsafe, "{}: {line}", file.display());
            assert!(!line.contains("cudarc::"), "{}: {line}", file.display());
        }
    }
}

/// Whoever holds a raw stream could enqueue past the guard: only the guard, and what is made before a user has the stream,
/// name the type.
#[test]
fn only_the_guard_names_the_drivers_stream() {
    let cuda = root().join("src/syncscope/device/cuda");
    // The last two launch on a stream of their own, of which nobody else has a handle.
    let allowed = ["stream/guard", "memory/pinned.rs", "profiling/cupti/mod.rs"].map(|path| cuda.join(path));
    for file in files(&cuda, ".rs") {
        if file.starts_with(cuda.join("driver")) || allowed.iter().any(|allowed| file.starts_with(allowed)) {
            continue;
        }
        let named = of_the_driver(&text(&file));
        assert!(!named.iter().any(|name| name == "Stream" || name == "*"), "{}: {named:?}", file.display());
    }
    let import =
        "use crate::driver::{\n    Allocation, // of a pool\n    nested::{Event, Stream},\n};\nlet x = driver::Pool;";
    assert_eq!(of_the_driver(import), ["Allocation", "nested", "Event", "Stream", "Pool"]);
    assert_eq!(of_the_driver("use super::driver::*;"), ["*"]);
}

fn without_comments(source: &str) -> String {
    source.lines().map(|line| line.split("//").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// What a source names of the driver room, over how many lines it may go.
fn of_the_driver(source: &str) -> Vec<String> {
    let source = without_comments(source);
    let mut names = Vec::new();
    for (_, rest) in source.match_indices("driver::").map(|(at, head)| (at, &source[at + head.len()..])) {
        let mut depth = 0usize;
        let end = rest.find(|c: char| {
            depth = match c {
                '{' => depth + 1,
                '}' => depth.saturating_sub(1),
                _ => depth,
            };
            depth == 0 && !(c.is_alphanumeric() || "_:*}".contains(c))
        });
        let words = rest[..end.unwrap_or(rest.len())].split(|c: char| !c.is_alphanumeric() && c != '_' && c != '*');
        names.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
    }
    names
}

/// A value that keeps a lock keeps it for as long as its owner likes, and for good where the owner forgets it: none that a user
/// can have does. The guard of a stream lives within a call.
#[test]
fn only_the_guard_of_a_stream_keeps_a_lock() {
    let (mut structs, guard) = (0, root().join("src/syncscope/device/cuda/stream/guard"));
    for file in files(&root().join("src"), ".rs").into_iter().filter(|file| !file.starts_with(&guard)) {
        let source = without_comments(&text(&file));
        for (at, _) in source.match_indices("struct ") {
            let rest = &source[at..];
            let open = rest.find(['{', ';']).unwrap_or(0);
            let end = if rest[open..].starts_with('{') { rest.find('}') } else { Some(open) };
            let body = &rest[..end.unwrap_or(rest.len())];
            structs += 1;
            assert!(!body.contains("Guard<"), "{}: {body}", file.display());
        }
    }
    assert!(structs > 100, "only {structs} structures were found");
}

/// A search for an identifier leads to its declaration, so it stands there as a whole.
#[test]
fn the_identifier_of_every_row_stands_whole_where_the_row_is_declared() {
    use std::collections::BTreeSet;
    use syncscope_suite::experiment::Registry;

    let sources: Vec<String> =
        files(&root().join("src/suite/experiment"), ".rs").iter().map(|file| text(file)).collect();
    let registry = Registry::builtin();
    let ids: BTreeSet<String> =
        ["cuda", "cpu"].iter().flat_map(|engine| registry.plan(engine)).map(|row| row.id).collect();
    let hidden: Vec<&String> =
        ids.iter().filter(|id| !sources.iter().any(|source| source.contains(&format!("\"{id}\"")))).collect();
    assert!(!ids.is_empty() && hidden.is_empty(), "{hidden:?}");
}

/// A call that the book compares with those of CUDA and PyTorch is one that there is.
#[test]
fn every_call_of_the_table_of_equivalents_is_public() {
    let page = text(&root().join("book/src/equivalents.md"));
    let sources: Vec<String> = ["device", "tensor", "timeline"]
        .iter()
        .flat_map(|name| files(&root().join("src/syncscope").join(name), ".rs"))
        .map(|file| text(&file))
        .collect();
    let mut calls = 0;
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let own = row.split('|').nth(2).unwrap_or_default();
        for call in own.split('`').skip(1).step_by(2) {
            let (of, name) = call.split_once("::").unwrap_or_else(|| panic!("{call}"));
            let has = |source: &String| {
                let mut blocks = source.split("\nimpl").skip(1);
                blocks.any(|block| {
                    let head = block.split('{').next().unwrap_or_default();
                    let declares = |sign: char| block.contains(&format!("pub fn {name}{sign}"));
                    head.contains(of) && (declares('(') || declares('<'))
                })
            };
            assert!(sources.iter().any(has), "{call}");
            calls += 1;
        }
    }
    assert!(calls > 20, "only {calls} calls were found");
}

/// The labs, and their worked answers, which an archive of the repository leaves out.
fn labs() -> Vec<PathBuf> {
    let folders = ["notebooks", "book/answers"].map(|folder| root().join(folder));
    let labs = folders.iter().filter(|folder| folder.exists()).flat_map(|folder| files(folder, ".ipynb"));
    labs.filter(|file| !file.starts_with(root().join("notebooks/runner"))).collect()
}

/// What a cell shows is stored as HTML and text; a value that could not be shown is stored as its debug text.
#[test]
fn no_stored_output_of_a_notebook_is_a_debug_text() {
    for file in labs() {
        let source = text(&file);
        let is_debug = |line: &&str| {
            let line = line.trim().trim_start_matches('"');
            let name = line.split(" { ").next().unwrap_or("");
            line.contains(" { ") && name.starts_with(char::is_uppercase) && name.chars().all(char::is_alphanumeric)
        };
        let found = source.lines().find(is_debug);
        assert!(found.is_none(), "{}: {found:?}", file.display());
    }
}

/// Paper cuts a line of code that is longer: nbconvert's pages have 73 columns on A4, and 76 on letter.
#[test]
fn a_printed_page_has_the_whole_of_each_line_of_a_labs_code() {
    let (mut lines, mut long) = (0, Vec::new());
    for file in labs() {
        let lab: serde_json::Value = serde_json::from_str(&text(&file)).unwrap();
        for cell in lab["cells"].as_array().unwrap().iter().filter(|cell| cell["cell_type"] == "code") {
            for line in cell["source"].as_array().into_iter().flatten().filter_map(|line| line.as_str()) {
                lines += 1;
                if line.trim_end().chars().count() > 72 {
                    long.push(format!("{}: {}", file.display(), line.trim()));
                }
            }
        }
    }
    assert!(lines > 1000 && long.is_empty(), "{lines} lines; too long: {long:#?}");
}

/// A student has the labs from the book, or from an archive of the repository.
#[test]
fn no_worked_answer_lies_where_a_student_gets_the_labs() {
    let answers = root().join("book/answers");
    let of_book = files(&root().join("book/src"), ".ipynb");
    let all = labs().into_iter().chain(of_book).filter(|lab| text(lab).contains("### BEGIN SOLUTION"));
    let (answered, elsewhere): (Vec<_>, Vec<_>) = all.partition(|lab| lab.starts_with(&answers));
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    assert!(answered.len() >= 6 || !root().join(".git").exists());
    assert!(text(&root().join(".gitattributes")).lines().any(|line| line == "/book/answers export-ignore"));
}

/// What a thread starts inherits its processors, and the thread that measures is kept on one.
#[test]
fn what_a_measurement_may_start_is_started_on_all_processors() {
    let (mut starts, mut bare) = (0, Vec::new());
    for folder in ["src/syncscope", "src/calls", "src/suite/experiment"] {
        for file in files(&root().join(folder), ".rs") {
            let source = text(&file);
            let code = source.split("#[cfg(test)]").next().unwrap_or("");
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                if [".spawn(", ".spawn_scoped(", "affinity::beside(", "|| command.status()"]
                    .iter()
                    .any(|start| line.contains(start))
                {
                    starts += 1;
                    let is_named =
                        line.trim_start().starts_with("let start = ") && source.contains("affinity::elsewhere(start)");
                    if !line.contains("elsewhere(") && !line.contains("affinity::beside(") && !is_named {
                        bare.push(format!("{}: {}", file.display(), line.trim()));
                    }
                }
            }
        }
    }
    assert!(starts >= 8 && bare.is_empty(), "{starts} starts; not `elsewhere`: {bare:#?}");
}

/// A system that starts no more threads is told of in words.
#[test]
fn no_thread_is_started_by_a_call_that_panics_where_there_is_none() {
    for file in files(&root().join("src"), ".rs") {
        let source = text(&file);
        let code = source.split("#[cfg(test)]").next().unwrap_or("");
        let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            let panics = ["thread::spawn(", "scope.spawn("].iter().any(|start| line.contains(start));
            let is_name = line.contains("\"thread::spawn");
            assert!(!panics || is_name, "{}: {}", file.display(), line.trim());
        }
    }
}

/// Who meets a module for the first time reads how it is begun with.
#[test]
fn every_public_module_has_an_example_that_is_compiled() {
    let library = text(&root().join("src/syncscope/lib.rs"));
    let modules = library.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let is_begun = |line: &str| {
        let fence = line.trim_start().strip_prefix("///").or_else(|| line.trim_start().strip_prefix("//!"));
        fence.is_some_and(|fence| ["```", "```no_run"].contains(&fence.trim()))
    };
    let mut seen = 0;
    for module in modules {
        let (folder, file) =
            (root().join("src/syncscope").join(module), root().join(format!("src/syncscope/{module}.rs")));
        let files = if folder.is_dir() { files(&folder, ".rs") } else { vec![file] };
        assert!(files.iter().any(|file| text(file).lines().any(is_begun)), "{module} has no example");
        seen += 1;
    }
    assert!(seen > 5, "only {seen} modules were found");
}

#[test]
fn the_listing_of_pytorchs_calls_has_those_that_are_measured() {
    let names = |path: &str| -> Vec<String> {
        let text = fs::read_to_string(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)).unwrap();
        let (_, calls) = text.split_once("CALLS = {\n").unwrap();
        let (calls, _) = calls.split_once("\n}\n").unwrap();
        calls.lines().map(|line| line.split('"').nth(1).unwrap().to_owned()).collect()
    };
    let measured = names("book/peers/pytorch_system/experiments/pytorch_calls.py");
    assert!(measured.len() > 30);
    assert_eq!(names("book/src/listings/pytorch_calls.py"), measured);
}

/// The programs in `book/peers-rs` have a table of each call that the experiments declare, and no other.
#[test]
fn the_programs_for_other_crates_have_the_calls_that_are_declared() {
    let has = |path: &str| -> BTreeSet<String> {
        let text = text(&root().join("book").join(path));
        let named = text.lines().filter_map(|line| line.strip_prefix("    (\"")?.split('"').next());
        named.map(str::to_owned).collect()
    };
    let catalog = Registry::builtin().catalog("cuda");
    let declared = |id: &str| -> BTreeSet<String> {
        let of = |spec: &MetricSpec, name: &str| spec.parameters.get(name).map(ToString::to_string);
        catalog
            .of(id)
            .filter_map(|spec| {
                Some([of(spec, "call")?, of(spec, "way").unwrap_or_default()].join(" ").trim().to_owned())
            })
            .collect()
    };
    for name in ["cudarc", "candle", "burn"] {
        let calls = has(&format!("src/listings/{name}_calls.rs"));
        assert!(calls.len() >= 40, "{name}: {}", calls.len());
        assert_eq!(calls, declared(&format!("crate-calls.{name}.blocks")), "{name}");
    }
    let libraries = ["dense", "solver", "sparse", "transforms", "nccl"]
        .map(|part| has(&format!("peers-rs/libraries/src/{part}.rs")));
    assert_eq!(libraries.into_iter().flatten().collect::<BTreeSet<_>>(), declared("driver-calls.library.blocks"));
}
