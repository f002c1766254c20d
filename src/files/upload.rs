//! One upload. What is no larger than a part is put as a whole, more in parts; either way nobody sees any of it before its end.

use std::mem::replace;
use std::sync::Arc;

use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutPayloadMut, WriteMultipart};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::chat::causes::Causes;

/// An object that is being written.
pub(super) struct Upload {
    objects: Arc<dyn ObjectStore>,
    path: Path,
    part: usize,
    state: State,
    /// Where what is left of it is tidied up when its sender has gone.
    tasks: TaskTracker,
}

enum State {
    Whole(PutPayloadMut),
    Parts(WriteMultipart),
    Ended,
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
            let upload = self.objects.put_multipart(&self.path).await?;
            let mut parts = WriteMultipart::new_with_chunk_size(upload, self.part);
            for bytes in std::mem::take(held).freeze() {
                parts.put(bytes);
            }
            self.state = State::Parts(parts);
        }
        if let State::Parts(parts) = &mut self.state {
            parts.write(piece);
            parts.wait_for_capacity(1).await?;
        }
        Ok(())
    }

    /// Makes it the object.
    pub(super) async fn finish(mut self) -> Result<(), Error> {
        match replace(&mut self.state, State::Ended) {
            State::Whole(held) => self.objects.put(&self.path, held.freeze()).await.map(drop),
            // To its end though its sender goes: the store must not keep parts of it.
            State::Parts(parts) => match self.tasks.spawn(parts.finish()).await {
                Ok(finished) => finished.map(drop),
                Err(error) => Err(Error::JoinError { source: error }),
            },
            State::Ended => Ok(()),
        }
    }

    /// Takes back what was sent of it.
    pub(super) async fn abort(mut self) {
        if let State::Parts(parts) = replace(&mut self.state, State::Ended) {
            take_back(parts, &self.path).await;
        }
    }
}

/// Parts that stay are told in the log alone: no note of a file removes them.
async fn take_back(parts: WriteMultipart, path: &Path) {
    if let Err(error) = parts.abort().await {
        tracing::warn!(error = %Causes(&error), file.path = %path, "parts of an upload were not removed");
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let State::Parts(parts) = replace(&mut self.state, State::Ended)
            && let Ok(runtime) = Handle::try_current()
        {
            let path = self.path.clone();
            self.tasks.spawn_on(async move { take_back(parts, &path).await }, &runtime);
        }
    }
}
