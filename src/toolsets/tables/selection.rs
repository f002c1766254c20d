//! Which columns a data source selects, and from which of its tables: read once into plain values, so that an edit can
//! look things up while it changes the document.

use serde_json::{Map, Value};

use super::config::{list, list_mut, object_mut, text};
use super::problem::{Code, Problem};

/// One table of a data source: its own, or a joined one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRef {
    /// The path of its entry: indexes into `foreign_tables`, level by level; empty for the source's own table.
    pub path: Vec<usize>,
    /// The table's name.
    pub table: String,
    /// What the join calls it.
    pub alias: Option<String>,
    /// Its schema, when named.
    pub schema: Option<String>,
}

impl TableRef {
    /// The name its columns are qualified with.
    pub fn qualifier(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.table)
    }
}

/// One selected column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its table: an index into [`Selection::tables`].
    pub table: usize,
    /// Its index in the table's `columns`.
    pub index: usize,
    /// Its name in the database.
    pub name: String,
    /// What the selection calls it.
    pub alias: Option<String>,
    /// The older way to name the output: `table.column`.
    pub table_column: Option<String>,
}

impl Column {
    /// The key of its visual settings: its alias or its name.
    pub fn key(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }

    /// Whether visual settings under `key` describe it.
    pub fn is_described_by(&self, key: &str) -> bool {
        self.key() == key || (self.alias.is_none() && self.table_column.as_deref() == Some(key))
    }
}

/// What a data source selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Its tables, its own first, joined ones in document order.
    pub tables: Vec<TableRef>,
    /// Its columns, in the order of the tables.
    pub columns: Vec<Column>,
    /// Names of columns that the client computes.
    pub computed: Vec<String>,
}

impl Selection {
    /// What `source`, an entry of `data_source`, selects. Entries of the wrong shape are left out.
    pub fn read(source: &Map<String, Value>) -> Self {
        let own = text(source, "source").unwrap_or_default();
        let (schema, table) = match own.rsplit_once('.') {
            Some((schema, table)) => (Some(schema), table),
            None => (text(source, "schema"), own),
        };
        let own =
            TableRef { path: Vec::new(), table: table.to_owned(), alias: None, schema: schema.map(str::to_owned) };
        let mut selection = Self { tables: Vec::new(), columns: Vec::new(), computed: Vec::new() };
        let nothing = Map::new();
        let select = source.get("select").and_then(Value::as_object).unwrap_or(&nothing);
        selection.read_table(own, select);
        let computed = list(select, "client_computed_columns").iter().filter_map(Value::as_object);
        selection.computed = computed.filter_map(|column| text(column, "name")).map(str::to_owned).collect();
        selection
    }

    /// `entry` holds `columns` and `foreign_tables`, be it a `select` or a joined table.
    fn read_table(&mut self, table: TableRef, entry: &Map<String, Value>) {
        let path = table.path.clone();
        let number = self.tables.len();
        self.tables.push(table);
        for (index, column) in list(entry, "columns").iter().enumerate() {
            let Some(column) = column.as_object() else { continue };
            let Some(name) = text(column, "name") else { continue };
            self.columns.push(Column {
                table: number,
                index,
                name: name.to_owned(),
                alias: text(column, "alias").map(str::to_owned),
                table_column: text(column, "table_column").map(str::to_owned),
            });
        }
        for (index, table) in list(entry, "foreign_tables").iter().enumerate() {
            let Some(table) = table.as_object() else { continue };
            let mut path = path.clone();
            path.push(index);
            let joined = TableRef {
                path,
                table: text(table, "table").unwrap_or_default().to_owned(),
                alias: text(table, "alias").map(str::to_owned),
                schema: text(table, "schema").map(str::to_owned),
            };
            self.read_table(joined, table);
        }
    }

    /// The table that people call `name`, by alias before by name. A `schema` that differs from a named one excludes.
    pub fn find_table(&self, name: &str, schema: Option<&str>) -> Option<usize> {
        let fits = |known: &TableRef| match (schema, &known.schema) {
            (Some(wanted), Some(named)) => wanted == named,
            (Some(_) | None, None) | (None, Some(_)) => true,
        };
        let by_alias = self.tables.iter().position(|known| fits(known) && known.alias.as_deref() == Some(name));
        by_alias.or_else(|| self.tables.iter().position(|known| fits(known) && known.table == name))
    }

    /// The table of `column`.
    pub fn table_of(&self, column: &Column) -> Option<&TableRef> {
        self.tables.get(column.table)
    }

    /// The column under the visual key `key`.
    pub fn by_key(&self, key: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.is_described_by(key))
    }

    /// Whether visual settings under `key` describe anything.
    pub fn has_key(&self, key: &str) -> bool {
        self.by_key(key).is_some() || self.computed.iter().any(|name| name == key)
    }

    /// Whether `column` is meant by `reference`: its key, its name, or its name qualified with its table.
    pub fn means(&self, column: &Column, reference: &str) -> bool {
        let (table, name) = split_reference(reference);
        let is_of =
            |table: &str| self.table_of(column).is_some_and(|own| own.qualifier() == table || own.table == table);
        column.is_described_by(reference) || (column.name == name && table.is_none_or(is_of))
    }

    /// Whether any selected column is meant by `reference`.
    pub fn covers(&self, reference: &str) -> bool {
        self.has_key(reference) || self.columns.iter().any(|column| self.means(column, reference))
    }

    /// The names of all tables, for a message.
    pub fn table_names(&self) -> String {
        self.tables.iter().map(TableRef::qualifier).collect::<Vec<_>>().join(", ")
    }
}

/// Table and column of `column`, `table.column` or `schema.table.column`.
pub fn split_reference(reference: &str) -> (Option<&str>, &str) {
    match reference.rsplit_once('.') {
        None => (None, reference),
        Some((before, name)) => (Some(before.rsplit('.').next().unwrap_or(before)), name),
    }
}

/// The `columns` of the table at `path` of `source`, to edit.
///
/// # Errors
/// [`Code::InvalidConfig`] when the document does not have the shape for it.
pub fn columns_mut<'a>(source: &'a mut Map<String, Value>, path: &[usize]) -> Result<&'a mut Vec<Value>, Problem> {
    let entry = entry_mut(source, path)?;
    list_mut(entry, "columns", "data_source[0].select.columns")
}

/// The `foreign_tables` inside the table at `path` of `source`, to edit.
///
/// # Errors
/// [`Code::InvalidConfig`] when the document does not have the shape for it.
pub fn joins_mut<'a>(source: &'a mut Map<String, Value>, path: &[usize]) -> Result<&'a mut Vec<Value>, Problem> {
    let entry = entry_mut(source, path)?;
    list_mut(entry, "foreign_tables", "data_source[0].select.foreign_tables")
}

fn entry_mut<'a>(source: &'a mut Map<String, Value>, path: &[usize]) -> Result<&'a mut Map<String, Value>, Problem> {
    let mut entry = object_mut(source, "select", "data_source[0].select")?;
    for index in path {
        let joins = list_mut(entry, "foreign_tables", "data_source[0].select.foreign_tables")?;
        entry = joins.get_mut(*index).and_then(Value::as_object_mut).ok_or_else(|| {
            Problem::new(Code::InvalidConfig, "data_source[0].select.foreign_tables", "must be a list of objects")
        })?;
    }
    Ok(entry)
}
