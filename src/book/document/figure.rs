//! A figure as a document printed it: its value in the base unit, and how many digits it had.

use serde::Deserialize;

/// A figure as a document printed it.
///
/// In YAML it is a decimal number in the base unit whose significant digits are those of the document, trailing zeros
/// included: `14.0e-6` for "14.0 µs". A sum that the document leaves as a sum is written as one: `25 + 26`.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
// From text, although it is a number: a number has lost its trailing zeros.
#[serde(try_from = "String")]
#[schemars(extend("type" = ["number", "string"]))]
pub struct Figure {
    /// The value in the base unit; of a sum, its result.
    pub value: f64,
    /// The number of significant digits that the document printed.
    pub digits: usize,
    /// The terms of a sum; empty where the figure is none.
    pub terms: Vec<f64>,
}

impl TryFrom<String> for Figure {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let terms = text.split(" + ").map(|term| number(term.trim())).collect::<Result<Vec<_>, _>>()?;
        let value = terms.iter().map(|(value, _)| value).sum();
        let digits = terms.iter().map(|(_, digits)| *digits).max().unwrap_or(1);
        let terms = if terms.len() > 1 { terms.into_iter().map(|(value, _)| value).collect() } else { Vec::new() };
        Ok(Self { value, digits, terms })
    }
}

/// A decimal number and its significant digits.
fn number(text: &str) -> Result<(f64, usize), String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if !value.is_finite() {
        return Err(format!("`{text}` is not a finite number"));
    }
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let digits = mantissa.chars().filter(char::is_ascii_digit).skip_while(|c| *c == '0').count();
    Ok((value, digits.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_zeros_count_as_digits_and_leading_ones_do_not() {
        let digits = |text| serde_saphyr::from_str::<Figure>(text).unwrap().digits;
        assert_eq!(digits("14.0e-6"), 3);
        assert_eq!(digits("25.0359e-3"), 6);
        assert_eq!(digits("0.0095"), 2);
        assert_eq!(digits("-139.4e-6"), 4);
    }

    #[test]
    fn a_sum_keeps_its_terms() {
        let figure: Figure = serde_saphyr::from_str("25 + 26").unwrap();
        assert_eq!((figure.value, figure.terms), (51.0, vec![25.0, 26.0]));
    }

    #[test]
    fn words_are_not_a_figure() {
        let error = serde_saphyr::from_str::<Figure>("fast").unwrap_err().to_string();
        assert!(error.contains("`fast` is not a number"), "{error}");
    }
}
