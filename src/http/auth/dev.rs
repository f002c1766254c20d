//! The secret of `dev` mode: made at the first start, kept in a file that only its owner reads, so that `switchboard token`
//! in another terminal signs with the same one.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use secrecy::SecretString;
use uuid::Uuid;

use super::{AuthSetupError, MIN_SECRET_BYTES};

/// The secret in the file at `path`, made when there is none.
pub(super) fn secret(path: &str) -> Result<SecretString, AuthSetupError> {
    let path = Path::new(path);
    let failed = |error| AuthSetupError::File { path: path.display().to_string(), error };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let fresh = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    // Written aside and linked into place: of two starts at the same time one wins, and nobody reads half a secret.
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
