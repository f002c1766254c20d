//! What `dev` mode has of its own. The secret: made at the first start, kept in a file that only its owner reads, so that
//! `switchboard token` in another terminal signs with the same one. And the tokens of one user, for the greeting in the
//! terminal and for the page: the user that the demo knows, or the local user where the settings name one.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use uuid::Uuid;

use super::{AuthSetupError, Claims, MIN_SECRET_BYTES, Tokens};
use crate::agent::ports::clock::Clock;

/// A user that the demo backend is seeded with.
const DEV_USER: &str = "11111111-1111-4111-8111-111111111111";

/// A working day.
const DEV_TTL: Duration = Duration::from_secs(12 * 3600);

/// Makes tokens of one user. Whoever gets one is that user: only for the machine's own browser and terminal.
#[derive(Clone)]
pub struct DevTokens {
    tokens: Arc<Tokens>,
    clock: Arc<dyn Clock>,
    user: String,
    roles: Vec<String>,
}

/// A token of that user.
#[derive(Debug, Clone)]
pub struct DevToken {
    /// What goes behind `Bearer`.
    pub token: String,
    /// Its `sub`.
    pub user: String,
    /// How long it is good for.
    pub ttl: Duration,
}

impl DevTokens {
    /// Tokens that `tokens` accepts, of the user `local`, who has the role `role` beside the demo's own; where it is empty,
    /// of a user that the demo backend is seeded with.
    pub fn new(tokens: Arc<Tokens>, clock: Arc<dyn Clock>, local: &str, role: &str) -> Self {
        let own = Some(local).filter(|user| !user.is_empty());
        let of_workspace = Some(role).filter(|role| own.is_some() && !role.is_empty());
        let roles = ["USER", "ADMIN"].into_iter().chain(of_workspace).map(str::to_owned).collect();
        Self { tokens, clock, user: own.unwrap_or(DEV_USER).to_owned(), roles }
    }

    /// A token that begins now.
    ///
    /// # Errors
    /// When it cannot be signed.
    pub fn token(&self) -> Result<DevToken, AuthSetupError> {
        let (user, roles) = (self.user.clone(), self.roles.clone());
        let now_s = u64::try_from(self.clock.now_ms()).map_or(0, |ms| ms / 1000);
        let claims = Claims { user: user.clone(), tenant: None, roles, ttl: DEV_TTL };
        Ok(DevToken { token: self.tokens.sign(&claims, now_s)?, user, ttl: DEV_TTL })
    }
}

/// The secret in the file at `path`, made when there is none.
pub(super) fn secret(path: &str) -> Result<SecretString, AuthSetupError> {
    let path = Path::new(path);
    let failed = |error| AuthSetupError::File { path: path.display().to_string(), error };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        // The store's folder too, by default; one that is there stays as it is.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    let fresh = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    // Written to another file and then linked: of two starts at once one wins, and neither reads half a secret.
    let aside = path.with_extension(format!("{}.new", Uuid::new_v4().simple()));
    match read(path) {
        Ok(secret) => return Ok(secret),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside).map_err(failed)?;
    file.write_all(fresh.as_bytes()).map_err(failed)?;
    let linked = fs::hard_link(&aside, path);
    fs::remove_file(&aside).map_err(failed)?;
    match linked {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(error)),
    }
    read(path).map_err(failed)
}

fn read(path: &Path) -> io::Result<SecretString> {
    let text = fs::read_to_string(path)?;
    let secret = text.trim();
    if secret.len() < MIN_SECRET_BYTES {
        return Err(io::Error::new(ErrorKind::InvalidData, "it holds no secret; remove it, and a new one is made"));
    }
    Ok(SecretString::from(secret.to_owned()))
}
