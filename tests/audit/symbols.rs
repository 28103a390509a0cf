//! The lines of programs without an interpreter, which the feature `symbols` reads.

use syncscope_audit::Reason;

use super::{Audited, SOURCES, adds_up, compile, native, of_frame};

#[test]
fn a_native_program_has_its_lines_as_places_and_inlined_functions_in_its_stacks() {
    let folder = tempfile::tempdir().unwrap();
    let audited = Audited::of(&[&native(folder.path(), "native.c", &[])], &["--stacks", "all"], &[]);
    let found = &audited.report.places[0];
    let source = std::fs::read_to_string(format!("{SOURCES}/native.c")).unwrap();
    let line = source.lines().position(|line| line.contains("cuStreamSynchronize((void")).unwrap() + 1;
    let place = format!("{SOURCES}/native.c:{line}");
    assert_eq!((&*found.place, &*found.call, found.reason), (&*place, "cuStreamSynchronize", Reason::Wait));
    // `read_result` is inlined into `main`.
    let own = found.stack.iter().filter(|frame| frame.file.ends_with("native.c"));
    assert_eq!(own.map(|frame| &*frame.function).collect::<Vec<_>>(), ["read_result", "main"]);
    assert_eq!(found.total_ns, 3_000_000);
    adds_up(&audited.report);
}

#[test]
fn a_native_stack_skips_the_driver_and_reaches_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libdeep.so");
    compile("deep.c", &["-shared", "-fPIC", "-g0", "-O0"], &library);
    let place = format!("-L{}", folder.path().display());
    let program = native(folder.path(), "native.c", &["-DDEEP", &place, "-ldeep", "-Wl,-rpath,$ORIGIN"]);
    let audited = Audited::of(&[&program], &["--stacks", "all"], &[]);
    let found = &audited.report.places[0];
    assert!(found.place.starts_with(&format!("{SOURCES}/native.c:")), "{found:?}");
    assert_eq!(of_frame(found.stack.last().unwrap()), found.place);
    assert!(found.stack[0].file.ends_with("libdeep.so"), "{found:?}");
}

#[test]
fn a_program_that_is_started_from_another_folder_has_its_lines() {
    let folder = tempfile::tempdir().unwrap();
    let program = native(folder.path(), "native.c", &[]);
    let name = std::path::Path::new(&program).file_name().unwrap().to_str().unwrap();
    let script = format!("cd '{}' && exec ./{name}", folder.path().display());
    let audited = Audited::of(&["sh", "-c", &script], &["--stacks", "all"], &[]);
    let found = &audited.report.places[0];
    assert!(found.place.starts_with(&format!("{SOURCES}/native.c:")), "{found:?}");
}

/// 4 MiB behind an address of a program without line tables there are lines of another function.
#[test]
fn a_line_is_taken_from_where_a_module_was_linked_to_begin() {
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("native.o");
    compile("native.c", &["-g0", "-c"], &object);
    let program = native(folder.path(), "far.c", &[object.to_str().unwrap(), "-pie"]);
    let audited = Audited::of(&[&program], &["--stacks", "all"], &[]);
    let found = &audited.report.places[0];
    assert!(found.place.contains("native") && !found.stack.iter().any(|frame| frame.line > 0), "{found:?}");

    for begin in ["-Wl,-Ttext-segment=0x400000", "-Wl,-Ttext-segment=0x10000000"] {
        let program = native(folder.path(), "native.c", &["-no-pie", begin]);
        let audited = Audited::of(&[&program], &["--stacks", "all"], &[]);
        let found = &audited.report.places[0];
        assert!(found.place.starts_with(&format!("{SOURCES}/native.c:")), "{begin}: {found:?}");
    }
}
