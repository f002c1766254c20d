//! How much a workspace holds, where that is bounded. It is measured when a run begins and behind each command; in between
//! what tools write is added. So a command may go beyond it once, and the next one is refused.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::agent::ports::workspace::Failure;

/// Bytes of a block, as `stat` counts them.
const BLOCK: u64 = 512;

/// The bound of one workspace, and what it holds.
#[derive(Debug, Clone)]
pub(super) struct Quota {
    root: PathBuf,
    /// 0: none.
    most: u64,
    held: Arc<AtomicU64>,
}

impl Quota {
    pub(super) fn new(root: &Path, most: u64) -> Self {
        Self { root: root.to_owned(), most, held: Arc::default() }
    }

    pub(super) fn is_on(&self) -> bool {
        self.most != 0
    }

    /// Looks how much there is on the disk, the state with it.
    pub(super) fn measure(&self) {
        let (mut held, mut folders) = (0_u64, vec![self.root.clone()]);
        while let Some(folder) = folders.pop() {
            // What goes away meanwhile is not counted.
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let Ok(found) = entry.metadata() else { continue };
                held = held.saturating_add(found.blocks().saturating_mul(BLOCK));
                folders.extend(found.is_dir().then(|| entry.path()));
            }
        }
        self.held.store(held, Ordering::Relaxed);
    }

    /// Counts what is to be written.
    ///
    /// # Errors
    /// When there is no room for it.
    pub(super) fn take(&self, bytes: u64) -> Result<(), Failure> {
        let held = self.held.load(Ordering::Relaxed);
        if self.is_on() && held.saturating_add(bytes) >= self.most {
            let message = format!("the workspace holds {held} bytes of {}: delete what is not needed", self.most);
            return Err(Failure { code: "quota_exceeded", message });
        }
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_counts_and_what_does_not_fit_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let quota = Quota::new(root.path(), 100_000);
        quota.measure();
        quota.take(50_000).unwrap();
        assert_eq!(quota.take(50_000).unwrap_err().code, "quota_exceeded");
        std::fs::create_dir(root.path().join("a")).unwrap();
        std::fs::write(root.path().join("a/b"), vec![1; 120_000]).unwrap();
        quota.measure();
        assert!(quota.take(0).is_err());
        std::os::unix::fs::symlink("/", root.path().join("all")).unwrap();
        std::fs::remove_file(root.path().join("a/b")).unwrap();
        quota.measure();
        quota.take(50_000).unwrap();
        let free = Quota::new(root.path(), 0);
        free.measure();
        free.take(u64::MAX).unwrap();
    }
}
