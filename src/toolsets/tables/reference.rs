//! `discover_table_reference`: what may be written into a table configuration, made from the very lists that the
//! validator uses.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::pg_types::PG_TYPES;
use super::vocabulary::{
    COLUMN_TYPES, DIRECTIONS, EDITOR_TYPES, FORMAT_TYPES, JOIN_TYPES, OPERATORS, REFRESH_MODES, SOURCE_TYPES,
    UNARY_OPERATORS, WIDGET_TYPES,
};
use super::{dates, problem::Code};
use crate::agent::ports::tools::ToolContext;
use crate::chat::tool::ToolOutput;
use crate::tools::args::optional_text;
use crate::tools::{Tool, ToolError, parse_args};

/// The handler.
pub struct DiscoverTableReference;

#[derive(Deserialize)]
struct Args {
    #[serde(default, deserialize_with = "optional_text")]
    topic: Option<String>,
}

#[async_trait]
impl Tool for DiscoverTableReference {
    async fn call(&self, args: &Map<String, Value>, _: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: Args = parse_args(args)?;
        let whole = reference();
        let Some(topic) = args.topic else { return Ok(ToolOutput::ok(Value::Object(whole).to_string())) };
        let Some((topic, part)) = whole.get_key_value(&topic) else {
            let topics = whole.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(ToolError::BadParams(format!("topic: use one of {topics}, or none for all")));
        };
        Ok(ToolOutput::ok(json!({ topic: part }).to_string()))
    }
}

/// The reference by topic.
fn reference() -> Map<String, Value> {
    let pg_types: Map<String, Value> =
        PG_TYPES.iter().map(|(column_type, names)| ((*column_type).to_owned(), json!(names))).collect();
    let tokens: Map<String, Value> =
        dates::TOKENS.iter().map(|(token, meaning)| ((*token).to_owned(), json!(meaning))).collect();
    let topics = [
        ("widget_types", json!(WIDGET_TYPES)),
        ("refresh_modes", json!(REFRESH_MODES)),
        ("data_source_types", json!(SOURCE_TYPES)),
        ("column_types", json!(COLUMN_TYPES)),
        ("pg_types", json!({ "shown_as": pg_types, "otherwise": "string" })),
        ("format_types", json!(FORMAT_TYPES)),
        ("editor_types", json!(EDITOR_TYPES)),
        ("filter_operators", json!({ "all": OPERATORS, "without_value": UNARY_OPERATORS, "with_a_list": ["in"] })),
        ("join_types", json!({ "all": JOIN_TYPES, "default": "left" })),
        ("sort_directions", json!({ "all": DIRECTIONS, "default": "asc" })),
        ("date_formats", json!({ "library": "date-fns", "default": dates::DEFAULT, "tokens": tokens })),
        ("rules", rules()),
    ];
    topics.into_iter().map(|(topic, part)| (topic.to_owned(), part)).collect()
}

/// What the validator holds a configuration to, by code.
fn rules() -> Value {
    let rule = |code: Code, text: &str| (code.as_str().to_owned(), json!(text));
    Value::Object(Map::from_iter([
        rule(
            Code::Required,
            "title, data_source, source, and the parts of columns, joins, filters and sorts must be there",
        ),
        rule(Code::InvalidValue, "values come from the lists of this reference"),
        rule(Code::InvalidFormat, "aliases are identifiers such as created_date, columns are column or table.column"),
        rule(Code::InvalidDateFormat, "date patterns use date-fns tokens, not YYYY, DD or a layout such as 2006-01-02"),
        rule(
            Code::MissingVisualSettings,
            "each selected column of a table has an entry in visual_settings.columns under its alias or name",
        ),
        rule(Code::StrictOrder, "either all visible columns have an order or none has"),
        rule(Code::VisibleIdHeader, "no visible column is headed ID or ends in \" ID\": hide ids, show names"),
        rule(Code::IdColumnWithLink, "links sit on readable columns, not on ids"),
        rule(Code::InvalidFieldReference, "settings, link labels and conditional formats name selected columns"),
        rule(Code::InvalidConfig, "the document has the shape of a table configuration"),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topics_are_those_that_the_tool_offers() {
        let file: Value = serde_json::from_str(include_str!("../../../config/tools/tables.json")).expect("JSON");
        let offered = file
            .as_array()
            .and_then(|tools| tools.iter().find(|tool| tool["name"] == "discover_table_reference"))
            .map(|tool| tool["input_schema"]["properties"]["topic"]["enum"].clone());
        assert_eq!(offered, Some(reference().keys().map(String::as_str).collect::<Value>()));
    }
}
