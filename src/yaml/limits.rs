//! How large a YAML text may be: a parser that builds values takes a time and a memory that grow with more than the text.

use std::collections::HashMap;

use saphyr_parser::Event;

/// The deepest nesting of lists and maps.
const MOST_DEEP: usize = 64;
/// The most values, those that aliases repeat counted each time.
const MOST_VALUES: usize = 200_000;

/// What was counted so far.
#[derive(Default)]
pub(super) struct Count {
    values: usize,
    /// The open lists and maps: the anchor of each, and how many values there were before it.
    open: Vec<(usize, usize)>,
    /// How many values stand behind each anchor.
    anchors: HashMap<usize, usize>,
}

impl Count {
    /// Takes the next event; an error is that it is too much.
    pub(super) fn take(&mut self, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Scalar(_, _, anchor, _) => {
                self.values += 1;
                self.anchors.insert(*anchor, 1);
            }
            Event::SequenceStart(.., anchor, _) | Event::MappingStart(.., anchor, _) => {
                self.open.push((*anchor, self.values));
                self.values += 1;
                if self.open.len() > MOST_DEEP {
                    return Err(format!("nested deeper than {MOST_DEEP}"));
                }
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some((anchor, before)) = self.open.pop() {
                    self.anchors.insert(anchor, self.values - before);
                }
            }
            // What is not closed yet would hold itself.
            Event::Alias(anchor) => match self.anchors.get(anchor) {
                Some(values) if !self.open.iter().any(|(open, _)| open == anchor) => self.values += values,
                _ => return Err("an alias of what it stands in".to_owned()),
            },
            _ => {}
        }
        match self.values > MOST_VALUES {
            true => Err(format!("more than {MOST_VALUES} values, with those that aliases repeat")),
            false => Ok(()),
        }
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
        for (text, says) in
            [(&laughs, "more than"), (&deep, "recursion limit"), (&block, "deeper than"), (&many, "more than")]
        {
            let (message, line, _) = check(text).unwrap_err();
            assert!(message.contains(says) && line > 0, "{message}");
        }
        assert!(check("a: &a [*a]").is_err());
    }
}
