//! `[auth.issuers.NAME]`: issuers of tokens by a name of the operator's choice.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::Problem;
use super::fitting::PREFIX;
use crate::http::auth::Issuer;

/// Adds to `defaults` what the settings of each issuer are by default that a file's `layer` or the environment names.
pub(super) fn prepare(
    layer: &mut Table,
    defaults: &mut Table,
    env: &BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) {
    let mut names = BTreeSet::new();
    if let Some(Value::Table(issuers)) = layer.get_mut("auth").and_then(|auth| auth.get_mut("issuers")) {
        issuers.retain(|name, section| {
            let is_section = section.is_table();
            match is_section {
                true => drop(names.insert(name.to_owned())),
                false => problems.push(Problem::new(format!("auth.issuers.{name}"), "must be a section")),
            }
            is_section
        });
    }
    let variables = env.keys().filter_map(|variable| Some(variable.strip_prefix(PREFIX)?.to_lowercase()));
    names.extend(
        variables.filter_map(|path| Some(path.strip_prefix("auth__issuers__")?.split_once("__")?.0.to_owned())),
    );
    let Some(Value::Table(issuers)) = defaults.get_mut("auth").and_then(|auth| auth.get_mut("issuers")) else { return };
    issuers.extend(names.into_iter().map(|name| (name, Value::Table(issuer()))));
}

/// An issuer's settings before anybody has said anything.
fn issuer() -> Table {
    let Issuer { issuer, audience, jwks_url, public_key_file, typ, leeway_s, tenant, tenant_claim, roles_claim, roles } =
        Issuer::default();
    let mut table = Table::new();
    for (key, text) in [
        ("issuer", issuer),
        ("jwks_url", jwks_url),
        ("public_key_file", public_key_file),
        ("typ", typ),
        ("tenant", tenant),
        ("tenant_claim", tenant_claim),
        ("roles_claim", roles_claim),
    ] {
        table.insert(key.to_owned(), Value::String(text));
    }
    for (key, texts) in [("audience", audience), ("roles", roles)] {
        table.insert(key.to_owned(), Value::Array(texts.into_iter().map(Value::String).collect()));
    }
    table.insert("leeway_s".to_owned(), Value::Integer(i64::try_from(leeway_s).unwrap_or(i64::MAX)));
    table
}
