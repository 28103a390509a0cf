//! Sentences with measured values in them: the answers of a chapter, its exercises, its number on the first page.
//!
//! A value stands in a text as an expression in double braces: `{{ small.fp16.delta }}`, with the names of tests
//! (see [`predicate`](crate::predicate)). A name by itself is written in its unit. An expression of several needs a filter to
//! say what it is: `{{ (loop.each / loop.complete)|times }}`; there are `time`, `percent`, `times` and `count`. A name whose interval
//! is to stand in the text, too, has the filter `interval`. A row of yes and no has the filter `trials`, which writes in how many it
//! was yes: `3 of 3 trials`. So many of so many, with the interval of their share, has the filter `share`:
//! `{{ (missed.count / blocks.count)|share }}`. A sentence of an answer has a text for each outcome of its tests, so that it is true
//! of whichever machine was measured.

use serde::Deserialize;

use super::super::predicate::{
    Checked, Held, Operand, ResolvedExpression, Several, UnknownName, holds, is_foreign, operands_in_words, parsed,
};
use super::Document;
use crate::in_order::each_once;
use crate::measure::{Decision, Observations};
use crate::results::{Dimension, Lookup, Parameters, Results, share_interval};
use crate::units::{Scale, Unit, counted};

/// A text with expressions in it (Markdown).
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Text(String);

/// A part of a text whose values are filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Words of the document (Markdown).
    Words(String),
    /// A measured value, and the operands behind it with their intervals and n.
    Value {
        /// The value, as it is read.
        text: String,
        /// What is behind it.
        detail: String,
        /// Its interval between runs, or why it has none; nothing of trials and figures.
        interval: Option<String>,
    },
}

/// A sentence that the measured values choose.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sentence {
    /// The tests that decide, joined by `and`, judged as those of a claim are.
    #[serde(rename = "if")]
    pub condition: String,
    /// What is said where it holds.
    pub then: Text,
    /// What is said where it does not.
    #[serde(rename = "else")]
    pub otherwise: Text,
    /// What is said where the samples do not decide.
    pub unclear: Text,
}

/// A task for the reader, and its answer.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exercise {
    /// What to do or to find out.
    pub task: Text,
    /// The answer.
    pub answer: Text,
}

/// The number with which a document stands on the first page.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Headline {
    /// The number: a ratio of measured values, to which 1 would be no difference.
    pub value: String,
    /// How it is written.
    pub form: SentenceForm,
    /// What it is, in words that stand behind the number.
    pub caption: String,
    /// What follows from it for a program, where its whole interval lies above 1.
    pub above: Option<Text>,
    /// The same where its whole interval lies below 1.
    pub below: Option<Text>,
    /// A timeline to stand beside the numbers, by the name of its scenario; the first page shows one.
    pub timeline: Option<String>,
}

/// How a ratio is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SentenceForm {
    /// `1.80 ×`.
    Times,
    /// `55.4 %`.
    Percent,
}

/// What a sentence says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The sentence.
    pub pieces: Vec<Piece>,
    /// Why its tests decide nothing, whatever was measured: one run says nothing of another.
    pub undecided: Option<String>,
}

/// What a headline says of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// The number.
    pub value: String,
    /// Its interval or why it has none, and how many runs it is of.
    pub interval: String,
    /// The values behind it.
    pub detail: String,
    /// What the runs say of a difference, as a claim about it is judged.
    pub effect: Effect,
    /// Whether one interval describes it.
    pub is_steady: bool,
}

/// What the interval between runs of a ratio says of a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// All of it lies above 1; the logarithm of its lower end says by how much at least.
    Above(f64),
    /// All of it lies below 1; the logarithm of one over its upper end says by how much at least.
    Below(f64),
    /// It holds 1, or reaches below 0, so that there may be no difference at all.
    MayBeNone,
    /// There is no interval.
    Open,
}

impl Headline {
    /// The number of the runs of a system, with its interval.
    ///
    /// # Errors
    /// Says what was not measured.
    pub fn said(&self, document: &Document, results: &Results, system: &str) -> Result<Number, String> {
        let found = resolved(&self.value, document, &results.lookup_of(system))?.found()?;
        let (value, interval) = found.known.value();
        let (factor, sign) = if self.form == SentenceForm::Times { (1.0, "×") } else { (100.0, "%") };
        let written = |value: f64| Unit::Ratio.format(factor * value, 3);
        let runs = found.counted();
        let reason = found.unsteady.clone().or_else(|| found.known.without_scatter());
        Ok(Number {
            value: format!("{} {sign}", written(value)),
            interval: match (&reason, interval) {
                (None, Some((low, high))) => format!("{} … {} {sign}, {runs}", written(low), written(high)),
                (Some(reason), _) if found.runs > 1 => format!("{reason}; {runs}"),
                (reason, _) => reason.clone().unwrap_or(runs),
            },
            detail: operands_in_words(&found.operands),
            effect: interval.map_or(Effect::Open, Effect::of),
            is_steady: reason.is_none(),
        })
    }
}

