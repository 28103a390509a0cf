//! `wait-parts`: what a wait consists of: enqueueing, what is left of the work, and the call itself.
//!
//! A thread enqueues work of a known length, and then makes a call that waits for it: one that synchronizes (*synchronize*), or
//! a copy of a few bytes (*item*) or of many (*array*), or one of which a reader may not expect it (*other*): that gives memory
//! back, that fills memory of the host, that loads or unloads code, or that sets a limit. The parameter `wait` says what is waited by in the words of all engines,
//! `call` the engine's own call, `memory` the kind of memory on the host; `work_seconds` is the length of the work.
//!
//! - *enqueue*: from before the work is enqueued until the call begins;
//! - *residual*: from there to the end of the work, as the device's clock says ([`parts`](crate::calls::parts));
//! - *call*: the same call with nothing pending;
//! - *total*: from before the work is enqueued until the call has returned;
//! - *error*: the total less the three parts: what the call takes longer behind work than with nothing pending, or, below 0,
//!   what it does while it waits.
//!
//! The first two and the total are of the same wait. The thread waits by spinning, where there is a choice.

use crate::calls::Family;
use crate::calls::catalogue::{Call, Memory, calls};
use crate::calls::parts::{CallInParts, Parts};
use crate::experiment::prelude::*;

/// The bytes of the copies, and of what is freed.
const SIZES: [usize; 2] = [4, 40_000_000];

parameters! {
    /// What a wait consists of.
    pub struct WaitParts {
        /// The length of the work.
        length: Seconds = Seconds::of(5e-5),
    }
}

impl Experiment for WaitParts {
    const NAME: &'static str = "wait-parts";
    const SUMMARY: &'static str = "What a wait consists of: enqueueing, what is left of the work, and the call itself";

    fn groups(&self, engine: &str) -> Vec<Group> {
        let length = self.length.duration();
        let families = [Family::Wait, Family::Copy, Family::Fill, Family::Memory, Family::Code, Family::Launch];
        let all = families.into_iter().flat_map(|family| calls(engine, family, &SIZES));
        let parts = all.filter_map(|call| kind(&call).map(|(kind, waits_by)| parts(kind, waits_by, &call, length)));
        parts.chain(same(engine)).collect()
    }
}

/// The rows of calls of one kind.
struct Kind {
    heading: &'static str,
    /// The parts of the wait, the whole, and what it exceeds the sum of the parts by.
    rows: [&'static str; 5],
}

const SYNCHRONIZE: Kind = Kind {
    heading: "Synchronizing",
    rows: [
        "wait-parts.synchronize.enqueue",
        "wait-parts.synchronize.residual",
        "wait-parts.synchronize.call",
        "wait-parts.synchronize.total",
        "wait-parts.synchronize.error",
    ],
};

const OTHER: Kind = Kind {
    heading: "Calls that wait by the way",
    rows: [
        "wait-parts.other.enqueue",
        "wait-parts.other.residual",
        "wait-parts.other.call",
        "wait-parts.other.total",
        "wait-parts.other.error",
    ],
};

const ITEM: Kind = Kind {
    heading: "One item",
    rows: [
        "wait-parts.item.enqueue",
        "wait-parts.item.residual",
        "wait-parts.item.call",
        "wait-parts.item.total",
        "wait-parts.item.error",
    ],
};

const ARRAY: Kind = Kind {
    heading: "An array",
    rows: [
        "wait-parts.array.enqueue",
        "wait-parts.array.residual",
        "wait-parts.array.call",
        "wait-parts.array.total",
        "wait-parts.array.error",
    ],
};

/// The kind of a call that waits for the work before it, and what is waited by, in the words of all engines; none of a call that
/// is not taken apart. The one that ends a context waits, too, and takes a thousand times as long as the work. A launch into a
/// full queue waits for launches that stand before it, which the work is not. Of graphs there is none: no call about them waited
/// in the trials of `driver-calls`.
fn kind(call: &Call) -> Option<(&'static Kind, &'static str)> {
    let waits_by = match (call.name, call.way) {
        ("cuCtxSynchronize" | "Device::synchronize", _) => "device",
        ("cuStreamSynchronize", Some(_)) => "legacy stream",
        ("cuStreamSynchronize" | "Stream::synchronize", None) => "stream",
        ("cuEventSynchronize", Some(_)) => "blocking event",
        ("cuEventSynchronize" | "Event::synchronize", None) => "event",
        ("cuMemFree", _) if of(call, Memory::Device, 0) => "free",
        ("Tensor::to_vec", _) => return Some((&ITEM, "read")),
        (name, _) if name.starts_with("cuMemcpy") => return kind_of_copy(call),
        _ => return by_the_way(call).map(|name| (&OTHER, name)),
    };
    Some((&SYNCHRONIZE, waits_by))
}

/// Whether it is about this kind of memory, and the size at this place.
fn of(call: &Call, memory: Memory, size: usize) -> bool {
    call.memory == Some(memory) && call.bytes == Some(SIZES[size])
}

/// Copies from or to the host, by the call that takes no stream or, of pageable memory, which it may wait for, too, by the one
/// that does.
fn kind_of_copy(call: &Call) -> Option<(&'static Kind, &'static str)> {
    let is_small = call.bytes == Some(SIZES[0]);
    let name = match (call.name, call.to) {
        ("cuMemcpyDtoH", _) => "read",
        ("cuMemcpyHtoD", _) => "write",
        ("cuMemcpy", None) => "host to host",
        ("cuMemcpyDtoHAsync", _) if call.memory == Some(Memory::Pageable) => "asynchronous read",
        ("cuMemcpyHtoDAsync", _) if call.memory == Some(Memory::Pageable) && !is_small => "asynchronous write",
        _ => return None,
    };
    Some((if is_small { &ITEM } else { &ARRAY }, name))
}

/// Calls that give memory back, fill it, load or unload code, or set a limit.
fn by_the_way(call: &Call) -> Option<&'static str> {
    match (call.name, call.way) {
        ("cuMemFree", _) if of(call, Memory::Managed, 0) => Some("free managed"),
        ("cuMemFreeHost", _) if of(call, Memory::Pinned, 0) => Some("free pinned"),
        ("cuMemHostUnregister", _) if of(call, Memory::Registered, 0) => Some("unregister"),
        ("cuMemsetD8", _) if of(call, Memory::Pinned, 0) => Some("fill pinned"),
        ("cuMemsetD8", _) if of(call, Memory::Managed, 0) => Some("fill managed"),
        ("cuModuleLoadData", _) => Some("load a module"),
        ("cuModuleUnload", _) => Some("unload a module"),
        ("cuLaunchKernel", Some("first of a library")) => Some("first launch"),
        ("cuKernelGetFunction", _) => Some("function of a kernel"),
        ("cuLibraryUnload", Some(_)) => Some("unload a library"),
        ("cuCtxSetLimit", Some("stack")) => Some("set the stack"),
        _ => None,
    }
}

