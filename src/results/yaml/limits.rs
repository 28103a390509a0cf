//! How large a YAML text may be: a parser that builds values takes a time and a memory that grow with more than the text.

use std::collections::HashMap;

use saphyr_parser::Event;

// The most values, those that aliases repeat counted each time, and the most bytes of texts, counted in the same way: as many
// as of a suite in a results file, so that what is read here can be read there.
use crate::{MOST_BYTES, MOST_VALUES};

/// The deepest nesting of lists and maps.
const MOST_DEEP: usize = 64;

/// How much a value holds.
#[derive(Clone, Copy, Default)]
struct Size {
    values: usize,
    bytes: usize,
}

/// What was counted so far.
#[derive(Default)]
pub(super) struct Count {
    size: Size,
    /// The open lists and maps: the anchor of each, and what there was before it.
    open: Vec<(usize, Size)>,
    /// What stands behind each anchor.
    anchors: HashMap<usize, Size>,
}

impl Count {
    /// Takes the next event; an error is that it is too much.
    pub(super) fn take(&mut self, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Scalar(text, _, anchor, _) => {
                let size = Size { values: 1, bytes: text.len() };
                self.add(size);
                self.anchors.insert(*anchor, size);
            }
            Event::SequenceStart(.., anchor, _) | Event::MappingStart(.., anchor, _) => {
                self.open.push((*anchor, self.size));
                self.add(Size { values: 1, bytes: 0 });
                if self.open.len() > MOST_DEEP {
                    return Err(format!("nested deeper than {MOST_DEEP}"));
                }
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some((anchor, before)) = self.open.pop() {
                    let (values, bytes) = (self.size.values - before.values, self.size.bytes - before.bytes);
                    self.anchors.insert(anchor, Size { values, bytes });
                }
            }
            // What is not closed yet would hold itself.
            Event::Alias(anchor) => match self.anchors.get(anchor) {
                Some(size) if !self.open.iter().any(|(open, _)| open == anchor) => self.add(*size),
                _ => return Err("an alias of what it stands in".to_owned()),
            },
            _ => {}
        }
        match self.size {
            Size { values, .. } if values > MOST_VALUES => {
                Err(format!("more than {MOST_VALUES} values, with those that aliases repeat"))
            }
            Size { bytes, .. } if bytes > MOST_BYTES => {
                Err(format!("more than {} MB of text, with what aliases repeat", MOST_BYTES >> 20))
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, more: Size) {
        self.size.values += more.values;
        self.size.bytes += more.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::super::events::check;
    use super::*;

    #[test]
    fn aliases_of_aliases_deep_nesting_and_many_values_are_refused_with_their_place() {
        let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let all = vec![format!("*a{}", level - 1); 10].join(", ");
            laughs.push_str(&format!("a{level}: &a{level} [{all}]\n"));
        }
        let deep = "[".repeat(100_000);
        let block: String = (0..2_000).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
        let many = "- 1\n".repeat(MOST_VALUES + 1);
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(200_000), vec!["*a"; 20_000].join(", "));
        for (text, says) in [
            (&laughs, "more than"),
            (&deep, "recursion limit"),
            (&block, "deeper than"),
            (&many, "more than"),
            (&long, "MB of text"),
        ] {
            let (message, line, _) = check(text).unwrap_err();
            assert!(message.contains(says) && line > 0, "{message}");
        }
        assert!(check("a: &a [*a]").is_err());
    }
}