impl Effect {
    fn of((low, high): (f64, f64)) -> Self {
        match (low > 1.0, high < 1.0) {
            (true, _) => Self::Above(low.ln()),
            // A ratio lies above 0. Of an interval that does not, neither end says how large an effect is.
            (_, true) if low > 0.0 => Self::Below(-high.ln()),
            _ => Self::MayBeNone,
        }
    }

    /// How large the difference is at least, as the logarithm of a ratio; nothing where there may be none.
    pub fn least(self) -> Option<f64> {
        if let Self::Above(least) | Self::Below(least) = self { Some(least) } else { None }
    }
}

impl Sentence {
    /// Whether its tests have no meaning in the system that the file is about.
    pub(crate) fn is_foreign(&self, document: &Document, results: &Results) -> bool {
        is_foreign(&self.condition, document, results)
    }

    /// What the runs of a system have to say; where its predicate cannot be judged, why.
    ///
    /// # Errors
    /// Says what was not measured.
    pub fn said(&self, document: &Document, results: &Results, system: &str) -> Result<Said, String> {
        let Held { finding, without_scatter } = holds(&self.condition, document, &results.lookup_of(system))?;
        let text = match finding {
            Decision::Inside => &self.then,
            Decision::Outside => &self.otherwise,
            Decision::Undecided => &self.unclear,
        };
        Ok(Said { pieces: text.filled(document, results, system)?, undecided: without_scatter })
    }
}

impl Text {
    /// The text as it is written.
    pub(crate) fn source(&self) -> &str {
        &self.0
    }

    /// Whether values stand in it, so that it differs from run to run.
    pub fn is_measured(&self) -> bool {
        self.0.contains("{{")
    }

    /// The text with the values of a system.
    ///
    /// # Errors
    /// Says what was not measured.
    pub fn filled(&self, document: &Document, results: &Results, system: &str) -> Result<Vec<Piece>, String> {
        let lookup = results.lookup_of(system);
        let filled = |part: Part<'_>| match part {
            Part::Words(words) => Ok(Piece::Words(words.to_owned())),
            Part::Expression(expression) => value(expression, document, &lookup),
        };
        self.parts()?.into_iter().map(filled).collect()
    }

    /// Finds an expression that is none, or names what there is not.
    pub(crate) fn check(&self, document: &Document) -> Result<(), UnknownName> {
        for part in self.parts()? {
            let Part::Expression(text) = part else { continue };
            // What is wrong with the whole of it stands where it stands.
            let within = |mut unknown: UnknownName| {
                unknown.name.get_or_insert_with(|| text.to_owned());
                unknown
            };
            let (quantity, form) = formed(text);
            let expression = parsed(quantity, &FORMS).map_err(within)?;
            let checked = Checked::of(&expression, document, &[Parameters::new()], None);
            let Checked { operands, dimension } = checked.map_err(within)?;
            let is_count =
                |operand: &Operand| matches!(operand, Operand::Measured { of_several: Some(Several::Count), .. });
            let is_counted = || operands.iter().all(|(_, operand)| is_count(operand));
            let writes = match form {
                Some("time") => Dimension::TIME,
                Some("percent" | "times") => Dimension::NONE,
                _ => dimension,
            };
            let message = match form {
                Some(form) if dimension.is_other_than(writes) => {
                    format!("`{quantity}` is {}, and `{form}` writes {}", dimension.words(), writes.words())
                }
                None if !expression.is_name() && !text.contains('|') => {
                    format!("`{text}` is written neither as `time`, `percent`, `times` nor `count`")
                }
                Some(form @ ("interval" | "trials")) if !expression.is_name() => {
                    format!("`{quantity}` is no name alone: `{form}` is of one")
                }
                Some("share") if parts_of_share(quantity).is_none() || !is_counted() => {
                    format!("`{quantity}` is no share of counts, such as `(a.count / b.count)|share`")
                }
                _ => continue,
            };
            return Err(within(message.into()));
        }
        Ok(())
    }

    fn parts(&self) -> Result<Vec<Part<'_>>, String> {
        let (mut parts, mut rest) = (Vec::new(), self.0.trim());
        while let Some((words, tail)) = rest.split_once("{{") {
            let (expression, tail) =
                tail.split_once("}}").ok_or_else(|| format!("an expression is not closed: `{{{{{tail}`"))?;
            parts.extend([Part::Words(words), Part::Expression(expression.trim())]);
            rest = tail;
        }
        parts.push(Part::Words(rest));
        Ok(parts)
    }
}

