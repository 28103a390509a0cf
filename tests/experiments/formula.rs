//! Evaluates the formula of a row's work, as it is shown to a reader, with the row's parameters.

use std::iter::Peekable;
use std::str::Chars;

use syncscope::results::{Parameter, Parameters};

/// The value of a formula of sums, products, brackets, squares and cubes; `width` is the bytes of an element.
pub(crate) fn evaluate(formula: &str, parameters: &Parameters) -> Result<f64, String> {
    let mut reader = Reader { text: formula.chars().peekable(), parameters };
    let value = reader.sum()?;
    match reader.next() {
        None => Ok(value),
        Some(unread) => Err(format!("`{formula}`: `{unread}` was not expected")),
    }
}

struct Reader<'a> {
    text: Peekable<Chars<'a>>,
    parameters: &'a Parameters,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        while self.text.next_if_eq(&' ').is_some() {}
        self.text.peek().copied()
    }

    fn take(&mut self, sign: char) -> bool {
        let found = self.next() == Some(sign);
        if found {
            self.text.next();
        }
        found
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut sum = self.product()?;
        loop {
            if self.take('+') {
                sum += self.product()?;
            } else if self.take('−') {
                sum -= self.product()?;
            } else {
                return Ok(sum);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut product = self.power()?;
        while self.take('·') {
            product *= self.power()?;
        }
        Ok(product)
    }

    fn power(&mut self) -> Result<f64, String> {
        let base = if self.take('(') {
            let sum = self.sum()?;
            if !self.take(')') {
                return Err("a bracket is not closed".to_owned());
            }
            sum
        } else {
            self.operand()?
        };
        Ok(if self.take('²') {
            base.powi(2)
        } else if self.take('³') {
            base.powi(3)
        } else {
            base
        })
    }

    fn operand(&mut self) -> Result<f64, String> {
        self.next();
        let mut word = String::new();
        while let Some(letter) = self.text.next_if(char::is_ascii_alphanumeric) {
            word.push(letter);
        }
        if let Ok(number) = word.parse() {
            return Ok(number);
        }
        match (word.as_str(), self.parameters.get(&word)) {
            ("width", _) => Ok(match self.parameters.get("dtype") {
                Some(Parameter::Text(dtype)) if dtype != "fp32" => 2.0,
                _ => 4.0,
            }),
            (_, Some(Parameter::Integer(value))) => Ok(*value as f64),
            (name, _) => Err(format!("the row has no parameter `{name}`")),
        }
    }
}
