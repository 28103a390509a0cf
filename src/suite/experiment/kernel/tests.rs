use std::fs;

use serde_json::{Value, json};

use super::*;
use crate::experiment::{AnyExperiment, Registry};
use crate::runner::Suite;

fn stated(change: impl FnOnce(&mut Value)) -> Result<Kernel, String> {
    let mut kernel = json!({
        "source": { "file": "saxpy.cu", "text": "" },
        "kernel": "saxpy",
        "axes": { "elements": [1000, 4096], "step": [1, 2, 3] },
        "grid": "elements / step / 256",
        "block": 256,
        "arguments": [{ "tensor": "elements", "fill": "index" }, { "scalar": "step", "type": "u32" }],
        "bytes": "8 * elements",
    });
    change(&mut kernel);
    serde_json::from_value(kernel).map_err(|error| error.to_string())
}

#[test]
fn each_combination_of_the_axes_has_its_rows_and_its_launch() {
    let kernel = stated(|_| ()).unwrap();
    assert_eq!(kernel.cases.len(), 6);
    let case = kernel.cases.iter().find(|case| case.parameters["elements"] == 1000_usize.into()).unwrap();
    assert_eq!((case.launch, &case.amounts[..]), ([[4, 1, 1], [256, 1, 1]], &[1000, 1][..]));
    assert_eq!(case.parameters["bytes"].number(), Some(8000.0));
    let rows = (&kernel as &dyn AnyExperiment).plan("cuda");
    assert_eq!(rows.iter().filter(|row| row.id == "kernel.rate").count(), 6);
    assert!(!rows.iter().any(|row| row.id == "kernel.flops"));
}

#[test]
fn a_formula_has_parentheses_and_is_rounded_up_at_its_end_alone() {
    let kernel = stated(|kernel| {
        kernel["axes"] = json!({ "rows": [1000] });
        kernel["grid"] = json!(["(rows + 24 - 1) / 256", "rows / 1000 * 3 * 0.1 * 10", "max(rows / 512, 1)"]);
        kernel["bytes"] = json!("8 * (rows - 1) / 16");
        kernel["arguments"] = json!([]);
    });
    let case = &kernel.unwrap().cases[0];
    assert_eq!(case.launch[0], [4, 3, 2]);
    assert_eq!(case.parameters["bytes"].number(), Some(499.5));
}

#[test]
fn without_a_source_there_are_no_rows() {
    assert!((&Kernel::default() as &dyn AnyExperiment).plan("cuda").is_empty());
}

#[test]
fn what_cannot_be_launched_is_refused_in_words() {
    let refused = |key: &str, value: Value| stated(|kernel| kernel[key] = value).unwrap_err();
    for (key, value, says) in [
        ("grid", json!("elemnts / 256"), "grid: `elemnts` in `elemnts / 256` is no axis; did you mean `elements`?"),
        (
            "grid",
            json!("elements /"),
            "grid: `elements /` is no formula of names and numbers: a value is missing behind `/`",
        ),
        ("block", json!(-1), "block: -1 comes to -1: it has to be from 1 to 2147483647"),
        ("grid", json!(0), "grid: 0 comes to 0: it has to be from 1 to 2147483647"),
        ("grid", json!(["step", "0 * elements"]), "grid: `0 * elements` comes to 0: it has to be from 1 to"),
        ("grid", json!("max(0 / 0, 256)"), "grid: `max(0 / 0, 256)` has no finite value"),
        ("grid", json!("min(256, 0 / 0)"), "grid: `min(256, 0 / 0)` has no finite value"),
        ("block", json!([1, 1, 1, 1]), "block: expected one number, or up to three"),
        ("block", json!({}), "expected one number, or a list of up to three"),
        ("bytes", json!("1 / (step - step)"), "bytes: `1 / (step - step)` has no finite value: it divides by 0"),
        (
            "bytes",
            json!("2 * (elements - 2000)"),
            "bytes: `2 * (elements - 2000)` comes to -2000: it has to be at least 0",
        ),
        ("operations", json!(-1), "operations: -1 comes to -1: it has to be at least 0"),
        ("kernel", json!(""), "`kernel`, the name of the kernel in the source, is missing"),
        ("axes", json!({ "bytes": [1] }), "an axis cannot be called `bytes`"),
        ("axes", json!({ "a b": [1] }), "an axis cannot be called `a b`"),
        ("axes", json!({ "elements": vec![1; 1001], "step": [1] }), "the axes have more than 1000 combinations"),
        ("arguments", json!([{ "scalar": 0.5, "type": "i32" }]), "argument 1: 0.5 is no whole number"),
        (
            "arguments",
            json!([{ "tensor": 4, "type": "i64", "fill": "random" }]),
            "argument 1: a tensor of i64 holds no",
        ),
        ("arguments", json!([3]), "expected a tensor, `{ tensor: elements, type: fp32 }`, or a number"),
        ("check", json!({ "argument": 2, "value": 1 }), "check: argument 2 is no tensor"),
        (
            "check",
            json!({ "argument": 1, "kernel": "saxpy" }),
            "check: `saxpy` cannot check itself: name another kernel",
        ),
        ("check", json!({ "argument": 1 }), "check: expected either `value` or `kernel`"),
        ("check", json!({ "argument": 1, "value": 1, "tolerance": 2 }), "check: a tolerance is between 0 and 1, not 2"),
    ] {
        let said = refused(key, value);
        assert!(said.starts_with(says), "{said}");
    }
}

