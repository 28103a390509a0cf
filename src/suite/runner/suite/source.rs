//! Files that a suite names, such as the source of a kernel: their text takes the place of the name, so that the results of a run
//! hold all that it was made with. The name has the folder of the suite before it, in which the file's own includes are found.

use std::path::{Component, Path};

use serde_json::{Value, json};

use crate::experiment::Registry;
use crate::files::read_text;
use crate::yaml::{Fault, Way};

/// The most bytes of a file.
const MAX_BYTES: usize = 1 << 20;

/// Puts the files that the experiments of a suite name in their places. They lie in `folder` or below.
pub(super) fn read(suite: &mut Value, folder: Option<&Path>, registry: &Registry) -> Result<(), Fault> {
    for keys in [&["experiments"][..], &["engines", "cuda"], &["engines", "cpu"]] {
        let way = keys.iter().fold(Way::default(), |way, key| way.key(key));
        let list = suite.pointer_mut(&format!("/{}", keys.join("/"))).and_then(Value::as_array_mut);
        for (place, item) in list.into_iter().flatten().enumerate() {
            for (name, parameters) in item.as_object_mut().into_iter().flatten() {
                let files = registry.get(name).map_or(&[][..], |entry| entry.files);
                for file in files {
                    let Some(Value::String(path)) = parameters.get(file) else { continue };
                    let (path, text) = named(path, folder)
                        .map_err(|why| Fault::at(way.item(place).key(name).key(file), format!("{path}: {why}")))?;
                    parameters[file] = json!({ "file": path, "text": text });
                }
            }
        }
    }
    Ok(())
}

/// Where the file lies, and its text.
fn named(path: &str, folder: Option<&Path>) -> Result<(String, String), String> {
    let Some(folder) = folder else { return Err("only a suite that is a file names others".to_owned()) };
    let outside = "the files of a suite lie in its folder or below";
    if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(outside.to_owned());
    }
    let named = folder.join(path).display().to_string();
    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
    let whole = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
    let (inside, file) = (whole(folder)?, whole(&folder.join(path))?);
    if !file.starts_with(inside) {
        return Err(outside.to_owned());
    }
    if !file.is_file() {
        return Err("it is no file".to_owned());
    }
    let text = read_text(&file, MAX_BYTES).map_err(|error| error.to_string())?;
    Ok((named, text))
}
