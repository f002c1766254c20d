//! The workspaces of all owners: each is opened when it is needed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Mutex, OnceCell};

use super::command::probe::probe;
use super::command::{CommandSettings, Wanted};
use super::config::{Sandbox, WorkspaceConfig};
use super::journal;
use super::keeper::Keeper;
use super::place::{OpenError, Place, take};
use super::template::RootTemplate;
use crate::agent::ports::checkpoints::{
    Approved, Begun, Changes, Checkpoint, Checkpoints, Of, Refusal, Reset, Restored, Session, Working,
};
use crate::agent::ports::workspace::{Choice, Choices, Failure, Workspace, Workspaces};
use crate::bounded::memory::Reservation;
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::chat::ids::{ConversationId, RunId};

/// Workspaces that are open at once; those that nobody works in make room.
const OPEN: usize = 128;

/// How often, and after which pause, a folder is tried that somebody holds.
const HELD_TRIES: u32 = 8;
const HELD_PAUSE: Duration = Duration::from_millis(250);

/// The workspaces.
pub struct Folders {
    /// `None`: the settings are wrong, which is said elsewhere.
    template: Option<RootTemplate>,
    state: String,
    sandbox: Sandbox,
    settings: CommandSettings,
    quota_bytes: u64,
    open: Mutex<HashMap<PathBuf, Arc<OnceCell<Arc<Place>>>>>,
}

/// The workspace that all share.
#[derive(Debug)]
pub struct Shared {
    /// The folder of its state.
    pub state: PathBuf,
    /// Whether commands run in a sandbox.
    pub holds_commands: bool,
}

impl Folders {
    /// The workspaces of `config`, none of which is opened yet; `program` is this program.
    /// `path` is where they and their commands find programs.
    pub fn new(config: &WorkspaceConfig, program: PathBuf, path: Option<String>) -> Arc<Self> {
        let mut settings = CommandSettings { network: config.network, ..CommandSettings::new(program) };
        settings.readable = config.readable.clone();
        settings.path = path.unwrap_or(settings.path);
        Arc::new(Self {
            template: RootTemplate::parse(&config.root).ok(),
            state: config.state.clone(),
            sandbox: config.sandbox,
            settings,
            quota_bytes: config.quota_bytes,
            open: Mutex::default(),
        })
    }

    /// Opens the one that all share, where they do.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn start(&self) -> Result<Option<Shared>, OpenError> {
        let Some(template) = self.template.as_ref().filter(|template| template.is_shared()) else { return Ok(None) };
        let path = PathBuf::from(template.base());
        let cell = self.cell(&path).await;
        let place = cell.get_or_try_init(|| self.opened(&path)).await?;
        tracing::info!(root = %path.display(), sandbox = place.sandbox(), "workspace");
        Ok(Some(Shared { state: path.join(&self.state), holds_commands: place.holds_commands() }))
    }

    async fn place(&self, owner: &Owner) -> Result<Arc<Place>, Failure> {
        let unusable = |message: &str| Failure { code: "io_error", message: message.to_owned() };
        let template = self.template.as_ref().ok_or_else(|| unusable("there is no workspace"))?;
        let below = template.below(owner);
        let path = below.last().cloned().unwrap_or_else(|| PathBuf::from(template.base()));
        let cell = self.cell(&path).await;
        let opening = cell.get_or_try_init(|| async {
            for folder in &below {
                make(folder).map_err(OpenError::Folder)?;
            }
            self.opened(&path).await
        });
        let place = opening.await.map_err(|error| {
            tracing::error!(error = %Causes(&error), "a workspace cannot be used");
            match error {
                OpenError::Held => unusable("another server works in this workspace"),
                OpenError::Folder(_) | OpenError::Root(_) | OpenError::Links | OpenError::Kept(_) => {
                    unusable("the workspace cannot be used now; tell the user")
                }
            }
        })?;
        Ok(place.clone())
    }

    async fn opened(&self, path: &Path) -> Result<Arc<Place>, OpenError> {
        let wanted = match self.sandbox {
            Sandbox::Auto => Wanted::Auto,
            Sandbox::Bubblewrap => Wanted::Bubblewrap,
            Sandbox::Landlock => Wanted::Landlock,
            Sandbox::None => Wanted::None,
        };
        let state = path.join(&self.state);
        let mut tries = 0;
        let lock = loop {
            let state = state.clone();
            match aside(move || take(&state)).await {
                // Work of ours that nobody waits for any more may hold it a moment longer.
                Err(OpenError::Held) if tries < HELD_TRIES => tries += 1,
                taken => break taken?,
            }
            tokio::time::sleep(HELD_PAUSE).await;
        };
        let commands = probe(wanted, path, &state, self.settings.clone()).await;
        let (path, state, quota) = (path.to_owned(), self.state.clone(), self.quota_bytes);
        aside(move || Place::open(&path, &state, lock, (commands, quota))).await.map(Arc::new)
    }

    async fn cell(&self, path: &Path) -> Arc<OnceCell<Arc<Place>>> {
        let mut open = self.open.lock().await;
        if open.len() >= OPEN && !open.contains_key(path) {
            // What somebody holds stays: its lock is this process's, and a second opening would be refused.
            open.retain(|_, cell| Arc::strong_count(cell) > 1 || cell.get().is_some_and(|p| Arc::strong_count(p) > 1));
        }
        open.entry(path.to_owned()).or_default().clone()
    }

    /// Does what changes files while no run is at work.
    async fn at_rest<T: Send + 'static>(
        &self,
        of: Of<'_>,
        work: impl FnOnce(&mut Keeper, Of<'_>) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let place = self.place(of.0).await?;
        place.settled().await;
        let resting = place.clone();
        place
            .with_keeper(of, move |keeper, of| match resting.working.load(Ordering::Acquire) {
                0 => work(keeper, of),
                _ => Err(Refusal::Busy),
            })
            .await
    }
}

