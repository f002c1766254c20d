//! Scripts of the tables screen: a configuration is displayed, or its columns are changed and it is previewed once.

use serde_json::{Value, json};

use super::building::previewed;
use super::scene::{self, Pause, Scene, Script, Table};
use super::words::Clause;
use super::{rules, say};

/// The configuration on the screen: with the changes that wait for their user, else as the backend has it.
fn current(scene: &Scene<'_>) -> Script<Table> {
    let on_screen = scene.screen_text("config_id").map(|id| json!(id));
    let id = on_screen.or_else(|| scene::last_table(scene.before));
    let pending =
        scene::pending_table(scene).filter(|table| table.id.as_deref() == id.as_ref().and_then(Value::as_str));
    match (pending, id) {
        (Some(table), _) => Ok(table),
        (None, Some(id)) => fetched(scene, json!({ "id": id })),
        (None, None) => {
            let configs = say::items(scene.ask("list_table_configs", json!({}))?).iter().map(rules::entry);
            let text = "No table is open on your screen. Open one, or say for example *show the orders table*.";
            Err(Pause::Say(format!("{text} There are:\n\n{}", say::bullets(configs, 0))))
        }
    }
}

fn fetched(scene: &Scene<'_>, input: Value) -> Script<Table> {
    let found = scene.ask("get_table_config", input)?;
    let text = |key: &str| say::text(found, &[key]).map(str::to_owned);
    let config = found.get("config").filter(|config| config.is_object()).cloned();
    let config =
        config.ok_or_else(|| Pause::Say("The answer holds no table configuration that I can read.".to_owned()))?;
    Ok(Table { id: text("id"), name: text("name"), config, is_pending: false })
}

/// Shows the table that the clause names, else the one on the screen.
pub(super) fn show(scene: &Scene<'_>, clause: Clause<'_>) -> Script {
    let named = Clause(clause.0.get(1..).unwrap_or_default()).name();
    let named = clause.quoted().map(str::to_owned).or(named).filter(|_| !clause.has(&["this", "it", "what"]));
    let Some(name) = named else { return Ok(about(&current(scene)?)) };
    let listed = say::items(scene.ask("list_table_configs", json!({}))?);
    let is_meant = |config: &&Value| {
        let own = say::text(config, &["name"]).unwrap_or_default();
        say::same_name(own, &name) || say::same_name(own, &format!("{name} table"))
    };
    match listed.iter().find(is_meant).and_then(|config| config.get("id")) {
        Some(id) => Ok(about(&fetched(scene, json!({ "id": id }))?)),
        None => Err(Pause::Say(format!("I know no table called {}.", say::bold(&name)))),
    }
}

fn about(table: &Table) -> String {
    let Table { name, config, .. } = table;
    let title = name.as_deref().or(say::text(config, &["title"])).unwrap_or("This table");
    let of = source(config).map(|table| format!(" records of {}", say::code(&table)));
    let columns = columns(config);
    let lines = columns.iter().map(|Column { key, header, kind, is_hidden, .. }| {
        let kind = kind.as_deref().map(|kind| format!(", {}", say::plain(kind))).unwrap_or_default();
        format!("{} ({}{kind}{})", say::bold(header), say::code(key), if *is_hidden { ", hidden" } else { "" })
    });
    let mut text = format!("{} shows{} in ", say::bold(title), of.unwrap_or_default());
    text.push_str(&format!("{}:\n\n{}", say::count(columns.len(), "column"), say::bullets(lines, 0)));
    text
}

/// Carries out all changes of the message and sends one preview.
pub(super) fn change(scene: &Scene<'_>, clauses: &[Clause<'_>]) -> Script {
    let mut table = current(scene)?;
    let (mut done, mut warnings) = (Vec::new(), Vec::new());
    for clause in clauses {
        done.push(apply(scene, &mut table.config, &mut warnings, *clause)?);
    }
    let mut input = json!({ "config": table.config, "description_of_changes": done.join("; ") });
    for (key, value) in [("id", table.id), ("name", table.name.clone())] {
        input.as_object_mut().into_iter().for_each(|input| {
            input.extend(value.as_ref().map(|value| (key.to_owned(), Value::from(value.as_str()))));
        });
    }
    let sent = scene.ask("preview_table_config", input)?;
    let mut more = String::new();
    if table.is_pending {
        more.push_str(" It also holds the changes of the preview before, which you have not decided on.");
    }
    more.push_str(&format!("\n\n{}", say::bullets(done, 0)));
    if !warnings.is_empty() {
        more.push_str(&format!("\n\nPlease note:\n\n{}", say::bullets(warnings, 0)));
    }
    previewed(sent, &table.name.map_or_else(|| "the table".to_owned(), |name| say::bold(&name)), &more)
}

