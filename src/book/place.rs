//! Where a book is put: `book/` and `site/` in a folder, or `slides/`, and what stands there before.
//!
//! They are made in a working folder beside their place and put there when all are whole. A folder that this program made
//! holds [`MARKER`]; nothing else is ever replaced.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::folder::at;
use crate::error::BookError;
use crate::files::{LockedFolder, begins_with, kind_of, replace};

/// The file that says that a folder may be replaced.
const MARKER: &str = ".syncscope";
const MARKED: &str = "report makes this folder anew each time it renders. What is put here is lost then.\n";
/// The folders of a book.
pub const BOOK: &[&str] = &["book", "site"];
/// The folder of slides.
pub const SLIDES: &[&str] = &["slides"];
const WORK: &str = ".render-";
const PART: &str = ".syncscope-part";

/// How long another process may take to put its book in the same place.
const WAIT: Duration = Duration::from_secs(20);

/// Finds out whether a book, or slides, can be put into `out`, before anything is measured for it.
///
/// # Errors
/// [`BookError::File`] where one of the folders is something that this program did not make; [`BookError::Io`] where nothing can be
/// put there.
pub fn check_place(out: &Path, folders: &'static [&'static str]) -> Result<(), BookError> {
    OutputPlace::claim(out, folders).map(drop)
}

/// Finds out whether folders of these names can be put into `out`.
fn check_folders(out: &Path, names: &[&str]) -> Result<(), BookError> {
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

/// Leaves the marker in a folder.
fn mark(folder: &Path) -> Result<(), BookError> {
    let marker = folder.join(MARKER);
    fs::write(&marker, MARKED).map_err(at(&marker))
}

/// A working folder in `out`, which no other process makes a book in meanwhile.
pub(super) struct OutputPlace<'a> {
    out: &'a Path,
    /// The names of the folders that are put there.
    names: &'static [&'static str],
    work: TempDir,
    /// Dropped behind what is in it.
    _folder: LockedFolder,
}

impl<'a> OutputPlace<'a> {
    /// Clears what dead processes left and begins a working folder.
    pub(crate) fn claim(out: &'a Path, names: &'static [&'static str]) -> Result<Self, BookError> {
        let folder = LockedFolder::take(out, ".render.lock", WAIT).map_err(at(out))?;
        let folder = folder.ok_or_else(|| BookError::Busy { path: out.to_owned() })?;
        clear(out);
        check_folders(out, names)?;
        let work = tempfile::Builder::new().prefix(WORK).suffix(PART).tempdir_in(out).map_err(at(out))?;
        mark(work.path())?;
        Ok(Self { out, names, work, _folder: folder })
    }

    /// Where a folder of the book is made.
    pub(super) fn working(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// Puts the folders in their places; a failure leaves what was there.
    pub(super) fn put(self) -> Result<(), BookError> {
        for name in self.names {
            mark(&self.working(name))?;
        }
        let mut done: Vec<(PathBuf, PathBuf)> = Vec::new();
        for name in self.names {
            let (new, place) = (self.working(name), self.out.join(name));
            let was_there = place.exists();
            if let Err(cause) = replace(&new, &place, &self.working(&old(name))) {
                for (new, place) in done {
                    // The first error is the one to report.
                    let _ = replace(&new, &place, &new.with_extension("new"));
                }
                return Err(BookError::Io { path: place, cause });
            }
            let kept = if new.exists() { new } else { self.working(&old(name)) };
            if was_there {
                done.push((kept, place));
            }
        }
        Ok(())
    }
}

impl Drop for OutputPlace<'_> {
    fn drop(&mut self) {
        remove(self.work.path());
    }
}

fn old(name: &str) -> String {
    format!("old-{name}")
}

/// Removes the working folders of processes that were killed, and no other of such a name. Where the kill came between two
/// steps, the folder that was in a place goes back to it.
fn clear(out: &Path) {
    let entries = fs::read_dir(out).into_iter().flatten().flatten();
    for left in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(WORK)) {
        // What cannot be looked at or put back stays for the next run.
        let _ = clear_one(&left.path(), out);
    }
}

