//! Scripts of the tables screen: show a configuration, or change it step by step through the `apply_*` tools and send one preview.

use serde_json::{Map, Value, json};

use super::columns::{self, identifier};
use super::comparison::{Comparison, Operator};
use super::errors;
use super::scene::{Pause, Scene, Script};
use super::table_intents::{SortKey, TableChange, TableWish};
use super::table_words;
use super::words;

/// Carries out `wish`.
pub(super) fn run(scene: &Scene<'_>, wish: &TableWish) -> Script {
    match wish {
        TableWish::Configs => Ok(table_words::configs(scene.ask("list_table_configs", json!({}))?)),
        TableWish::Show(name) => {
            let target = match name {
                Some(name) => fetched(scene, json!({ "name": name }))?,
                None => current(scene)?,
            };
            Ok(target.describe())
        }
        TableWish::Find(name) => {
            let listed = scene.ask("list_table_configs", json!({}))?;
            let is_meant = |config: &&Value| {
                let own = words::str_at(config, &["name"]).unwrap_or_default();
                words::same_name(own, name) || words::same_name(own, &format!("{name} table"))
            };
            let found = words::items(listed, &["configs"]).iter().find(is_meant);
            let Some(id) = found.and_then(|config| words::str_at(config, &["id"])) else {
                let configs = table_words::configs(listed);
                return Err(Pause::Say(format!("I know no table called {}. {configs}", words::bold(name))));
            };
            Ok(fetched(scene, json!({ "id": id }))?.describe())
        }
        TableWish::Reference(topic) => {
            let input = topic.map_or_else(|| json!({}), |topic| json!({ "topic": topic }));
            Ok(table_words::reference(scene.ask("discover_table_reference", input)?))
        }
        TableWish::Schema { schema, table } => {
            let mut input = Map::new();
            for (key, value) in [("schema", schema), ("table", table)] {
                input.extend(value.as_ref().map(|value| (key.to_owned(), Value::from(value.as_str()))));
            }
            let found = scene.ask("search_database_schema", Value::Object(input))?;
            Ok(table_words::schema(schema.as_deref(), table.as_deref(), found))
        }
        TableWish::Validate => {
            let target = current(scene)?;
            let name = target.name.unwrap_or_else(|| "Table".to_owned());
            let found = scene.ask("validate_table_config", json!({ "name": name, "config": target.config }))?;
            Ok(table_words::verdict(found))
        }
        TableWish::Change(changes) => change(scene, changes),
    }
}

/// A configuration to work on.
struct Target {
    /// `None` for one that is not saved yet.
    id: Option<String>,
    name: Option<String>,
    config: Value,
    /// Whether it has previewed changes that nobody decided yet.
    is_pending: bool,
    /// What the tool noted beside it.
    note: Value,
}

impl Target {
    /// What it shows, in words.
    fn describe(&self) -> String {
        words::noted(&self.note, &table_words::config(self.name.as_deref(), &self.config))
    }
}

/// The configuration on the screen: with the changes that still wait for their user, else as the backend has it.
fn current(scene: &Scene<'_>) -> Script<Target> {
    let on_screen = scene.screen_str("config_id").or(scene.shown_config.as_deref());
    if let Some(pending) = scene.pending_config.as_ref().filter(|pending| pending.id.as_deref() == on_screen) {
        return Ok(Target {
            id: pending.id.clone(),
            name: pending.name.clone(),
            config: pending.config.clone(),
            is_pending: true,
            note: Value::Null,
        });
    }
    let unsaved = scene.screen.get("config").filter(|config| config.get("data_source").is_some());
    match on_screen {
        Some(id) => fetched(scene, json!({ "id": id })),
        None => match unsaved {
            Some(config) => Ok(Target {
                id: None,
                name: scene.screen_str("name").map(str::to_owned),
                config: config.clone(),
                is_pending: false,
                note: Value::Null,
            }),
            None => {
                let listed = scene.ask("list_table_configs", json!({}))?;
                Err(Pause::Say(format!(
                    "No table is open on your screen. Open one, or ask me to show one, for example *show the orders \
                     table*. {}",
                    table_words::configs(listed)
                )))
            }
        },
    }
}

