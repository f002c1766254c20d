//! The `[files]` section, and the place that it names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use serde::Deserialize;

use super::s3::{Bucket, S3Config};
use crate::aws::Variables;

/// 64 KiB are written to a folder at once.
const PART: usize = 64 << 10;

/// 5 MiB: the least that S3 takes as a part that is not the last one.
#[cfg(feature = "aws")]
const S3_PART: usize = 5 << 20;

/// The `[files]` section: what users attach to their messages, and what tools make.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilesConfig {
    /// Where the bytes are: `auto` is the folder `files` beside a SQLite database, in memory beside one in memory, and
    /// nowhere with PostgreSQL; `off`; `file:FOLDER`, which all replicas share; `s3://BUCKET/PREFIX`; `memory:`.
    pub url: String,
    /// The largest file, in bytes; 0 means no limit.
    pub max_bytes: u64,
    /// The most files of one message.
    pub per_message: usize,
    /// The bytes of all files of a user; 0 means no limit.
    pub user_bytes: u64,
    /// The bytes of all files of a tenant; 0 means no limit.
    pub tenant_bytes: u64,
    /// How the bucket is reached.
    pub s3: S3Config,
    /// Who this server is to it.
    #[serde(skip)]
    pub aws: Variables,
}

impl Default for FilesConfig {
    fn default() -> Self {
        Self {
            url: "auto".to_owned(),
            max_bytes: 20 << 20,
            per_message: 20,
            user_bytes: 200 << 20,
            tenant_bytes: 2 << 30,
            s3: S3Config::default(),
            aws: Variables::default(),
        }
    }
}

/// How the address of a bucket begins.
const S3: &str = "s3://";

/// What it may be.
const MUST: &str = "must be auto, off, memory:, file:FOLDER or s3://BUCKET/PREFIX";

/// Why the place for files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It is none of the places.
    #[error("files.url {}", MUST)]
    Url,
    /// The folder.
    #[error("files.url: the folder {folder} cannot be used")]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        #[source]
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The bucket.
    #[error("files.url: the bucket {bucket} cannot be used")]
    Bucket {
        /// Its name.
        bucket: String,
        /// The cause.
        #[source]
        error: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A place for bytes.
pub(super) struct Place {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// So many bytes are written at once.
    pub(super) part: usize,
    /// Its folder, where it is one.
    pub(super) folder: Option<PathBuf>,
}

/// Where bytes are to be.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Nowhere,
    Memory,
    Folder(PathBuf),
    Bucket(Bucket),
}

impl FilesConfig {
    /// What is wrong with it: keys, and why.
    pub fn mistakes(&self) -> Vec<(&'static str, String)> {
        match self.wanted("") {
            Err(_) => vec![("url", MUST.to_owned())],
            Ok(Wanted::Bucket(_)) => self.s3.mistakes(),
            Ok(Wanted::Nowhere | Wanted::Memory | Wanted::Folder(_)) => Vec::new(),
        }
    }

    /// Whether files are in a bucket.
    pub fn is_s3(&self) -> bool {
        self.url.starts_with(S3)
    }

    fn wanted(&self, database: &str) -> Result<Wanted, OpenError> {
        match self.url.as_str() {
            "off" => Ok(Wanted::Nowhere),
            "memory:" => Ok(Wanted::Memory),
            "auto" => Ok(beside(database)),
            url if self.is_s3() => {
                let bucket = url.strip_prefix(S3).and_then(Bucket::parse);
                bucket.map(Wanted::Bucket).ok_or(OpenError::Url)
            }
            url => match url.strip_prefix("file:").map(|path| path.strip_prefix("//").unwrap_or(path)) {
                Some(folder) if !folder.is_empty() => Ok(Wanted::Folder(folder.into())),
                Some(_) | None => Err(OpenError::Url),
            },
        }
    }

    /// The place; `None` where files are not kept.
    ///
    /// # Errors
    /// When it cannot be used.
    pub(super) fn place(&self, database: &str) -> Result<Option<Place>, OpenError> {
        let folder = match self.wanted(database)? {
            Wanted::Nowhere => return Ok(None),
            Wanted::Memory => {
                return Ok(Some(Place { objects: Arc::new(InMemory::new()), part: PART, folder: None }));
            }
            Wanted::Bucket(bucket) => return self.bucket(bucket).map(Some),
            Wanted::Folder(folder) => folder,
        };
        let wrong =
            |error: Box<dyn std::error::Error + Send + Sync>| OpenError::Folder { folder: folder.clone(), error };
        make(&folder).map_err(|error| wrong(error.into()))?;
        let objects = LocalFileSystem::new_with_prefix(&folder).map_err(|error| wrong(error.into()))?;
        let objects = objects.with_automatic_cleanup(true).with_fsync(true);
        Ok(Some(Place { objects: Arc::new(objects), part: PART, folder: Some(folder) }))
    }

    #[cfg(feature = "aws")]
    fn bucket(&self, bucket: Bucket) -> Result<Place, OpenError> {
        match self.s3.objects(&bucket, &self.aws) {
            Ok(objects) => Ok(Place { objects, part: S3_PART, folder: None }),
            Err(error) => Err(OpenError::Bucket { bucket: bucket.name, error: error.into() }),
        }
    }

    #[cfg(not(feature = "aws"))]
    fn bucket(&self, bucket: Bucket) -> Result<Place, OpenError> {
        let error = "this server is built without the feature aws".into();
        Err(OpenError::Bucket { bucket: bucket.name, error })
    }
}

/// The folder for one user's eyes alone, as the database's.
fn make(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn beside(database: &str) -> Wanted {
    let Some(path) = database.strip_prefix("sqlite:") else { return Wanted::Nowhere };
    let path = path.strip_prefix("//").unwrap_or(path);
    let path = path.split('?').next().unwrap_or_default();
    if path.is_empty() || path == ":memory:" {
        return Wanted::Memory;
    }
    Wanted::Folder(Path::new(path).parent().unwrap_or(Path::new("")).join("files"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_beside_the_database_or_where_it_is_said() {
        let rows = [
            ("auto", "sqlite://data/switchboard.db", Wanted::Folder("data/files".into())),
            ("auto", "sqlite:///var/lib/s.db?mode=rwc", Wanted::Folder("/var/lib/files".into())),
            ("auto", "sqlite::memory:", Wanted::Memory),
            ("auto", "postgres://h/d", Wanted::Nowhere),
            ("off", "sqlite://a.db", Wanted::Nowhere),
            ("file:///srv/files", "postgres://h/d", Wanted::Folder("/srv/files".into())),
            ("file:files", "postgres://h/d", Wanted::Folder("files".into())),
            ("s3://b/p", "postgres://h/d", Wanted::Bucket(Bucket { name: "b".to_owned(), prefix: "p".to_owned() })),
        ];
        for (url, database, expected) in rows {
            let config = FilesConfig { url: url.to_owned(), ..FilesConfig::default() };
            assert_eq!(config.wanted(database).unwrap(), expected, "{url} {database}");
        }
        for url in ["", "file:", "s3://", "s3:bucket", "data/files"] {
            let config = FilesConfig { url: url.to_owned(), ..FilesConfig::default() };
            assert_eq!(config.mistakes()[0].0, "url", "{url}");
        }
    }
}
