//! What rows there could be: the rows that experiments declare, for whoever names rows in a text.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::row::{MetricSpec, Parameter, Parameters, values};
use super::run::Results;
use super::spelled::Spelled;

/// The rows that experiments declare, for every set of parameters that they were asked for.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    specs: Vec<MetricSpec>,
    /// The places of the rows of each identifier.
    places: BTreeMap<String, Vec<usize>>,
    /// The identifiers in the order of the rows.
    ids: Vec<String>,
    /// The rows, by their identifier, of each system in each file and of each engine: those among which a name has to single
    /// out one.
    together: Vec<BTreeMap<String, Vec<MetricSpec>>>,
    /// What results files call their rows, by the identifier: a file explains itself.
    labels: BTreeMap<String, String>,
    /// The identifiers as texts write them, made when first asked for: a book asks for thousands of names.
    spelled: OnceLock<Vec<Spelled>>,
}

/// A parameter that no row has, or a value that it never has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownParameter {
    /// The parameter.
    pub name: String,
    /// The value, where it is the value that is unknown.
    pub value: Option<String>,
    /// What may have been meant, to be read behind a message; empty where nothing is known.
    pub hint: String,
}

impl Catalog {
    /// A catalog of these rows.
    pub fn new(specs: impl IntoIterator<Item = MetricSpec>) -> Self {
        Self::default().with(specs)
    }

    /// With further rows.
    #[must_use]
    pub fn with(mut self, specs: impl IntoIterator<Item = MetricSpec>) -> Self {
        self.spelled = OnceLock::new();
        for spec in specs {
            let places = self.places.entry(spec.id.clone()).or_default();
            if places.is_empty() {
                self.ids.push(spec.id.clone());
            }
            places.push(self.specs.len());
            self.specs.push(spec);
        }
        self
    }

    /// With the rows of results files. Which of them are looked for together is the files' own: where a name fits several
    /// rows of one, a lookup says so.
    #[must_use]
    pub fn with_results(mut self, all: &[Results]) -> Self {
        for spec in all.iter().flat_map(|results| results.rows.iter()).map(|row| &row.spec) {
            self.labels.entry(spec.id.clone()).or_insert_with(|| spec.label.clone());
        }
        self.with(all.iter().flat_map(|results| results.rows.iter()).map(|row| row.spec.clone()))
    }

    /// With rows that are looked for together.
    #[must_use]
    pub fn with_together(mut self, specs: impl IntoIterator<Item = MetricSpec>) -> Self {
        let specs: Vec<MetricSpec> = specs.into_iter().collect();
        let mut own: BTreeMap<String, Vec<MetricSpec>> = BTreeMap::new();
        for spec in &specs {
            own.entry(spec.id.clone()).or_default().push(spec.clone());
        }
        self.together.push(own);
        self.with(specs)
    }

    /// The rows with this identifier that are looked for together.
    pub fn together<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a [MetricSpec]> {
        self.together.iter().filter_map(move |specs| specs.get(id)).map(Vec::as_slice)
    }

    /// All rows, in their order.
    pub fn specs(&self) -> &[MetricSpec] {
        &self.specs
    }

    /// The first row with this identifier.
    pub fn get(&self, id: &str) -> Option<&MetricSpec> {
        self.of(id).next()
    }

    /// What a row is called: by the results, else where it is declared.
    pub fn label(&self, id: &str) -> Option<&str> {
        let declared = || self.get(id).map(|spec| spec.label.as_str());
        self.labels.get(id).map(String::as_str).or_else(declared)
    }

    /// The rows with this identifier.
    pub fn of<'a>(&'a self, id: &str) -> impl Iterator<Item = &'a MetricSpec> + use<'a> {
        self.places.get(id).into_iter().flatten().map(|place| &self.specs[*place])
    }

    /// The identifiers, each once, in their order.
    pub fn ids(&self) -> impl Iterator<Item = &str> + Clone {
        self.ids.iter().map(String::as_str)
    }

    /// The identifiers, each once, in their order, as expressions write them.
    pub fn spelled(&self) -> &[Spelled] {
        self.spelled.get_or_init(|| self.ids.iter().map(|id| Spelled::of(id, self.of(id))).collect())
    }

    /// Whether an experiment has this name.
    pub fn has_experiment(&self, name: &str) -> bool {
        let begin = format!("{name}.");
        let mut from = self.places.range(begin.clone()..);
        self.places.contains_key(name) || from.next().is_some_and(|(id, _)| id.starts_with(&begin))
    }

    /// The values that the parameters of the rows `ids` can have, by parameter.
    pub fn parameters<'a>(&'a self, ids: &[&str]) -> BTreeMap<&'a str, Vec<&'a Parameter>> {
        let spelled = ids.iter().filter_map(|id| self.spelled().iter().find(|spelled| spelled.id == *id));
        values(spelled.flat_map(Spelled::values))
    }

    /// The first of some parameters that none of the rows `ids` has, or whose value none has.
    pub fn unknown_parameter(&self, ids: &[&str], select: &Parameters) -> Option<UnknownParameter> {
        let known = self.parameters(ids);
        select.iter().find_map(|(name, value)| {
            let unknown = |value, hint| Some(UnknownParameter { name: name.clone(), value, hint });
            match known.get(name.as_str()) {
                None => unknown(None, nearest(name, known.keys().copied())),
                Some(values) if !values.contains(&value) => unknown(Some(value.to_string()), near_value(value, values)),
                Some(_) => None,
            }
        })
    }
}

