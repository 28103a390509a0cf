//! What the system says of a thread: what it is doing, and for how long it ran and waited.
//!
//! The files of `/proc` are opened and closed each time. One that is not there, as on a system that stands in for Linux, leaves
//! zeros.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::format::doing;
use crate::system;

/// What a thread is doing, and sums since it began: nanoseconds, and page faults.
#[derive(Clone, Copy, Default)]
pub(crate) struct Condition {
    pub(crate) doing: u8,
    pub(crate) ran: u64,
    pub(crate) delayed: u64,
    pub(crate) faults: u64,
    /// In the kernel.
    pub(crate) system: u64,
}

/// The condition of a thread of this process. `interpreter` is where the interpreter's lock lies.
pub(crate) fn condition(thread: u32, interpreter: &Range<usize>) -> Condition {
    let (mut room, mut call) = ([0; 512], [0; 256]);
    let path = |name: &str| format!("/proc/self/task/{thread}/{name}");
    let times = read(&path("schedstat"), &mut room).unwrap_or_default();
    let mut times = times.split_ascii_whitespace().map(|number| number.parse().unwrap_or(0));
    let (ran, delayed) = (times.next().unwrap_or(0), times.next().unwrap_or(0));
    let stat = of_stat(read(&path("stat"), &mut room).unwrap_or_default());
    let call = match stat.state {
        'R' => "",
        _ => read(&path("syscall"), &mut call).unwrap_or_default(),
    };
    let doing = doing_of(call, stat.state, interpreter);
    Condition { doing, ran, delayed, faults: stat.faults, system: stat.system * system::tick() }
}

/// For how long control groups of this process were throttled since this was asked first, in nanoseconds: of the nearest group up
/// the path that has a quota, which may change.
pub(crate) fn throttled() -> u64 {
    struct Throttle {
        group: Option<String>,
        /// When it is looked for again.
        next: Option<Instant>,
        /// What the group said last, and the sum.
        last: Option<u64>,
        sum: u64,
    }
    const AGAIN: Duration = Duration::from_secs(1);
    static THROTTLE: Mutex<Throttle> = Mutex::new(Throttle { group: None, next: None, last: None, sum: 0 });
    let mut throttle = THROTTLE.lock().unwrap_or_else(PoisonError::into_inner);
    if throttle.next.is_none_or(|next| next <= Instant::now()) {
        let group = group();
        if group != throttle.group {
            (throttle.group, throttle.last) = (group, None);
        }
        throttle.next = Some(Instant::now() + AGAIN);
    }
    let mut room = [0; 1024];
    let now = throttle.group.as_ref().and_then(|path| read(path, &mut room)).map(throttled_in);
    throttle.sum += now.zip(throttle.last).map_or(0, |(now, last)| now.saturating_sub(last));
    throttle.last = now;
    throttle.sum
}

/// Reads a file of the system as far as there is room: it is handed over at once.
fn read<'a>(path: &str, room: &'a mut [u8]) -> Option<&'a str> {
    let length = File::open(path).ok()?.read(room).ok()?;
    std::str::from_utf8(&room[..length]).ok()
}

/// What `stat` says of a thread: the letter of its state, its page faults, and its time in the kernel in ticks.
#[derive(Debug, PartialEq)]
struct Stat {
    state: char,
    faults: u64,
    system: u64,
}

fn of_stat(text: &str) -> Stat {
    // The name before it may hold anything.
    let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let field = |number: usize| fields.split_ascii_whitespace().nth(number - 3).unwrap_or("");
    let number = |place: usize| field(place).parse().unwrap_or(0);
    Stat { state: field(3).chars().next().unwrap_or(' '), faults: number(10) + number(12), system: number(15) }
}

/// What a thread is doing, by the call of the system that it is in, else by the letter of its state.
fn doing_of(call: &str, state: char, interpreter: &Range<usize>) -> u8 {
    let waits_in = match call.trim() {
        "running" => return doing::RUNNING,
        call => waits_in(call, interpreter),
    };
    match (waits_in, state) {
        // Uninterruptible: of a disk, or of a page that is read from one.
        (None | Some(doing::SYSTEM), 'D') => doing::INPUT_OUTPUT,
        (Some(doing), _) => doing,
        (None, 'R') => doing::RUNNING,
        (None, _) => doing::UNKNOWN,
    }
}