fn fetched(scene: &Scene<'_>, input: Value) -> Script<Target> {
    let found = scene.ask("get_table_config", input)?;
    let text = |key: &str| words::str_at(found, &[key]).map(str::to_owned);
    // Some backends keep the configuration as JSON in a text.
    let config = match found.get("config") {
        Some(Value::String(json)) => serde_json::from_str(json).unwrap_or(Value::Null),
        Some(config) => config.clone(),
        None => Value::Null,
    };
    if !config.is_object() {
        return Err(Pause::Say("The backend's answer holds no table configuration that I can read.".to_owned()));
    }
    Ok(Target { id: text("id"), name: text("name"), config, is_pending: false, note: json!({ "note": text("note") }) })
}

fn change(scene: &Scene<'_>, changes: &[TableChange]) -> Script {
    let Target { id, name, mut config, is_pending, note: _ } = current(scene)?;
    let mut done: Vec<String> = Vec::new();
    let mut warnings: Vec<String> = Vec::new();
    for change in changes {
        let said = apply(scene, &mut config, &mut warnings, change)?;
        done.extend(said);
    }
    let description = if done.is_empty() { "The table as it is".to_owned() } else { done.join("; ") };
    let mut input = Map::new();
    let named = [("id", &id), ("name", &name)].into_iter();
    input.extend(named.filter_map(|(key, value)| Some((key.to_owned(), Value::from(value.as_deref()?)))));
    input.insert("config".to_owned(), config);
    input.insert("description_of_changes".to_owned(), Value::from(description));
    let result = scene.ask("preview_table_config", Value::Object(input))?;
    if let Some(text) = errors::refused_preview(result) {
        return Err(Pause::Say(text));
    }
    let name = name.map_or_else(|| "the table".to_owned(), |name| words::bold(&name));
    let mut text = format!("I've sent a preview of {name} for your review; nothing is saved yet.");
    if is_pending {
        text.push_str(" It also holds the changes of the preview before, which you have not decided on.");
    }
    if !done.is_empty() {
        text.push_str(&format!("\n\n{}", words::bullets(done, None)));
    }
    if !warnings.is_empty() {
        text.push_str(&format!("\n\nPlease note:\n\n{}", words::bullets(warnings, None)));
    }
    text.push_str("\n\nAccept the preview to save it, or tell me what to change.");
    Ok(text)
}

