//! `profiles/*.toml`: each file is a kind of screen, or a page with its tabs and theirs.

use std::collections::BTreeMap;

use super::layers::Layer;
use super::profile::Parts;
use crate::agent::offer::profile::{Profile, Profiles};
use crate::config::Problem;
use crate::config::assets::Assets;
use crate::config::document::{Entry, File, Location, Problems, Table};
use crate::tools::rest::data::Loader;

/// The page that stands for all.
const ANY_PAGE: &str = "*";

/// A file whose rank among the others is known, and whose rest is still to be read.
struct Head<'a> {
    table: Table<'a>,
    /// Empty where the file does not say.
    id: String,
    location: Location<'a>,
    /// `None` where the file does not say.
    screen: Option<Screen>,
}

/// The screen of a profile.
#[derive(Clone, PartialEq, Eq)]
enum Screen {
    Type(String),
    Page(String),
    AnyPage,
}

/// The profiles so far.
struct Gathered {
    profiles: Vec<Profile>,
    loaders: BTreeMap<String, Loader>,
    /// The file of each `context_type`.
    types: BTreeMap<String, String>,
    /// The file of the profile for all other values of `context_type`.
    fallback: Option<String>,
}

/// The profiles of `assets`, made of `parts`, and what loads the data of their prompts; what is wrong is noted.
pub(super) fn read(assets: &Assets, parts: &Parts<'_>, problems: &Problems) -> (Profiles, Vec<Loader>) {
    let mut texts = Vec::new();
    for path in assets.list("profiles", ".toml") {
        match assets.text(&path) {
            Some(text) => texts.push((path, text)),
            None => problems.push(Problem::new(path, "cannot be read")),
        }
    }
    let tables = texts.iter().filter_map(|(path, text)| File::read(path, text, problems));
    let mut heads: Vec<Head<'_>> = Vec::new();
    for head in tables.map(head) {
        let same = |other: &&Head<'_>| other.screen == Some(Screen::AnyPage) && other.screen == head.screen;
        if let Some(other) = heads.iter().find(same) {
            head.location.wrong(format_args!("{:?} is for all pages, as {} is", head.id, other.table.file().path));
        }
        if let Some(other) = heads.iter().find(|other| other.id == head.id && !head.id.is_empty()) {
            head.location.wrong(format_args!("{:?} is already that of {}", head.id, other.table.file().path));
        }
        heads.push(head);
    }
    if heads.is_empty() && problems.is_empty() {
        problems.push(Problem::new("profiles", "there is no profile"));
    }
    // Pages inherit it, so it comes first.
    heads.sort_by_key(|head| head.screen != Some(Screen::AnyPage));
    let mut gathered =
        Gathered { profiles: Vec::new(), loaders: BTreeMap::new(), types: BTreeMap::new(), fallback: None };
    let (mut any_page, mut every_page) = (None, Layer::default());
    for Head { mut table, id, location, screen } in heads {
        match screen {
            None => {
                // Its other mistakes are reported too.
                for key in ["app", "tabs", "aliases", "fallback", "internal"] {
                    table.take(key);
                }
                parts.layer(&mut table, &every_page, &id, &mut gathered.loaders);
            }
            Some(Screen::Type(context_type)) => {
                for key in ["app", "tabs"] {
                    if let Some(entry) = table.take(key) {
                        entry.wrong("is only for pages");
                    }
                }
                let aliases = table.names("aliases");
                let fallback = table.take("fallback");
                let is_internal = table.flag("internal").unwrap_or_default();
                let mut layer = parts.layer(&mut table, &Layer::default(), &id, &mut gathered.loaders);
                layer.is_fallback = gathered.is_fallback(fallback, &location);
                layer.is_internal = is_internal;
                for (location, alias) in aliases {
                    gathered.take_name(&alias, &id, &location);
                    layer.aliases.push(alias);
                }
                gathered.add(parts, layer, id, context_type, &location);
            }
            Some(Screen::AnyPage) => {
                if let Some(entry) = table.take("tabs") {
                    entry.wrong("is not for what all pages have");
                }
                every_page = parts.layer(&mut table, &Layer::default(), &id, &mut gathered.loaders);
                every_page.app = app(&mut table);
                every_page.is_page = true;
                any_page = Some(id.clone());
                gathered.add(parts, every_page.clone(), id.clone(), id, &location);
            }
            Some(Screen::Page(page)) => {
                let app = app(&mut table);
                let tabs = table.table("tabs");
                let mut layer = parts.layer(&mut table, &every_page, &id, &mut gathered.loaders);
                layer.app = app.or(layer.app);
                layer.is_page = true;
                gathered.add(parts, layer.clone(), id.clone(), page.clone(), &location);
                gathered.tabs(parts, tabs, &layer, (&id, &page), Some("subtabs"));
            }
        }
        table.finish();
    }
    let profiles = Profiles::new(gathered.profiles, any_page.as_deref());
    (profiles, gathered.loaders.into_values().collect())
}

