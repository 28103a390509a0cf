//! The thread that cells run on, one after the other, with completions and documentation between them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use serde_json::{Value, json};

use super::folder::{self, Installed};
use super::live::Live;
use super::names::{Names, Receiver};
use super::wire::Message;
use super::{Sender, byte_at, character_at, start};
use crate::file::{Failure, Left};
use crate::library;
use crate::session::{Control, Session};

/// What a cell is told whose evaluation fails, and not the cell.
const PANICKED: &str = "the kernel, and not the cell, failed by a panic; its log says where";

/// Makes the session and works through requests.
pub(super) struct Worker {
    pub(super) sender: Sender,
    pub(super) installed: Installed,
    /// The folder that cells are compiled in.
    pub(super) folder: PathBuf,
    /// Where what ends cells is put.
    pub(super) ending: Arc<OnceLock<Arc<Control>>>,
}

/// Cells and what they need.
struct Cells {
    session: Session,
    /// The library as a dependency, in the place that it was installed from.
    installed: String,
    /// The kernel's own.
    library: String,
    /// Where relative paths start.
    folder: PathBuf,
    /// The names of the library, once a completion has asked for them.
    names: Option<Names>,
    /// What the first cell says of the kernel, in sentences.
    notices: Vec<String>,
}

impl Worker {
    /// Works until the kernel ends.
    pub(super) fn work(self, requests: &mpsc::Receiver<Message>) {
        let live = Live::new(self.sender.clone());
        let mut cells = self.begin(&live).map_err(|error| Failure::new("Kernel", format!("{error:#}")));
        let mut count = 0;
        while let Ok(request) = requests.recv() {
            self.sender.state(&request, "busy");
            match request.kind() {
                "execute_request" => {
                    let failed = self.execute(&mut cells, &live, &request, &mut count);
                    if failed && request.content["stop_on_error"] != false {
                        self.abort(requests);
                    }
                }
                kind => {
                    let answer = match &mut cells {
                        Ok(cells) if kind == "complete_request" => caught(|| self.complete(cells, &request.content)),
                        Ok(cells) => caught(|| inspect(cells, &request.content)),
                        Err(_) => None,
                    };
                    let answer = answer.flatten();
                    let none = || {
                        json!({
                            "status": "ok", "matches": [], "cursor_start": request.content["cursor_pos"],
                            "cursor_end": request.content["cursor_pos"], "metadata": {}, "found": false, "data": {},
                        })
                    };
                    self.sender.reply(&request, &answer.unwrap_or_else(none));
                }
            }
            self.sender.state(&request, "idle");
        }
    }

    /// A session that has the library.
    fn begin(&self, live: &Live) -> anyhow::Result<Cells> {
        let versions = self.installed.warm().join("Cargo.lock");
        let begun = start::begin(&self.installed, &self.folder, &versions, Some(live.sink()), &self.ending);
        let (session, library) = begun.with_context(folder::unusable)?;
        let notices = start::changes(&self.installed)?;
        let (installed, folder) = (self.installed.dependency()?, std::env::current_dir()?);
        Ok(Cells { session, installed, library, folder, names: None, notices })
    }