/// What says which wait a row is about.
fn parameters(call: &Call, waits_by: &str, length: Duration) -> Vec<(&'static str, Parameter)> {
    let mut parameters = vec![("wait", waits_by.into()), ("call", call.name.into())];
    // The CPU engine has no other memory.
    let copies = call.name.starts_with("cuMemcpy") || call.name == "Tensor::to_vec";
    parameters.extend(copies.then(|| ("memory", call.memory.unwrap_or(Memory::Pageable).name().into())));
    parameters.push(("work_seconds", length.as_secs_f64().into()));
    parameters
}

/// One call: one group. The rows but that of the call alone are of the same wait.
fn parts(kind: &'static Kind, waits_by: &str, call: &Call, length: Duration) -> Group {
    let (parameters, call) = (parameters(call, waits_by, length), call.clone());
    let setup = move |device: &Device| {
        let called = Rc::new(CallInParts::new(device, &call)?);
        called.behind(length)?;
        let waiting = Rc::clone(&called);
        Ok((called, EachRound::new(move || waiting.behind(length))))
    };
    let [enqueue, residual, alone, total, error] = kind.rows;
    let waits = |(_, waits): &(Rc<CallInParts>, Rc<EachRound<Parts>>)| Ok(Rc::clone(waits));
    Group::of(kind.heading, parameters)
        .setup(setup)
        .parts(
            0,
            waits,
            [
                (enqueue, "Enqueue the work", Unit::Seconds, Clock::Host, |parts| parts.enqueue),
                (residual, "The rest of the work", Unit::Seconds, Clock::Host, |parts| parts.residual),
            ],
        )
        .seconds_of(Clock::Host, alone, "The call, with nothing pending", move |(called, _)| called.alone())
        .parts(0, waits, [(total, "The whole wait", Unit::Seconds, Clock::Host, |parts| parts.total)])
        .derived(error, "Closing error", Unit::Seconds, "total − enqueue − residual − call")
        .build()
}

/// The first call with its work, twice.
fn same(engine: &str) -> Option<Group> {
    const LENGTH: Duration = Duration::from_millis(1);
    let call = calls(engine, Family::Wait, &[]).into_iter().next()?;
    let twice =
        Group::of("The same code twice", [("call", call.name.into()), ("work_seconds", LENGTH.as_secs_f64().into())])
            .setup(move |device| CallInParts::new(device, &call))
            .twice(["wait-parts.same.a", "wait-parts.same.b", "wait-parts.same.ratio"], move |called| {
                called.behind(LENGTH)
            });
    Some(twice)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_call_that_waits_by_the_way_is_taken_apart_under_a_name_of_its_own() {
        let families = [Family::Wait, Family::Copy, Family::Fill, Family::Memory, Family::Code, Family::Launch];
        let all: Vec<Call> = families.into_iter().flat_map(|family| calls("cuda", family, &SIZES)).collect();
        let found = |heading: &str| {
            let own = |call: &Call| kind(call).filter(|(kind, _)| kind.heading == heading);
            let names = all.iter().filter_map(|call| own(call).map(|(_, name)| (name, call.memories(), call.bytes)));
            names.collect::<Vec<_>>()
        };
        for heading in [SYNCHRONIZE, OTHER, ITEM, ARRAY].map(|kind| kind.heading) {
            let names = found(heading);
            let mut once = names.clone();
            once.dedup();
            assert_eq!(once.len(), names.len(), "{names:?}");
        }
        let of_memory = ["free managed", "free pinned", "unregister", "fill pinned", "fill managed"];
        let of_code = ["load a module", "unload a module", "first launch", "function of a kernel", "unload a library"];
        for name in of_memory.into_iter().chain(of_code).chain(["set the stack"]) {
            assert_eq!(found(OTHER.heading).iter().filter(|(found, ..)| *found == name).count(), 1, "{name}");
        }
        let copies = |heading| found(heading).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
        for (name, heading) in
            ["read", "write", "host to host"].into_iter().zip([ITEM.heading, ARRAY.heading].into_iter().cycle())
        {
            assert_eq!(
                copies(heading).iter().filter(|found| **found == name).count(),
                4,
                "{name}: of each kind of memory"
            );
        }
        assert!(!copies(ITEM.heading).contains(&"asynchronous write"), "four bytes are taken along with the call");
        assert!(copies(ARRAY.heading).contains(&"asynchronous write"));
    }
}
