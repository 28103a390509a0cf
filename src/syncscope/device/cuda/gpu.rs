//! What all opened devices of one GPU share in this process.
//!
//! Loading kernels, page-locking memory, and giving either back can wait for the whole GPU, and with it for a stream that
//! a gate of another opened device holds. So a GPU is opened once in a process and never closed: opening, using and
//! dropping a second [`Device`](crate::device::Device) of it makes none of these calls. The list of GPUs is the one state
//! of this engine that belongs to the process. It is there to save resources, and nothing is decided by it: two copies of
//! this library in one process have a list each.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, TryLockError, Weak};
use std::time::{Duration, Instant};

use super::driver::blas::Blas;
use super::driver::{Allocation, Context, Event, HostPiece, Pool, exit};
use super::kernels::Kernels;
use super::memory::host::HostBlocks;
use super::memory::pending::Pending;
use super::memory::pinned::{Pinned, Purpose, Slot};
use super::stream::gate::Flag;
use super::stream::guard::StreamInner;
use crate::device::engine::{EngineEvent, Footprint, HostMemory, Result};
use crate::device::lock;
use crate::error::DeviceError;

/// The GPUs that have been opened, by their numbers.
static GPUS: Mutex<BTreeMap<usize, Arc<Gpu>>> = Mutex::new(BTreeMap::new());

/// Locked by who opens one, which takes long: the end of the process waits for the list, and not for this.
static OPENING: Mutex<()> = Mutex::new(());

/// How long an allocation that finds no room waits for frees while a gate is closed, and a new stream for one that ends: the
/// thread that is to open it may be the one that waits.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long one that enqueues alone waits for others to have enqueued.
pub(crate) const PAUSE: Duration = Duration::from_millis(1);

/// How long the end of the process waits for the work that is pending, which the driver waits for in any case, and for each lock.
const LEAVING: Duration = Duration::from_secs(1);

/// How long a call that enqueues may take when the process ends.
const STOPPED: Duration = Duration::from_millis(20);

/// How many events without and with timing are there when a gate is made.
const EVENTS: [usize; 2] = [1024, 256];

/// How many streams, also for captures, are there then: with those of a program hardly more than the queues of a device, of which
/// one would hold two streams else.
const STREAMS: usize = 16;

/// For how many graphs the driver has room when a gate is made; at least for half of them.
const GRAPHS: usize = 64;

/// Host memory and the copies of it that may be pending.
type Leaving = (Box<dyn HostMemory>, Vec<Arc<dyn EngineEvent>>);

/// A GPU of this process.
pub(crate) struct Gpu {
    pub(crate) context: Arc<Context>,
    pub(crate) kernels: Kernels,
    pub(crate) pinned: Arc<Pinned>,
    pub(crate) host_blocks: HostBlocks,
    pub(crate) pool: Pool,
    /// Whether streams can wait for a word of memory by themselves.
    pub(crate) waits_for_flags: bool,
    blas: OnceLock<Blas>,
    /// All streams, also those whose last handle is gone while work is pending.
    streams: Mutex<Vec<Arc<StreamInner>>>,
    /// Host memory that was dropped while copies of it were pending.
    leaving: Mutex<Vec<Leaving>>,
    /// How many closed gates a stream has been told to wait for.
    held: AtomicUsize,
    /// The gates that there are, and some that were.
    gates: Mutex<Vec<Weak<Flag>>>,
    /// Read by who makes what could wait for a gate, and locked by a gate that begins to hold.
    making: RwLock<()>,
    enqueueing: Mutex<()>,
}

impl Gpu {
    /// GPU `index`; the driver has been initialized.
    pub(crate) fn open(index: usize) -> Result<Arc<Self>> {
        exit::note_thread();
        let known = || lock(&GPUS).get(&index).cloned();
        if let Some(known) = known() {
            return Ok(known);
        }
        let _opening = lock(&OPENING);
        if let Some(opened_meanwhile) = known() {
            return Ok(opened_meanwhile);
        }
        // The process may end in here, too.
        exit::prepare_by(leave);
        let _inside = exit::enter();
        let context = Arc::new(Context::retain(index)?);
        let pinned = Arc::new(Pinned::new(&context)?);
        let gpu = Arc::new(Self {
            kernels: Kernels::new(&context)?,
            waits_for_flags: pinned.probe_flag(&context)?,
            pinned,
            host_blocks: HostBlocks::default(),
            pool: Pool::new(&context)?,
            blas: OnceLock::new(),
            streams: Mutex::default(),
            leaving: Mutex::default(),
            held: AtomicUsize::new(0),
            gates: Mutex::default(),
            making: RwLock::default(),
            enqueueing: Mutex::default(),
            context,
        });
        lock(&GPUS).insert(index, gpu.clone());
        exit::come_first();
        Ok(gpu)
    }