/// Makes one change of `config`; what it did, in words.
fn apply(scene: &Scene<'_>, config: &mut Value, warnings: &mut Vec<String>, clause: Clause<'_>) -> Script {
    let columns = ["column", "columns"];
    let rest = Clause(clause.0.get(1..).unwrap_or_default());
    let named = |clause: Option<Clause<'_>>| {
        let question = "I do not understand that change of the table. I can hide, remove and rename columns.";
        clause.and_then(Clause::name).ok_or_else(|| Pause::Say(question.to_owned()))
    };
    if let Some(of) = rest.behind(&["header", "heading"]) {
        let column = column(config, &named(of.behind(&["of"]))?)?;
        let header = named(of.behind(&["to"]))?;
        set(config, &column, "header", Value::from(header.as_str()));
        return Ok(format!("changed the header of {} to {}", say::code(&column.key), say::bold(&header)));
    }
    // The name stands behind "column", else before it.
    let behind = rest.behind(&columns).filter(|behind| behind.name().is_some_and(|name| name != "hidden"));
    let column = column(config, &named(behind.or(Some(rest.before(&columns))))?)?;
    if clause.has(&["hide", "hidden"]) {
        set(config, &column, "hidden", Value::Bool(true));
        return Ok(format!("hid the column {}", say::code(&column.key)));
    }
    if !clause.has(&["delete", "drop", "remove"]) {
        return named(None);
    }
    let input = json!({ "config": config, "operation": "remove", "columns": [{ "name": column.key }] });
    *config = applied(scene.ask("apply_column_change", input)?, warnings)?;
    Ok(format!("removed the column {}", say::code(&column.key)))
}

/// The changed configuration in the answer of an `apply_*` tool, which may warn besides.
fn applied(result: &Value, warnings: &mut Vec<String>) -> Script<Value> {
    for warning in say::list_at(result, "/warnings").iter().map(say::brief) {
        // The first part of a warning is for people.
        let warning = warning.split("; ").next().unwrap_or_default().to_owned();
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    let config =
        result.get("config").filter(|config| config.is_object() && result.get("valid") != Some(&Value::Bool(false)));
    config.cloned().ok_or_else(|| {
        let problems = say::bullets(say::list_at(result, "/errors").iter().map(say::brief), 0);
        Pause::Say(format!("This change was refused:\n\n{problems}"))
    })
}

/// A column of a configuration.
struct Column {
    /// Its alias, or the name where there is none.
    key: String,
    name: String,
    header: String,
    kind: Option<String>,
    is_hidden: bool,
}

/// The columns of `config`: those with settings as these stand, then the others.
fn columns(config: &Value) -> Vec<Column> {
    let mut selected: Vec<(&str, &str)> = Vec::new();
    let mut lists: Vec<&Value> = config.pointer("/data_source/0/select").into_iter().collect();
    while let Some(table) = lists.pop() {
        for column in say::list_at(table, "/columns") {
            let name = column.as_str().or(say::text(column, &["name"])).unwrap_or_default();
            selected.push((say::text(column, &["alias"]).unwrap_or(name), name));
        }
        lists.extend(say::list_at(table, "/foreign_tables"));
    }
    let settings = config.pointer("/visual_settings/columns").and_then(Value::as_object);
    let set = settings.into_iter().flatten().map(|(key, setting)| (key.as_str(), setting));
    let others = selected.iter().map(|(key, _)| (*key, &Value::Null));
    let others = others.filter(|(key, _)| settings.is_none_or(|settings| !settings.contains_key(*key)));
    set.chain(others)
        .map(|(key, setting)| Column {
            key: key.to_owned(),
            name: selected.iter().find(|(own, _)| *own == key).map_or(key, |(_, name)| name).to_owned(),
            header: say::text(setting, &["header", "name"]).map_or_else(|| say::titled(key), str::to_owned),
            kind: say::text(setting, &["type"]).map(str::to_owned),
            is_hidden: setting.get("hidden") == Some(&Value::Bool(true)),
        })
        .collect()
}

/// The column that is called so, by its key, its name or its header.
fn column(config: &Value, wanted: &str) -> Script<Column> {
    let mut all = columns(config);
    let names = |column: &Column| [&column.key, &column.name, &column.header].map(|name| say::same_name(name, wanted));
    match all.iter().position(|column| names(column).contains(&true)) {
        Some(at) => Ok(all.swap_remove(at)),
        None => {
            let known: Vec<String> = all.iter().take(30).map(|column| say::code(&column.key)).collect();
            let text = format!("This table has no column {}. It has {}.", say::code(wanted), say::joined(&known));
            Err(Pause::Say(text))
        }
    }
}

/// Sets `key` of a column's settings.
fn set(config: &mut Value, column: &Column, key: &str, value: Value) {
    let fresh = json!({ "name": column.key, "header": column.header });
    let mut at = config;
    for (step, empty) in [("visual_settings", json!({})), ("columns", json!({})), (column.key.as_str(), fresh)] {
        let Some(fields) = at.as_object_mut() else { return };
        at = fields.entry(step).or_insert(empty);
    }
    if let Some(fields) = at.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}

/// `schema.table` that `config` reads.
fn source(config: &Value) -> Option<String> {
    let source = config.pointer("/data_source/0")?;
    let table = say::text(source, &["source"])?;
    Some(match say::text(source, &["schema"]) {
        Some(schema) if !table.contains('.') => format!("{schema}.{table}"),
        Some(_) | None => table.to_owned(),
    })
}
