//! Packages that tenants may install, and what each has installed. A package is a description and brings no code.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::stamp::Stamp;

/// A package, as `packages.json` has it and clients read it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Its name in addresses, which is unique.
    pub slug: String,
    name: String,
    /// The only version there is.
    pub version: String,
    description: String,
    includes: Map<String, Value>,
    /// Whether anybody may have it.
    pub is_published: bool,
}

/// A package that a tenant has installed, or had.
#[derive(Debug, Clone, Serialize)]
pub struct Installation {
    /// Its id.
    pub id: Uuid,
    /// Whose it is.
    #[serde(skip)]
    pub tenant: String,
    /// Of which package.
    pub slug: String,
    /// Of which version.
    pub version: String,
    /// What has become of it.
    pub status: InstallationStatus,
    /// Whether it may be used.
    pub enabled: bool,
    /// Its settings.
    pub config: Map<String, Value>,
    /// When it was installed last.
    pub installed_at: Stamp,
    /// When it was changed last.
    pub updated_at: Stamp,
    /// Why it failed: here it never does.
    pub last_error: Option<String>,
    /// When it failed.
    pub last_error_at: Option<Stamp>,
}

/// What has become of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InstallationStatus {
    /// It is there.
    Installed,
    /// It was uninstalled, and its settings were kept.
    Disabled,
}