    /// Its name: `cuda:0`.
    pub(super) fn name(&self) -> &str {
        self.context.name()
    }

    /// The library of matrix multiplications; made by the first that needs it.
    pub(crate) fn blas(&self) -> Result<&Blas> {
        if let Some(blas) = self.blas.get() {
            return Ok(blas);
        }
        let made = Blas::new(&self.context)?;
        Ok(self.blas.get_or_init(|| made))
    }

    /// Makes now what cannot be made without a risk while a gate is closed: to load code, to page-lock memory and to make
    /// events, streams and graphs can wait for the whole GPU.
    pub(crate) fn prepare_to_hold(&self) -> Result<()> {
        // Where there is no compiler, the operations that need one say so.
        let _ = self.kernels.load_all();
        let Some(_making) = self.may_make() else { return Ok(()) };
        self.pinned.reserve()?;
        Event::reserve(&self.context, EVENTS)?;
        self.context.reserve_streams(STREAMS)?;
        self.context.lending()?;
        let cell = self.pinned.take_cell(Purpose::Gate)?;
        let reserved = self.context.reserve_graphs(GRAPHS, cell.span());
        self.pinned.return_cell(cell, Purpose::Gate);
        reserved
    }

    /// The right to make what could wait for a closed gate, until which none begins to hold; nothing while one does.
    pub(crate) fn may_make(&self) -> Option<RwLockReadGuard<'_, ()>> {
        let making = self.making.read().unwrap_or_else(PoisonError::into_inner);
        (!self.is_held()).then_some(making)
    }

    /// An event, while a gate is closed one of those at hand.
    pub(crate) fn event(&self, timing: bool) -> Result<Event> {
        if let Some(event) = Event::at_hand(&self.context, timing) {
            return Ok(event);
        }
        let _making = self.may_make().ok_or_else(|| self.used_up("events"))?;
        Event::new(&self.context, timing)
    }

    /// The right to make a graph ready, while a gate is closed as long as there is room for it.
    pub(crate) fn may_make_graph(&self) -> Result<Option<RwLockReadGuard<'_, ()>>> {
        let (making, has_room) = (self.may_make(), self.context.take_room());
        if making.is_some() || has_room { Ok(making) } else { Err(self.used_up("graphs")) }
    }

    /// A cell, while a gate is closed one of those at hand.
    pub(crate) fn cell(&self, purpose: Purpose) -> Result<HostPiece> {
        if let Some(cell) = self.pinned.cell_at_hand(purpose) {
            return Ok(cell);
        }
        let _making = self.may_make().ok_or_else(|| self.used_up("flags and fault words of gates and streams"))?;
        self.with_room(|| self.pinned.take_cell(purpose))
    }

    /// A slot for `bytes`; nothing where none is at hand while a gate is closed, beside `left` for others.
    pub(crate) fn slot(&self, bytes: usize, left: usize) -> Result<Option<Slot>> {
        if let Some(slot) = self.pinned.slot_at_hand(bytes, if self.is_held() { left } else { 0 })? {
            return Ok(Some(slot));
        }
        self.may_make().map(|_making| self.with_room(|| self.pinned.take_slot(bytes))).transpose()
    }

    /// What `make` makes with more pinned memory. Where there is no room, what is kept unused goes back first. The caller may make.
    pub(crate) fn with_room<T>(&self, make: impl Fn() -> Result<T>) -> Result<T> {
        match make() {
            Err(DeviceError::OutOfMemory { .. }) => {
                self.sweep_host();
                self.release_unused();
                make()
            }
            made => made,
        }
    }

    /// Gives pinned memory that nothing uses back to the system. The caller may make.
    fn release_unused(&self) {
        self.host_blocks.release_all();
        self.pinned.release_unused();
    }

    /// What `take` finds, for a call that then waits for `stream`: it waits for one that another read gives back, too, for a
    /// time. While a gate is closed, which may hold the stream, it waits for that first: reads of other streams find the few
    /// that there are.
    pub(crate) fn for_a_read<T>(&self, stream: &StreamInner, take: impl Fn() -> Result<Option<T>>) -> Result<T> {
        if self.is_held() {
            stream.synchronize()?;
        }
        self.patiently("pinned memory for reads", take)
    }

    /// What `take` finds, which is asked again for a time: others give back what is in use.
    pub(crate) fn patiently<T>(&self, what: &str, take: impl Fn() -> Result<Option<T>>) -> Result<T> {
        let mut begin = None;
        loop {
            if let Some(taken) = take()? {
                return Ok(taken);
            }
            if begin.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return Err(self.used_up(what));
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Everything that may be made behind a gate is in use.
    #[cold]
    pub(crate) fn used_up(&self, what: &str) -> DeviceError {
        DeviceError::call_failed(
            self.name(),
            "reserve",
            format!(
                "the {what} that were made before a gate was closed are in use, and to make more could wait for the gate: \
                 open it, or make them before"
            ),
        )
    }

    /// Keeps account of a gate, which is opened at the latest when the process ends.
    pub(crate) fn remember_gate(&self, flag: &Arc<Flag>) {
        let mut gates = lock(&self.gates);
        gates.retain(|known| known.strong_count() > 0);
        gates.push(Arc::downgrade(flag));
    }

    /// The process ends: opens all gates, and waits until nothing is pending.
    fn leave(&self) {
        let gates = within(LEAVING, &self.gates).map(|gates| gates.clone()).unwrap_or_default();
        gates.iter().filter_map(Weak::upgrade).for_each(|flag| flag.open());
        let streams = within(LEAVING, &self.streams).map(|streams| streams.clone()).unwrap_or_default();
        let begin = Instant::now();
        // A thread that is in a call for longer than this has been stopped there.
        let is_over =
            |stream: &Arc<StreamInner>| stream.is_over_for_others() || (begin.elapsed() > STOPPED && stream.is_over());
        while !streams.iter().all(is_over) && begin.elapsed() < LEAVING {
            std::thread::sleep(PAUSE);
        }
    }

    /// A closed gate begins or ceases to hold a stream.
    pub(crate) fn hold(&self) {
        let _nobody_makes = self.making.write().unwrap_or_else(PoisonError::into_inner);
        self.context.unless_waited_for(|| self.held.fetch_add(1, Ordering::SeqCst));
    }

    /// As [`hold`](Self::hold).
    pub(crate) fn let_go(&self) {
        self.held.fetch_sub(1, Ordering::SeqCst);
    }

    /// The right to enqueue while nobody else does, who asks for it, too; nothing where another has it for a millisecond, as
    /// it may be stuck behind a gate. Asked for while a gate is closed: the driver gives a stream that begins, and each
    /// direction of its copies, a queue of the GPU, and two that begin at one moment can get the same. What holds one of them
    /// then holds the other.
    pub(super) fn lock_enqueue(&self) -> Option<MutexGuard<'_, ()>> {
        within(PAUSE, &self.enqueueing)
    }

    /// Keeps all streams, but for one that may be named, from enqueueing, as far as that comes about within a millisecond.
    pub(crate) fn pause_all<R>(&self, but: Option<&StreamInner>, meanwhile: impl FnOnce() -> R) -> R {
        let is_other = |stream: &Arc<StreamInner>| !but.is_some_and(|but| std::ptr::eq(&raw const **stream, but));
        let streams: Vec<_> = self.all_streams().filter(is_other).collect();
        let paused: Vec<_> = streams.iter().map(|stream| stream.pause(PAUSE)).collect();
        let result = meanwhile();
        drop(paused);
        result
    }

    /// Whether a closed gate may hold a stream: then nothing may be asked of the driver that waits for the whole GPU.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::SeqCst) > 0
    }

    /// All streams, but those that another library captures, of which it is not known: their turn comes later. To be used without the
    /// lock: the last handle of one may be dropped with it. There is a handle of one at a time: who looks at all of them, and there
    /// may always be one who does, must not keep all from being [swept](Self::sweep).
    fn all_streams(&self) -> impl Iterator<Item = Arc<StreamInner>> + use<> {
        let listed = self.listed_streams().into_iter().filter_map(|stream| stream.upgrade());
        listed.filter(|stream| !stream.is_captured())
    }

    /// As [`all_streams`](Self::all_streams), to look at more than once.
    pub(super) fn listed_streams(&self) -> Vec<Weak<StreamInner>> {
        lock(&self.streams).iter().map(Arc::downgrade).collect()
    }

    pub(crate) fn remember(&self, stream: &Arc<StreamInner>) {
        lock(&self.streams).push(stream.clone());
    }

    /// Ends streams that nobody has a handle of and whose work is over. Waits for no gate.
    pub(crate) fn sweep(&self) {
        // Asked without the lock: the end of the process waits for it. A handle beside the list's and this one is somebody's, and
        // where there is none nobody can make another.
        let over = self.all_streams().filter(|stream| Arc::strong_count(stream) == 2 && stream.is_over());
        // Before it leaves the list: a wait for the device looks there, and then asks what was left.
        let over: Vec<_> =
            over.inspect(|stream| stream.leave_failure()).map(|stream| Arc::downgrade(&stream)).collect();
        let is_over = |stream: &mut Arc<StreamInner>| {
            Arc::strong_count(stream) == 1 && over.iter().any(|other| std::ptr::eq(other.as_ptr(), Arc::as_ptr(stream)))
        };
        let ended: Vec<_> =
            if over.is_empty() { Vec::new() } else { lock(&self.streams).extract_if(.., is_over).collect() };
        for stream in ended {
            stream.end();
        }
        if let Some(_making) = self.may_make() {
            self.context.release_owners();
        }
        self.sweep_host();
    }

    /// Whether there are streams that nobody has a handle of, and whose work is not known to be over.
    pub(crate) fn has_ending_streams(&self) -> bool {
        lock(&self.streams).iter().any(|stream| Arc::strong_count(stream) == 1)
    }

    /// Keeps host memory until the copies of it are over.
    pub(crate) fn retire_host(&self, memory: Box<dyn HostMemory>, pending: Vec<Arc<dyn EngineEvent>>) {
        lock(&self.leaving).push((memory, pending));
    }

    /// Drops host memory whose copies are over. Never blocks.
    pub(crate) fn sweep_host(&self) {
        let all = std::mem::take(&mut *lock(&self.leaving));
        // Asked and dropped without the lock.
        let is_pending = |(_, pending): &Leaving| !pending.iter().all(|event| event.is_over());
        let (pending, over): (Vec<_>, Vec<_>) = all.into_iter().partition(is_pending);
        lock(&self.leaving).extend(pending);
        drop(over);
    }

    /// What all opened devices of the GPU hold.
    pub(crate) fn footprint(&self) -> Footprint {
        let pinned_bytes = self.pinned.bytes() + self.host_blocks.bytes();
        Footprint { streams: lock(&self.streams).len(), pinned_bytes }
    }

    /// Has memory that several streams used return to its home where they are past it. Never blocks.
    pub(crate) fn reclaim(&self) {
        self.all_streams().for_each(|stream| stream.reclaim());
    }

    /// Gives what is cached, and not used, back to the system. What can wait for the GPU is left out while it is held, and no
    /// gate begins to hold meanwhile.
    pub(crate) fn trim(&self) -> Result<()> {
        self.collect();
        let Some(_making) = self.may_make() else { return Ok(()) };
        self.release_unused();
        self.pool.trim()
    }

    /// Gives freed device memory back to the pool.
    fn collect(&self) {
        self.reclaim();
        self.sweep();
        let making = self.may_make();
        self.all_streams().for_each(|stream| stream.give_back_free(making.is_none()));
    }

    /// Memory for a stream, whose guard the caller has, where there was no room: what is cached goes back first, and frees that
    /// are pending are waited for. Not for what others enqueue meanwhile, who may never cease.
    #[cold]
    pub(crate) fn make_room(
        &self,
        stream: &StreamInner,
        allocate: impl Fn() -> Result<Allocation>,
    ) -> Result<Allocation> {
        self.collect();
        let (begin, mut pending, mut is_again) = (Instant::now(), Pending::new(self.all_streams()), false);
        loop {
            // Before all else: what completes in between is in the next attempt, and so is what this one has the streams give back.
            let is_past = pending.is_past(self, stream);
            self.collect();
            stream.give_back_own();
            // It can wait for all work: until it is over no gate begins to hold.
            if let Some(_making) = self.may_make() {
                self.pool.trim()?;
            }
            let outcome = allocate();
            let is_late = self.is_held() && begin.elapsed() > PATIENCE;
            if !matches!(outcome, Err(DeviceError::OutOfMemory { .. })) || is_late || (is_past && is_again) {
                return outcome;
            }
            if is_past {
                // What other streams are past has just been freed in the order of its home.
                (pending, is_again) = (Pending::new(self.all_streams()), true);
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// The process ends.
fn leave() {
    let gpus: Vec<_> = within(LEAVING, &GPUS).map(|gpus| gpus.values().cloned().collect()).unwrap_or_default();
    gpus.iter().for_each(|gpu| gpu.leave());
}

/// As [`lock`], where nobody has it.
pub(crate) fn now<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// As [`lock`], if that comes about in a time.
pub(super) fn within<T>(time: Duration, mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    let until = Instant::now() + time;
    loop {
        match now(mutex) {
            None if Instant::now() < until => std::hint::spin_loop(),
            outcome => return outcome,
        }
    }
}