    /// Runs a cell. Whether it failed.
    fn execute(&self, cells: &mut Result<Cells, Failure>, live: &Live, request: &Message, count: &mut u64) -> bool {
        let code = request.content["code"].as_str().unwrap_or_default();
        let silent = request.content["silent"] == true;
        if !silent {
            *count += u64::from(request.content["store_history"] != false);
            let input = json!({"code": code, "execution_count": count});
            self.sender.publish(request, "execute_input", &input);
        }
        live.begin(request);
        let mut left = match cells {
            Ok(cells) => {
                for notice in cells.notices.drain(..) {
                    let text = json!({"name": "stderr", "text": format!("{notice}\n")});
                    self.sender.publish(request, "stream", &text);
                }
                let code = library::resolved(code, &cells.folder, &cells.installed, &cells.library);
                let panicked = || Failure::new("Kernel", PANICKED.to_owned());
                let nothing = || Left { failure: Some(panicked()), ..Left::default() };
                caught(|| cells.session.run(&code)).unwrap_or_else(nothing)
            }
            Err(failure) => Left { failure: Some(failure.clone()), ..Left::default() },
        };
        let held = live.end(left.failure.is_some());
        for (kind, output) in left.displays(*count).into_iter().filter(|_| !silent) {
            self.sender.publish(request, kind, &output);
        }
        let Some(failure) = left.failure.take() else {
            let reply = json!({"status": "ok", "execution_count": count, "user_expressions": {}, "payload": []});
            self.sender.reply(request, &reply);
            return false;
        };
        let mut error = json!({"ename": failure.name, "evalue": failure.value, "traceback": failure.trace(&held)});
        self.sender.publish(request, "error", &error);
        error["status"] = json!("error");
        error["execution_count"] = json!(count);
        self.sender.reply(request, &error);
        true
    }

    fn complete(&self, cells: &mut Cells, request: &Value) -> Option<Value> {
        let code = request["code"].as_str()?;
        let position = byte_at(code, request["cursor_pos"].as_u64()?);
        let found = cells.session.context.completions(code, position).ok()?;
        let sources = || Names::of(&self.folder.join(start::LIBRARY).join("src"), &folder::shown_sources(&self.folder));
        let names = cells.names.get_or_insert_with(sources);
        let kind_of = |name: &str| {
            let mut variables = cells.session.context.variables_and_types();
            variables.find_map(|(variable, kind)| (variable == name).then(|| kind.to_owned()))
        };
        let receiver =
            code.get(..found.start_offset).map_or(Receiver::Unknown, |before| names.receiver(before, kind_of));
        let matches = names.offered(found.completions.iter().map(|completion| completion.code.as_str()), receiver);
        Some(json!({
            "status": "ok", "matches": matches, "metadata": {},
            "cursor_start": character_at(code, found.start_offset), "cursor_end": character_at(code, found.end_offset),
        }))
    }

    /// Answers the cells that wait behind one that failed: they do not run.
    fn abort(&self, requests: &mpsc::Receiver<Message>) {
        while let Ok(request) = requests.try_recv() {
            self.sender.state(&request, "busy");
            self.sender.reply(&request, &json!({"status": "aborted"}));
            self.sender.state(&request, "idle");
        }
    }
}

/// What a call came to, unless it panicked: rust-analyzer may, on code that is not whole.
fn caught<T>(call: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).ok()
}

/// The documentation of the item whose name the cursor is in or behind.
fn inspect(cells: &mut Cells, request: &Value) -> Option<Value> {
    let code = request["code"].as_str()?;
    let end = name_end(code, byte_at(code, request["cursor_pos"].as_u64()?))?;
    let (text, html) = cells.session.context.hover_at(code, end).ok()?;
    let data = json!({"text/plain": text, "text/html": html});
    (text != "No documentation found").then(|| json!({"status": "ok", "found": true, "data": data, "metadata": {}}))
}

/// The end of the name that `position` is in or behind, with the parenthesis of a call, by which a method is found.
fn name_end(code: &str, position: usize) -> Option<usize> {
    let named = |letter: char| letter.is_alphanumeric() || letter == '_';
    // Behind the parenthesis, as an editor asks while the arguments are typed.
    let position = code[..position].strip_suffix('(').map_or(position, str::len);
    let begun = code[..position].chars().next_back().is_some_and(named);
    let more: usize = code[position..].chars().take_while(|letter| named(*letter)).map(char::len_utf8).sum();
    let end = position + more;
    (begun || more > 0).then_some(end + usize::from(code[end..].starts_with('(')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_from_each_place_in_it_and_from_behind_it() {
        let code = "let d = Device::best()?;";
        let end = Some(code.find(')').unwrap());
        assert!((16..=21).all(|position| name_end(code, position) == end), "{:?}", name_end(code, 16));
        assert_eq!(name_end(code, 22), None, "behind the call");
        assert_eq!(name_end("x ", 1), Some(1));
    }
}
