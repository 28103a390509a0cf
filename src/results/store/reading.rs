//! Reads many files by several threads, in an order that does not depend on them.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use crate::affinity::processors;

/// The most threads: each holds a file, and a file may be large.
const MAX_READERS: usize = 4;

/// Hands what `read` makes of each file to `visit`, in the order of the files. A reader waits until what it has read is taken,
/// so that there are never more than a file for each of them and the one that is visited.
///
/// # Errors
/// What `visit` says; no further file is visited then.
pub(super) fn each<T: Send, E>(
    files: &[PathBuf],
    read: impl Fn(&PathBuf) -> T + Sync,
    mut visit: impl FnMut(&PathBuf, T) -> Result<(), E>,
) -> Result<(), E> {
    let readers = processors().clamp(1, MAX_READERS);
    thread::scope(|scope| {
        let read = &read;
        let start = |first| {
            let (put, taken) = sync_channel(0);
            let reads = move || {
                // Nobody takes it where `visit` failed.
                files.iter().skip(first).step_by(readers).try_for_each(|file| put.send(read(file)))
            };
            thread::Builder::new().spawn_scoped(scope, reads).ok().map(|_| taken)
        };
        let taken: Vec<Option<Receiver<T>>> = (0..readers).map(start).collect();
        for (file, reader) in files.iter().zip(taken.iter().cycle()) {
            // The files of a reader for which there is no thread are read here.
            let found = reader.as_ref().map_or_else(|| Ok(read(file)), Receiver::recv);
            // A reader that is gone has panicked, which the end of the scope says.
            let Ok(found) = found else { break };
            visit(file, found)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(count: usize) -> Vec<PathBuf> {
        (0..count).map(|number| PathBuf::from(number.to_string())).collect()
    }

    #[test]
    fn each_file_is_visited_once_in_order_however_long_its_reading_takes() {
        for count in [0, 1, 2, 3, 50] {
            let files = files(count);
            let mut visited = Vec::new();
            let read = |file: &PathBuf| {
                // The first files wait until others have been read, wherever there are several readers.
                (0..if file.as_os_str().len() == 1 { 100 } else { 0 }).for_each(|_| thread::yield_now());
                file.clone()
            };
            let all = each(&files, read, |file, read| {
                assert_eq!(*file, read);
                visited.push(read);
                Ok::<_, ()>(())
            });
            assert_eq!((all, visited), (Ok(()), files));
        }
    }

    #[test]
    fn a_visit_that_fails_ends_the_reading() {
        let mut visited = 0;
        let failed = each(
            &files(50),
            |_| (),
            |_, ()| {
                visited += 1;
                if visited < 3 { Ok(()) } else { Err("full") }
            },
        );
        assert_eq!((failed, visited), (Err("full"), 3));
    }
}
