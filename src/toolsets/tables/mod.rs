//! The 12 tools of the tables profile. A table configuration is one JSON document that the backend keeps; the model
//! reads it, changes it with small pure edits that keep everything they do not understand, and shows the result to the
//! user. Nothing here saves: that is what accepting a preview does.

mod args;
mod change;
mod columns;
mod config;
mod config_id;
mod dates;
mod filters;
#[cfg(test)]
mod fixture;
mod joins;
mod pg_types;
mod preview;
mod problem;
mod reader;
mod reference;
mod save;
mod saved;
mod schema;
mod selection;
mod sorts;
mod stored;
mod validate;
mod visual;
mod vocabulary;

use std::sync::Arc;

use crate::tools::executor::Handler;
use crate::tools::{Deps, Unready};
use crate::toolsets::Toolset;
use reader::ConfigReader;

/// Its part of the page.
#[derive(rust_embed::RustEmbed)]
#[folder = "src/toolsets/tables/page/"]
struct Page;

/// The tools beside a table.
pub const TOOLSET: Toolset = Toolset {
    name: "tables",
    page: super::files::<Page>,
    tools,
    reader: Some((reader::NAME, |backend| Arc::new(ConfigReader(backend)))),
};

/// What these tools change, as a preview calls it.
const WHAT: &str = "table configuration";

/// The handlers of `config/tools/tables.json`, in its order.
fn tools(deps: &Deps) -> Result<Vec<Handler>, Unready> {
    let backend = || Arc::clone(&deps.backend);
    let previews = || Arc::clone(&deps.previews);
    Ok(vec![
        ("search_database_schema".into(), Arc::new(schema::SearchDatabaseSchema { backend: backend() })),
        ("discover_table_reference".into(), Arc::new(reference::DiscoverTableReference)),
        ("get_table_config".into(), Arc::new(saved::OneConfig { backend: backend() })),
        ("list_table_configs".into(), Arc::new(saved::AllConfigs { backend: backend() })),
        ("validate_table_config".into(), Arc::new(saved::ValidateConfig { backend: backend() })),
        (
            "preview_table_config".into(),
            Arc::new(preview::PreviewConfig { backend: backend(), recorder: deps.recorder() }),
        ),
        ("create_table_config".into(), Arc::new(save::CreateConfig { previews: previews() })),
        ("update_table_config".into(), Arc::new(save::UpdateConfig { backend: backend(), previews: previews() })),
        ("apply_column_change".into(), Arc::new(columns::ColumnChange)),
        ("apply_filter_change".into(), Arc::new(filters::FilterChange)),
        ("apply_join_change".into(), Arc::new(joins::JoinChange)),
        ("apply_sort_change".into(), Arc::new(sorts::SortChange)),
    ])
}
