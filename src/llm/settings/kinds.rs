//! The kinds of providers that an editor can add, as the vendors' folders have them.

use crate::agent::ports::models::ProviderKind;
use crate::llm::Vendor;
use crate::llm::vendor::{KindFacts, Usual};

/// A kind of provider, and the wire that it speaks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    pub(super) vendor: Vendor,
    facts: &'static KindFacts,
}

impl Kind {
    /// All of them.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Vendor::ALL.into_iter().flat_map(Self::of_vendor)
    }

    /// The kind called `name`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.facts.name == name)
    }

    /// The kind of a provider of the configuration, by its name and its wire: its vendor's own section is of the first
    /// kind, and a provider of the operator's own is of the last.
    pub(super) fn of(name: &str, vendor: Vendor) -> Option<Self> {
        let mut kinds = Self::of_vendor(vendor);
        if Vendor::parse(name).is_some() { kinds.next() } else { kinds.last() }
    }

    fn of_vendor(vendor: Vendor) -> impl Iterator<Item = Self> {
        vendor.facts().kinds.iter().map(move |facts| Self { vendor, facts })
    }

    pub(super) fn name(self) -> &'static str {
        self.facts.name
    }

    /// As it is shown.
    pub(super) fn shown(self) -> ProviderKind {
        let KindFacts { name, needs_key, usual } = *self.facts;
        ProviderKind { name, needs_key, needs_url: usual == Usual::Nowhere }
    }

    /// The usual address; empty where there is none.
    pub(super) fn usual_url(self) -> String {
        match self.facts.usual {
            Usual::Vendor => self.vendor.defaults().common.base_url,
            Usual::At(url) => url.to_owned(),
            Usual::Nowhere => String::new(),
        }
    }
}
