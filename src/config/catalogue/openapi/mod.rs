//! `openapi/*.toml`: operations of an API as tools, made from its OpenAPI document when the server starts. What an
//! operation becomes is a call as `tools/*.toml` would say it ([`operation::Imported`]), which [`mod@print`] can write down.

pub mod document;
mod names;
pub mod operation;
pub mod print;
mod refs;
mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use self::document::{ALL, Document};
use self::names::Names;
use self::operation::Imported;
use super::declared::{Extras, Known};
use super::request;
use super::tools::Tools;
use crate::chat::template::{Template, TemplateError, ValueTemplate};
use crate::chat::tool::{Effect, ToolDef};
use crate::config::Problem;
use crate::config::assets::Assets;
use crate::config::document::{File, Location, Problems, Table};
use crate::tools::backend::Verb;
use crate::tools::rest::path::PathTemplate;
use crate::tools::rest::request::{Body, RestRequest};

/// The fields of an overlay, which replace those of the document.
struct Overlay<'a> {
    location: Location<'a>,
    name: Option<String>,
    description: Option<String>,
    call: OverlayCall,
    extras: Extras<'a>,
}

/// What an overlay says of the call itself.
#[derive(Default)]
struct OverlayCall {
    effect: Option<Effect>,
    timeout: Option<Duration>,
    failed_statuses: Vec<u16>,
}

/// The tools of the file at `path`; what is wrong is noted.
pub(super) fn read(path: &str, assets: &Assets, known: Known<'_>, tools: &mut Tools, problems: &Problems) {
    let Some(text) = assets.text(path) else {
        return problems.push(Problem::new(path, "cannot be read"));
    };
    let Some(mut top) = File::read(path, &text, problems) else { return };
    let document = top.required("document").and_then(|entry| {
        let location = entry.location();
        let name = entry.text()?;
        match load(assets, &name) {
            Ok(document) => Some(document),
            Err(reason) => {
                location.wrong(reason);
                None
            }
        }
    });
    let prefix = top.text("prefix").unwrap_or_default();
    let base_path = top.take("base_path").and_then(|entry| Some((entry.location(), entry.text()?)));
    if let Some((location, base)) = &base_path
        && !document::is_base_path(base)
    {
        location.wrong("must be empty, or begin with / and not end in one");
    }
    let backend = request::backend(&mut top, known.backends);
    if !top.keys().iter().any(|key| key == "operations") {
        top.wrong("operations is missing");
    }
    let wanted = top.names("operations");
    let mut overlays = overlays(top.table("overlay"), known);
    top.finish();
    let Some(document) = document else { return };
    let base_path = base_path.map(|(_, base)| base).filter(|base| document::is_base_path(base));
    let base_path = base_path.unwrap_or_else(|| document.base_path());
    let source = Source { path, backend: backend.as_deref(), known };
    let mut names = Names::new(&prefix);
    let mut taken = BTreeSet::new();
    for (location, name) in &wanted {
        let found = document.select(name);
        if found.is_empty() && name != ALL {
            location.wrong(format_args!("{name:?} is not in the document"));
        }
        for operation in found {
            if !taken.insert(operation.key()) {
                continue;
            }
            match operation::import(&document, &operation, &base_path, &mut names) {
                Ok(imported) => {
                    for reason in &imported.left_out {
                        tracing::warn!(
                            file = path,
                            operation = operation.key(),
                            reason,
                            "an optional part is left out"
                        );
                    }
                    let overlay = operation.names().iter().find_map(|name| overlays.remove(name));
                    add(source, imported, overlay, location, tools);
                }
                Err(reason) if name == ALL => {
                    tracing::info!(file = path, operation = operation.key(), reason, "operation left out");
                }
                Err(reason) => location.wrong(format_args!("{name:?} cannot be a tool: {reason}")),
            }
        }
    }
    for (name, overlay) in overlays {
        overlay.location.wrong(format_args!("{name:?} is not among the operations"));
    }
}

