//! Whose the work of a trace is that several processes were put into: it belongs to a call by its number, which is one of each
//! process.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::chrome::{Category, Event};
use super::class::Class;

/// By how much work may seem to begin before its call: the clocks of host and device are two.
const SLACK: i64 = 5_000;

/// A device, as a trace names it: by an argument, else by the process that its work is shown under.
type DeviceKey = (Option<u32>, u32);

/// Whose an event is.
pub(super) struct Homes {
    /// The processes that make calls.
    pub(super) callers: Vec<u32>,
    /// Where each stands among them.
    places: HashMap<u32, usize>,
    /// Of each number the calls that may have enqueued work, where there are several processes: of which, and from when on.
    calls: HashMap<u64, Vec<(usize, i64)>>,
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
                homes.calls.entry(number).or_default().push((homes.places[&process_of(call)], call.start));
            }
            homes.find_devices(events, process_of);
        }
        homes
    }

    /// The processes that may have enqueued this, each with the time since its call.
    fn candidates(&self, work: &Event) -> BTreeMap<usize, i64> {
        let calls = work.correlation.and_then(|number| self.calls.get(&number));
        let mut found: BTreeMap<usize, i64> = BTreeMap::new();
        for (process, start) in calls.into_iter().flatten().filter(|(_, start)| *start <= work.start + SLACK) {
            let since = work.start - start;
            found.entry(*process).and_modify(|known| *known = since.min(*known)).or_insert(since);
        }
        found
    }

    /// Each device goes to the process that may have enqueued most of its work, soonest before it; of equal ones, to one that has
    /// no device yet.
    fn find_devices(&mut self, events: &[Event], process_of: &dyn Fn(&Event) -> u32) {
        let mut order = Vec::new();
        let mut found: HashMap<DeviceKey, BTreeMap<usize, (u64, i64)>> = HashMap::new();
        for work in events.iter().filter(|event| event.is_work()) {
            let device = device_of(work, process_of(work));
            let of_device = found.entry(device).or_insert_with(|| {
                order.push(device);
                BTreeMap::new()
            });
            for (process, since) in self.candidates(work) {
                let (count, sum) = of_device.entry(process).or_default();
                (*count, *sum) = (*count + 1, sum.saturating_add(since));
            }
        }
        let mut taken = HashSet::new();
        for device in order {
            let best = found[&device]
                .iter()
                .min_by_key(|(process, (count, since))| (Reverse(*count), taken.contains(*process), *since, **process));
            if let Some((process, _)) = best {
                taken.insert(*process);
                self.devices.insert(device, *process);
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
                match candidates.len() {
                    0 => self.devices.get(&device_of(event, process)).filter(|_| !event.is_work()).copied(),
                    1 => candidates.into_keys().next(),
                    _ if candidates.keys().all(own) => {
                        let owner = self.devices.get(&device_of(event, process))?;
                        candidates.contains_key(owner).then_some(*owner)
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
