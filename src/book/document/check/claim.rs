//! Claims: each has a name of its own, stands where there is a text, and has what its kind needs.

use super::Check;
use super::at::At;
use super::sentence::bounded;
use crate::document::{Claim, ClaimKind};
use crate::error::FileError;
use crate::measure::AcceptedRegion;
use crate::predicate::{Checked, Test, operands_of};
use crate::results::{Dimension, Parameters};

/// Finds the first contradiction in the claims of a document.
pub(super) fn check(top: &At<'_>) -> Check {
    for (at, claim) in top.each("claims", &top.document.claims) {
        let at = at.about(format!("claim `{}`: ", claim.id));
        for (at, place) in at.each("places", &claim.places) {
            if let Some((what, hint)) = at.document.names.texts.unknown(place) {
                return at.refuse_for(what, hint);
            }
        }
        match (claim.is_about_figures(), claim.on.is_some()) {
            (true, true) => return at.name("on").refuse("arithmetic is about no system: it has no `on`"),
            (false, false) => return at.key("kind").refuse("it says nothing of the system that it is about: `on`"),
            _ => {}
        }
        if claim.tests.is_empty() {
            return at.key("tests").refuse("there is no test");
        }
        for (at, text) in at.each("tests", &claim.tests) {
            let (test, checked) = read(&at, claim, text)?;
            check_kind(&at, claim, &test, &checked)?;
        }
        for (at, text) in at.each("shown", &claim.shown) {
            read(&at, claim, text)?;
        }
        if let Some(given) = &claim.given {
            let at = at.key("given");
            bounded(&read(&at, claim, given)?.0).map_err(|unknown| at.unknown(unknown))?;
        }
        check_cases(&at, claim)?;
    }
    Ok(())
}

fn read(at: &At<'_>, claim: &Claim, text: &str) -> Result<(Test, Checked), FileError> {
    let test = Test::parse(text).map_err(|unknown| at.unknown(unknown))?;
    let none = [Parameters::new()];
    let cases = if claim.cases.is_empty() { &none[..] } else { &claim.cases };
    let checked = Checked::of(&test.quantity, at.document, cases, claim.each.as_deref());
    Ok((test, checked.map_err(|unknown| at.unknown(unknown))?))
}

/// What the kind asks of a test.
fn check_kind(at: &At<'_>, claim: &Claim, test: &Test, checked: &Checked) -> Check {
    let Checked { operands, dimension } = checked;
    let measured = operands.iter().any(|(_, operand)| operand.measured().is_some());
    match (claim.kind, test.region) {
        (ClaimKind::Model, Some(_)) => {
            at.refuse("a model has no bounds: its test is the error alone, such as `a / b - 1`")
        }
        (ClaimKind::Model, None) if claim.each.is_none() && claim.cases.is_empty() => {
            at.refuse("the error of a model is of several cases: it needs `each` or `cases`")
        }
        (ClaimKind::Model, None) if dimension.is_other_than(Dimension::NONE) => at
            .refuse(format!("the error of a model is a share, such as `a / b - 1`, and this is {}", dimension.words())),
        (kind, None) if kind != ClaimKind::Model => at.refuse("it has no bound"),
        (ClaimKind::Arithmetic, _) if measured => at.refuse("arithmetic holds nothing that was measured"),
        (kind, _) if kind != ClaimKind::Arithmetic && !measured => at.refuse("nothing that was measured stands in it"),
        (ClaimKind::Sign, Some(AcceptedRegion { low, high })) if low.xor(high).is_none_or(|end| end.value != 0.0) => {
            at.refuse("a sign is a difference above or below 0")
        }
        (ClaimKind::Value, Some(AcceptedRegion { low, high })) if low.is_none() || high.is_none() => {
            at.refuse("a value has two bounds, between which the text's figure counts as found")
        }
        _ => Ok(()),
    }
}