/// The document of that name in the folder.
fn load(assets: &Assets, name: &str) -> Result<Document, String> {
    let is_plain = !name.is_empty() && !name.contains(['/', '\\']) && name != "..";
    let text = assets.text(&format!("openapi/{name}")).filter(|_| is_plain);
    let text = text.ok_or_else(|| format!("openapi/{name} cannot be read"))?;
    Document::parse(&text).map_err(|reason| format!("openapi/{name} {reason}"))
}

/// What the overlays in `table` say, by the operations that they are about.
fn overlays<'a>(table: Option<Table<'a>>, known: Known<'_>) -> BTreeMap<String, Overlay<'a>> {
    let Some(mut table) = table else { return BTreeMap::new() };
    let mut overlays = BTreeMap::new();
    for operation in table.keys() {
        let Some(mut table) = table.table(&operation) else { continue };
        let effect = request::effect(&mut table);
        let overlay = Overlay {
            location: table.location(),
            name: table.text("name"),
            description: table.text("description"),
            call: OverlayCall {
                effect,
                timeout: request::timeout(&mut table),
                failed_statuses: request::failed_statuses(&mut table, effect),
            },
            extras: Extras::read(&mut table, known),
        };
        table.finish();
        overlays.insert(operation, overlay);
    }
    overlays
}

/// The file that names the operations, and whose they are.
#[derive(Clone, Copy)]
struct Source<'a> {
    path: &'a str,
    backend: Option<&'a str>,
    known: Known<'a>,
}

/// Adds the tool that was made of an operation named at `location`.
fn add(
    source: Source<'_>,
    imported: Imported,
    overlay: Option<Overlay<'_>>,
    location: &Location<'_>,
    tools: &mut Tools,
) {
    let mut imported = imported;
    let (mut location, mut extras, mut overlay_call) = (location.clone(), Extras::none(), OverlayCall::default());
    if let Some(overlay) = overlay {
        imported.name = overlay.name.unwrap_or(imported.name);
        imported.description = overlay.description.unwrap_or(imported.description);
        (location, extras, overlay_call) = (overlay.location, overlay.extras, overlay.call);
    }
    if let Some(reason) = tools.claim_declared(source.path, &imported.name, source.known) {
        location.wrong(reason);
    }
    let made = request_of(&imported, overlay_call).and_then(|request| {
        let Imported { name, description, input_schema, .. } = imported;
        let request = RestRequest { backend: source.backend.map(str::to_owned), ..request };
        extras.careful().make(ToolDef { name, description, input_schema }, Some(request), None)
    });
    match made {
        Ok(made) => tools.add(made),
        Err(reason) => location.wrong(format_args!("cannot be a tool: {reason}")),
    }
}

/// The call of an operation.
fn request_of(imported: &Imported, overlay_call: OverlayCall) -> Result<RestRequest, String> {
    let OverlayCall { effect, timeout, failed_statuses } = overlay_call;
    let text = |error: TemplateError| error.to_string();
    let query = imported.query.iter().map(|(name, template)| {
        Ok((name.clone(), ValueTemplate::parse(&Value::String(template.clone())).map_err(text)?))
    });
    let headers =
        imported.headers.iter().map(|(name, template)| Ok((name.clone(), Template::parse(template).map_err(text)?)));
    let body = match &imported.body {
        None => Body::Nothing,
        Some(template) => Body::Made(ValueTemplate::parse(template).map_err(text)?),
    };
    Ok(RestRequest {
        backend: None,
        verb: imported.verb,
        path: PathTemplate::parse(&imported.path).map_err(|error| format!("its path {error}"))?,
        query: Some(query.collect::<Result<_, String>>()?),
        body,
        content_type: imported.content_type.clone(),
        accept: imported.accept.clone(),
        headers: headers.collect::<Result<_, String>>()?,
        effect: effect.unwrap_or(match imported.verb {
            Verb::Get => Effect::Read,
            Verb::Post | Verb::Put | Verb::Patch | Verb::Delete => Effect::Write,
        }),
        timeout,
        progress: None,
        failed_statuses,
    })
}
