//! Reads an expression by recursive descent, and says in one line what is missing or has no meaning in it.

use super::{Extreme, Node, Operator, Part};

/// The most characters of an expression, and the most brackets: what is in one is read by recursion.
const MAX_CHARACTERS: usize = 1000;
const MAX_BRACKETS: usize = 100;
/// The filters that give a number.
pub const FILTERS: [&str; 3] = ["abs", "max", "min"];

/// Why a text is no expression.
#[derive(Debug)]
pub struct SyntaxError {
    /// What is wrong with it.
    pub message: String,
    /// The name of an unknown filter, if that is the error.
    pub filter: Option<String>,
}

/// How an expression is written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Notation {
    /// In results: a hyphen is part of a name, and two sides may be compared.
    Formula,
    /// In documents: a hyphen is a minus.
    Document,
}

/// The signs between two values, each with how closely it binds; of several that begin alike the longest first.
const OPERATORS: [(&str, Operator, u8); 9] = [
    ("**", Operator::Power, 3),
    ("*", Operator::Times, 2),
    ("·", Operator::Times, 2),
    ("×", Operator::Times, 2),
    ("/", Operator::Over, 2),
    ("+", Operator::Plus, 1),
    ("−", Operator::Minus, 1),
    ("-", Operator::Minus, 1),
    ("=", Operator::Equals, 0),
];

pub(super) struct Parser<'a> {
    text: &'a str,
    place: usize,
    notation: Notation,
}

type Result<T> = std::result::Result<T, SyntaxError>;

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, notation: Notation) -> Self {
        Self { text, place: 0, notation }
    }

    pub(super) fn whole(mut self) -> Result<Node> {
        let error = |message| Err(SyntaxError { message, filter: None });
        if self.text.is_empty() {
            return error("a formula is empty".to_owned());
        }
        if self.text.chars().count() > MAX_CHARACTERS {
            let begin: String = self.text.chars().take(40).collect();
            return error(format!("`{begin}…` is longer than {MAX_CHARACTERS} characters"));
        }
        if self.text.matches(['(', '[']).count() > MAX_BRACKETS {
            return Err(self.wrong(&format!("more than {MAX_BRACKETS} brackets")));
        }
        let root = self.binding(0)?;
        if self.rest().is_empty() { Ok(root) } else { Err(self.unexpected()) }
    }

    /// Values between which stand signs that bind at least so closely: by precedence climbing, from the left. A sign before a
    /// value binds closest, as Jinja has it.
    fn binding(&mut self, least: u8) -> Result<Node> {
        let mut left = self.filtered()?;
        loop {
            let square = ["²", "³"].into_iter().position(|sign| self.takes(sign));
            if let Some(place) = square {
                let exponent = Node { part: Part::Number(2.0 + place as f64), at: self.place..self.place };
                left = binary(Operator::Power, left, exponent);
                continue;
            }
            let (rest, unknown) = (self.rest(), if self.notation == Notation::Formula { "-" } else { "=" });
            let next = OPERATORS.into_iter().find(|(sign, ..)| rest.starts_with(sign) && *sign != unknown);
            let Some((sign, operator, strength)) = next.filter(|(.., strength)| *strength >= least) else {
                return Ok(left);
            };
            self.place += sign.len();
            left = binary(operator, left, self.binding(strength + 1)?);
        }
    }

    fn filtered(&mut self) -> Result<Node> {
        let mut value = self.signed()?;
        while self.takes("|") {
            let (start, filter) = (value.at.start, self.word());
            let part = match (filter, value.part) {
                ("max", Part::Extreme(_, nodes)) => Part::Extreme(Extreme::Greatest, nodes),
                ("min", Part::Extreme(_, nodes)) => Part::Extreme(Extreme::Least, nodes),
                ("max" | "min", _) => return Err(self.wrong(&format!("`{filter}` is of a list"))),
                ("abs", part) => Part::Absolute(Box::new(Node { part, at: value.at })),
                ("", _) => return Err(self.unexpected()),
                _ => {
                    let message = format!("there is no filter `{filter}`");
                    return Err(SyntaxError { message, filter: Some(filter.to_owned()) });
                }
            };
            value = Node { part, at: start..self.place };
        }
        Ok(value)
    }

    fn signed(&mut self) -> Result<Node> {
        self.rest();
        let (start, mut is_negative) = (self.place, false);
        while self.takes("−") || self.notation == Notation::Document && self.takes("-") {
            is_negative = !is_negative;
        }
        let value = self.value()?;
        match is_negative {
            true => Ok(Node { part: Part::Negated(Box::new(value)), at: start..self.place }),
            false => Ok(value),
        }
    }

    fn value(&mut self) -> Result<Node> {
        self.rest();
        let start = self.place;
        let part = match self.word() {
            "" if self.takes("(") => {
                let inner = self.binding(0)?;
                self.close("(", ")")?;
                inner.part
            }
            "" if self.takes("[") => {
                let nodes = self.list("[", "]")?;
                let filter = self.rest().strip_prefix('|').map(str::trim_start).unwrap_or_default();
                if !["max", "min"].iter().any(|name| filter.starts_with(name)) {
                    return Err(self.wrong("of a list there is the `max` and the `min`"));
                }
                Part::Extreme(Extreme::Greatest, nodes)
            }
            "" => return Err(self.unexpected()),
            "max" if self.takes("(") => Part::Extreme(Extreme::Greatest, self.list("(", ")")?),
            "min" if self.takes("(") => Part::Extreme(Extreme::Least, self.list("(", ")")?),
            word => {
                let number = word.parse().ok().filter(|_| word.starts_with(|c: char| c.is_ascii_digit()));
                number.map_or_else(|| Part::Name(start..self.place), Part::Number)
            }
        };
        Ok(Node { part, at: start..self.place })
    }

    fn list(&mut self, opened: &str, closes: &str) -> Result<Vec<Node>> {
        let mut nodes = vec![self.binding(0)?];
        while self.takes(",") {
            nodes.push(self.binding(0)?);
        }
        self.close(opened, closes)?;
        Ok(nodes)
    }

    fn close(&mut self, opened: &str, closes: &str) -> Result<()> {
        match (self.takes(closes), self.rest().is_empty()) {
            (true, _) => Ok(()),
            (false, true) => Err(self.wrong(&format!("`{opened}` is not closed"))),
            (false, false) => Err(self.unexpected()),
        }
    }

    /// A number or a name; empty where none comes next.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let own = if self.notation == Notation::Formula { '-' } else { '_' };
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == own;
        let length = |text: &str| text.find(|c| !is_part(c)).unwrap_or(text.len());
        let mut end = if rest.starts_with(['.', '-']) { 0 } else { length(rest) };
        // The exponent of a number may have a sign.
        let is_exponent = rest.starts_with(|c: char| c.is_ascii_digit()) && rest[..end].ends_with(['e', 'E']);
        if is_exponent && rest[end..].starts_with(['+', '-']) {
            end += 1 + length(&rest[end + 1..]);
        }
        self.place += end;
        &rest[..end]
    }

    /// Takes a sign, where it comes next.
    fn takes(&mut self, sign: &str) -> bool {
        let is_next = self.rest().starts_with(sign);
        self.place += if is_next { sign.len() } else { 0 };
        is_next
    }

    /// What is left, behind spaces.
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.place..].trim_start();
        self.place = self.text.len() - rest.len();
        rest
    }

    fn wrong(&self, what: &str) -> SyntaxError {
        let message = format!("`{}` is no formula of names and numbers: {what}", self.text);
        SyntaxError { message, filter: None }
    }

    /// That a value or a sign is missing, or that what comes next has no meaning there.
    fn unexpected(&mut self) -> SyntaxError {
        let before = self.text[..self.place].trim_end().chars().last();
        // A value is wanted at the beginning, and behind a sign that ends none.
        let wants = before.is_none_or(|c| !c.is_ascii_alphanumeric() && !")]_.²³".contains(c));
        let first = self.rest().chars().next();
        let what = match (first, self.word()) {
            (None, _) => format!("a value is missing behind `{}`", before.unwrap_or_default()),
            (Some(first), "") if wants && ")],+*/|".contains(first) => format!("a value is missing before `{first}`"),
            (Some('.'), _) => "a part of a value has no value".to_owned(),
            (Some('('), _) => "nothing in it can be called".to_owned(),
            (Some('['), _) => "a value has no parts".to_owned(),
            (Some(first @ (')' | ']')), _) => format!("`{first}` closes nothing"),
            (Some(first), "") => format!("`{first}` has no meaning in it"),
            (_, word) => format!("an operator is missing before `{word}`"),
        };
        self.wrong(&what)
    }
}

