//! Which packages rust-analyzer loads in a kernel.
//!
//! It loads all that Cargo names, and holds the sources and names of each in memory, in every kernel: to tell the type of a
//! variable it needs those whose types a cell can meet. Cargo's answer is shortened on its way to it: what packages are built
//! with is left out, what macros are made of, what the library keeps to itself, and what the standard library is tested with.

use std::collections::{HashMap, HashSet};
use std::io;

use serde_json::Value;

/// The packages of the library, and those whose types stand in its interface. Of what they depend on, only these are loaded.
const LIBRARY: [&str; 5] = ["syncscope", "syncscope-present", "syncscope-audit", "half", "ndarray"];
/// The packages of the standard library that are loaded, where Cargo is asked about that.
const STANDARD: [&str; 4] = ["alloc", "core", "hashbrown", "std"];

/// Shortens the answer of `cargo metadata` on the standard input.
pub(crate) fn shorten() -> anyhow::Result<()> {
    let mut answer: Value = serde_json::from_reader(io::stdin().lock())?;
    shortened(&mut answer);
    Ok(serde_json::to_writer(io::stdout().lock(), &answer)?)
}

fn shortened(answer: &mut Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages = list(&answer["packages"]);
    let names: HashMap<String, String> = packages.iter().map(|one| (text(&one["id"]), text(&one["name"]))).collect();
    let is_macro = |package: &&Value| {
        list(&package["targets"]).iter().any(|target| list(&target["kind"]).iter().any(|kind| kind == "proc-macro"))
    };
    let macros: HashSet<String> = packages.iter().filter(is_macro).map(|package| text(&package["id"])).collect();
    let name = |id: &str| names.get(id).map(String::as_str).unwrap_or_default();
    let is_met = |of: &str, needed: &Value| {
        let needed_name = name(needed["pkg"].as_str().unwrap_or_default());
        let is_plain = list(&needed["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        let is_standard = STANDARD.contains(&name(of)) && !STANDARD.contains(&needed_name);
        is_plain
            && !is_standard
            && !macros.contains(of)
            && (LIBRARY.contains(&needed_name) || !LIBRARY.contains(&name(of)))
    };
    let mut needs: HashMap<String, Vec<String>> = HashMap::new();
    for node in answer["resolve"]["nodes"].as_array_mut().into_iter().flatten() {
        let id = text(&node["id"]);
        let met: Vec<Value> = list(&node["deps"]).into_iter().filter(|needed| is_met(&id, needed)).collect();
        let ids: Vec<String> = met.iter().map(|needed| text(&needed["pkg"])).collect();
        node["dependencies"] = ids.clone().into();
        node["deps"] = met.into();
        needs.insert(id, ids);
    }
    let mut left: Vec<String> = list(&answer["workspace_members"]).iter().map(text).collect();
    let is_standard = left.iter().any(|id| name(id) == "std");
    let mut kept = HashSet::new();
    while let Some(id) = left.pop() {
        if (!is_standard || STANDARD.contains(&name(&id))) && kept.insert(id.clone()) {
            left.extend(needs.remove(&id).unwrap_or_default());
        }
    }
    let is_kept = |one: &Value| one.as_str().or(one["id"].as_str()).is_some_and(|id| kept.contains(id));
    for list in ["/packages", "/resolve/nodes", "/workspace_members", "/workspace_default_members"] {
        if let Some(Value::Array(list)) = answer.pointer_mut(list) {
            list.retain(is_kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What a package needs, and the kind of the need.
    type Need<'a> = (&'a str, Option<&'a str>);

    /// An answer about packages.
    fn answer(members: &[&str], needs: &[(&str, Vec<Need<'_>>)]) -> Value {
        let package = |name: &str| {
            let kind = if name == "derive" { "proc-macro" } else { "lib" };
            json!({"id": name, "name": name, "targets": [{"kind": [kind]}]})
        };
        let node = |(name, needed): &(&str, Vec<Need<'_>>)| {
            let deps = needed.iter().map(|(pkg, kind)| json!({"pkg": pkg, "dep_kinds": [{"kind": kind}]}));
            json!({"id": name, "deps": deps.collect::<Vec<_>>(), "dependencies": []})
        };
        json!({
            "packages": needs.iter().map(|(name, _)| package(name)).collect::<Vec<_>>(),
            "resolve": {"nodes": needs.iter().map(node).collect::<Vec<_>>()},
            "workspace_members": members,
        })
    }

    fn named(list: &Value, key: &str) -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one[key].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn what_no_cell_can_meet_is_left_out_and_what_a_cell_asked_for_is_not() {
        let mut answer = answer(
            &["ctx"],
            &[
                ("ctx", vec![("syncscope", None), ("own", None)]),
                ("syncscope", vec![("ndarray", None), ("cudarc", None), ("derive", None)]),
                ("own", vec![("derive", None), ("built", Some("build")), ("deep", None)]),
                ("derive", vec![("syn", None)]),
                ("ndarray", vec![("traits", None)]),
                ("deep", vec![]),
                ("cudarc", vec![]),
                ("built", vec![]),
                ("syn", vec![]),
                ("traits", vec![]),
            ],
        );
        shortened(&mut answer);
        let kept = ["ctx", "syncscope", "own", "derive", "ndarray", "deep"];
        assert_eq!(named(&answer["packages"], "name"), kept);
        assert_eq!(named(&answer["resolve"]["nodes"], "id"), kept);
        assert_eq!(answer["resolve"]["nodes"][1]["dependencies"], json!(["ndarray"]));
    }

    #[test]
    fn the_standard_library_is_loaded_without_its_tests() {
        let needs =
            [("std", vec![("core", None), ("libc", None)]), ("core", vec![]), ("coretests", vec![]), ("libc", vec![])];
        let mut answer = answer(&["std", "core", "coretests"], &needs);
        shortened(&mut answer);
        assert_eq!(named(&answer["packages"], "name"), ["std", "core"]);
        assert_eq!(answer["resolve"]["nodes"][0]["dependencies"], json!(["core"]));
        assert_eq!(answer["workspace_members"], json!(["std", "core"]));
    }
}
