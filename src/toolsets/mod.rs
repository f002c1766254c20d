//! Families of tools with logic of their own, for one kind of product each. A family is a folder here, behind a cargo
//! feature of its name that is on by default, and a line in `TOOLSETS`; all else goes through that list.
//!
//! **Invariant:** a family uses the machinery of [`crate::tools`] and no other family.

#[cfg(feature = "dialog")]
mod dialog;
#[cfg(feature = "tables")]
mod tables;
#[cfg(feature = "web")]
pub mod web;
#[cfg(feature = "workflow")]
mod workflow;
#[cfg(feature = "workspace")]
mod workspace;

use std::borrow::Cow;
use std::sync::Arc;

use crate::tools::backend::Backend;
use crate::tools::executor::Handler;
use crate::tools::previews::{Reader, Readers};
use crate::tools::{Deps, Unready};

/// A file by its name.
pub type NamedFile = (String, Cow<'static, [u8]>);

/// A family of tools.
pub struct Toolset {
    /// Its name, which its files have before theirs on the page.
    name: &'static str,
    /// The files of its part of the page, where it has one. `page.js` is loaded by the page.
    page: fn() -> Vec<NamedFile>,
    /// The handlers of its tools.
    tools: fn(&Deps) -> Result<Vec<Handler>, Unready>,
    /// What finds the things again that its tools make previews of.
    reader: Option<NamedReader>,
}

/// The name that is stored with each preview, and what makes the reader of that name: it fetches the present state of the
/// object that a preview changes.
type NamedReader = (&'static str, fn(Arc<Backend>) -> Arc<dyn Reader>);

/// The families that are built in.
const TOOLSETS: &[Toolset] = &[
    #[cfg(feature = "workflow")]
    workflow::TOOLSET,
    #[cfg(feature = "tables")]
    tables::TOOLSET,
    #[cfg(feature = "web")]
    web::TOOLSET,
    #[cfg(feature = "workspace")]
    workspace::TOOLSET,
    #[cfg(feature = "dialog")]
    dialog::TOOLSET,
];

/// The files of the families' parts of the page, by the families' names.
pub fn pages() -> impl Iterator<Item = (&'static str, Vec<NamedFile>)> {
    TOOLSETS.iter().map(|family| (family.name, (family.page)())).filter(|(_, files)| !files.is_empty())
}

/// All files of `E`.
#[cfg(any(feature = "tables", feature = "workflow"))]
fn files<E: rust_embed::RustEmbed>() -> Vec<NamedFile> {
    E::iter().filter_map(|name| Some((name.to_string(), E::get(&name)?.data))).collect()
}

/// The handlers of all families.
///
/// # Errors
/// When one of them cannot be made ready.
pub fn tools(deps: &Deps) -> Result<Vec<Handler>, Unready> {
    let families = TOOLSETS.iter().map(|family| (family.tools)(deps));
    Ok(families.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// What finds the things again that the tools of all families make previews of.
pub fn readers(backend: &Arc<Backend>) -> Readers {
    let named = TOOLSETS.iter().filter_map(|family| family.reader);
    named.map(|(name, reader)| (name, reader(backend.clone()))).collect()
}