/// Applies one change to `config`; what it did, in words.
fn apply(
    scene: &Scene<'_>,
    config: &mut Value,
    warnings: &mut Vec<String>,
    change: &TableChange,
) -> Script<Vec<String>> {
    let mut tool = |config: &mut Value, tool: &'static str, operation: &str, key: &str, value: Value| -> Script<()> {
        let mut input = json!({ "config": config, "operation": operation });
        if let Some(input) = input.as_object_mut() {
            input.insert(key.to_owned(), value);
        }
        *config = applied(scene.ask(tool, input)?, warnings)?;
        Ok(())
    };
    match change {
        TableChange::Nothing => Ok(Vec::new()),
        TableChange::AddColumns(names) => {
            let added = added_columns(scene, config, names)?;
            tool(config, "apply_column_change", "add", "columns", added)?;
            Ok(names.iter().map(|name| format!("added the column {}", words::code(&identifier(name)))).collect())
        }
        TableChange::RemoveColumns(names) => {
            let keys = keys(config, names)?;
            let columns: Vec<Value> = keys.iter().map(|column| json!({ "name": column.key })).collect();
            tool(config, "apply_column_change", "remove", "columns", Value::from(columns))?;
            Ok(keys.iter().map(|column| format!("removed the column {}", words::code(&column.key))).collect())
        }
        TableChange::Hide(names) | TableChange::Unhide(names) => {
            let hides = matches!(change, TableChange::Hide(_));
            let verb = if hides { "hid" } else { "showed" };
            let mut said = Vec::new();
            for column in keys(config, names)? {
                columns::set_column(config, &column, "hidden", Value::Bool(hides));
                said.push(format!("{verb} the column {}", words::code(&column.key)));
            }
            Ok(said)
        }
        TableChange::Header { column, header } => {
            let column = columns::column(config, column).map_err(Pause::Say)?;
            columns::set_column(config, &column, "header", Value::from(header.as_str()));
            Ok(vec![format!("changed the header of {} to {}", words::code(&column.key), words::bold(header))])
        }
        TableChange::Title(title) => {
            if let Some(root) = config.as_object_mut() {
                root.insert("title".to_owned(), Value::from(title.as_str()));
            }
            Ok(vec![format!("changed the title to {}", words::bold(title))])
        }
        TableChange::Sort { keys, replaces } => {
            let (sort, said) = sort_keys(config, keys)?;
            tool(config, "apply_sort_change", if *replaces { "set" } else { "add" }, "sort", sort)?;
            Ok(vec![format!("sorted by {}", words::joined(&said))])
        }
        TableChange::ClearSort => {
            let sort = config.pointer("/data_source/0/sort").cloned().unwrap_or_else(|| json!([]));
            if words::items(&sort, &[]).is_empty() {
                return Err(Pause::Say("This table is not sorted, so there is nothing to remove.".to_owned()));
            }
            tool(config, "apply_sort_change", "remove", "sort", sort)?;
            Ok(vec!["removed the sorting".to_owned()])
        }
        TableChange::Filter(found) => {
            let column = columns::column(config, &found.field).map_err(Pause::Say)?;
            let filter = filter(&column.name, &column.header, found).map_err(Pause::Say)?;
            tool(config, "apply_filter_change", "add", "filter", filter)?;
            Ok(vec![format!("filtered where {}", words::plain(&found.words()))])
        }
        TableChange::ClearFilter(said) => {
            let filters = config.pointer("/data_source/0/filters").cloned().unwrap_or(Value::Null);
            let wanted =
                said.as_deref().map(|said| columns::column(config, said).map_or_else(|_| identifier(said), |c| c.name));
            let all = words::items(&filters, &[]).iter().filter_map(|filter| words::str_at(filter, &["column"]));
            let names: Vec<&str> = all
                .filter(|name| wanted.as_ref().is_none_or(|wanted| words::same_name(wanted, name)))
                .take(10)
                .collect();
            if names.is_empty() {
                return Err(Pause::Say("This table has no such filter, so there is nothing to remove.".to_owned()));
            }
            for name in &names {
                tool(config, "apply_filter_change", "remove", "filter", json!({ "column": name }))?;
            }
            Ok(names.iter().map(|name| format!("removed the filter on {}", words::code(name))).collect())
        }
        TableChange::Join { table, columns } => {
            let join = join(scene, config, table, columns)?;
            tool(config, "apply_join_change", "add", "join", join)?;
            let names: Vec<String> = columns.iter().map(|name| words::code(&identifier(name))).collect();
            let with = if names.is_empty() { String::new() } else { format!(" with {}", words::joined(&names)) };
            Ok(vec![format!("joined the table {}{with}", words::code(table))])
        }
        TableChange::RemoveJoin(table) => {
            let name = table.rsplit_once('.').map_or(table.as_str(), |(_, name)| name);
            tool(config, "apply_join_change", "remove", "join", json!({ "table": identifier(name) }))?;
            Ok(vec![format!("removed the join of {}", words::code(table))])
        }
    }
}

