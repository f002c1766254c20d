//! `[llm.providers.NAME]`: providers by a name of the operator's choice, each with the settings of the vendor whose wire it
//! speaks. The vendor comes first, from the environment or the file: only then is it known which keys there are.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::Problem;
use super::layers::{PREFIX, fit};
use crate::llm::{Vendor, claude, gemini, ollama, openai};

/// The names of all providers, and whose wire each speaks.
#[derive(Default)]
pub(super) struct Named {
    vendors: BTreeMap<String, Vendor>,
    /// Without a vendor, so that nothing can be said about their keys.
    unclear: BTreeSet<String>,
}

impl Named {
    /// Finds the providers of a file's `layer` and of the environment. Takes from the layer what is used up by that.
    pub(super) fn find(layer: &mut Table, env: &BTreeMap<String, String>, problems: &mut Vec<Problem>) -> Self {
        // Where the vendor is said: by provider, the place and the text, which is `None` where it is no text.
        let mut said: BTreeMap<String, Option<(String, Option<String>)>> = BTreeMap::new();
        if let Some(Value::Table(llm)) = layer.get_mut("llm")
            && let Some(Value::Table(providers)) = llm.get_mut("providers")
        {
            providers.retain(|name, section| {
                let path = format!("llm.providers.{name}");
                let Value::Table(section) = section else {
                    problems.push(Problem::new(path, "must be a section"));
                    return false;
                };
                let vendor = section.remove("vendor");
                said.insert(name.to_owned(), vendor.map(|v| (format!("{path}.vendor"), v.as_str().map(str::to_owned))));
                true
            });
        }
        for (variable, text) in env {
            let Some(path) = path(variable) else { continue };
            match path.as_slice() {
                [name, key] if key == "vendor" => {
                    said.insert(name.clone(), Some((variable.clone(), Some(text.clone()))));
                }
                [name, _, ..] => drop(said.entry(name.clone()).or_default()),
                _ => {}
            }
        }
        let mut named = Self::default();
        for (name, said) in said {
            let vendor = said.as_ref().and_then(|(_, text)| Vendor::parse(text.as_deref()?.trim()));
            if let Some(vendor) = vendor {
                named.vendors.insert(name, vendor);
                continue;
            }
            let vendors = Vendor::ALL.map(Vendor::name).join(", ");
            problems.push(match said {
                Some((place, _)) => Problem::new(place, format!("must be one of {vendors}")),
                None => Problem::new(format!("llm.providers.{name}.vendor"), format!("is required: one of {vendors}")),
            });
            if let Some(providers) = section(layer) {
                providers.remove(&name);
            }
            // Stands in with a whole section, so that whoever names this provider is not told that there is none.
            named.vendors.insert(name.clone(), Vendor::Ollama);
            named.unclear.insert(name);
        }
        named
    }

    /// Adds what each provider's settings are by default: those of its vendor.
    pub(super) fn add_defaults(&self, defaults: &mut Table) {
        for (name, vendor) in &self.vendors {
            let Some(Value::Table(llm)) = defaults.get_mut("llm") else { return };
            let Some(Value::Table(mut section)) = llm.get(vendor.name()).cloned() else { return };
            match vendor {
                // The vendor's address and models are not those of a server that only speaks its language, and a key
                // must not go to the wrong one by an omission.
                Vendor::OpenAi => {
                    for key in ["base_url", "model"] {
                        section.insert(key.to_owned(), Value::String(String::new()));
                    }
                }
                Vendor::Gemini | Vendor::Claude | Vendor::Ollama => {}
            }
            if let Some(Value::Table(providers)) = llm.get_mut("providers") {
                providers.insert(name.clone(), Value::Table(section));
            }
        }
    }

    /// Whether a variable has been used up by [`Self::find`].
    pub(super) fn has_read(&self, variable: &str) -> bool {
        let Some(path) = path(variable) else { return false };
        match path.as_slice() {
            [name, key] if key == "vendor" => self.vendors.contains_key(name),
            [name, ..] => self.unclear.contains(name),
            [] => false,
        }
    }

    /// Makes each provider's settings fit their types, as nothing else could: a mistake behind a `vendor` has no path.
    pub(super) fn fit(&self, merged: &mut Table, defaults: &Table, problems: &mut Vec<Problem>) {
        for (name, vendor) in &self.vendors {
            let default = section(&mut defaults.clone()).and_then(|section| section.remove(name));
            let slot = section(merged).and_then(|section| section.get_mut(name));
            let (Some(Value::Table(default)), Some(Value::Table(table))) = (default, slot) else { continue };
            let path = format!("llm.providers.{name}");
            match vendor {
                Vendor::Gemini => drop(fit::<gemini::Config>(table, &default, &path, problems)),
                Vendor::Claude => drop(fit::<claude::Config>(table, &default, &path, problems)),
                Vendor::Ollama => drop(fit::<ollama::Config>(table, &default, &path, problems)),
                Vendor::OpenAi => drop(fit::<openai::Config>(table, &default, &path, problems)),
            }
            table.insert("vendor".to_owned(), Value::String(vendor.name().to_owned()));
        }
    }
}

/// The `[llm.providers]` of a table.
fn section(table: &mut Table) -> Option<&mut Table> {
    table.get_mut("llm")?.as_table_mut()?.get_mut("providers")?.as_table_mut()
}

/// What stands behind `llm.providers` in a variable's name, level by level; `None` for other variables.
fn path(variable: &str) -> Option<Vec<String>> {
    let path = variable.strip_prefix(PREFIX)?.to_lowercase();
    Some(path.strip_prefix("llm__providers__")?.split("__").map(str::to_owned).collect())
}