/// What may have been meant by a value that is not among those that there are.
fn near_value(value: &Parameter, known: &[&Parameter]) -> String {
    let numbers: Vec<f64> = known.iter().filter_map(|value| value.number()).collect();
    match value.number().filter(|_| !numbers.is_empty()) {
        Some(number) => nearest_number(number, &numbers),
        None => {
            let names: Vec<String> = known.iter().map(ToString::to_string).collect();
            let near = nearest(&value.to_string(), names.iter().map(String::as_str));
            if near.is_empty() { format!("; there are: {}", names.join(", ")) } else { near }
        }
    }
}

/// `; …` with the range of the numbers that there are, and the one that is nearest to `unknown`.
pub fn nearest_number(unknown: f64, known: &[f64]) -> String {
    let nearer = |one: &f64, other: &f64| (one - unknown).abs().total_cmp(&(other - unknown).abs());
    let (least, most) = (known.iter().copied().reduce(f64::min), known.iter().copied().reduce(f64::max));
    match (least, most, known.iter().copied().min_by(nearer)) {
        (Some(least), Some(most), _) if least == most => format!("; the only value is {most}"),
        (Some(least), Some(most), Some(near)) => {
            format!("; the values lie between {least} and {most}: did you mean `{near}`?")
        }
        _ => String::new(),
    }
}

/// `; did you mean ...?` with the name that is most like `unknown`; empty where none is like it.
///
/// ```
/// use syncscope_results::nearest;
///
/// assert!(nearest("overlp", ["overlap", "launch-path"].into_iter()).contains("overlap"));
/// ```
pub fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest_name(unknown, known).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// The name that is most like `unknown`, where one is like it.
pub fn nearest_name<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    most_alike(known.map(|name| (unknown, name)))
}

/// Of pairs of what was written and a name that there is, the name of the pair that is most alike, where one is.
pub fn most_alike<W: AsRef<str>, N: AsRef<str>>(pairs: impl Iterator<Item = (W, N)>) -> Option<N> {
    // Comparing takes a time that grows with the product of both lengths, and a text that is much longer than any name is no
    // name with a mistake in it.
    const LONGEST: usize = 256;
    let pairs = pairs.filter(|(written, _)| written.as_ref().len() <= LONGEST);
    let likeness = |written: &str, name: &str| {
        // Of a short name one mistake is a large part, which changes the length by one at most.
        let is_as_long = written.chars().count().abs_diff(name.chars().count()) <= 1;
        let is_one_off = name.len() > 1 && is_as_long && strsim::osa_distance(written, name) <= 1;
        let is_same = written.replace(['_', ' '], "-").eq_ignore_ascii_case(name);
        f64::from(u8::from(is_one_off || is_same)) + strsim::jaro_winkler(written, name)
    };
    let compared = pairs.map(|(written, name)| (likeness(written.as_ref(), name.as_ref()), name));
    // Of names that are as like, the first.
    let best = compared.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.filter(|(likeness, _)| *likeness > 0.7).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_with_one_mistake_is_near_and_another_name_is_not() {
        let known = || ["small", "big", "implicit"].into_iter();
        assert_eq!(nearest("bgi", known()), "; did you mean `big`?");
        assert_eq!(nearest("smal", known()), "; did you mean `small`?");
        assert_eq!(nearest("pf16", ["fp16", "bf16"].into_iter()), "; did you mean `fp16`?");
        assert_eq!(nearest("cpu:o", ["cpu:0", "cpu:1"].into_iter()), "; did you mean `cpu:0`?");
        assert_eq!(nearest("row", known()), "");
        assert_eq!(nearest("x", ["y"].into_iter()), "");
    }

    #[test]
    fn a_text_that_is_no_name_is_near_none_however_it_begins() {
        let long = |length| "small".to_owned() + &"l".repeat(length);
        assert_eq!(nearest(&long(1), ["small"].into_iter()), "; did you mean `small`?");
        // Compared, it would take a day.
        assert_eq!(nearest(&long(64 << 20), std::iter::repeat_n("small", 100_000)), "");
    }

    #[test]
    fn a_number_that_no_row_has_is_unknown_with_the_range_and_the_nearest() {
        let spec = |size: usize| MetricSpec {
            id: "a.b".to_owned(),
            group: "G".to_owned(),
            label: "L".to_owned(),
            unit: crate::units::Unit::Seconds,
            parameters: [("size".to_owned(), size.into())].into(),
            provenance: super::super::row::Provenance::measured(crate::measure::Clock::Host),
            work: None,
            floor: None,
        };
        let catalog = Catalog::new([spec(8), spec(512)]);
        let hint =
            |value: Parameter| Some(catalog.unknown_parameter(&["a.b"], &[("size".to_owned(), value)].into())?.hint);
        assert_eq!(
            (hint(8_usize.into()), hint(512.0.into())),
            (None, None),
            "8 and 512.0 are as large as what is there"
        );
        let range = "; the values lie between 8 and 512: did you mean `512`?";
        assert_eq!(hint(9e9.into()).as_deref(), Some(range));
        assert_eq!(hint("many".into()).as_deref(), Some("; there are: 8, 512"));
        assert_eq!(nearest_number(3.0, &[2.0]), "; the only value is 2");
    }
}
