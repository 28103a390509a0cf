//! Exports of Nsight Systems: synthetic ones, by the published schema (`tests/fixtures/nsys.rs`), and hostile ones.

#[path = "../fixtures/nsys.rs"]
mod export;

use std::fs;

use serde_json::Value;
use syncscope_audit::{AuditReport, Reason};

use self::export::Export;
use super::traces::as_the_profiler_writes;
use super::{Audited, adds_up, audit, json as read, said, train};

/// A call may wait, and what it waits for is there.
fn kineto() -> Export {
    Export::of(&serde_json::from_str(include_str!("kineto.json")).unwrap())
}

fn report(export: Export) -> AuditReport {
    AuditReport::of_trace(export.bytes(), "t.sqlite").unwrap()
}

fn refusal(bytes: &[u8]) -> String {
    AuditReport::of_trace(bytes, "t.sqlite").unwrap_err().to_string()
}

/// Place, call, reason, count and time of all places. A frame of Nsight Systems has its function and its module, and no line.
fn places(report: &AuditReport, of_nsys: bool) -> Vec<(String, String, Reason, u64, u64)> {
    let mut all: Vec<_> = report
        .places
        .iter()
        .map(|place| {
            let file = place.place.rsplit_once(':').map_or("", |(file, _)| file.rsplit('/').next().unwrap());
            let shown =
                if of_nsys || file.is_empty() { place.place.clone() } else { format!("{} ({file})", place.function) };
            (shown, place.call.clone(), place.reason, place.count, place.total_ns)
        })
        .collect();
    all.sort_by(|a, b| b.4.cmp(&a.4).then_with(|| (&a.0, &a.1).cmp(&(&b.0, &b.1))));
    all
}

/// Both tell of one run, so both have its places, their calls and their times.
#[test]
fn an_export_of_nsys_has_the_places_of_the_profilers_trace_of_the_same_run() {
    let mut traces: Vec<Value> = vec![serde_json::from_str(include_str!("kineto.json")).unwrap()];
    let audited = Audited::of(&["python3", &train()], &["--stacks", "all", "--trace", "trace.json"], &[]);
    traces.push(as_the_profiler_writes(&read(&audited.file("trace.json"))));
    // Lines are not told apart, so what one function does at two of them would be one place.
    for event in traces[1]["traceEvents"].as_array_mut().unwrap() {
        let name = event["name"].as_str().unwrap().to_owned();
        if let Some((place, _)) = name.split_once("): ") {
            event["name"] = format!("{place}): at_{}", place.rsplit_once('(').unwrap().1).into();
        }
    }
    for trace in traces {
        let of_trace = AuditReport::of_trace(trace.to_string(), "t.json").unwrap();
        let of_export = report(Export::of(&trace));
        assert!(of_export.places.iter().any(|place| place.reason == Reason::Wait), "{:?}", of_export.places);
        assert_eq!(places(&of_export, true), places(&of_trace, false));
        assert_eq!(of_export.warnings, of_trace.warnings);
        let devices = |report: &AuditReport| {
            let all = report.processes.iter().flat_map(|process| &process.devices);
            all.map(|device| (device.kernels_ns, device.copies_ns)).collect::<Vec<_>>()
        };
        assert_eq!(devices(&of_export), devices(&of_trace));
        adds_up(&of_export);
    }
}

