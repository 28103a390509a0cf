//! What a template may say: what stands where, in turn or where something holds. It computes nothing.
//!
//! The parser of Jinja takes a stack that grows with a chain of operators, and its values grow by `+`, `*`, `~`, by lists
//! in lists, and by text that loops repeat into a variable. None of these is needed to lay out a page, and a template may
//! be anybody's: so they are refused in its text, before it is compiled, by the tokens of each tag.

/// The most bytes of a template, tags in it, and tokens in a tag.
const MOST_BYTES: usize = 64 << 10;
const MOST_TAGS: usize = 1000;
const MOST_TOKENS: usize = 100;
/// The most bytes between two tags that are repeated.
const MOST_REPEATED: usize = 2 << 10;

/// The statements that there are.
const STATEMENTS: [&str; 11] =
    ["if", "elif", "else", "endif", "for", "endfor", "set", "endset", "macro", "endmacro", "from"];
/// Words behind which a bracket begins a value of its own.
const OPERATORS: [&str; 12] =
    ["if", "elif", "else", "for", "in", "is", "and", "or", "not", "set", "import", "recursive"];

/// Refuses a template that is too large, or that says something else; the message has the line.
pub(crate) fn check(text: &str) -> Result<(), String> {
    if text.len() > MOST_BYTES {
        return Err(format!("it is longer than {} KB", MOST_BYTES >> 10));
    }
    let at = |rest: &str, message: String| {
        let line = text[..text.len() - rest.len()].matches('\n').count() + 1;
        format!("line {line}: {message}")
    };
    let (mut rest, mut tags, mut repeated) = (text, 0, 0_usize);
    loop {
        let begin = rest.match_indices('{').map(|(place, _)| place);
        let begin = begin.filter_map(|place| Some((place, ClaimKind::of(rest[place + 1..].chars().next()?)?))).next();
        let between = begin.map_or(rest.len(), |(place, _)| place);
        if repeated > 0 && between > MOST_REPEATED {
            return Err(at(rest, format!("what is repeated has more than {MOST_REPEATED} bytes between two tags")));
        }
        let Some((place, kind)) = begin else { return Ok(()) };
        let (tag, inside) = (&rest[place..], &rest[place + 2..]);
        tags += 1;
        if tags > MOST_TAGS {
            return Err(at(tag, format!("it has more than {MOST_TAGS} tags")));
        }
        let end = match kind {
            // What is not closed is the parser's to refuse.
            ClaimKind::Comment => inside.find("#}").map(|end| &inside[end + 2..]),
            ClaimKind::Tag(end) => {
                let (tokens, behind) = tokens(inside, end).map_err(|message| at(tag, message))?;
                let statement =
                    if end == "%}" { Some(statement(&tokens).map_err(|message| at(tag, message))?) } else { None };
                expressions(&tokens, statement).map_err(|message| at(tag, message))?;
                match statement {
                    Some("for" | "macro") => repeated += 1,
                    Some("endfor" | "endmacro") => repeated = repeated.saturating_sub(1),
                    _ => {}
                }
                behind
            }
        };
        match end {
            Some(behind) => rest = behind,
            None => return Ok(()),
        }
    }
}

#[derive(Clone, Copy)]
enum ClaimKind {
    Comment,
    /// A value or a statement, and what ends it.
    Tag(&'static str),
}

impl ClaimKind {
    /// The kind of a tag by what stands behind its brace.
    fn of(mark: char) -> Option<Self> {
        match mark {
            '{' => Some(ClaimKind::Tag("}}")),
            '%' => Some(ClaimKind::Tag("%}")),
            '#' => Some(ClaimKind::Comment),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    /// A number or a text.
    Literal,
    Sign(char),
}

/// The tokens of a tag, and what stands behind its end; nothing where it has none.
fn tokens<'a>(inside: &'a str, end: &str) -> Result<(Vec<Token<'a>>, Option<&'a str>), String> {
    let (mut found, mut rest) = (Vec::new(), inside.strip_prefix(['-', '+']).unwrap_or(inside));
    loop {
        rest = rest.trim_start();
        let behind = rest.strip_prefix(end).or_else(|| rest.strip_prefix(['-', '+'])?.strip_prefix(end));
        let (Some(first), None) = (rest.chars().next(), behind) else { return Ok((found, behind)) };
        if found.len() == MOST_TOKENS {
            return Err(format!("a tag has more than {MOST_TOKENS} parts"));
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let (token, length) = match first {
            '"' | '\'' => (Token::Literal, text_length(rest, first).ok_or("a text is not closed")?),
            _ if is_word(first) => {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                let word = &rest[..length];
                (if first.is_ascii_digit() { Token::Literal } else { Token::Word(word) }, length)
            }
            sign => (Token::Sign(sign), sign.len_utf8()),
        };
        found.push(token);
        rest = &rest[length..];
    }
}

/// The length of a text with its quotes.
fn text_length(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    let end = rest.char_indices().skip(1).find(|(_, c)| {
        let is_end = *c == quote && !escaped;
        escaped = *c == '\\' && !escaped;
        is_end
    });
    end.map(|(place, _)| place + 1)
}

fn statement<'a>(tokens: &[Token<'a>]) -> Result<&'a str, String> {
    match tokens.first() {
        Some(Token::Word(word)) if STATEMENTS.contains(word) => Ok(word),
        Some(Token::Word(word)) => Err(format!("there is no statement `{word}`; there are {}", STATEMENTS.join(", "))),
        _ => Err("a statement begins with its name".to_owned()),
    }
}

