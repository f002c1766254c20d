//! What all operations share, so that no handler repeats it: headers, the errors that any request may meet, and their
//! bodies, which depend on the protocol.
//!
//! An annotation names its errors as `` `code`, `code`: in words ``; the codes become part of the schema.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Version, events, parts};
use crate::http::code::Code;
use crate::http::problem::ErrorFormat;
use crate::http::wire_info::{WireInfo, WiresByRoute};

/// What any request with a token may meet.
const SIGNED: [(u16, &[Code]); 6] = [
    (401, &[Code::Unauthenticated, Code::InvalidToken, Code::TokenExpired]),
    (403, &[Code::TenantRequired, Code::CsrfFailed]),
    (429, &[Code::TooManyRequests]),
    (431, &[Code::HeadTooLarge]),
    (500, &[Code::Internal]),
    (503, &[Code::StoreUnavailable, Code::KeysUnavailable, Code::SessionUnavailable]),
];

/// What any request with a body may meet besides.
const WITH_BODY: [(u16, &[Code]); 5] = [
    (400, &[Code::BodyUnreadable, Code::JsonTooDeep]),
    (408, &[Code::BodyTimeout]),
    (413, &[Code::BodyTooLarge]),
    (415, &[Code::EncodedBody]),
    (503, &[Code::MemoryExhausted]),
];

/// What any request that starts a run may meet besides.
const STARTING: [(u16, &[Code]); 11] = [
    (400, &[Code::MalformedJson, Code::InvalidRequest]),
    (403, &[Code::Forbidden]),
    (404, &[Code::NotFound]),
    (409, &[Code::ConversationBusy]),
    (410, &[Code::CursorEvicted]),
    (413, &[Code::FieldTooLarge]),
    (422, &[Code::IdempotencyMismatch]),
    (429, &[Code::RateLimited, Code::TooManyRuns, Code::TooManyReaders, Code::QuotaExceeded]),
    (500, &[Code::BeginUnconfirmed]),
    (503, &[Code::Draining, Code::EventsUnavailable, Code::AtCapacity]),
    (507, &[Code::ConversationQuotaExceeded, Code::StorageQuotaExceeded]),
];

/// The routes that need no token.
const OPEN: [&str; 6] = [
    "/livez",
    "/readyz",
    "/health",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-protected-resource/mcp/{profile}",
];

/// The document with all of that.
pub(super) fn complete(mut document: Value, wires: &WiresByRoute, version: Version) -> Value {
    let Some(root) = document.as_object_mut() else { return document };
    let number = match version {
        Version::V31 => "3.1.0",
        Version::V32 => "3.2.0",
    };
    root.insert("openapi".to_owned(), json!(number));
    root.insert("security".to_owned(), json!([{"bearer": []}]));
    if let Some(components) = root.get_mut("components").and_then(Value::as_object_mut) {
        if let Some(schemas) = components.get_mut("schemas").and_then(Value::as_object_mut) {
            events::add(schemas);
            schemas.sort_keys();
        }
        if let Value::Object(others) = parts::components() {
            components.extend(others);
        }
    }
    if let Some(paths) = root.get_mut("paths").and_then(Value::as_object_mut) {
        // A part that may have slashes is a part like any other here.
        *paths = std::mem::take(paths).into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
        for (path, item) in paths.iter_mut() {
            let wire = wires.find(path);
            let operations = item.as_object_mut().into_iter().flat_map(|item| item.values_mut());
            operations.filter_map(Value::as_object_mut).for_each(|operation| one(path, operation, wire, version));
        }
    }
    document
}

fn one(path: &str, operation: &mut Map<String, Value>, wire: WireInfo, version: Version) {
    let is_open = OPEN.contains(&path);
    let has_body = operation.contains_key("requestBody");
    let streams = operation.get("responses").is_some_and(|all| all["200"]["content"]["text/event-stream"].is_object());
    // A client that only reconnects to a thread starts nothing.
    let starts = has_body && streams && !path.ends_with("/connect");
    if is_open {
        operation.insert("security".to_owned(), json!([]));
    }
    let mut shared = vec![json!({"$ref": "#/components/parameters/RequestId"})];
    if starts {
        shared.push(json!({"$ref": "#/components/parameters/IdempotencyKey"}));
    }
    match operation.get_mut("parameters").and_then(Value::as_array_mut) {
        Some(parameters) => parameters.extend(shared),
        None => {
            operation.insert("parameters".to_owned(), Value::Array(shared));
        }
    }
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { return };
    let mut errors = declared(responses);
    let always = SIGNED.iter().filter(|_| !is_open);
    let with_body = WITH_BODY.iter().filter(|_| has_body);
    let starting = STARTING.iter().filter(|_| starts);
    for (status, codes) in always.chain(with_body).chain(starting) {
        // Its errors name each bad field of a body, and what a stream may not use.
        if wire.errors == ErrorFormat::Detail && starts && matches!(status, 403 | 404) {
            continue;
        }
        let error = errors.entry(*status).or_default();
        let names = codes.iter().map(|code| code.name().to_owned());
        error.codes.extend(names.filter(|name| !error.codes.contains(name)).collect::<Vec<_>>());
    }
    for (status, error) in errors {
        responses.insert(status.to_string(), response(wire.errors, status, &error));
    }
    for (status, response) in responses.iter_mut() {
        let Some(response) = response.as_object_mut() else { continue };
        headers(response, status, streams);
        if let Some(stream) = response.get_mut("content").and_then(|content| content.get_mut("text/event-stream")) {
            *stream = stream_of(wire, version);
        }
    }
    responses.sort_keys();
}

