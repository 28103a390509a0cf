//! Where every thread of this process is, for the report of a hang.
//!
//! Each thread is sent a signal. Its handler follows the stack and keeps the addresses; names are looked for afterwards, by
//! the thread that asked, as a handler must not allocate. Where the stack cannot be followed (through a library without
//! tables), the words on it that point into this program are shown instead: the calls are among them.

#[cfg(not(target_os = "linux"))]
pub(super) fn where_all_are() -> String {
    "where the threads are is told on Linux alone".to_owned()
}

#[cfg(target_os = "linux")]
pub(super) use linux::where_all_are;

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{c_int, c_void};
    use std::fmt::Write;
    use std::fs;
    use std::ops::Range;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Mutex, PoisonError};
    use std::time::{Duration, Instant};

    const FRAMES: usize = 64;

    /// The first calls are those of the handler.
    const HANDLER: usize = 3;

    /// How much of a stack is looked through where it cannot be followed.
    const WORDS: usize = 4096;

    /// How long a thread may take to answer; one in an uninterruptible call of the kernel does not.
    const ANSWER: Duration = Duration::from_secs(2);

    static FOUND: [AtomicUsize; FRAMES] = [const { AtomicUsize::new(0) }; FRAMES];
    static STACK: [AtomicUsize; WORDS] = [const { AtomicUsize::new(0) }; WORDS];
    static ANSWERED: AtomicBool = AtomicBool::new(false);
    static ASKING: Mutex<()> = Mutex::new(());

    extern "C" fn answer(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
        let mut places = FOUND.iter();
        // Safety: one handler at a time runs: the next thread is asked when this one has answered.
        unsafe {
            backtrace::trace_unsynchronized(|frame| {
                places.next().map(|place| place.store(frame.ip() as usize, Ordering::Relaxed)).is_some()
            });
        }
        // Safety: the kernel gives a handler with this flag a context; the words lie between the top of the stack and its
        // bottom, as far as a stack of the least size that a thread of this test has.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            let top = (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RSP as usize] as usize & !7;
            let mut bounds: libc::pthread_attr_t = std::mem::zeroed();
            let (mut start, mut size) = (std::ptr::null_mut(), 0);
            if libc::pthread_getattr_np(libc::pthread_self(), &mut bounds) == 0 {
                libc::pthread_attr_getstack(&bounds, &mut start, &mut size);
                libc::pthread_attr_destroy(&mut bounds);
            }
            let end = start as usize + size;
            for (i, place) in STACK.iter().enumerate() {
                let at = top + 8 * i;
                if at + 8 > end {
                    break;
                }
                place.store((at as *const usize).read_volatile(), Ordering::Relaxed);
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = context;
        ANSWERED.store(true, Ordering::Release);
    }

    /// A line for each thread and one for each of its calls, the innermost first.
    pub(in crate::run) fn where_all_are() -> String {
        let _one_at_a_time = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
        let signal = libc::SIGUSR2;
        // Safety: the handler has the type that the flag asks for, and touches only what is static and its own stack.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = answer as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
        // Safety: gives a number.
        let own = unsafe { libc::syscall(libc::SYS_gettid) };
        let (mut said, program) = (String::new(), program());
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        for task in tasks.filter_map(|task| task.file_name().to_str()?.parse::<i64>().ok()).filter(|task| *task != own)
        {
            let about = |file: &str| fs::read_to_string(format!("/proc/self/task/{task}/{file}")).unwrap_or_default();
            let (name, waits_in, call) = (about("comm"), about("wchan"), about("syscall"));
            let call = call.split_whitespace().next().unwrap_or("unknown");
            let _ = write!(said, "\nthread {task} ({}), in system call {call} ({waits_in})", name.trim());
            FOUND.iter().chain(&STACK).for_each(|place| place.store(0, Ordering::Relaxed));
            ANSWERED.store(false, Ordering::Release);
            // Safety: a signal to a thread of this process, which has a handler for it.
            unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), task, signal) };
            let asked = Instant::now();
            while !ANSWERED.load(Ordering::Acquire) && asked.elapsed() < ANSWER {
                std::thread::sleep(Duration::from_millis(1));
            }
            if !ANSWERED.load(Ordering::Acquire) {
                said.push_str("\n    does not answer");
                // A late answer would be taken for that of the next thread.
                break;
            }
            let words = |places: &[AtomicUsize]| -> Vec<usize> {
                places.iter().map(|place| place.load(Ordering::Relaxed)).filter(|word| *word != 0).collect()
            };
            let followed = words(&FOUND);
            name_calls(&mut said, followed.get(HANDLER..).unwrap_or_default());
            if !followed.iter().skip(HANDLER).any(|at| program.iter().any(|part| part.contains(at))) {
                said.push_str("\n    and on its stack, whether called or not:");
                let mut may_be = words(&STACK);
                may_be.retain(|at| program.iter().any(|part| part.contains(at)));
                may_be.dedup();
                name_calls(&mut said, &may_be);
            }
        }
        said
    }

    /// The addresses of this program's own code.
    fn program() -> Vec<Range<usize>> {
        let own = std::env::current_exe().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let code = maps.lines().filter(|line| line.ends_with(&own) && line.contains("r-xp"));
        let range = |line: &str| {
            let (start, end) = line.split_whitespace().next()?.split_once('-')?;
            Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
        };
        code.filter_map(range).collect()
    }

    /// Up to where the thread was started.
    fn name_calls(said: &mut String, addresses: &[usize]) {
        for &address in addresses {
            let (mut named, mut started) = (false, false);
            // A return address is behind its call.
            backtrace::resolve((address - 1) as *mut c_void, |symbol| {
                let name = symbol.name().map_or("unknown".to_owned(), |name| format!("{name:#}"));
                named = true;
                started |= name.ends_with("__rust_begin_short_backtrace");
                let _ = write!(said, "\n    {name}");
                if let (Some(file), Some(line)) = (symbol.filename(), symbol.lineno()) {
                    let _ = write!(said, " ({}:{line})", file.display());
                }
            });
            if !named {
                let _ = write!(said, "\n    {address:#x} {}", library(address));
            }
            if started {
                break;
            }
        }
    }

    /// Of a library without symbols: its name and the place in it.
    fn library(address: usize) -> String {
        // Safety: writes one record, of which the name is a static text.
        unsafe {
            let mut found: libc::Dl_info = std::mem::zeroed();
            if libc::dladdr(address as *const c_void, &mut found) == 0 || found.dli_fname.is_null() {
                return String::new();
            }
            let name = std::ffi::CStr::from_ptr(found.dli_fname).to_string_lossy();
            let near = match found.dli_sname.is_null() {
                true => String::new(),
                false => format!(", behind {}", std::ffi::CStr::from_ptr(found.dli_sname).to_string_lossy()),
            };
            format!("in {name} at {:#x}{near}", address - found.dli_fbase as usize)
        }
    }
}