fn clear_one(left: &Path, out: &Path) -> io::Result<()> {
    if !is_made(left)? {
        remove_begun(left);
        return Ok(());
    }
    for name in BOOK.iter().chain(SLIDES) {
        let (kept, place) = (left.join(old(name)), out.join(name));
        if is_made(&kept)? && kind_of(&place)?.is_none() {
            fs::rename(kept, place)?;
        }
    }
    remove(left);
    Ok(())
}

/// Removes a working folder, the marker last, so that the next run finds what this one cannot remove.
fn remove(work: &Path) {
    for entry in fs::read_dir(work).into_iter().flatten().flatten() {
        if entry.file_name() != MARKER {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    if fs::read_dir(work).is_ok_and(|entries| entries.count() <= 1) {
        let _ = fs::remove_dir_all(work);
    }
}

/// Removes a working folder that a kill left before its marker was whole. One that holds anything else, or whose name a
/// working folder does not have, stays.
fn remove_begun(work: &Path) {
    if !work.as_os_str().as_encoded_bytes().ends_with(PART.as_bytes()) {
        return;
    }
    let marker = work.join(MARKER);
    let alone = is_folder(work).unwrap_or_default() && fs::read_dir(work).is_ok_and(|entries| entries.count() == 1);
    if alone && fs::symlink_metadata(&marker).is_ok_and(|marker| marker.is_file() && marker.len() == 0) {
        let _ = fs::remove_file(&marker);
    }
    let _ = fs::remove_dir(work);
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
    fn of_many_that_look_at_a_new_place_at_once_each_can_have_it() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("new/out");
        std::thread::scope(|scope| {
            (0..4).for_each(|_| _ = scope.spawn(|| (0..100).for_each(|_| check_place(&out, BOOK).unwrap())));
        });
        // Of folders that one made for another nobody knows whose they are: one without anything in it may stay.
        assert!(!out.exists() || names(&out).is_empty());
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
    fn a_folder_with_another_marker_or_named_like_a_working_folder_is_the_users() {
        let out = tempfile::tempdir().unwrap();
        let cache = out.path().join(".render-cache");
        fs::create_dir(&cache).unwrap();
        fs::write(cache.join("mine"), "mine").unwrap();
        #[cfg(unix)]
        {
            let other = tempfile::tempdir().unwrap();
            fs::create_dir_all(other.path().join("old-book")).unwrap();
            std::os::unix::fs::symlink(other.path(), out.path().join(".render-link")).unwrap();
            drop(OutputPlace::claim(out.path(), BOOK).unwrap());
            assert!(other.path().join("old-book").exists() && out.path().join(".render-link").is_symlink());
        }
        let empty = out.path().join(".render-empty");
        fs::create_dir(&empty).unwrap();
        drop(OutputPlace::claim(out.path(), BOOK).unwrap());
        assert!(empty.exists());
        assert_eq!(fs::read_to_string(cache.join("mine")).unwrap(), "mine");
        for marker in ["", "my own settings", &format!("{MARKED}and more")] {
            let site = out.path().join("site");
            fs::create_dir_all(&site).unwrap();
            fs::write(site.join(MARKER), marker).unwrap();
            assert!(matches!(put(out.path(), "new"), Err(BookError::File(_))), "{marker}");
        }
    }

    #[test]
    fn the_next_run_clears_what_a_killed_one_left_and_puts_back_what_it_took() {
        let out = tempfile::tempdir().unwrap();
        put(out.path(), "first").unwrap();
        let left = out.path().join(".render-dead");
        fs::create_dir_all(left.join("site")).unwrap();
        mark(&left).unwrap();
        fs::create_dir(out.path().join(".render-began.syncscope-part")).unwrap();
        fs::rename(out.path().join("site"), left.join("old-site")).unwrap();
        let place = OutputPlace::claim(out.path(), BOOK).unwrap();
        assert_eq!(fs::read_to_string(out.path().join("site/page")).unwrap(), "first");
        drop(place);
        assert_eq!(names(out.path()), ["book", "site"]);
    }
}
