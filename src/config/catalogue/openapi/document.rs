//! An OpenAPI document: read from JSON or YAML, and its operations.

use serde_json::Value;

use super::refs;
use crate::bounded::json;
use crate::tools::backend::Verb;

/// 16 MiB: GitHub's document has 12.
const MAX_BYTES: usize = 16 << 20;

/// Stands for all operations.
pub const ALL: &str = "*";

/// A document.
#[derive(Debug)]
pub struct Document(Value);

/// One of its operations.
#[derive(Debug, Clone, Copy)]
pub struct Operation<'d> {
    /// Its method.
    pub verb: Verb,
    /// Its path as the document writes it.
    pub path: &'d str,
    /// The fields that it shares with the others of its path.
    pub item: &'d Value,
    /// Itself.
    pub value: &'d Value,
}

impl Document {
    /// The document in `text`.
    ///
    /// # Errors
    /// Why it is none, in words for the operator.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("is larger than {MAX_BYTES} bytes"));
        }
        let is_json = text.trim_start_matches('\u{feff}').trim_start().starts_with('{');
        let read = match is_json {
            true => json::value(text.trim_start_matches('\u{feff}')),
            false => json::yaml(text),
        };
        let value = read.map_err(|error| format!("cannot be read: {error}"))?;
        let version = value.get("openapi").and_then(|version| match version {
            // YAML without quotes.
            Value::Number(number) => Some(number.to_string()),
            version => version.as_str().map(str::to_owned),
        });
        match version {
            Some(version) if version.starts_with("3.0") || version.starts_with("3.1") => Ok(Self(value)),
            Some(version) => Err(format!("is OpenAPI {version}, and only 3.0 and 3.1 are known")),
            None if value.get("swagger").is_some() => Err("is OpenAPI 2.0, and only 3.0 and 3.1 are known".to_owned()),
            None => Err("is no OpenAPI document: it has no key openapi".to_owned()),
        }
    }

    /// The whole of it.
    pub fn root(&self) -> &Value {
        &self.0
    }

    /// The path part of its first server, its variables as they are by default.
    pub fn base_path(&self) -> String {
        let server = self.0.pointer("/servers/0");
        let url = server.and_then(|server| server.get("url")).and_then(Value::as_str).unwrap_or_default();
        let mut url = url.to_owned();
        let variables = server.and_then(|server| server.get("variables")).and_then(Value::as_object);
        for (name, variable) in variables.into_iter().flatten() {
            if let Some(value) = variable.get("default").and_then(Value::as_str) {
                url = url.replace(&format!("{{{name}}}"), value);
            }
        }
        let url = url.split(['?', '#']).next().unwrap_or_default();
        let behind = |host: &str| host.find('/').map_or("", |at| &host[at..]).to_owned();
        let path = match url.split_once("//") {
            Some((scheme, rest)) if scheme.is_empty() || scheme.ends_with(':') => behind(rest),
            _ if url.is_empty() || url.starts_with('/') || url.starts_with("..") => url.to_owned(),
            _ if begins_with_host(url) => behind(url),
            _ => format!("/{}", url.trim_start_matches("./")),
        };
        let path = path.trim_end_matches('/');
        if is_base_path(path) { path.to_owned() } else { String::new() }
    }

    /// The operations that `wanted` names: an `operationId`, `METHOD /path`, or `*` for all.
    pub fn select(&self, wanted: &str) -> Vec<Operation<'_>> {
        self.operations().filter(|operation| wanted == ALL || operation.names().iter().any(|n| n == wanted)).collect()
    }

    /// All operations, in the order of the document.
    fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        let paths = self.0.get("paths").and_then(Value::as_object);
        paths.into_iter().flatten().flat_map(|(path, item)| {
            let item = refs::target(&self.0, item).unwrap_or(item);
            item.as_object().into_iter().flatten().filter_map(move |(method, value)| {
                let verb = Verb::ALL.into_iter().find(|verb| verb.name().eq_ignore_ascii_case(method))?;
                Some(Operation { verb, path, item, value })
            })
        })
    }
}

impl Operation<'_> {
    /// `METHOD /path`.
    pub fn key(&self) -> String {
        format!("{} {}", self.verb.name(), self.path)
    }

    /// Its `operationId`, if it has one.
    pub fn id(&self) -> Option<&str> {
        self.value.get("operationId").and_then(Value::as_str).filter(|id| !id.is_empty())
    }

    /// The names that select it.
    pub fn names(&self) -> Vec<String> {
        self.id().map(str::to_owned).into_iter().chain([self.key()]).collect()
    }
}

/// Whether an address without a scheme begins with the name of a host: it has a port, or ends like `.com`. `v1.0` is none.
fn begins_with_host(url: &str) -> bool {
    let first = url.split('/').next().unwrap_or_default();
    let is_last_of_host = |last: &str| !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_alphabetic());
    first.contains(':') || first.rsplit_once('.').is_some_and(|(_, last)| is_last_of_host(last))
}

/// Whether `text` can stand before every path.
pub fn is_base_path(text: &str) -> bool {
    text.is_empty() || (text.starts_with('/') && !text.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_json_or_yaml_of_the_known_versions() {
        let rows = [
            ("{\"openapi\": \"3.0.4\"}", None, "JSON"),
            ("openapi: 3.1.0\npaths:\n  /a:\n    get:\n      responses: {200: {description: ok}}\n", None, "YAML"),
            ("openapi: 3.1\npaths: {}\n", None, "a number in YAML"),
            ("openapi: 3.0\npaths: {}\n", None, "one with a nought"),
            ("openapi: 4", Some("is OpenAPI 4, and only 3.0 and 3.1 are known"), "a number that is none of ours"),
            ("swagger: '2.0'", Some("is OpenAPI 2.0, and only 3.0 and 3.1 are known"), "an old one"),
            ("openapi: 4.0.0", Some("is OpenAPI 4.0.0, and only 3.0 and 3.1 are known"), "a new one"),
            ("{}", Some("is no OpenAPI document: it has no key openapi"), "something else"),
        ];
        for (text, expected, reason) in rows {
            assert_eq!(Document::parse(text).err().as_deref(), expected, "{reason}");
        }
        for text in ["{", "a: [", "\u{0}", "- &a [*a]"] {
            assert!(Document::parse(text).is_err(), "{text:?}");
        }
        let bomb = (0..30).fold("l0: &l0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, n| {
            text + &format!("l{}: &l{} [{}]\n", n + 1, n + 1, vec![format!("*l{n}"); 9].join(", "))
        });
        assert!(Document::parse(&bomb).is_err(), "aliases that blow up");
    }

    #[test]
    fn the_first_server_says_where_paths_begin() {
        let rows = [
            ("https://petstore3.swagger.io/api/v3", "/api/v3"),
            ("/api/v3/", "/api/v3"),
            ("https://{host}/{base}?x=1", "/v2"),
            ("https://example.com", ""),
            ("./relative", "/relative"),
            ("v1", "/v1"),
            ("v1.0/", "/v1.0"),
            ("//api.example.com/v1", "/v1"),
            ("//api.example.com", ""),
            ("api.example.com/v1", "/v1"),
            ("api.example.com", ""),
            ("localhost:8080/v1/", "/v1"),
            ("/", ""),
            ("", ""),
            ("../v1", ""),
        ];
        for (url, expected) in rows {
            let servers = serde_json::json!([{"url": url, "variables": {"base": {"default": "v2"}}}]);
            let document = serde_json::json!({"openapi": "3.0.0", "servers": servers}).to_string();
            assert_eq!(Document::parse(&document).unwrap().base_path(), expected, "{url}");
        }
    }
}