/// Does what blocks off the workers.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OpenError> + Send + 'static,
) -> Result<T, OpenError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(OpenError::Folder(std::io::Error::other(error))))
}

/// Makes a folder that may be there; a link in its place is none.
fn make(folder: &Path) -> std::io::Result<()> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            match std::fs::symlink_metadata(folder)?.is_dir() {
                true => Ok(()),
                false => Err(std::io::ErrorKind::NotADirectory.into()),
            }
        }
        made => made,
    }
}

#[async_trait]
impl Workspaces for Folders {
    async fn of(&self, owner: &Owner) -> Result<Arc<dyn Workspace>, Failure> {
        Ok(self.place(owner).await?)
    }
}

#[async_trait]
impl Choices for Folders {
    async fn chosen(&self, owner: &Owner, what: Choice) -> Result<Option<String>, Failure> {
        let place = self.place(owner).await?;
        place
            .with_state(owner, what, |file| match std::fs::read_to_string(file) {
                Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            })
            .await
    }

    async fn choose(&self, owner: &Owner, what: Choice, chosen: Option<&str>) -> Result<(), Failure> {
        let place = self.place(owner).await?;
        let text = chosen.unwrap_or_default().to_owned();
        place
            .with_state(owner, what, move |file| {
                let new = file.with_added_extension("new");
                std::fs::write(&new, text)?;
                std::fs::rename(new, file)
            })
            .await
    }
}

#[async_trait]
impl Checkpoints for Folders {
    async fn begin(&self, of: Of<'_>, run: RunId, message: &str) -> Result<Box<dyn Working>, Failure> {
        let place = self.place(of.0).await?;
        place.settled().await;
        place.measure().await?;
        let message = message.to_owned();
        // Counted while the files are at hand, so that nothing is taken back from here on.
        let at_work = place.with_keeper(of, {
            let place = place.clone();
            move |keeper, of| {
                let begun = keeper.begin(of, run, &message)?;
                place.working.fetch_add(1, Ordering::AcqRel);
                let (owner, conversation) = (of.0.clone(), of.1.clone());
                // Made here: also where nobody waits for it any more, dropping it ends what it counts.
                Ok::<_, Failure>(AtWork { place, owner, conversation, run, begun })
            }
        });
        Ok(Box::new(at_work.await?))
    }

    async fn idle(&self) -> Vec<(Owner, ConversationId)> {
        let places: Vec<_> = self.open.lock().await.values().filter_map(|cell| cell.get().cloned()).collect();
        let mut idle = Vec::new();
        for place in places {
            idle.extend(place.idle().await);
        }
        idle
    }

    async fn forget(&self, of: Of<'_>) -> Result<(), Failure> {
        // Nothing is made for an owner who never had anything kept.
        let base = self.template.as_ref().map(|template| PathBuf::from(template.base()));
        let path = self.template.as_ref().and_then(|template| template.below(of.0).pop()).or(base);
        if path.is_none_or(|path| !journal::file(&path.join(&self.state).join(journal::FOLDER), of).exists()) {
            return Ok(());
        }
        self.place(of.0).await?.with_keeper(of, Keeper::forget).await
    }
}

/// A run at work.
struct AtWork {
    place: Arc<Place>,
    owner: Owner,
    conversation: ConversationId,
    run: RunId,
    begun: Begun,
}

#[async_trait]
impl Working for AtWork {
    fn checkpoint(&self) -> Begun {
        self.begun.clone()
    }

    async fn end(self: Box<Self>) -> Result<(), Failure> {
        self.place.settled().await;
        let run = self.run;
        let of = (&self.owner, &self.conversation);
        self.place.with_keeper(of, move |keeper, of| keeper.end(of, run)).await
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.place.working.fetch_sub(1, Ordering::AcqRel);
    }
}

#[async_trait]
impl Changes for Folders {
    async fn checkpoints(&self, of: Of<'_>) -> Result<Vec<Checkpoint>, Refusal> {
        let place = self.place(of.0).await?;
        Ok(place.with_keeper(of, Keeper::checkpoints).await?)
    }

    async fn session(&self, of: Of<'_>, mut held: Reservation) -> Result<(Session, Reservation), Refusal> {
        let place = self.place(of.0).await?;
        place.with_keeper(of, move |keeper, of| Ok((keeper.session(of, &mut held)?, held))).await
    }

    async fn approve(&self, of: Of<'_>, message: Option<&str>) -> Result<Approved, Refusal> {
        let message = message.map(str::to_owned);
        self.at_rest(of, move |keeper, of| keeper.approve(of, message.as_deref())).await
    }

    async fn reset(&self, of: Of<'_>) -> Result<Reset, Refusal> {
        self.at_rest(of, Keeper::reset).await
    }

    async fn restore(&self, of: Of<'_>, checkpoint: &str) -> Result<Restored, Refusal> {
        let checkpoint = checkpoint.to_owned();
        self.at_rest(of, move |keeper, of| keeper.restore(of, &checkpoint)).await
    }
}
