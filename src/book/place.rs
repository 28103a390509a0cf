//! Where a book is put: `book/` and `site/` in a folder, or `slides/`, and what stands there before.
//!
//! They are made in a working folder beside their place and put there when all are whole. A folder that this program made
//! holds [`MARKER`]; nothing else is ever replaced.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::folder::at;
use crate::error::BookError;
use crate::files::{Lock, Scratch, begins_with, kind_of, replace};

/// The file that says that a folder may be replaced.
const MARKER: &str = ".syncscope";
const MARKED: &str = "report makes this folder anew each time it renders. What is put here is lost then.\n";
/// The folders of a book.
pub const BOOK: &[&str] = &["book", "site"];
/// The folder of slides.
pub const SLIDES: &[&str] = &["slides"];

/// How long another process may take to put its book in the same place.
const WAIT: Duration = Duration::from_secs(20);

/// Finds out whether folders of these names can be put into `out`, before anything is measured for it. Nothing is made.
///
/// # Errors
/// [`BookError::File`] where one of the folders is something that this program did not make; [`BookError::Io`] where `out` can
/// be no folder.
pub fn check_place(out: &Path, names: &[&str]) -> Result<(), BookError> {
    // A link that leads to nothing is there, too.
    if out.ancestors().find(|place| place.symlink_metadata().is_ok()).is_some_and(|place| !place.is_dir()) {
        return Err(at(out)(io::ErrorKind::NotADirectory.into()));
    }
    const REASON: &str =
        "this was not made by report, so it is not replaced; move it away or give another folder by --out";
    names.iter().map(|name| out.join(name)).try_for_each(|place| match may_replace(&place).map_err(at(&place))? {
        true => Ok(()),
        false => Err(BookError::of_path(&place, REASON)),
    })
}

/// Whether there is nothing, an empty folder, or what this program made. A link is somebody's own.
fn may_replace(place: &Path) -> io::Result<bool> {
    let is_empty = || Ok::<_, io::Error>(is_folder(place)? && fs::read_dir(place)?.next().transpose()?.is_none());
    Ok(kind_of(place)?.is_none() || is_made(place)? || is_empty()?)
}

/// Whether this is a folder, no link to one, that this program made: what the marker says is the program's alone.
fn is_made(place: &Path) -> io::Result<bool> {
    let marker = place.join(MARKER);
    let is_marked = is_folder(place)? && kind_of(&marker)?.is_some_and(|marker| marker.is_file());
    Ok(is_marked && fs::metadata(&marker)?.len() == MARKED.len() as u64 && begins_with(MARKED)(&marker)?)
}

fn is_folder(place: &Path) -> io::Result<bool> {
    Ok(kind_of(place)?.is_some_and(|there| there.is_dir()))
}

/// A working folder in `out`, which no other process makes a book in meanwhile.
pub(super) struct OutputPlace<'a> {
    out: &'a Path,
    /// The names of the folders that are put there.
    names: &'static [&'static str],
    work: Scratch,
    /// Dropped behind what is in it.
    _lock: Lock,
}

impl<'a> OutputPlace<'a> {
    /// Clears what dead processes left and begins a working folder.
    pub(crate) fn claim(out: &'a Path, names: &'static [&'static str]) -> Result<Self, BookError> {
        let lock = Lock::of_folder(out, ".render.lock", WAIT).map_err(at(out))?;
        let lock = lock.ok_or_else(|| BookError::Busy { path: out.to_owned() })?;
        check_place(out, names)?;
        Ok(Self { out, names, work: Scratch::within(out).map_err(at(out))?, _lock: lock })
    }

    /// Where a folder of the book is made.
    pub(super) fn working(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// Puts the folders in their places, one after the other: each is the old or the new one, whole.
    pub(super) fn put(self) -> Result<(), BookError> {
        for name in self.names {
            let (new, place) = (self.working(name), self.out.join(name));
            let marker = new.join(MARKER);
            fs::write(&marker, MARKED).map_err(at(&marker))?;
            replace(&new, &place, &self.working(&format!("old-{name}"))).map_err(at(&place))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(out: &Path, text: &str) -> Result<(), BookError> {
        let place = OutputPlace::claim(out, BOOK)?;
        for name in BOOK {
            fs::create_dir(place.working(name)).unwrap();
            fs::write(place.working(name).join("page"), text).unwrap();
        }
        place.put()
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn what_this_program_made_is_replaced_and_nothing_else_is_left() {
        let out = tempfile::tempdir().unwrap();
        put(out.path(), "first").unwrap();
        put(out.path(), "second").unwrap();
        let [book, site] = ["book", "site"].map(|name| out.path().join(name));
        assert_eq!(fs::read_to_string(book.join("page")).unwrap(), "second");
        assert_eq!(fs::read_to_string(site.join("page")).unwrap(), "second");
        assert_eq!(names(out.path()), ["book", "site"]);
    }

    #[test]
    fn a_folder_a_file_and_a_link_of_the_users_are_never_replaced() {
        for make in [
            (|place: &Path| fs::create_dir(place).and_then(|()| fs::write(place.join("mine"), "mine")).unwrap())
                as fn(&Path),
            |place| fs::write(place, "mine").unwrap(),
            #[cfg(unix)]
            |place| std::os::unix::fs::symlink("/", place).unwrap(),
        ] {
            let out = tempfile::tempdir().unwrap();
            make(&out.path().join("site"));
            assert!(matches!(put(out.path(), "new"), Err(BookError::File(_))));
            assert_eq!(names(out.path()), ["site"]);
        }
    }

    #[test]
    fn a_folder_with_another_marker_is_the_users() {
        let out = tempfile::tempdir().unwrap();
        for marker in ["", "my own settings", &format!("{MARKED}and more")] {
            let site = out.path().join("site");
            fs::create_dir_all(&site).unwrap();
            fs::write(site.join(MARKER), marker).unwrap();
            assert!(matches!(put(out.path(), "new"), Err(BookError::File(_))), "{marker}");
        }
    }
}