/// What a thread waits for in a call, which is given by its number and its arguments.
fn waits_in(call: &str, interpreter: &Range<usize>) -> Option<u8> {
    let mut fields = call.split_ascii_whitespace();
    let number: i64 = fields.next()?.parse().ok()?;
    let mut argument = || {
        let text = fields.next()?.strip_prefix("0x")?;
        usize::from_str_radix(text, 16).ok()
    };
    match number {
        // Not in a call: the thread waits for a page, or is stopped.
        ..0 => None,
        _ if calls::SLEEPS.contains(&number) => Some(doing::SLEEPING),
        _ if calls::LOCKS.contains(&number) => match argument() {
            Some(address) if interpreter.contains(&address) => Some(doing::INTERPRETER),
            _ => Some(doing::LOCK),
        },
        // Of no descriptors: Python before 3.11 sleeps so.
        _ if calls::SELECTS.contains(&number) && argument() == Some(0) => Some(doing::SLEEPING),
        _ if calls::POLLS.contains(&number) && argument().and_then(|_| argument()) == Some(0) => Some(doing::SLEEPING),
        _ if calls::INPUT_OUTPUT.contains(&number) => Some(doing::INPUT_OUTPUT),
        _ => Some(doing::SYSTEM),
    }
}

/// Numbers of the system's calls.
#[cfg(target_arch = "x86_64")]
mod calls {
    /// nanosleep, clock_nanosleep.
    pub(crate) const SLEEPS: &[i64] = &[35, 230];
    /// futex, futex_waitv, futex_wait.
    pub(crate) const LOCKS: &[i64] = &[202, 449, 455];
    /// select, pselect6.
    pub(crate) const SELECTS: &[i64] = &[23, 270];
    /// poll, ppoll.
    pub(crate) const POLLS: &[i64] = &[7, 271];
    /// read, write, poll, pread64, pwrite64, readv, writev, select, sendfile, connect, accept, sendto, recvfrom, sendmsg,
    /// recvmsg, fsync, fdatasync, io_getevents, epoll_wait, pselect6, ppoll, splice, epoll_pwait, accept4, preadv, pwritev,
    /// recvmmsg, sendmmsg, copy_file_range, preadv2, pwritev2, io_uring_enter, epoll_pwait2.
    pub(crate) const INPUT_OUTPUT: &[i64] = &[
        0, 1, 7, 17, 18, 19, 20, 23, 40, 42, 43, 44, 45, 46, 47, 74, 75, 208, 232, 270, 271, 275, 281, 288, 295, 296,
        299, 307, 326, 327, 328, 426, 441,
    ];
}

/// Numbers of the system's calls, as all newer architectures have them.
#[cfg(not(target_arch = "x86_64"))]
mod calls {
    /// nanosleep, clock_nanosleep.
    pub(crate) const SLEEPS: &[i64] = &[101, 115];
    /// futex, futex_waitv, futex_wait.
    pub(crate) const LOCKS: &[i64] = &[98, 449, 455];
    /// pselect6.
    pub(crate) const SELECTS: &[i64] = &[72];
    /// ppoll.
    pub(crate) const POLLS: &[i64] = &[73];
    /// io_getevents, epoll_pwait, read, write, readv, writev, pread64, pwrite64, preadv, pwritev, sendfile, pselect6, ppoll,
    /// splice, fsync, fdatasync, accept, connect, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg, sendmmsg,
    /// copy_file_range, preadv2, pwritev2, io_uring_enter, epoll_pwait2.
    pub(crate) const INPUT_OUTPUT: &[i64] = &[
        4, 22, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 76, 82, 83, 202, 203, 206, 207, 211, 212, 242, 243, 269,
        285, 286, 287, 426, 441,
    ];
}

/// The file that says for how long the nearest control group of this process that has a quota was throttled.
fn group() -> Option<String> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let has_quota = |(folder, quota): &(String, &str)| {
        let mut room = [0; 64];
        read(&format!("{folder}/{quota}"), &mut room)
            .is_some_and(|quota| !quota.starts_with("max") && !quota.starts_with('-'))
    };
    groups.lines().flat_map(folders).find(has_quota).map(|(folder, _)| format!("{folder}/cpu.stat"))
}

/// The folders of a line of a process's control groups, the nearest first, and in which of their files a quota stands; none where
/// the group is of something else than processors. In a container a group may lie where it is mounted, whatever it is called
/// outside: that is the last folder.
fn folders(line: &str) -> Vec<(String, &'static str)> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (names, group) = (fields.next().unwrap_or("-"), fields.next().unwrap_or(""));
    let (folder, quota) = match names {
        "" => ("/sys/fs/cgroup".to_owned(), "cpu.max"),
        _ if names.split(',').any(|name| name == "cpu") => (format!("/sys/fs/cgroup/{names}"), "cpu.cfs_quota_us"),
        _ => return Vec::new(),
    };
    let up = |path: &&str| path.rfind('/').map(|at| &group[..at]);
    let paths = std::iter::successors(Some(group.trim_end_matches('/')), up);
    paths.map(|path| (format!("{folder}{path}"), quota)).collect()
}

