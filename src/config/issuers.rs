//! `[auth.issuers.NAME]`: issuers of tokens by a name of the operator's choice.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::{Problem, named};
use crate::http::auth::Issuer;

/// Adds to `defaults` what the settings of each issuer are by default that a file's `layer` or the environment names.
pub(super) fn prepare(
    layer: &mut Table,
    defaults: &mut Table,
    env: &BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) {
    let names = named::names(layer, &["auth", "issuers"], env, problems);
    named::add(defaults, &["auth", "issuers"], names, &issuer());
}

/// An issuer's default settings.
fn issuer() -> Table {
    let Issuer {
        issuer,
        audience,
        audience_claim,
        jwks_url,
        public_key_file,
        typ,
        leeway_s,
        tenant,
        tenant_claim,
        roles_claim,
        roles,
    } = Issuer::default();
    let mut table = Table::new();
    for (key, text) in [
        ("issuer", issuer),
        ("audience_claim", audience_claim),
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