#[test]
fn a_number_that_its_type_does_not_hold_is_refused_and_every_other_arrives_as_it_is() {
    let argument = |argument: Value| stated(|kernel| kernel["arguments"] = json!([argument]));
    for (value, kind) in [
        (json!(300), "u8"),
        (json!(-1), "u8"),
        (json!(1.5), "i64"),
        (json!("index"), "u8"),
        (json!(1e6), "fp16"),
        (json!("index"), "fp16"),
        (json!(1e39), "fp32"),
        (json!(1e-9), "fp16"),
        (json!((1_u64 << 53) + 1), "i64"),
    ] {
        let said = argument(json!({ "tensor": 100_000, "type": kind, "fill": value })).err();
        assert!(
            said.as_ref().is_some_and(|said| said.starts_with("argument 1: fill: ")),
            "{value} of {kind}: {said:?}"
        );
    }
    for (value, kind) in [
        (json!(1_u64 << 32), "u32"),
        (json!(-1), "u64"),
        (json!(1e6), "fp16"),
        (json!(1e39), "bf16"),
        (json!("2 ** 53 * 2"), "u64"),
        (json!("2 ** 53 + 1"), "i64"),
        (json!("-(2 ** 53) - 1"), "i64"),
        (json!(1e19), "i64"),
    ] {
        let said = argument(json!({ "scalar": value, "type": kind })).err();
        assert!(said.as_ref().is_some_and(|said| said.starts_with("argument 1: ")), "{value} of {kind}: {said:?}");
    }
    for (value, kind, bits) in [
        (json!(u64::MAX), "u64", u64::MAX),
        (json!(i64::MIN), "i64", i64::MIN as u64),
        (json!(-2), "i32", -2_i64 as u64),
        (json!((1_u64 << 53) + 1), "u64", (1 << 53) + 1),
        (json!(0.1), "fp32", 0.1_f32.to_bits().into()),
        (json!(1), "fp16", 0x3c00),
        (json!("2 ** 53 - 1"), "i64", (1 << 53) - 1),
        (json!("elements / 8"), "fp64", 125.0_f64.to_bits()),
    ] {
        assert_eq!(argument(json!({ "scalar": value, "type": kind })).unwrap().cases[0].amounts, [bits], "{value}");
    }
}

#[test]
fn a_check_expects_the_value_as_its_type_rounds_it() {
    let expected = |value: Value, kind: &str| {
        let kernel = stated(|kernel| {
            kernel["arguments"] = json!([{ "tensor": 4, "type": kind }]);
            kernel["check"] = json!({ "argument": 1, "value": value });
        });
        kernel.map(|kernel| kernel.cases[0].expected.unwrap())
    };
    assert_eq!(expected(json!(0.1), "fp32"), Ok(Found::Float(0.1_f32.into())));
    assert_eq!(expected(json!(0.1), "fp16"), Ok(Found::Float(half::f16::from_f64(0.1).into())));
    assert_eq!(expected(json!(i64::MAX), "i64"), Ok(Found::Whole(i64::MAX)));
    assert!(expected(json!("2 ** 53 + 1"), "i64").is_err_and(|said| said.contains("may have been rounded")));
    assert!(expected(json!(1.5), "u8").is_err_and(|said| said.starts_with("check: 1.5 is no whole number")));
}

#[test]
fn the_source_travels_with_its_suite_and_lies_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("suite.yaml");
    fs::write(folder.path().join("k.cu"), "the source").unwrap();
    fs::write(folder.path().parent().unwrap().join("no-suite-names-this.cu"), "").unwrap();
    let read = |source: &str| {
        let kernel = format!("kernel: {{ source: \"{source}\", kernel: k }}");
        fs::write(&path, format!("title: T\nsampling: {{ samples: 3 }}\nexperiments:\n  - {kernel}\n")).unwrap();
        Suite::read(&path, &Registry::builtin()).map_err(|error| error.to_string())
    };
    let suite = read("k.cu").unwrap();
    let file = folder.path().join("k.cu").display().to_string();
    assert_eq!(suite.source["experiments"][0]["kernel"]["source"], json!({ "file": file, "text": "the source" }));
    let again = Suite::of_results(&suite.source, "r.json", &Registry::builtin()).unwrap();
    assert_eq!(again.experiments_on("cuda")[0].plan("cuda").len(), 4);
    for (outside, says) in [
        ("../no-suite-names-this.cu", "the files of a suite lie in its folder or below"),
        ("/etc/hostname", "the files of a suite lie in its folder or below"),
        ("gone.cu", "No such file"),
    ] {
        let said = read(outside).err().unwrap();
        assert!(said.contains(":4:23: ") && said.contains(says), "{said}");
    }
}
