//! The JSON Schema of suites.

use schemars::{Schema, SchemaGenerator, json_schema};

use super::suite::{RUNS, Suite};
use crate::experiment::Registry;
use crate::measure::Protocol;

impl Suite {
    /// The JSON Schema of suites with the experiments of `registry`.
    pub fn schema(registry: &Registry) -> Schema {
        let mut generator = SchemaGenerator::default();
        let entries = registry.entries().iter().map(|entry| {
            let parameters = entry.schema(&mut generator);
            json_schema!({
                "type": "object",
                "description": entry.summary,
                "properties": { entry.name: parameters },
                "required": [entry.name],
                "additionalProperties": false,
            })
        });
        let entry = json_schema!({ "oneOf": entries.collect::<Vec<Schema>>() });
        let sampling = generator.subschema_for::<Protocol>();
        let list = json_schema!({ "type": "array", "items": entry, "minItems": 1 });
        let names: Vec<&str> = registry.entries().iter().map(|entry| entry.name).collect();
        let mut schema = json_schema!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Suite",
            "description": "Which experiments to run, with which parameters, on which device.",
            "type": "object",
            "properties": {
                "title": { "type": "string", "description": "The title of the book that is made of the results." },
                "device": { "type": "string", "default": "auto", "description": "The device: `auto` (`cuda:0` if there is one, else `cpu:0`) or a name." },
                "runs": { "type": "integer", "minimum": 1, "default": RUNS, "description": "How often it runs, each time in a process of its own." },
                "sampling": sampling,
                "experiments": list,
                "engines": {
                    "type": "object",
                    "description": "The experiments to run instead on the devices of an engine, by the engine's name.",
                    "properties": { "cuda": list, "cpu": list },
                    "additionalProperties": false,
                },
                "all": { "type": "boolean", "default": false, "description": "Whether the experiments that it does not name run, too, with the parameters that suit the engine." },
                "except": { "type": "array", "items": { "enum": names }, "description": "Experiments that do not run with `all`." },
            },
            "required": ["title", "sampling", "experiments"],
            "additionalProperties": false,
        });
        schema.insert("$defs".to_owned(), generator.take_definitions(true).into());
        schema
    }
}
