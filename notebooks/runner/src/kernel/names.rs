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
use syn::{Field, ImplItemFn, ItemEnum, ItemFn, ItemImpl, ItemStruct, Visibility};

/// What the sources of the library say of names.
#[derive(Default)]
pub(super) struct Names {
    public: HashSet<String>,
    private: HashSet<String>,
    /// The library's public types.
    types: HashSet<String>,
    /// The functions of the standard library.
    standard: HashSet<String>,
    /// How often a name is called.
    calls: HashMap<String, usize>,
}

/// What a completion is offered for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Receiver {
    /// A variable of a type of the library.
    Library,
    /// A variable of another type.
    Other,
    /// Any other expression, or a path.
    Unknown,
}

impl Names {
    /// The names in all sources below the library's folder, and below that of the standard library. What cannot be read has none.
    pub(super) fn of(library: &Path, standard: &Path) -> Self {
        let mut names = Self::default();
        each_source(library, &mut |text| {
            names.count(text);
            if let Ok(file) = syn::parse_file(text) {
                names.visit_file(&file);
            }
        });
        for part in ["alloc/src", "core/src", "std/src"] {
            each_source(&standard.join(part), &mut |text| {
                names.standard.extend(text.split("fn ").skip(1).map(|behind| name(behind).to_owned()));
            });
        }
        names
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

    fn note_type(&mut self, name: &impl ToString, visibility: &Visibility) {
        if matches!(visibility, Visibility::Public(_)) {
            self.types.insert(name.to_string());
        }
    }

    /// What stands `before` the name, where `kind_of` tells the types of variables.
    pub(super) fn receiver(&self, before: &str, kind_of: impl FnOnce(&str) -> Option<String>) -> Receiver {
        let Some(before) = before.strip_suffix('.') else { return Receiver::Unknown };
        let begin = before.rfind(|letter: char| !is_of_name(letter) && letter != '.').map_or(0, |at| at + 1);
        let Some(kind) = kind_of(&before[begin..]) else { return Receiver::Unknown };
        // The type itself, and not those that it is made of.
        let kind = kind.trim_start_matches('&').split('<').next().unwrap_or_default();
        let kind = kind.rsplit(|letter: char| !is_of_name(letter)).next().unwrap_or_default();
        if self.types.contains(kind) { Receiver::Library } else { Receiver::Other }
    }

    /// What of the offered codes is a public name, each once: those of the library first, and the most called first. Whose a
    /// name is, is not said. A name that the library keeps to itself is its own unless the receiver is another's, or the
    /// standard library has it, too.
    pub(super) fn offered<'a>(&self, codes: impl Iterator<Item = &'a str>, receiver: Receiver) -> Vec<&'a str> {
        let is_own = |name: &str| match receiver {
            Receiver::Library => true,
            Receiver::Other => false,
            Receiver::Unknown => !self.standard.contains(name),
        };
        let is_kept = |name: &str| self.private.contains(name) && !self.public.contains(name) && is_own(name);
        let mut seen = HashSet::new();
        let mut names: Vec<&str> =
            codes.map(name).filter(|name| !name.is_empty() && !is_kept(name) && seen.insert(*name)).collect();
        let is_later = |name: &str| receiver != Receiver::Other && !self.public.contains(name);
        names.sort_by_key(|name| (is_later(name), Reverse(self.calls.get(*name)), *name));
        names
    }
}

/// The types, and the functions and fields that have a visibility of their own. Those of a trait have the trait's.
impl<'ast> Visit<'ast> for Names {
    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.note_type(&item.ident, &item.vis);
        syn::visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.note_type(&item.ident, &item.vis);
        syn::visit::visit_item_enum(self, item);
    }

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

/// Reads the sources in Rust below a folder.
fn each_source(place: &Path, read: &mut impl FnMut(&str)) {
    if place.is_dir() {
        fs::read_dir(place).into_iter().flatten().flatten().for_each(|entry| each_source(&entry.path(), read));
    } else if place.extension().is_some_and(|ending| ending == "rs")
        && let Ok(text) = fs::read_to_string(place)
    {
        read(&text);
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
        let standard = folder.path().join("standard");
        fs::create_dir_all(standard.join("core/src")).unwrap();
        fs::write(standard.join("core/src/lib.rs"), "impl X { pub const unsafe fn own(&self) {} }").unwrap();
        let names = Names::of(&folder.path().join("stream.rs"), &standard);
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
        let offered = |receiver| names.offered(codes.into_iter(), receiver);
        assert_eq!(offered(Receiver::Library), ["matmul", "wait", "kind", "assert!", "clone"]);
        assert_eq!(offered(Receiver::Unknown), ["matmul", "wait", "kind", "own", "assert!", "clone"]);
        let of_another = ["matmul", "own", "wait", "assert!", "clone", "inner", "kind", "raw"];
        assert_eq!(offered(Receiver::Other), of_another);
    }

    #[test]
    fn the_receiver_of_a_completion_is_the_variable_before_it() {
        let kind_of = |name: &str| match name {
            "stream" => Some("&mut syncscope::Stream<f32>".to_owned()),
            "list" => Some("Vec<Stream>".to_owned()),
            _ => None,
        };
        let names = Names { types: ["Stream".to_owned()].into(), ..Names::default() };
        let of = |before| names.receiver(before, kind_of);
        assert_eq!(
            [of("let x = stream."), of("list."), of("f(&list.")],
            [Receiver::Library, Receiver::Other, Receiver::Other]
        );
        for unknown in ["list.iter().", "stream", "Instant::", "other.", "self.list.", "."] {
            assert_eq!(of(unknown), Receiver::Unknown, "{unknown}");
        }
    }

    #[test]
    fn what_is_no_name_stays_as_it_is() {
        assert_eq!(["Vec::new()", ":dep", "for x in y {}"].map(name), ["Vec", ":dep", "for"]);
    }
}
