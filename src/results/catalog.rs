//! What rows there could be: the rows that experiments declare, for whoever names rows in a text.

use std::collections::BTreeMap;

use super::row::{MetricSpec, Parameter, Parameters};

/// The rows that experiments declare, for every set of parameters that they were asked for.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    specs: Vec<MetricSpec>,
}

impl Catalog {
    /// A catalog of these rows.
    pub fn new(specs: impl IntoIterator<Item = MetricSpec>) -> Self {
        Self { specs: specs.into_iter().collect() }
    }

    /// With further rows.
    #[must_use]
    pub fn with(mut self, specs: impl IntoIterator<Item = MetricSpec>) -> Self {
        self.specs.extend(specs);
        self
    }

    /// All rows, in their order.
    pub fn specs(&self) -> &[MetricSpec] {
        &self.specs
    }

    /// The first row with this identifier.
    pub fn get(&self, id: &str) -> Option<&MetricSpec> {
        self.specs.iter().find(|spec| spec.id == id)
    }

    /// The identifiers, each once, in their order.
    pub fn ids(&self) -> impl Iterator<Item = &str> + Clone {
        let first =
            |(place, spec): &(usize, &MetricSpec)| !self.specs[..*place].iter().any(|other| other.id == spec.id);
        self.specs.iter().enumerate().filter(first).map(|(_, spec)| spec.id.as_str())
    }

    /// Whether an experiment has this name.
    pub fn has_experiment(&self, name: &str) -> bool {
        self.specs.iter().any(|spec| spec.experiment() == name)
    }

    /// The values that the parameters of the rows `ids` can have, by parameter.
    pub fn parameters<'a>(&'a self, ids: &[&str]) -> BTreeMap<&'a str, Vec<&'a Parameter>> {
        let mut found: BTreeMap<&str, Vec<&Parameter>> = BTreeMap::new();
        for (name, value) in
            self.specs.iter().filter(|spec| ids.contains(&spec.id.as_str())).flat_map(|spec| &spec.parameters)
        {
            let values = found.entry(name).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
        found
    }

    /// Why a row with this identifier and these parameters cannot exist; `None` where it can. Of a parameter that is a
    /// name, the value must be one that an experiment gives; numbers are free.
    pub fn refuse(&self, id: &str, select: &Parameters) -> Option<String> {
        if self.get(id).is_none() {
            return Some(format!("there is no row `{id}`{}", nearest(id, self.ids())));
        }
        let known = self.parameters(&[id]);
        for (name, value) in select {
            let Some(values) = known.get(name.as_str()) else {
                return Some(format!("row `{id}` has no parameter `{name}`{}", nearest(name, known.keys().copied())));
            };
            if let Parameter::Text(text) = value
                && !values.contains(&value)
            {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                let nearest = nearest(text, values.iter().map(String::as_str));
                return Some(format!("the parameter `{name}` of row `{id}` is never `{text}`{nearest}"));
            }
        }
        None
    }
}

/// `; did you mean ...?` with the name that is most like `unknown`; empty where none is like it.
pub fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> String {
    let likeness = |name: &&str| strsim::jaro_winkler(unknown, name);
    let best = known.max_by(|a, b| likeness(a).total_cmp(&likeness(b))).filter(|name| likeness(name) > 0.7);
    best.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}