fn binary(operator: Operator, left: Node, right: Node) -> Node {
    let at = left.at.start..right.at.end;
    Node { part: Part::Binary(operator, Box::new([left, right])), at }
}

#[cfg(test)]
mod tests {
    use super::super::Expression;

    #[test]
    fn a_formula_of_names_and_numbers_passes() {
        for formula in ["a", "a.b_1 / 2e-3 - (c|abs) ** 2", "(a + b)|abs|abs", "-5e-6", "a - [b, c] | max"] {
            assert!(Expression::parse(formula).is_ok(), "{formula}");
        }
    }

    #[test]
    fn what_never_has_a_value_is_refused() {
        for formula in [
            "a[0]",
            "a()",
            "(a)(1)",
            "(a).b",
            "a .b",
            "a is odd",
            "a in b",
            "[a, b]",
            "[a, b] + [a]|max",
            "a|max",
            "[]|max",
            "{a}",
            "'x' * 9",
            "a, b",
            "a ~ b",
            "not a",
            "a|tiem",
            "µ",
        ] {
            assert!(Expression::parse(formula).is_err(), "{formula}");
        }
    }

    #[test]
    fn what_is_missing_in_a_formula_is_named_in_one_line() {
        for (formula, what) in [
            ("1 s", "an operator is missing before `s`"),
            ("a|abs b", "an operator is missing before `b`"),
            ("(a) b", "an operator is missing before `b`"),
            ("a +", "a value is missing behind `+`"),
            ("a + * b", "a value is missing before `*`"),
            ("* a", "a value is missing before `*`"),
            ("a + ()", "a value is missing before `)`"),
            ("(a + b", "`(` is not closed"),
            ("a)", "`)` closes nothing"),
            ("[a)|max", "`)` closes nothing"),
            ("a|", "a value is missing behind `|`"),
        ] {
            let message = Expression::parse(formula).unwrap_err().message;
            assert!(message.ends_with(what) && !message.contains('\n'), "{formula}: {message}");
        }
        assert_eq!(Expression::parse(" ").unwrap_err().message, "a formula is empty");
    }

    #[test]
    fn a_chain_of_any_kind_has_an_end() {
        for link in ["1+", "-", "a|abs|", "a.", "(", "a**", "[", "max("] {
            let error = Expression::parse(&link.repeat(50_000)).unwrap_err().message;
            assert!(error.contains("longer than") && error.len() < 200, "{error}");
            assert!(Expression::parse(&link.repeat(999 / link.len())).is_err() || link == "a.", "{link}");
        }
    }
}