/// Refuses what makes a new value.
fn expressions(tokens: &[Token<'_>], statement: Option<&str>) -> Result<(), String> {
    // What is open, and whether commas may part what stands in it.
    let mut open: Vec<bool> = Vec::new();
    let mut is_list = matches!(statement, Some("for" | "from"));
    for (place, token) in tokens.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| tokens[before]);
        let of_value = match before {
            Some(Token::Word(word)) => !OPERATORS.contains(&word),
            Some(Token::Sign(sign)) => matches!(sign, ')' | ']'),
            Some(Token::Literal) | None => false,
        };
        match token {
            Token::Sign(sign @ ('+' | '-' | '*' | '/' | '%' | '~')) => {
                return Err(format!("a template computes nothing: `{sign}` has no meaning in it"));
            }
            Token::Sign('{' | '}') => return Err("a template makes no maps".to_owned()),
            Token::Sign('[') if !of_value => return Err("a template makes no lists".to_owned()),
            Token::Sign('[') => open.push(false),
            Token::Sign('(') => open.push(of_value),
            Token::Sign(')' | ']') => drop(open.pop()),
            Token::Sign(',') if !open.last().copied().unwrap_or(is_list) => {
                return Err("a template makes no lists".to_owned());
            }
            Token::Word("in") if statement == Some("for") && is_list => is_list = false,
            Token::Word("in") if before != Some(Token::Sign('.')) => {
                return Err("`in` stands in `for` alone".to_owned());
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lays_out_a_page_passes() {
        for text in [
            "# {{ a.b }} {%- if a is none and not (b or c) -%} x {% else %} {{ \"a + [b\\\" }}\" }} {% endif %}",
            "{% from 'm' import f, g %}{% for a, b in rows if a %}{{ f(a, b[0], c=\"-\")|length }}{% endfor %}",
            "{# + - [ {{ #} { % } {{ a if b else 'c' }} {% set a %}x{% endset %}{% set b = a|default('x') %}",
            "",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_makes_a_value_is_refused_with_its_line() {
        for text in [
            "{{ a + a }}",
            "{{ a * 9 }}",
            "{{ a ~ a }}",
            "{{ -a }}",
            "{% set a = [a] %}",
            "{% set a = (a, a) %}",
            "{% set a = a, a %}",
            "{{ {'a': a} }}",
            "{% if a in b %}{% endif %}",
            "{% for a in [b] %}{% endfor %}",
            "{% for a in b, c %}{% endfor %}",
            "{% raw %}{{ '{% endraw %}",
            "{% include 'x' %}",
            "{% do a() %}",
            "{{ f(a, [a]) }}",
            "{{ f((a, a)) }}",
            "{% if [a] %}{% endif %}",
            "{{ 'x }}",
        ] {
            let error = check(&format!("\n{text}")).unwrap_err();
            assert!(error.starts_with("line 2: "), "{text}: {error}");
        }
    }

    #[test]
    fn a_chain_a_row_of_tags_and_a_repeated_text_have_an_end() {
        let repeated = format!("{{% for a in b %}}{}{{% endfor %}}", "x".repeat(MOST_REPEATED + 1));
        let chain = format!("{{{{ a{} }}}}", ".x".repeat(200));
        let tags = "{{ a }}".repeat(MOST_TAGS + 1);
        for text in [repeated, chain, tags, "x".repeat(MOST_BYTES + 1)] {
            assert!(check(&text).is_err(), "{}", &text[..40]);
        }
    }
}