/// Both versions of control groups, in nanoseconds.
fn throttled_in(text: &str) -> u64 {
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    of("throttled_time").or_else(|| of("throttled_usec").map(|time| time * 1000)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: Range<usize> = 0x1000..0x2000;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_a_thread_does_is_read_from_the_call_that_it_is_in_else_from_its_state() {
        for (call, state, expected) in [
            ("running\n", 'R', doing::RUNNING),
            ("230 0x0 0x1 0x7f 0x0 0x0 0x0 0x7ffc 0x7fbb\n", 'S', doing::SLEEPING),
            ("0 0x3 0x7fbb 0x20000 0x0 0x0 0x0 0x7ffc 0x7fbb\n", 'S', doing::INPUT_OUTPUT),
            ("23 0x0 0x0 0x0 0x0 0x7f 0x0 0x7ffc 0x7fbb\n", 'S', doing::SLEEPING),
            ("23 0x5 0x7f 0x0 0x0 0x7f 0x0 0x7ffc 0x7fbb\n", 'S', doing::INPUT_OUTPUT),
            ("7 0x7f 0x0 0x64 0x0 0x0 0x0 0x7ffc 0x7fbb\n", 'S', doing::SLEEPING),
            ("7 0x7f 0x1 0x64 0x0 0x0 0x0 0x7ffc 0x7fbb\n", 'S', doing::INPUT_OUTPUT),
            ("202 0x1fff 0x0 0x0 0x0 0x0 0x0 0x7ffc 0x7fbb\n", 'S', doing::INTERPRETER),
            ("202 0x2000 0x0 0x0 0x0 0x0 0x0 0x7ffc 0x7fbb\n", 'S', doing::LOCK),
            ("61 0x1 0x0 0x0 0x0 0x0 0x0 0x7ffc 0x7fbb\n", 'S', doing::SYSTEM),
            ("257 0x1 0x0 0x0 0x0 0x0 0x0 0x7ffc 0x7fbb\n", 'D', doing::INPUT_OUTPUT),
            ("-1 0x7ffc 0x7fbb\n", 'D', doing::INPUT_OUTPUT),
            ("-1 0x7ffc 0x7fbb\n", 'T', doing::UNKNOWN),
            ("", 'R', doing::RUNNING),
            ("", 'S', doing::UNKNOWN),
            ("", ' ', doing::UNKNOWN),
        ] {
            assert_eq!(doing_of(call, state, &LOCK), expected, "{call} {state}");
        }
    }

    #[test]
    fn faults_and_times_stand_behind_a_name_with_any_letters() {
        let text = "42 (a) R (b) S 1 42 42 0 -1 4194304 1200 7 34 0 5 6";
        assert_eq!(of_stat(text), Stat { state: 'S', faults: 1234, system: 6 });
        assert_eq!(of_stat(""), Stat { state: ' ', faults: 0, system: 0 });
    }

    #[test]
    fn a_quota_is_looked_for_from_the_group_up_to_where_groups_are_mounted() {
        let of = |line| folders(line).into_iter().map(|(folder, _)| folder).collect::<Vec<_>>();
        assert_eq!(of("0::/a/b"), ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]);
        assert_eq!(of("0::/"), ["/sys/fs/cgroup"]);
        assert_eq!(of("3:cpu,cpuacct:/a"), ["/sys/fs/cgroup/cpu,cpuacct/a", "/sys/fs/cgroup/cpu,cpuacct"]);
        assert_eq!((of("2:cpuset:/a"), of("")), (vec![], vec![]));
    }

    #[test]
    fn both_versions_of_control_groups_say_for_how_long_they_were_throttled() {
        assert_eq!(throttled_in("usage_usec 9\nnr_throttled 1\nthrottled_usec 5\n"), 5_000);
        assert_eq!(throttled_in("nr_periods 0\nthrottled_time 70\n"), 70);
        assert_eq!(throttled_in(""), 0);
    }

    #[test]
    fn the_condition_of_a_thread_is_that_of_the_system() {
        /// The system gives no number as high as this.
        const NO_THREAD: u32 = 1 << 22;
        let memory = std::hint::black_box(vec![1_u8; 4 << 20]);
        let own = condition(crate::system::thread(), &LOCK);
        assert!(own.faults > 0 && memory[0] == 1, "{}", own.faults);
        let none = condition(NO_THREAD, &LOCK);
        assert_eq!((none.doing, none.ran, none.delayed, none.faults, none.system), (doing::UNKNOWN, 0, 0, 0, 0));
        assert!(crate::system::ran(NO_THREAD).is_none());
    }
}
