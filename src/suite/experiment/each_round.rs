//! What the rows of one group take from one and the same event of a round: a wait, a process.

use std::cell::RefCell;
use std::rc::Rc;

use super::Result;

/// An event of each round, of which each row asks for its part once. The first row that asks in a round has it made, whichever
/// that is: the order of the rows is drawn anew for each round.
pub(super) struct EachRound<T> {
    make: Box<dyn Fn() -> Result<T>>,
    latest: RefCell<Option<Latest<T>>>,
}

struct Latest<T> {
    event: T,
    /// The rows that have asked.
    asked: Vec<usize>,
}

impl<T> EachRound<T> {
    /// Events that `make` makes; none is made yet.
    pub(super) fn new(make: impl Fn() -> Result<T> + 'static) -> Rc<Self> {
        Rc::new(Self { make: Box::new(make), latest: RefCell::default() })
    }

    /// The part of this round's event that belongs to the row of this number.
    pub(super) fn part<R>(&self, row: usize, part: impl FnOnce(&T) -> R) -> Result<R> {
        let mut place = self.latest.borrow_mut();
        // Taken out: where no event can be made, none is left.
        let latest = match place.take().filter(|latest| !latest.asked.contains(&row)) {
            Some(latest) => latest,
            None => Latest { event: (self.make)()?, asked: Vec::new() },
        };
        let latest = place.insert(latest);
        latest.asked.push(row);
        Ok(part(&latest.event))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::error::DeviceError;

    #[test]
    fn the_rows_of_a_round_are_of_one_event_in_whichever_order_they_ask() {
        let made = Cell::new(0);
        let events = EachRound::new(move || Ok(made.replace(made.get() + 1)));
        for (round, order) in [[0, 1, 2], [2, 0, 1], [1, 2, 0]].into_iter().enumerate() {
            assert_eq!(order.map(|row| events.part(row, |event| *event).unwrap()), [round; 3]);
        }
    }

    #[test]
    fn an_event_that_fails_fails_for_the_row_that_asked_and_is_made_anew_for_the_next() {
        let made = Cell::new(0);
        let fails = || DeviceError::InvalidArgument { operation: "make", reason: String::new() };
        let events = EachRound::new(move || if made.replace(made.get() + 1) == 1 { Err(fails()) } else { Ok(()) });
        assert_eq!([0, 1, 0].map(|row| events.part(row, |()| ()).is_ok()), [true, true, false]);
        assert!(events.part(1, |()| ()).is_ok());
    }
}