enum Part<'a> {
    Words(&'a str),
    Expression(&'a str),
}

/// The filters that write a number: each is the last of its expression.
const FORMS: [&str; 7] = ["time", "percent", "count", "times", "interval", "trials", "share"];

/// An expression without the filter that writes it, and that filter.
fn formed(expression: &str) -> (&str, Option<&str>) {
    match expression.rsplit_once('|') {
        Some((quantity, filter)) if FORMS.contains(&filter.trim()) => (quantity.trim(), Some(filter.trim())),
        _ => (expression, None),
    }
}

/// The two sides of a share, which stands in brackets.
fn parts_of_share(quantity: &str) -> Option<(&str, &str)> {
    let inside = quantity.strip_prefix('(')?.strip_suffix(')')?;
    let depth = |text: &str| text.matches('(').count().checked_sub(text.matches(')').count());
    let mut places = inside.match_indices('/').map(|(place, _)| (&inside[..place], &inside[place + 1..]));
    places.find(|(part, whole)| [part, whole].iter().all(|side| depth(side) == Some(0)))
}

/// A quantity by the rows of a system.
fn resolved<'a>(text: &str, document: &Document, lookup: &Lookup<'a>) -> Result<ResolvedExpression<'a>, String> {
    let expression = parsed(text, &[]).map_err(|unknown| unknown.message)?;
    ResolvedExpression::of(&expression, document, lookup)
}

fn value(expression: &str, document: &Document, lookup: &Lookup<'_>) -> Result<Piece, String> {
    let (quantity, form) = formed(expression);
    if form == Some("share") {
        return share(quantity, document, lookup);
    }
    let resolved = resolved(quantity, document, lookup)?;
    let found = resolved.found()?;
    let (value, ends) = found.numbers();
    let (scale, sign) = match form {
        Some("percent") => (Scale::PERCENT, ""),
        Some("times") => (Unit::Ratio.scale(value), " ×"),
        Some("count") => (Unit::Number.scale(value), ""),
        Some("interval") | None => (found.unit.scale(value), ""),
        Some(_) => (Unit::Seconds.scale(value), ""),
    };
    let text = match resolved.in_words().filter(|_| form.is_none()) {
        Some(words) => words,
        None if form == Some("trials") => trials(&found.known).ok_or_else(|| format!("`{quantity}` has no trials"))?,
        None if form == Some("count") => format!("{value:.0}"),
        None => format!("{}{sign}", scale.significant(value, 3)),
    };
    let of_ends = |ends| format!("{}{sign}", scale.interval(ends, scale.decimals_of_interval(value.abs(), ends)));
    let (what, interval) = match ends {
        Some(ends) => ("95 % interval: ", Some(of_ends(ends))),
        None => ("", found.why_no_interval()),
    };
    let (text, interval) = match interval {
        Some(interval) if form == Some("interval") => (format!("{text} ({what}{interval})"), None),
        interval => (text, interval),
    };
    Ok(Piece::Value { text, detail: operands_in_words(&found.operands), interval })
}

/// In how many trials of how many it was yes.
fn trials(known: &Observations) -> Option<String> {
    let Observations::Trials(trials) = known else { return None };
    let yes = trials.iter().filter(|trial| **trial == 1.0).count();
    Some(format!("{yes} of {}", counted(trials.len(), "trial")))
}

/// So many of so many, with the interval of the share.
fn share(quantity: &str, document: &Document, lookup: &Lookup<'_>) -> Result<Piece, String> {
    let (part, whole) = parts_of_share(quantity).ok_or_else(|| format!("`{quantity}` is no share"))?;
    let count = |side: &str| resolved(side, document, lookup)?.found();
    let (of_part, of_whole) = (count(part)?, count(whole)?);
    let (part, whole) = (of_part.numbers().0, of_whole.numbers().0);
    let operands = each_once([of_part.operands, of_whole.operands].concat());
    let ends = || Scale::PERCENT.interval(share_interval(part, whole), 0);
    let ends = if whole > 0.0 { format!(" (95 % interval: {})", ends()) } else { String::new() };
    let (text, detail) = (format!("{part:.0} of {whole:.0}{ends}"), operands_in_words(&operands));
    Ok(Piece::Value { text, detail, interval: None })
}
