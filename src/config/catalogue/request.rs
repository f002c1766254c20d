//! `request` of a tool or of a data loader: the one REST call that it makes.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use crate::chat::template::{Template, ValueTemplate};
use crate::chat::tool::Effect;
use crate::config::document::{Entry, Location, Table};
use crate::tools::backend::{Framing, Verb};
use crate::tools::rest::path::PathTemplate;
use crate::tools::rest::projection::Projection;
use crate::tools::rest::request::{Body, RestRequest};
use crate::tools::rest::values;

/// The longest that a call may be waited for, in seconds.
const MAX_TIMEOUT_S: u64 = 3600;

/// Headers that are not a file's to set: they carry who asks, how the message is framed, or where it goes.
const HEADERS_OF_OURS: [&str; 17] = [
    "accept",
    "authorization",
    "proxy-authorization",
    "proxy-connection",
    "cookie",
    "set-cookie",
    "host",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "idempotency-key",
    "forwarded",
    "via",
];

/// The kind of file that declares the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    /// A tool.
    Tool,
    /// A data loader: it reads, and its progress has no reader.
    Loader,
}

/// A call, and where its path stands.
pub(super) struct Call<'a> {
    /// The call.
    pub(super) request: RestRequest,
    /// The path.
    pub(super) path: Location<'a>,
}

/// The call that `table` describes; `None` when its path cannot be read. What is wrong is noted.
pub(super) fn read<'a>(mut table: Table<'a>, maker: Maker) -> Option<Call<'a>> {
    let verbs = Verb::ALL.map(|verb| (verb.name(), verb));
    let verb = table.one_of("method", &verbs).unwrap_or(Verb::Get);
    let path = path(&mut table, "path");
    let query = table.take("query").and_then(query);
    let body = match table.take("body") {
        None if verb.has_body() => Body::Arguments,
        None => Body::Nothing,
        // What it means for a request that deletes is the backend's to say.
        Some(entry) if verb == Verb::Get => {
            entry.wrong(format_args!("must not be given for {}", verb.name()));
            Body::Nothing
        }
        Some(entry) => body(entry, maker),
    };
    let content_type = table.take("content_type").and_then(content_type);
    let accept = table.take("accept").and_then(accept);
    let headers = table.take("headers").map(headers).unwrap_or_default();
    let timeout = timeout(&mut table);
    let (effect, progress) = match maker {
        Maker::Tool => {
            let framings = [("none", None), ("ndjson", Some(Framing::Ndjson)), ("sse", Some(Framing::Sse))];
            (effect(&mut table), table.one_of("progress", &framings).flatten())
        }
        Maker::Loader => (table.one_of("effect", &[("read", Effect::Read)]), None),
    };
    let effect = effect.unwrap_or(match verb {
        Verb::Get => Effect::Read,
        Verb::Post | Verb::Put | Verb::Patch | Verb::Delete => Effect::Write,
    });
    let failed_statuses = match maker {
        Maker::Tool => failed_statuses(&mut table, Some(effect)),
        Maker::Loader => Vec::new(),
    };
    if maker == Maker::Loader && effect == Effect::Write {
        let name = verb.name();
        table.wrong(format_args!("must read: {name} writes, unless effect = \"read\" says that it does not"));
    }
    table.finish();
    let (path, location) = path?;
    Some(Call {
        request: RestRequest {
            backend: None,
            verb,
            path,
            query,
            body,
            content_type,
            accept,
            headers,
            effect,
            timeout,
            progress,
            failed_statuses,
        },
        path: location,
    })
}

/// The call that `table` describes, and the condition on which it is made; what is wrong is noted.
pub(super) fn conditional<'a>(mut table: Table<'a>, maker: Maker) -> Option<(ValueTemplate, Call<'a>)> {
    let when = table.required("when").and_then(|entry| {
        let place = entry.location();
        value_template(&place, &entry.json()?, &values::NAMES)
    });
    let call = read(table, maker);
    Some((when?, call?))
}

/// The further backend that `table` names, if it does; `known` are those of the settings.
pub(super) fn backend(table: &mut Table<'_>, known: &BTreeSet<String>) -> Option<String> {
    let entry = table.take("backend")?;
    let place = entry.location();
    let name = entry.text()?;
    if !known.contains(&name) {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        place.wrong(format_args!("{name:?} is no section of [backends]; there are: {known}"));
    }
    Some(name)
}

/// The path at `key`, which has to be there, and where it stands.
pub(super) fn path<'a>(table: &mut Table<'a>, key: &str) -> Option<(PathTemplate, Location<'a>)> {
    let entry = table.required(key)?;
    let location = entry.location();
    match PathTemplate::parse(&entry.text()?) {
        Ok(path) => Some((path, location)),
        Err(error) => {
            location.wrong(error);
            None
        }
    }
}

/// What a second call could do, where the file says so.
pub(super) fn effect(table: &mut Table<'_>) -> Option<Effect> {
    table.one_of("effect", &[("read", Effect::Read), ("write", Effect::Write)])
}

/// How long a call may take, where the file says so.
pub(super) fn timeout(table: &mut Table<'_>) -> Option<Duration> {
    let entry = table.take("timeout_s")?;
    let location = entry.location();
    let seconds = entry.count()?;
    if !(1..=MAX_TIMEOUT_S).contains(&seconds) {
        location.wrong(format_args!("must be from 1 to {MAX_TIMEOUT_S}"));
        return None;
    }
    Some(Duration::from_secs(seconds))
}

