//! Reads an expression by recursive descent, and says in one line what is missing or has no meaning in it.

use super::{Extreme, Node, Operator, Part};

/// The most characters of an expression.
const MAX_CHARACTERS: usize = 1000;
/// The most brackets within each other.
const MAX_DEPTH: usize = 50;
/// The filters that give a number.
pub(crate) const FILTERS: [&str; 3] = ["abs", "max", "min"];

/// Why a text is no expression.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    /// What is wrong with it.
    pub(crate) message: String,
    /// The filter that there is not, where that is what is wrong.
    pub(crate) filter: Option<String>,
}

/// How an expression is written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Notation {
    /// In results: a hyphen is part of a name, and two sides may be compared.
    Formula,
    /// In documents: a hyphen is a minus.
    Document,
}

pub(super) struct Parser<'a> {
    text: &'a str,
    place: usize,
    depth: usize,
    notation: Notation,
}

type Result<T> = std::result::Result<T, SyntaxError>;

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, notation: Notation) -> Self {
        Self { text, place: 0, depth: 0, notation }
    }

    pub(super) fn whole(mut self) -> Result<Node> {
        let error = |message| SyntaxError { message, filter: None };
        if self.text.is_empty() {
            return Err(error("a formula is empty".to_owned()));
        }
        if self.text.chars().count() > MAX_CHARACTERS {
            let begin: String = self.text.chars().take(40).collect();
            return Err(error(format!("`{begin}…` is longer than {MAX_CHARACTERS} characters")));
        }
        let mut root = self.sum()?;
        if self.notation == Notation::Formula && self.takes("=") {
            root = binary(Operator::Equals, root, self.sum()?);
        }
        if self.rest().is_empty() { Ok(root) } else { Err(self.unexpected()) }
    }

    fn sum(&mut self) -> Result<Node> {
        let mut sum = self.product()?;
        loop {
            let operator = match () {
                () if self.takes("+") => Operator::Plus,
                () if self.takes_minus() => Operator::Minus,
                () => return Ok(sum),
            };
            sum = binary(operator, sum, self.product()?);
        }
    }

    fn product(&mut self) -> Result<Node> {
        let mut product = self.power()?;
        loop {
            let operator = match () {
                () if self.takes("*") || self.takes("·") || self.takes("×") => Operator::Times,
                () if self.takes("/") => Operator::Over,
                () => return Ok(product),
            };
            product = binary(operator, product, self.power()?);
        }
    }

    /// Powers from the left, and a sign before them: as Jinja has it.
    fn power(&mut self) -> Result<Node> {
        let mut base = self.filtered()?;
        loop {
            let at = self.place..self.place;
            let exponent = match () {
                () if self.takes("**") => self.filtered()?,
                () if self.takes("²") => Node { part: Part::Number(2.0), at },
                () if self.takes("³") => Node { part: Part::Number(3.0), at },
                () => return Ok(base),
            };
            base = binary(Operator::Power, base, exponent);
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
                ("", _) => return Err(self.missing()),
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
        let start = self.place;
        if !self.takes_minus() {
            return self.value();
        }
        let inner = self.nested(Self::signed)?;
        Ok(Node { part: Part::Negated(Box::new(inner)), at: start..self.place })
    }

    fn value(&mut self) -> Result<Node> {
        let start = self.place;
        if self.takes("(") {
            let Node { part, .. } = self.nested(Self::sum)?;
            self.close("(", ")")?;
            return Ok(Node { part, at: start..self.place });
        }
        if self.takes("[") {
            let nodes = self.nested(Self::list)?;
            self.close("[", "]")?;
            let filter = self.rest().strip_prefix('|').map(str::trim_start);
            if !filter.is_some_and(|it| it.starts_with("max") || it.starts_with("min")) {
                return Err(self.wrong("of a list there is the `max` and the `min`"));
            }
            return Ok(Node { part: Part::Extreme(Extreme::Greatest, nodes), at: start..self.place });
        }
        let word = self.word();
        let at = start..self.place;
        let extreme = match word {
            "" => return Err(self.missing()),
            "max" => Some(Extreme::Greatest),
            "min" => Some(Extreme::Least),
            _ => None,
        };
        if let Some(extreme) = extreme.filter(|_| self.takes("(")) {
            let nodes = self.nested(Self::list)?;
            self.close("(", ")")?;
            return Ok(Node { part: Part::Extreme(extreme, nodes), at: start..self.place });
        }
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        let number = word.parse().ok().filter(|_| is_number);
        Ok(Node { part: number.map_or_else(|| Part::Name(at.clone()), Part::Number), at })
    }

    fn list(&mut self) -> Result<Vec<Node>> {
        let mut nodes = vec![self.sum()?];
        while self.takes(",") {
            nodes.push(self.sum()?);
        }
        Ok(nodes)
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return Err(self.wrong("brackets and signs are nested too deep"));
        }
        self.depth += 1;
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
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
        let mut end = if rest.starts_with('.') { 0 } else { length(rest) };
        // The exponent of a number may have a sign.
        let is_exponent = rest.starts_with(|c: char| c.is_ascii_digit()) && rest[..end].ends_with(['e', 'E']);
        if is_exponent && rest[end..].starts_with(['+', '-']) {
            end += 1 + length(&rest[end + 1..]);
        }
        self.place += end;
        &rest[..end]
    }

    /// Takes a sign, where it comes next; of two stars neither is a product.
    fn takes(&mut self, sign: &str) -> bool {
        let rest = self.rest();
        let is_next = rest.starts_with(sign) && !(sign == "*" && rest.starts_with("**"));
        self.place += if is_next { sign.len() } else { 0 };
        is_next
    }

    fn takes_minus(&mut self) -> bool {
        self.takes("−") || self.notation == Notation::Document && self.takes("-")
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

    /// That a value has to come next.
    fn missing(&mut self) -> SyntaxError {
        let (rest, last) = (self.rest(), self.text.chars().last().unwrap_or_default());
        match rest.chars().next() {
            None => self.wrong(&format!("a value is missing behind `{last}`")),
            Some(next) if ")],+*/|".contains(next) => self.wrong(&format!("a value is missing before `{next}`")),
            Some(_) => self.unexpected(),
        }
    }

    /// That what comes next has no meaning there.
    fn unexpected(&mut self) -> SyntaxError {
        let first = self.rest().chars().next().unwrap_or_default();
        let what = match (first, self.word()) {
            ('.', _) => "a part of a value has no value".to_owned(),
            ('(', _) => "nothing in it can be called".to_owned(),
            ('[', _) => "a value has no parts".to_owned(),
            (')' | ']', _) => format!("`{first}` closes nothing"),
            (_, "") => format!("`{first}` has no meaning in it"),
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
