//! `[defaults]` of a file of tools: what holds for all of its tools that say nothing themselves.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{request, rules};
use crate::chat::template::{Template, ValueTemplate};
use crate::config::document::{Location, Table};
use crate::tools::rest::request::RestRequest;
use crate::tools::rest::rules::Rule;
use crate::tools::rest::values;

/// What a file says of all its tools.
#[derive(Default)]
pub(super) struct Defaults<'a> {
    backend: Option<String>,
    headers: Vec<(String, Template)>,
    timeout: Option<Duration>,
    /// Filled in where a tool's schema has the argument.
    pub(super) inject: Vec<(String, ValueTemplate)>,
    /// Rules for arguments, by name or by `*` and the end of a name.
    pub(super) rules: Vec<(Location<'a>, String, Vec<Rule>)>,
}

/// The defaults in `table`; what is wrong is noted.
pub(super) fn read<'a>(mut table: Table<'a>, backends: &BTreeSet<String>) -> Defaults<'a> {
    let inject = table.take("inject").and_then(|entry| request::value_templates(entry, &values::NAMES[1..]));
    let defaults = Defaults {
        backend: request::backend(&mut table, backends),
        headers: table.take("headers").map(request::headers).unwrap_or_default(),
        timeout: request::timeout(&mut table),
        inject: inject.unwrap_or_default(),
        rules: table.table("values").map(rules::read).unwrap_or_default(),
    };
    table.finish();
    defaults
}

impl Defaults<'_> {
    /// A tool's call with what the file says of all; `backend` is the one that the tool names.
    pub(super) fn apply(&self, request: RestRequest, backend: Option<String>) -> RestRequest {
        let mut request = request;
        let is_new = |name: &str| !request.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let headers: Vec<_> = self.headers.iter().filter(|(name, _)| is_new(name)).cloned().collect();
        request.headers.extend(headers);
        request.backend = backend.or_else(|| self.backend.clone());
        request.timeout = request.timeout.or(self.timeout);
        request
    }
}
