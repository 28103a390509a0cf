//! The names that a completion offers.
//!
//! rust-analyzer offers all that its own editor could insert: private fields and methods, since to it the library is the
//! user's own code, and calls with their arguments. Here a completion is a name. What the library keeps to itself is left out,
//! and what its own code calls often comes first.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use syn::visit::Visit;
use syn::{Field, ImplItemFn, ItemFn, ItemImpl, Visibility};

/// What the sources of the library say of names.
#[derive(Default)]
pub(super) struct Names {
    public: HashSet<String>,
    private: HashSet<String>,
    /// How often a name is called.
    calls: HashMap<String, usize>,
}

impl Names {
    /// The names in all sources below a folder. What cannot be read has none.
    pub(super) fn of(folder: &Path) -> Self {
        let mut names = Self::default();
        names.read(folder);
        names
    }

    fn read(&mut self, place: &Path) {
        if place.is_dir() {
            fs::read_dir(place).into_iter().flatten().flatten().for_each(|entry| self.read(&entry.path()));
        } else if place.extension().is_some_and(|ending| ending == "rs")
            && let Ok(file) = fs::read_to_string(place).map_err(drop).and_then(|text| {
                self.count(&text);
                syn::parse_file(&text).map_err(drop)
            })
        {
            self.visit_file(&file);
        }
    }

    fn count(&mut self, text: &str) {
        for part in text.split('.').skip(1) {
            let end = part.find(|letter: char| !is_of_name(letter)).unwrap_or(part.len());
            if part[end..].starts_with('(') {
                *self.calls.entry(part[..end].to_owned()).or_default() += 1;
            }
        }
    }

    fn note(&mut self, name: &impl ToString, visibility: &Visibility) {
        let names = if matches!(visibility, Visibility::Public(_)) { &mut self.public } else { &mut self.private };
        names.insert(name.to_string());
    }

    /// What of the offered codes is a public name, each once: those of the library first, and the most called first.
    pub(super) fn offered<'a>(&self, codes: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let mut seen = HashSet::new();
        let names = codes.map(name).filter(|name| !self.private.contains(*name) || self.public.contains(*name));
        let mut names: Vec<&str> = names.filter(|name| !name.is_empty() && seen.insert(*name)).collect();
        names.sort_by_key(|name| (!self.public.contains(*name), Reverse(self.calls.get(*name)), *name));
        names
    }
}

/// The functions and fields that have a visibility of their own. Those of a trait have the trait's.
impl<'ast> Visit<'ast> for Names {
    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if item.trait_.is_none() {
            syn::visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.note(&item.sig.ident, &item.vis);
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.note(&item.sig.ident, &item.vis);
    }

    fn visit_field(&mut self, field: &'ast Field) {
        if let Some(name) = &field.ident {
            self.note(name, &field.vis);
        }
    }
}

/// The name that a code to insert begins with, with the sign of a macro.
fn name(code: &str) -> &str {
    let end = code.find(|letter: char| !is_of_name(letter)).unwrap_or(code.len());
    let end = end + usize::from(code[end..].starts_with('!'));
    if end > 0 { &code[..end] } else { code }
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_names_are_offered_bare_and_the_most_called_first() {
        let folder = tempfile::tempdir().unwrap();
        let source = "pub struct Stream { raw: u8, pub kind: u8 }\nimpl Stream {\n    pub fn wait(&self) {}\n    \
                      pub fn matmul(&self) { self.own(); }\n    fn own(&self) {}\n    pub(crate) fn inner(&self) {}\n}\n\
                      impl Clone for Stream {\n    fn clone(&self) -> Self { x.matmul(); x.matmul(); y.wait() }\n}\n";
        fs::write(folder.path().join("stream.rs"), source).unwrap();
        let names = Names::of(folder.path());
        let codes = [
            "raw",
            "kind",
            "own()",
            "inner()",
            "clone()",
            "wait(&event)",
            "matmul(other)",
            "matmul(&y)",
            "assert!($0)",
        ];
        let offered = names.offered(codes.into_iter());
        assert_eq!(offered, ["matmul", "wait", "kind", "assert!", "clone"]);
    }

    #[test]
    fn what_is_no_name_stays_as_it_is() {
        assert_eq!(["Vec::new()", ":dep", "for x in y {}"].map(name), ["Vec", ":dep", "for"]);
    }
}