/// The head of the file of `table`.
fn head(mut table: Table<'_>) -> Head<'_> {
    let named = table.required("id").map(|entry| (entry.location(), non_blank_text(entry).unwrap_or_default()));
    let (location, id) = named.unwrap_or_else(|| (table.location(), String::new()));
    if !id.is_empty() && !is_id(&id) {
        location.wrong("must be 1 to 64 of A-Z a-z 0-9 _ -");
    }
    let screen = match (table.take("context_type"), table.take("page")) {
        (Some(_), Some(page)) => {
            page.wrong("must not be given beside context_type");
            None
        }
        (Some(entry), None) => non_blank_text(entry).map(Screen::Type),
        (None, Some(entry)) => page(entry),
        (None, None) => {
            table.wrong("context_type or page is missing");
            None
        }
    };
    Head { table, id, location, screen }
}

fn page(entry: Entry<'_>) -> Option<Screen> {
    let location = entry.location();
    let page = non_blank_text(entry)?;
    if page == ANY_PAGE {
        return Some(Screen::AnyPage);
    }
    if page.contains('/') {
        location.wrong("must not have a slash; tabs are tables in the file of their page");
    }
    Some(Screen::Page(page))
}

/// A text that says something.
fn non_blank_text(entry: Entry<'_>) -> Option<String> {
    let location = entry.location();
    let text = entry.text()?;
    if text.trim().is_empty() {
        location.wrong("must not be empty");
        return None;
    }
    Some(text)
}

fn app(table: &mut Table<'_>) -> Option<String> {
    table.take("app").and_then(non_blank_text)
}

fn is_id(id: &str) -> bool {
    id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

impl Gathered {
    /// Notes that `name` selects the profile `id`, whose file says so at `location`.
    fn take_name(&mut self, name: &str, id: &str, location: &Location<'_>) {
        if let Some(other) = self.types.insert(name.to_owned(), location.path().to_owned()) {
            location.wrong(format_args!("{id:?} is selected by {name:?}, as the one in {other} is"));
        }
    }

    /// Whether `entry` makes a profile the fallback, which one alone can be.
    fn is_fallback(&mut self, entry: Option<Entry<'_>>, location: &Location<'_>) -> bool {
        let Some(entry) = entry else { return false };
        let at = entry.location();
        let is_one = entry.flag().unwrap_or_default();
        if is_one && let Some(other) = self.fallback.replace(location.path().to_owned()) {
            at.wrong(format_args!("is already true in {other}"));
        }
        is_one
    }

    /// Adds the profile that `layer` describes, the file of which is at `location`.
    fn add(&mut self, parts: &Parts<'_>, layer: Layer, id: String, context_type: String, location: &Location<'_>) {
        self.take_name(&context_type, &id, location);
        match layer.profile(id, context_type, parts.models.default_menu()) {
            Ok(profile) => self.profiles.push(profile),
            Err(error) => location.wrong(format_args!("has a prompt that cannot be made: {error}")),
        }
    }

    /// Adds the tabs in `table`, and what is in them below the key `inner`.
    fn tabs(
        &mut self,
        parts: &Parts<'_>,
        table: Option<Table<'_>>,
        outer: &Layer,
        (id, context_type): (&str, &str),
        inner: Option<&str>,
    ) {
        let Some(mut table) = table else { return };
        for name in table.keys() {
            let Some(mut tab) = table.table(&name) else { continue };
            let location = tab.location();
            if name.trim().is_empty() || name.contains('/') {
                location.wrong("must have a name without a slash");
            }
            let (id, context_type) = (format!("{id}/{name}"), format!("{context_type}/{name}"));
            let subtabs = inner.and_then(|key| tab.table(key));
            let layer = parts.layer(&mut tab, outer, &id, &mut self.loaders);
            tab.finish();
            self.add(parts, layer.clone(), id.clone(), context_type.clone(), &location);
            self.tabs(parts, subtabs, &layer, (&id, &context_type), None);
        }
    }
}
