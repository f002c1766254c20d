//! New SQLite files with the schema of now: a copy of one that is made once is there sooner than all migrations.

use std::path::Path;

use sqlx::migrate::Migrator;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};
use tokio::sync::OnceCell;

static EMPTY: OnceCell<Vec<u8>> = OnceCell::const_new();

/// Makes the database `file`, in a folder that is there, without a row.
pub async fn make(file: &Path) {
    let empty = EMPTY.get_or_init(async || {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("empty.db");
        let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
        let mut connection = options.connect().await.unwrap();
        let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/sqlite/migrations");
        Migrator::new(migrations).await.unwrap().run(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        std::fs::read(file).unwrap()
    });
    std::fs::write(file, empty.await).unwrap();
}