/// The changed configuration in an `apply_*` tool's answer.
fn applied(result: &Value, warnings: &mut Vec<String>) -> Script<Value> {
    let told = words::items(result.get("warnings").unwrap_or(&Value::Null), &[]).iter().map(words::brief);
    // What stands behind a semicolon tells a model which tool comes next.
    for warning in told.map(|told| told.split("; ").next().unwrap_or_default().to_owned()) {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    match result.get("config") {
        Some(config) if config.is_object() && result.get("valid").and_then(Value::as_bool) != Some(false) => {
            Ok(config.clone())
        }
        Some(_) | None => {
            let refused = json!({ "valid": false, "errors": result.get("errors").cloned().unwrap_or_default() });
            Err(Pause::Say(errors::refused_preview(&refused).unwrap_or_default()))
        }
    }
}

fn keys(config: &Value, names: &[String]) -> Script<Vec<columns::Column>> {
    names.iter().map(|name| columns::column(config, name).map_err(Pause::Say)).collect()
}

fn sort_keys(config: &Value, keys: &[SortKey]) -> Script<(Value, Vec<String>)> {
    let mut sort = Vec::new();
    let mut said = Vec::new();
    for (priority, key) in (1..).zip(keys) {
        let column = columns::column(config, &key.column).map_err(Pause::Say)?;
        let (direction, words) = if key.descending { ("desc", "descending") } else { ("asc", "ascending") };
        said.push(format!("{} {words}", words::code(&column.key)));
        sort.push(json!({ "column": column.key, "direction": direction, "priority": priority }));
    }
    Ok((Value::from(sort), said))
}

fn filter(column: &str, label: &str, found: &Comparison) -> Result<Value, String> {
    let operator = match found.operator {
        Operator::Less => "lt",
        Operator::LessOrEqual => "lte",
        Operator::Greater => "gt",
        Operator::GreaterOrEqual => "gte",
        Operator::Equal => "eq",
        Operator::NotEqual => "neq",
        Operator::Contains => "ilike",
        Operator::Empty => "is_null",
        Operator::NotEmpty => "is_not_null",
        Operator::ChangedTo => {
            return Err("A table filter compares what a record is, not what it changes to.".to_owned());
        }
    };
    let mut filter = json!({ "column": column, "operator": operator, "label": label });
    let value = match (&found.value, found.operator) {
        (Value::Null, _) => None,
        (Value::String(part), Operator::Contains) => Some(Value::from(format!("%{part}%"))),
        (value, _) => Some(value.clone()),
    };
    if let (Some(value), Some(fields)) = (value, filter.as_object_mut()) {
        fields.insert("value".to_owned(), value);
    }
    Ok(filter)
}

/// The columns to add, with their types where the database schema can be read.
fn added_columns(scene: &Scene<'_>, config: &Value, names: &[String]) -> Script<Value> {
    let source = columns::source(config).filter(|_| scene.offers("search_database_schema"));
    let known = match source {
        // Only administrators may read the schema; without it the column is added untyped.
        Some((schema, table)) => scene
            .attempt("search_database_schema", json!({ "schema": schema, "table": table }))?
            .map_or(&[][..], |found| words::items(found, &["columns"])),
        None => &[],
    };
    let mut added = Vec::new();
    for name in names {
        let Some(found) =
            known.iter().find(|column| words::str_at(column, &["name"]).is_some_and(|own| words::same_name(own, name)))
        else {
            if known.is_empty() {
                added.push(json!({ "name": identifier(name) }));
                continue;
            }
            let all: Vec<String> =
                known.iter().filter_map(|c| words::str_at(c, &["name"])).take(40).map(words::code).collect();
            let text =
                format!("The database table has no column {}. It has {}.", words::code(name), words::joined(&all));
            return Err(Pause::Say(text));
        };
        let own = words::str_at(found, &["name"]).unwrap_or(name);
        let mut column = json!({ "name": own });
        if let (Some(pg_type), Some(fields)) = (words::str_at(found, &["data_type", "type"]), column.as_object_mut()) {
            fields.insert("pg_type".to_owned(), Value::from(pg_type));
        }
        added.push(column);
    }
    Ok(Value::from(added))
}

/// The join of `said`, by the foreign key that the database schema knows.
fn join(scene: &Scene<'_>, config: &Value, said: &str, names: &[String]) -> Script<Value> {
    let Some((schema, table)) = columns::source(config) else {
        return Err(Pause::Say(
            "This table's configuration names no source table, so I cannot join another one.".to_owned(),
        ));
    };
    let found = scene.ask("search_database_schema", json!({ "schema": schema, "table": table }))?;
    let wanted = said.rsplit_once('.').map_or(said, |(_, name)| name);
    let links = words::items(found.get("relationships").unwrap_or(&Value::Null), &[]);
    let is_wanted =
        |link: &&Value| words::str_at(link, &["referenced_table"]).is_some_and(|name| words::same_name(name, wanted));
    let Some(link) = links.iter().find(is_wanted) else {
        let known: Vec<String> =
            links.iter().filter_map(|link| words::str_at(link, &["referenced_table"])).map(words::code).collect();
        let hint =
            if known.is_empty() { String::new() } else { format!(" It is related to {}.", words::joined(&known)) };
        let text = format!("{} has no relationship to a table {}.{hint}", words::code(table), words::code(said));
        return Err(Pause::Say(text));
    };
    let text = |key: &str| words::str_at(link, &[key]).unwrap_or("id");
    let other = text("referenced_table");
    let columns: Vec<String> = names.iter().map(|name| identifier(name)).collect();
    Ok(json!({
        "table": other,
        "schema": words::str_at(link, &["referenced_schema"]).unwrap_or(schema),
        "join_type": "left",
        "relationship_from": format!("{table}.{}", text("column_name")),
        "relationship_to": format!("{other}.{}", text("referenced_column")),
        "columns_to_add": columns,
    }))
}
