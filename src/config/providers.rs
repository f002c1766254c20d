//! `[llm.VENDOR]` and `[llm.providers.NAME]`: the vendors' own providers, and those by a name of the operator's choice, each
//! with the settings of the vendor whose wire it speaks. Of the latter the vendor comes first, from the environment or the
//! file: only then is it known which keys there are.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::Problem;
use super::fitting::{PREFIX, fit_by};
use crate::llm::{self, Vendor, VendorConfig};

/// The names of all providers, and whose wire each speaks.
#[derive(Default)]
pub(super) struct Named {
    vendors: BTreeMap<String, Vendor>,
    /// Without a vendor, so that nothing is known about their keys.
    unclear: BTreeSet<String>,
}

impl Named {
    /// Finds the providers of a file's `layer` and of the environment. Takes from the layer what is used up by that.
    pub(super) fn find(layer: &mut Table, env: &BTreeMap<String, String>, problems: &mut Vec<Problem>) -> Self {
        // The vendors in the settings: by provider, the key and the text, which is `None` where it is no text.
        let mut vendor_texts: BTreeMap<String, Option<(String, Option<String>)>> = BTreeMap::new();
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
                vendor_texts
                    .insert(name.to_owned(), vendor.map(|v| (format!("{path}.vendor"), v.as_str().map(str::to_owned))));
                true
            });
        }
        for (variable, text) in env {
            let Some(path) = path(variable) else { continue };
            match path.as_slice() {
                [name, key] if key == "vendor" => {
                    vendor_texts.insert(name.clone(), Some((variable.clone(), Some(text.clone()))));
                }
                [name, _, ..] => drop(vendor_texts.entry(name.clone()).or_default()),
                _ => {}
            }
        }
        let mut named = Self::default();
        for (name, vendor_text) in vendor_texts {
            let vendor = vendor_text.as_ref().and_then(|(_, text)| Vendor::parse(text.as_deref()?.trim()));
            if let Some(vendor) = vendor {
                named.vendors.insert(name, vendor);
                continue;
            }
            let vendors = Vendor::ALL.map(Vendor::name).join(", ");
            problems.push(match vendor_text {
                Some((key, _)) => Problem::new(key, format!("must be one of {vendors}")),
                None => Problem::new(format!("llm.providers.{name}.vendor"), format!("is required: one of {vendors}")),
            });
            if let Some(providers) = section(layer, &["providers"]) {
                providers.remove(&name);
            }
            // Stands in with a section that lacks nothing, so that a setting that names this provider causes no second
            // problem.
            let stand_in = Vendor::ALL.into_iter().find(|vendor| !vendor.needs_key() && !vendor.is_spoken_by_others());
            named.vendors.extend(stand_in.map(|vendor| (name.clone(), vendor)));
            named.unclear.insert(name);
        }
        named
    }

    /// The sections of all providers, each with the vendor whose settings it has.
    pub(super) fn sections(&self) -> impl Iterator<Item = (Vec<&str>, Vendor)> {
        let of_vendors = Vendor::ALL.into_iter().map(|vendor| (vec!["llm", vendor.name()], vendor));
        of_vendors.chain(self.vendors.iter().map(|(name, vendor)| (vec!["llm", "providers", name.as_str()], *vendor)))
    }

    /// Adds what each provider's settings are by default: those of its vendor.
    pub(super) fn add_defaults(&self, defaults: &mut Table) {
        for (name, vendor) in &self.vendors {
            let Some(Value::Table(llm)) = defaults.get_mut("llm") else { return };
            let Some(Value::Table(mut section)) = llm.get(vendor.name()).cloned() else { return };
            if vendor.is_spoken_by_others() {
                for key in ["base_url", "model"] {
                    section.insert(key.to_owned(), Value::String(String::new()));
                }
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

    /// Takes the sections of all providers out of `merged`, made to fit their types, as nothing else could: only a vendor
    /// knows its settings.
    pub(super) fn take(&self, merged: &mut Table, defaults: &Table, problems: &mut Vec<Problem>) -> Taken {
        let mut take = |vendor: Vendor, keys: &[&str]| {
            let mut table = take_section(merged, keys);
            let default = take_section(&mut defaults.clone(), keys);
            let path = format!("llm.{}", keys.join("."));
            let section = fit_by(|table| vendor.read(table), &mut table, &default, &path, problems);
            section.unwrap_or_else(|| vendor.defaults())
        };
        let vendors = Vendor::ALL.into_iter().map(|vendor| (vendor, take(vendor, &[vendor.name()]))).collect();
        let providers = self.vendors.iter();
        let providers = providers.map(|(name, vendor)| (name.clone(), take(*vendor, &["providers", name]))).collect();
        take_section(merged, &["providers"]);
        Taken { vendors, providers }
    }
}

/// The sections of all providers.
pub(super) struct Taken {
    vendors: BTreeMap<Vendor, VendorConfig>,
    providers: BTreeMap<String, VendorConfig>,
}

impl Taken {
    /// Gives them to `llm`.
    pub(super) fn put(self, llm: &mut llm::LlmConfig) {
        (llm.vendors, llm.providers) = (self.vendors, self.providers);
    }
}

/// The section of `[llm]` that `keys` lead to.
fn section<'a>(table: &'a mut Table, keys: &[&str]) -> Option<&'a mut Table> {
    let llm = table.get_mut("llm")?.as_table_mut()?;
    keys.iter().try_fold(llm, |table, key| table.get_mut(*key)?.as_table_mut())
}

/// The same, taken out; empty where there is none.
fn take_section(table: &mut Table, keys: &[&str]) -> Table {
    let Some((last, keys)) = keys.split_last() else { return Table::new() };
    match section(table, keys).and_then(|table| table.remove(*last)) {
        Some(Value::Table(section)) => section,
        Some(_) | None => Table::new(),
    }
}

/// What stands behind `llm.providers` in a variable's name, level by level; `None` for other variables.
fn path(variable: &str) -> Option<Vec<String>> {
    let path = variable.strip_prefix(PREFIX)?.to_lowercase();
    Some(path.strip_prefix("llm__providers__")?.split("__").map(str::to_owned).collect())
}