#[test]
fn the_command_reads_an_export_and_touches_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.sqlite"), kineto().bytes()).unwrap();
    // Of an export that was not written to its end: SQLite would write back what a journal beside a file holds.
    fs::write(folder.path().join("t.sqlite-journal"), "a journal").unwrap();
    let output = audit(&["--from", "t.sqlite"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("step (train.py)"), "{output:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    fs::rename(folder.path().join("t.sqlite"), folder.path().join("t.nsys-rep")).unwrap();
    let output = audit(&["--from", "t.nsys-rep"]).current_dir(folder.path()).output().unwrap();
    assert!(said(&output).contains("nsys export --type sqlite"), "{}", said(&output));
}

/// Tables are written only where they have a row, and versions differ in columns.
#[test]
fn what_an_export_lacks_is_said_and_what_the_audit_needs_is_named() {
    for (statements, expected) in [
        ("DROP TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "which stream or event a synchronization waits for"),
        ("DROP TABLE CUDA_CALLCHAINS", "no stacks"),
        ("ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME DROP COLUMN callchainId", "no stacks"),
        ("DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME", "no calls of CUDA"),
        ("ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN dstKind", "from and to which memory"),
    ] {
        let report = report(kineto().with(statements));
        assert!(
            report.warnings.iter().any(|warning| warning.contains(expected)),
            "{statements}: {:?}",
            report.warnings
        );
        adds_up(&report);
    }
    for statements in [
        "DROP TABLE NVTX_EVENTS; DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN demangledName",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME RENAME TO CUPTI_ACTIVITY_KIND_DRIVER",
    ] {
        assert_eq!(places(&report(kineto().with(statements)), true), places(&report(kineto()), true), "{statements}");
    }
    for (table, column) in [
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "correlationId"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", "streamId"),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", "end"),
        ("StringIds", "value"),
    ] {
        let message = refusal(&kineto().with(&format!("ALTER TABLE {table} DROP COLUMN \"{column}\"")).bytes());
        assert!(message.contains(&format!("`{table}` has no column `{column}`")), "{message}");
    }
    let message = refusal(&kineto().with("DROP TABLE StringIds").bytes());
    assert!(message.contains("no export of nsys") && message.contains("`StringIds`"), "{message}");
}

/// Versions in which no column may be empty write an empty text beside the number of a name.
#[test]
fn a_range_has_its_name_from_the_strings_where_its_own_is_empty() {
    let export = kineto().with(
        "INSERT INTO StringIds SELECT 900, text FROM NVTX_EVENTS LIMIT 1; UPDATE NVTX_EVENTS SET text = '', textId = 900",
    );
    let ranges = |report: AuditReport| -> Vec<_> { report.places.into_iter().map(|place| place.range).collect() };
    let found = ranges(report(export));
    assert_eq!((found[0].as_str(), &found), ("ProfilerStep#1", &ranges(report(kineto()))));
}

/// Of an event, a row says where it was recorded, and another which one a call waits for.
#[test]
fn a_wait_for_an_event_ends_with_the_work_before_the_event() {
    let work = |stream: i64, start: i64, end: i64, correlation: i64| {
        format!(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({start}, {end}, 0, 1, {stream}, {correlation}, 10 << 24, 1, 1);"
        )
    };
    let call = |name: i64, start: i64, end: i64, correlation: i64| {
        format!(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({start}, {end}, 0, (10 << 24) | 3, {correlation}, {name}, 0, 0);"
        )
    };
    let statements = [
        "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaEventRecord_v3020'), (3, 'cudaEventSynchronize_v3020');
         CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (deviceId INTEGER, contextId INTEGER, streamId INTEGER,
            correlationId INTEGER, globalPid INTEGER, eventId INTEGER);
         INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (0, 1, 13, 3, 10 << 24, 0);
         INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (20000, 620000, 0, 1, 4294967295, 4, 10 << 24, 1, 0);"
            .to_owned(),
        work(7, 10_000, 500_000, 1),
        work(13, 10_000, 600_000, 2),
        call(2, 15_000, 16_000, 3),
        call(3, 20_000, 620_000, 4),
    ];
    let found = report(Export::of(&serde_json::json!({ "traceEvents": [] })).with(&statements.concat()));
    let waits: Vec<_> = found.places.iter().map(|place| (place.reason, place.total_ns, &*place.waited_for)).collect();
    assert_eq!(waits, [(Reason::Wait, 580_000, "kernel gemm on stream 13")]);
}

#[test]
fn processes_are_told_apart_by_the_upper_bits_of_their_numbers() {
    let statements = "
        INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME
            SELECT start, end, 0, (11 << 24) | 5, correlationId, nameId, 0, callchainId FROM CUPTI_ACTIVITY_KIND_RUNTIME;
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL
            SELECT start, end, 1, 1, streamId, correlationId, 11 << 24, demangledName, shortName FROM CUPTI_ACTIVITY_KIND_KERNEL;
        UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET globalPid = NULL WHERE copyKind = 1;";
    let found = report(kineto().with(statements));
    assert_eq!(found.processes.iter().map(|process| process.process).collect::<Vec<_>>(), [10, 11]);
    assert!(found.warnings.iter().any(|warning| warning.starts_with("1 pieces of work are of no process")));
    adds_up(&found);
}

/// Numbers that no clock has, values of other types, and names that a page acts on.
#[test]
fn rows_without_a_time_are_left_out_and_counted() {
    let rows = [
        "NULL, 5",
        "'x', 5",
        "1.5, 9",
        "-9223372036854775808, 9223372036854775807",
        "9, 5",
        "0, 0",
        "0, 40000000000000000",
    ];
    let insert = rows.map(|row| format!("INSERT INTO loose VALUES ({row}, 0, 1, 7, 1, 10 << 24, 1, 1);")).concat();
    let statements = format!(
        "CREATE TABLE loose AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL; DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; {insert}
         INSERT INTO loose VALUES (-7000, 5, NULL, -1, 'x', -9223372036854775808, 10 << 24, -1, NULL);
         ALTER TABLE loose RENAME TO CUPTI_ACTIVITY_KIND_KERNEL;
         UPDATE StringIds SET value = '<script>' || x'1b' || '[2J' WHERE value LIKE 'void%';
         UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET globalTid = NULL, correlationId = 9223372036854775807, nameId = -1
            WHERE correlationId = 105;"
    );
    let found = report(kineto().with(&statements));
    assert!(found.warnings[0].starts_with("7 of its rows have no time"), "{:?}", found.warnings);
    assert!(!found.to_html("").contains("<script"));
    adds_up(&found);
}

/// What a schema can make a reader run is not run.
#[test]
fn a_file_whose_schema_runs_code_is_refused() {
    let runtime = "CUPTI_ACTIVITY_KIND_RUNTIME";
    let view = format!(
        "ALTER TABLE {runtime} RENAME TO kept; CREATE VIEW {runtime} AS SELECT *, randomblob(9) AS x FROM kept;"
    );
    // The entry says that it is a table, and its text that it is a view.
    let lie = "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET type = 'table' WHERE type = 'view'";
    let computed = format!(
        "CREATE TABLE t (start, x, globalTid, correlationId, nameId, \"end\" AS (abs(start)));
         DROP TABLE {runtime}; ALTER TABLE t RENAME TO {runtime};"
    );
    for (statements, word) in [
        (view.clone(), "is a view"),
        (computed, "no column `end`"),
        ("CREATE VIRTUAL TABLE any USING fts5(x)".to_owned(), "`any` is a virtual table"),
        (
            format!("DROP TABLE {runtime}; CREATE VIRTUAL TABLE {runtime} USING rtree(id, start, \"end\")"),
            "virtual table",
        ),
    ] {
        let message = refusal(&kineto().with(&statements).bytes());
        assert!(message.contains(word), "{word}: {message}");
    }
    let lying = kineto().with(&view);
    let mut bytes = lying.with(lie).bytes_as_they_are();
    assert!(refusal(&bytes).contains("malformed database schema"), "{}", refusal(&bytes));
    // A trigger and an index on an expression are there, and nothing uses them.
    let idle = format!(
        "CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN DELETE FROM StringIds; END;
         CREATE INDEX i ON {runtime} (abs(start)); CREATE VIEW own AS SELECT load_extension('x');"
    );
    assert_eq!(places(&report(kineto().with(&idle)), true), places(&report(kineto()), true));
    bytes = kineto().bytes();
    bytes[18..20].fill(2);
    assert!(refusal(&bytes).contains("journal_mode=delete"));
}

#[test]
fn a_file_that_is_cut_off_or_is_none_is_refused() {
    let bytes = kineto().bytes();
    for cut in [0, 16, 99, 100, 4_096, bytes.len() / 2, bytes.len() - 4_096] {
        let message = refusal(&bytes[..cut]);
        assert!(message.starts_with("t.sqlite"), "{cut}: {message}");
    }
    assert!(refusal(&[7; 5_000]).contains("SQLite"));
}

/// Pages that stand at many places at once make a small file a long table, and one of two such levels an endless one.
#[test]
fn a_file_whose_pages_repeat_is_refused_at_more_rows_than_it_has_room_for() {
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
        INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET SELECT 9, 9, 0, 1, 7, 1, 10 << 24, 0, 0, NULL FROM n";
    let export = kineto().with(many);
    let number = |query: &str| export.connection.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap() as usize;
    let root = number("SELECT rootpage FROM sqlite_schema WHERE name LIKE '%MEMSET'");
    let last_root = number("SELECT max(rootpage) FROM sqlite_schema");
    let page = number("PRAGMA page_size");
    let mut bytes = export.bytes_as_they_are();
    let start = (root - 1) * page;
    let at = |bytes: &[u8], place: usize| usize::from(u16::from_be_bytes([bytes[place], bytes[place + 1]]));
    assert_eq!(bytes[start], 5, "the root has pages below it");
    let entries: Vec<usize> =
        (0..at(&bytes, start + 3)).map(|entry| start + at(&bytes, start + 12 + 2 * entry)).chain([start + 8]).collect();
    // Each leads to the first, and the others are cut off.
    let first: [u8; 4] = bytes[entries[0]..entries[0] + 4].try_into().unwrap();
    entries.iter().for_each(|entry| bytes[*entry..entry + 4].copy_from_slice(&first));
    let pages = last_root.max(u32::from_be_bytes(first) as usize);
    bytes.truncate(pages * page);
    bytes[28..32].copy_from_slice(&(pages as u32).to_be_bytes());
    let message = refusal(&bytes);
    assert!(message.contains("than a file of its size can have (table `CUPTI_ACTIVITY_KIND_MEMSET`)"), "{message}");
}
