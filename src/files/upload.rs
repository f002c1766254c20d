//! One upload. What is no larger than a part is put as a whole, more in parts; either way nobody sees any of it before its end.

use std::sync::Arc;

use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutPayloadMut, WriteMultipart};
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::task::TaskTracker;

use crate::chat::causes::Causes;

/// An object that is being written.
pub(super) struct Upload {
    objects: Arc<dyn ObjectStore>,
    path: Path,
    part: usize,
    state: State,
    /// Where its first step, its last one and what takes it back come to their end though its sender goes.
    tasks: TaskTracker,
}

enum State {
    Whole(PutPayloadMut),
    Parts(Parts),
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
        Self { objects, path, part, state: State::Whole(PutPayloadMut::new()), tasks }
    }

    /// Takes more bytes, and waits until no part is on its way any more.
    pub(super) async fn write(&mut self, piece: &[u8]) -> Result<(), Error> {
        if let State::Whole(held) = &mut self.state {
            if held.content_length().saturating_add(piece.len()) <= self.part {
                held.extend_from_slice(piece);
                return Ok(());
            }
            let begun = Parts::begin(Arc::clone(&self.objects), self.path.clone(), self.part, self.tasks.clone());
            let mut parts = self.tasks.spawn(begun).await.map_err(broken_off)??;
            if let Some(sent) = &mut parts.sent {
                std::mem::take(held).freeze().into_iter().for_each(|bytes| sent.put(bytes));
            }
            self.state = State::Parts(parts);
        }
        if let State::Parts(Parts { sent: Some(sent), .. }) = &mut self.state {
            sent.write(piece);
            sent.wait_for_capacity(1).await?;
        }
        Ok(())
    }

    /// Makes it the object.
    pub(super) async fn finish(self) -> Result<(), Error> {
        match self.state {
            State::Whole(held) => self.objects.put(&self.path, held.freeze()).await.map(drop),
            State::Parts(mut parts) => match parts.sent.take() {
                Some(sent) => self.tasks.spawn(sent.finish()).await.map_err(broken_off)?.map(drop),
                None => Ok(()),
            },
        }
    }

    /// Takes back what was sent of it.
    pub(super) async fn abort(self) {
        if let State::Parts(mut parts) = self.state
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
