//! One upload. What is no larger than a part is put as a whole, more in parts; either way nobody sees any of it before its end.

use std::sync::Arc;

use bytes::BytesMut;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, WriteMultipart};
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::task::TaskTracker;

use crate::chat::causes::Causes;

/// An object that is being written.
pub(super) struct Upload {
    objects: Arc<dyn ObjectStore>,
    path: Path,
    part: usize,
    /// What is not sent yet, at most a part. One buffer holds all of them, one after the other.
    held: BytesMut,
    /// What is sent in parts; `None` as long as all of it may be one.
    parts: Option<Parts>,
    /// Where its first step, its last one and what takes it back come to their end though its sender goes.
    tasks: TaskTracker,
}

/// Parts that are sent. Dropped before their end, they are taken back.
struct Parts {
    /// `None` behind their end.
    sent: Option<WriteMultipart>,
    path: Path,
    tasks: TaskTracker,
}

impl Upload {
    /// An upload to `path` in parts of so many bytes. Nothing is sent yet.
    pub(super) fn new(objects: Arc<dyn ObjectStore>, path: Path, part: usize, tasks: TaskTracker) -> Self {
        Self { objects, path, part, held: BytesMut::new(), parts: None, tasks }
    }

    /// Takes more bytes, and waits until no part is on its way any more.
    pub(super) async fn write(&mut self, mut piece: &[u8]) -> Result<(), Error> {
        while !piece.is_empty() {
            if self.held.len() == self.part {
                self.send().await?;
            }
            let (now, rest) = piece.split_at(piece.len().min(self.part - self.held.len()));
            self.held.extend_from_slice(now);
            piece = rest;
        }
        Ok(())
    }

    /// Sends a part, behind which there are others.
    async fn send(&mut self) -> Result<(), Error> {
        let parts = match &mut self.parts {
            Some(parts) => parts,
            None => {
                let begun = Parts::begin(Arc::clone(&self.objects), self.path.clone(), self.part, self.tasks.clone());
                self.parts.insert(self.tasks.spawn(begun).await.map_err(broken_off)??)
            }
        };
        let part = std::mem::take(&mut self.held).freeze();
        if let Some(sent) = &mut parts.sent {
            sent.put(part.clone());
            sent.wait_for_capacity(1).await?;
        }
        self.held = part.try_into_mut().unwrap_or_default();
        self.held.clear();
        Ok(())
    }

    /// Makes it the object.
    pub(super) async fn finish(mut self) -> Result<(), Error> {
        let last = std::mem::take(&mut self.held).freeze();
        let Some(mut parts) = self.parts else { return self.objects.put(&self.path, last.into()).await.map(drop) };
        match parts.sent.take() {
            Some(mut sent) => {
                sent.put(last);
                self.tasks.spawn(sent.finish()).await.map_err(broken_off)?.map(drop)
            }
            None => Ok(()),
        }
    }

    /// Takes back what was sent of it.
    pub(super) async fn abort(self) {
        if let Some(mut parts) = self.parts
            && let Some(taken_back) = parts.take_back()
        {
            let _ = taken_back.await;
        }
    }
}

impl Parts {
    /// Has the store begin an upload, of which it keeps something from then on.
    async fn begin(objects: Arc<dyn ObjectStore>, path: Path, part: usize, tasks: TaskTracker) -> Result<Self, Error> {
        let upload = objects.put_multipart(&path).await?;
        Ok(Self { sent: Some(WriteMultipart::new_with_chunk_size(upload, part)), path, tasks })
    }

    /// Takes back what was sent, whether anybody waits for that or not.
    fn take_back(&mut self) -> Option<JoinHandle<()>> {
        let (sent, runtime) = (self.sent.take()?, Handle::try_current().ok()?);
        let path = self.path.clone();
        let aborted = async move {
            // Parts that stay are told in the log alone: no note of a file removes them.
            if let Err(error) = sent.abort().await {
                tracing::warn!(error = %Causes(&error), file.path = %path, "parts of an upload were not removed");
            }
        };
        Some(self.tasks.spawn_on(aborted, &runtime))
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        drop(self.take_back());
    }
}

fn broken_off(source: JoinError) -> Error {
    Error::JoinError { source }
}