/// The parameters of the cases are those of its rows.
fn check_cases(at: &At<'_>, claim: &Claim) -> Check {
    if claim.compare.is_some() && claim.each.is_none() && claim.cases.len() < 2 {
        return at.key("compare").refuse("there are no cases to compare: `each`, or two `cases`");
    }
    let quantities = claim.tests.iter().chain(&claim.shown).filter_map(|text| Test::parse(text).ok());
    let operands = quantities.flat_map(|test| operands_of(&test.quantity, at.document).unwrap_or_default());
    let ids: Vec<String> = operands.filter_map(|(_, operand)| operand.measured().map(str::to_owned)).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    for (at, select) in at.each("cases", &claim.cases) {
        at.parameters(&ids, select, "no row of its tests has")?;
    }
    at.key("cases").once(&claim.cases, None, |_| "the case stands there twice".to_owned())?;
    let cases = (!claim.cases.is_empty()).then_some("it");
    at.each_value(&ids, claim.each.as_deref(), cases, "no row of its tests has")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HEAD, error, parse};

    /// A claim with these fields.
    fn claim(fields: &str) -> String {
        format!("claims:\n  - {{id: c-x, claim: C, rationale: B, {fields}}}\n")
    }

    #[test]
    fn a_claim_of_each_kind_with_what_the_kind_needs_is_read() {
        for fields in [
            "kind: always, on: cuda, tests: [fp16.a > 0]",
            "kind: exists, on: pytorch, tests: [a < 0.5 * b], places: ['003:2-9']",
            "kind: value, on: pytorch, tests: [1 <= a / b <= 2], cases: [{dtype: fp16}]",
            "kind: sign, on: program, tests: [a - b > 0], each: size, given: share == 1",
            "kind: model, on: cuda, tests: [a / b - 1], each: size, shown: [a / size]",
            "kind: arithmetic, tests: [published.t.fp16.a < 1]",
            "kind: implementation, on: pytorch, tests: [seen == 1]",
            "kind: always, on: cuda, tests: [1 <= a <= 2], cases: [{size: 8}, {dtype: fp16}], compare: ratio",
        ] {
            let read = parse(&format!("{HEAD}{}", claim(fields)));
            assert!(read.is_ok(), "{fields}: {}", read.unwrap_err());
        }
    }

    /// Each with a mark before what is wrong in it.
    #[test]
    fn a_claim_that_lacks_what_its_kind_needs_is_refused_where_it_does() {
        for (fields, what) in [
            ("kind: ^always, tests: [a > 0]", "says nothing of the system that it is about"),
            ("kind: always, on: cuda, tests: ^[]", "there is no test"),
            ("kind: always, on: cuda, tests: [^a]", "it has no bound"),
            ("kind: always, on: cuda, tests: [^1 < 2]", "names no measured value"),
            ("kind: always, on: cuda, tests: [^fp61.a > 0]", "`fp61.a` names no measurement; did you mean `fp16`?"),
            ("kind: ^sometimes, on: cuda, tests: [a > 0]", "unknown variant `sometimes`"),
            ("kind: value, on: cuda, tests: [^a > 2]", "a value has two bounds"),
            ("kind: sign, on: cuda, tests: [^a > 2]", "a sign is a difference above or below 0"),
            ("kind: sign, on: cuda, tests: [^-1 < a < 0]", "a sign is a difference above or below 0"),
            ("kind: model, on: cuda, each: size, tests: [^a < 2]", "a model has no bounds"),
            ("kind: model, on: cuda, tests: [^a / b]", "needs `each` or `cases`"),
            ("kind: arithmetic, ^on: cuda, tests: [published.t.fp16.a < 1]", "arithmetic is about no system"),
            ("kind: arithmetic, tests: [^a < 1]", "arithmetic holds nothing that was measured"),
            ("kind: always, on: cuda, tests: [^published.t.fp16.a < 1]", "nothing that was measured stands"),
            ("kind: always, on: cuda, tests: [a > 0], each: ^sizes", "has a parameter `sizes`; did you mean `size`?"),
            (
                "kind: always, on: cuda, tests: [a > 0], cases: [{^dtyp: fp16}]",
                "a parameter `dtyp`; did you mean `dtype`?",
            ),
            (
                "kind: always, on: cuda, tests: [a > 0], cases: [{size: ^9}]",
                "no row of its tests has a `size` that is `9`; the only value is 8",
            ),
            ("kind: always, on: cuda, tests: [a > 0], cases: [{size: 8}, ^{size: 8.0}]", "the case stands there twice"),
            (
                "kind: always, on: cuda, tests: [^a.size_99 > 0]",
                "`a.size_99` names no measurement; the only value is 8",
            ),
            ("kind: always, on: cuda, tests: [^share + a < 3]", "`share` is a number without a unit and `a` is a time"),
            ("kind: always, on: cuda, tests: [^a > share]", "`(a)` is a time and `(share)` is a number without a unit"),
            ("kind: always, on: cuda, tests: [^2 < a < 1]", "never holds: no number lies between its bounds"),
            ("kind: always, on: cuda, tests: [^'']", "nothing stands here"),
            ("kind: always, on: cuda, tests: [a > 0], given: ^~", "nothing stands here"),
            ("kind: always, on: cuda, tests: [^1 s < 2]", "an operator is missing before `s`"),
            ("kind: model, on: cuda, each: size, tests: [^a - b]", "the error of a model is a share, such as"),
            ("kind: always, on: cuda, tests: [a > 0], compare: ^ratio", "no cases to compare"),
            ("kind: always, on: cuda, tests: [a > 0], ^each: size, cases: [{size: 8}]", "`cases` and `each`"),
            ("kind: always, on: cuda, tests: [a > 0], places: [^'003:8-10']", "`f.txt` has 9 lines"),
            ("kind: always, on: cuda, tests: [a > 0], places: [^'004:1']", "there is no text `004`"),
            ("kind: always, on: cuda, tests: [a > 0], places: [^'003']", "`003` is no place"),
            ("kind: always, on: cuda, tests: [a > 0], given: ^c > 0", "`c` names no measurement"),
            ("kind: always, on: cuda, tests: [a > 0], given: ^a - b", "`a - b` has no bound"),
            ("kind: always, on: cuda, tests: [a > 0], shown: [^c]", "`c` names no measurement"),
        ] {
            let marked = claim(fields);
            let column = marked.lines().nth(1).unwrap().find('^').unwrap() + 1;
            let message = error(&marked.replace('^', ""));
            let start = format!("d.yaml:15:{column}: ");
            assert!(message.starts_with(&start) && message.contains(what), "{fields}\n{message}\n{start} … {what}");
        }
    }
}