/// A stream of the protocol. 3.1 knows it as a text alone.
fn stream_of(wire: WireInfo, version: Version) -> Value {
    let name = if wire.is_native() { events::ANY } else { events::OTHER };
    let events = json!({"$ref": format!("#/components/schemas/{name}")});
    match version {
        Version::V31 => {
            json!({"schema": {"type": "string", "description": "Server-Sent Events."}, "x-itemSchema": events})
        }
        Version::V32 => json!({"itemSchema": events}),
    }
}

fn headers(response: &mut Map<String, Value>, status: &str, streams: bool) {
    let header = |name: &str| json!({"$ref": format!("#/components/headers/{name}")});
    let mut all = Map::new();
    all.insert("X-Request-Id".to_owned(), header("RequestId"));
    let names: &[(&str, &str)] = match status {
        "200" if streams => &[("X-Run-Id", "RunId"), ("X-Conversation-Id", "ConversationId")],
        "202" => &[("X-Run-Id", "RunId"), ("X-Conversation-Id", "ConversationId"), ("Location", "RunLocation")],
        "401" => &[("WWW-Authenticate", "Challenge")],
        "429" | "503" => &[("Retry-After", "RetryAfter")],
        _ => &[],
    };
    all.extend(names.iter().map(|(name, component)| ((*name).to_owned(), header(component))));
    response.insert("headers".to_owned(), Value::Object(all));
}

/// An error as its annotation tells it.
#[derive(Default)]
struct Declared {
    codes: Vec<String>,
    words: String,
    /// A body of its own, beside that of its protocol.
    own: Option<Value>,
}

/// The errors that are annotated, by status.
fn declared(responses: &Map<String, Value>) -> BTreeMap<u16, Declared> {
    let errors = responses.iter().filter_map(|(status, response)| {
        let status = status.parse().ok().filter(|status| *status >= 400)?;
        let text = response.get("description").and_then(Value::as_str).unwrap_or_default();
        let (codes, words) = match text.starts_with('`') {
            true => text.split_once(": ").unwrap_or((text, "")),
            false => ("", text),
        };
        let codes = codes.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let own = response.pointer("/content/application~1json/schema").cloned();
        Some((status, Declared { codes, words: words.to_owned(), own }))
    });
    errors.collect()
}

/// An error as its protocol tells it.
fn response(format: ErrorFormat, status: u16, error: &Declared) -> Value {
    let named: Vec<String> = error.codes.iter().map(|code| format!("`{code}`")).collect();
    let words = if error.words.is_empty() { "see `docs/ERRORS.md`." } else { &error.words };
    let description = if named.is_empty() { words.to_owned() } else { format!("{}: {words}", named.join(", ")) };
    let of = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let (kind, schema) = match format {
        ErrorFormat::Problem => {
            let narrowed = json!({"properties": {"status": {"const": status}, "code": {"enum": error.codes}}});
            ("application/problem+json", json!({"allOf": [of("Problem"), narrowed]}))
        }
        ErrorFormat::Detail if status == 422 => {
            ("application/json", json!({"oneOf": [of("ChatStreamError"), of("ChatStreamMistakes")]}))
        }
        ErrorFormat::Detail => match &error.own {
            Some(own) => ("application/json", json!({"oneOf": [of("ChatStreamError"), own]})),
            None => ("application/json", of("ChatStreamError")),
        },
        ErrorFormat::OpenAi(_) => ("application/json", of("OpenAiError")),
        ErrorFormat::Models => ("application/json", json!({"anyOf": [of("OpenAiError"), of("MessagesError")]})),
        ErrorFormat::Messages => ("application/json", of("MessagesError")),
        ErrorFormat::Coded => ("application/json", of("AgentStreamError")),
        ErrorFormat::JsonRpc => ("application/json", of("McpAnswer")),
        ErrorFormat::Identified | ErrorFormat::NotOk => ("application/json", of("ChatMessageError")),
    };
    json!({"description": description, "content": {kind: {"schema": schema}}})
}
