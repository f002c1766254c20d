//! The stores: one contract that every implementation passes, and what is particular to each.

mod approvals;
mod branches;
mod chats;
mod clients;
pub mod contract;
mod conversations;
mod dialog;
mod directives;
mod drafts;
mod explained;
mod files;
mod leases;
mod library;
mod limits;
mod plans;
mod postgres;
pub mod postgres_rare;
mod previews;
pub mod row_security;
mod sqlite;
mod state;
mod summaries;
mod together;
mod trail;
mod users;
mod views;
mod waiting;

use std::path::Path;

use sqlx::migrate::Migrator;

/// The schema of that version, of the migrations in `folder`.
pub async fn schema_of(version: u32, folder: &str) -> Migrator {
    let alone = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        if name.split_once('_').unwrap().0.parse::<u32>().unwrap() <= version {
            std::fs::copy(file.path(), alone.path().join(name)).unwrap();
        }
    }
    Migrator::new(alone.path()).await.unwrap()
}