/// The statuses that say that nothing was done, where the file names any; they are of use to a write alone.
pub(super) fn failed_statuses(table: &mut Table<'_>, effect: Option<Effect>) -> Vec<u16> {
    let Some(entry) = table.take("failed_statuses") else { return Vec::new() };
    let location = entry.location();
    if effect == Some(Effect::Read) {
        location.wrong("must not be given for a call that only reads");
    }
    let statuses = entry.items().into_iter().filter_map(|entry| {
        let status = entry.count()?;
        let status = u16::try_from(status).ok().filter(|status| (300..600).contains(status));
        if status.is_none() {
            location.wrong("must be statuses from 300 to 599");
        }
        status
    });
    statuses.collect()
}

/// Notes each of `names` that is not among `known`.
pub(super) fn know<'n>(location: &Location<'_>, names: impl IntoIterator<Item = &'n str>, known: &[&str]) {
    for name in names {
        if !known.contains(&name) {
            location.wrong(format_args!("takes {name:?}, which is not there; there are: {}", known.join(", ")));
        }
    }
}

/// The template in `value`, which is at `location`, over `known` names.
pub(super) fn value_template(location: &Location<'_>, value: &Value, known: &[&str]) -> Option<ValueTemplate> {
    match ValueTemplate::parse(value) {
        Ok(template) => {
            know(location, template.names(), known);
            Some(template)
        }
        Err(error) => {
            location.wrong_below(error.line.max(1), format_args!("is no template: {error}"));
            None
        }
    }
}

/// The template in `text`, which is at `location`, over `known` names.
pub(super) fn template(location: &Location<'_>, text: &str, known: &[&str]) -> Option<Template> {
    match Template::parse(text) {
        Ok(template) => {
            know(location, template.names(), known);
            Some(template)
        }
        Err(error) => {
            location.wrong_below(error.line.max(1), format_args!("is no template: {error}"));
            None
        }
    }
}

/// The fields of a table, each a template, in the order of the file.
pub(super) fn value_templates(entry: Entry<'_>, known: &[&str]) -> Option<Vec<(String, ValueTemplate)>> {
    let location = entry.location();
    let Value::Object(fields) = entry.json()? else {
        location.wrong("must be a table");
        return None;
    };
    let field = |(name, value): (String, Value)| Some((name, value_template(&location, &value, known)?));
    Some(fields.into_iter().filter_map(field).collect())
}

/// The projection at `key`.
pub(super) fn projection(table: &mut Table<'_>, key: &str) -> Option<Projection> {
    let entry = table.take(key)?;
    let location = entry.location();
    match Projection::parse(&entry.text()?) {
        Ok(projection) => Some(projection),
        Err(reason) => {
            location.wrong(reason);
            None
        }
    }
}

fn query(entry: Entry<'_>) -> Option<Vec<(String, ValueTemplate)>> {
    value_templates(entry, &values::NAMES)
}

fn body(entry: Entry<'_>, maker: Maker) -> Body {
    let location = entry.location();
    match entry.json() {
        None | Some(Value::Bool(false)) => Body::Nothing,
        Some(value) => {
            let read = (maker == Maker::Tool).then_some(values::BEFORE);
            let names: Vec<&str> = values::NAMES.into_iter().chain(read).collect();
            value_template(&location, &value, &names).map_or(Body::Nothing, Body::Made)
        }
    }
}

/// The media type of a body.
fn content_type(entry: Entry<'_>) -> Option<String> {
    let location = entry.location();
    let kind = entry.text()?;
    if !is_json(&kind) {
        location.wrong("must be application/json or end with +json, as in application/merge-patch+json");
    }
    Some(kind)
}

/// The media types of the answers that are wanted.
fn accept(entry: Entry<'_>) -> Option<String> {
    let location = entry.location();
    let kinds = entry.text()?;
    if !is_accept(&kinds) {
        location.wrong("must be media types, as in application/vnd.api+json, application/json;q=0.9");
    }
    Some(kinds)
}

/// Whether `text` can be the header of that.
pub(super) fn is_accept(text: &str) -> bool {
    let is_kind = |kind: &str| kind.split(';').next().is_some_and(|name| name.trim().split('/').count() == 2);
    text.len() <= 256 && text.bytes().all(|b| (0x20..0x7f).contains(&b)) && text.split(',').all(is_kind)
}

/// Whether a body of JSON may be of this media type.
pub(super) fn is_json(kind: &str) -> bool {
    let name = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_plain = kind.bytes().all(|b| (0x20..0x7f).contains(&b)) && !name.contains([' ', ',']);
    is_plain && (name == "application/json" || name.ends_with("+json") && name.contains('/'))
}

/// The headers in a table, each a template.
pub(super) fn headers(entry: Entry<'_>) -> Vec<(String, Template)> {
    let location = entry.location();
    let Some(Value::Object(fields)) = entry.json() else {
        location.wrong("must be a table");
        return Vec::new();
    };
    let mut headers = Vec::new();
    for (name, value) in fields {
        if !is_header_name(&name) {
            location.wrong(format_args!("{name:?} is no name of a header"));
        } else if is_ours(&name) {
            location.wrong(format_args!("must not set {name}"));
        }
        match value {
            Value::String(text) => {
                headers.extend(template(&location, &text, &values::NAMES).map(|template| (name, template)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                location.wrong(format_args!("{name} must be text"));
            }
        }
    }
    headers
}

/// Whether a header is not a file's to set.
pub(super) fn is_ours(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let begins = ["content-", "x-switchboard-"];
    HEADERS_OF_OURS.contains(&name.as_str()) || begins.iter().any(|begin| name.starts_with(begin))
}

/// Whether `name` can be a header's.
pub(super) fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 128 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}
