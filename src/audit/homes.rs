//! Whose the work of a trace is that several processes were put into: it belongs to a call by its number, which is one of each
//! process.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::chrome::{Category, Event};
use super::class::Class;

/// By how much work may seem to begin before its call: the clocks of host and device are two.
const SLACK: i64 = 1_000;

/// A device, as a trace names it: by an argument, else by the process that its work is shown under.
type DeviceKey = (Option<u32>, u32);

/// Whose an event is.
pub(super) struct Homes {
    /// The processes that make calls.
    pub(super) callers: Vec<u32>,
    /// Where each stands among them.
    places: HashMap<u32, usize>,
    /// Of each number the processes with a call that may have enqueued work, where there are several, and from when on.
    calls: HashMap<u64, BTreeMap<usize, i64>>,
    /// The numbers of calls, where work has no category.
    numbers: HashSet<u64>,
    /// Of each device the process that uses it, as far as the numbers leave it open.
    devices: HashMap<DeviceKey, usize>,
}

impl Homes {
    pub(super) fn of(events: &[Event], process_of: &dyn Fn(&Event) -> u32) -> Self {
        let (mut callers, mut places) = (Vec::new(), HashMap::new());
        let calls = || events.iter().filter(|event| event.category == Category::Call);
        for call in calls() {
            let process = process_of(call);
            places.entry(process).or_insert_with(|| {
                callers.push(process);
                callers.len() - 1
            });
        }
        let mut homes =
            Self { callers, places, calls: HashMap::new(), numbers: HashSet::new(), devices: HashMap::new() };
        if events.iter().any(|event| event.category == Category::Unnamed) {
            homes.numbers = calls().filter_map(|call| call.correlation).collect();
        }
        if homes.callers.len() > 1 {
            let enqueues = |call: &&Event| !Class::of(&call.name).is_explicit();
            for call in calls().filter(enqueues) {
                let Some(number) = call.correlation else { continue };
                let starts = homes.calls.entry(number).or_default();
                let start = starts.entry(homes.places[&process_of(call)]).or_insert(call.start);
                *start = call.start.min(*start);
            }
            homes.find_devices(events, process_of);
        }
        homes
    }

    /// The processes that may have enqueued this.
    fn candidates(&self, work: &Event) -> Vec<usize> {
        let calls = work.correlation.and_then(|number| self.calls.get(&number));
        let before = calls.into_iter().flatten().filter(|(_, start)| **start <= work.start + SLACK);
        before.map(|(process, _)| *process).collect()
    }

    /// Each device goes to the process that may have enqueued most of its work; of equal ones, to the first that has no device
    /// yet, as ranks have theirs in order.
    fn find_devices(&mut self, events: &[Event], process_of: &dyn Fn(&Event) -> u32) {
        let mut found: BTreeMap<DeviceKey, BTreeMap<usize, u64>> = BTreeMap::new();
        for work in events.iter().filter(|event| event.is_work()) {
            let of_device = found.entry(device_of(work, process_of(work))).or_default();
            self.candidates(work).into_iter().for_each(|process| *of_device.entry(process).or_default() += 1);
        }
        let mut taken = HashSet::new();
        for (device, processes) in found {
            let order = |(process, count): &(usize, u64)| (Reverse(*count), taken.contains(process), *process);
            if let Some((process, _)) = processes.into_iter().min_by_key(order) {
                taken.insert(process);
                self.devices.insert(device, process);
            }
        }
    }

    /// The place of the process that an event is of.
    pub(super) fn home(&self, event: &Event, process: u32) -> Option<usize> {
        let is_of_none = || !event.correlation.is_some_and(|number| self.numbers.contains(&number));
        match event.category {
            Category::Unnamed if is_of_none() => None,
            _ if self.callers.len() < 2 => Some(0),
            _ if !event.is_work() && event.category != Category::Awaited => self.places.get(&process).copied(),
            _ => {
                let candidates = self.candidates(event);
                // What any of them has no device for, its work may be on any.
                let own = |process: &usize| self.devices.values().any(|owner| owner == process);
                // Work that is shown under a process is of that one.
                if let Some(shown) = self.places.get(&process).filter(|shown| candidates.contains(shown)) {
                    return Some(*shown);
                }
                match candidates.len() {
                    0 => self.devices.get(&device_of(event, process)).filter(|_| !event.is_work()).copied(),
                    1 => candidates.into_iter().next(),
                    _ if candidates.iter().all(own) => {
                        let owner = self.devices.get(&device_of(event, process))?;
                        candidates.contains(owner).then_some(*owner)
                    }
                    _ => None,
                }
            }
        }
    }
}

fn device_of(event: &Event, process: u32) -> DeviceKey {
    (event.device, if event.device.is_some() { 0 } else { process })
}

impl Event {
    pub(super) fn is_work(&self) -> bool {
        matches!(self.category, Category::Kernel | Category::Copy | Category::Fill | Category::Unnamed)
    }
}
