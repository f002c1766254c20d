//! `[[tool.instead]]` and `[tool.before]`: the calls that a tool makes beside that of its `[tool.request]`.

use super::defaults::Defaults;
use super::request::{self, Call, Maker};
use crate::chat::template::ValueTemplate;
use crate::config::document::{Location, Table};
use crate::tools::rest::declared::Conditional;
use crate::tools::rest::request::{Body, RestRequest};
use crate::tools::rest::values::BEFORE;

/// The further calls of a tool, with the places of their paths.
#[derive(Default)]
pub(super) struct Others<'a> {
    /// Those that are made instead of its own.
    instead: Vec<(Location<'a>, Conditional)>,
    /// The one that reads first.
    before: Option<(Location<'a>, Conditional)>,
}

/// A reading has nothing in its query but what it says: the arguments are of the change.
fn unasked((path, mut reading): (Location<'_>, Conditional)) -> (Location<'_>, Conditional) {
    reading.request.query.get_or_insert_default();
    (path, reading)
}

impl<'a> Others<'a> {
    /// Those in `table`; what is wrong is noted.
    pub(super) fn read(table: &mut Table<'a>) -> Self {
        let made = |(when, Call { request, path }): (ValueTemplate, Call<'a>)| (path, Conditional { when, request });
        let instead = table.tables("instead").into_iter();
        Self {
            instead: instead.filter_map(|table| request::conditional(table, Maker::Tool).map(made)).collect(),
            before: table
                .table("before")
                .and_then(|table| request::conditional(table, Maker::Loader))
                .map(made)
                .map(unasked),
        }
    }

    /// The same with what the file says of all its tools; `backend` is the one that the tool names.
    pub(super) fn with_defaults(mut self, defaults: &Defaults<'a>, backend: Option<&str>) -> Self {
        for (_, other) in self.instead.iter_mut().chain(self.before.as_mut()) {
            other.request = defaults.apply(other.request.clone(), backend.map(str::to_owned));
        }
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.instead.is_empty() && self.before.is_none()
    }

    /// Notes what does not fit with the tool's own call, or takes an argument that it does not have.
    pub(super) fn check(&self, own: Option<&RestRequest>, has: &dyn Fn(&str) -> bool) {
        let Some(own) = own else {
            for (place, _) in self.instead.iter().chain(&self.before) {
                place.wrong("is only for tools with a request");
            }
            return;
        };
        for (place, other) in &self.instead {
            if (other.request.effect, &other.request.progress) != (own.effect, &own.progress) {
                place.wrong("must have the effect and the progress of the tool's request");
            }
        }
        for (place, other) in self.instead.iter().chain(&self.before) {
            let taken = other.request.path.names().chain(other.request.arguments());
            for argument in taken.chain(other.when.fields("args")).filter(|argument| !has(argument)) {
                place.wrong(format_args!(
                    "takes {argument}, which is not among the properties of input_schema, nor injected"
                ));
            }
        }
        let mut calls = self.instead.iter().map(|(_, other)| &other.request).chain([own]);
        let takes = |request: &RestRequest| match &request.body {
            Body::Made(body) => body.names().into_iter().any(|name| name == BEFORE),
            Body::Nothing | Body::Arguments => false,
        };
        if let Some((place, _)) = &self.before
            && !calls.any(takes)
        {
            place.wrong("is of no use: no body takes anything of `before`");
        }
    }

    /// The calls themselves.
    pub(super) fn into_calls(self) -> (Vec<Conditional>, Option<Conditional>) {
        let Self { instead, before } = self;
        (instead.into_iter().map(|(_, other)| other).collect(), before.map(|(_, before)| before))
    }
}
