//! What stands where an edit is about to be made, so that it can be brought back.

use rustix::fs::Mode;

use super::asked::Asked;
use super::error::FileError;
use super::resolve::{Found, Purpose};
use super::{MOST_KEPT_BYTES, Root};

/// What is there before an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its path from the root on; for a link that would be written through, its target's.
    pub relative: String,
    /// What it is.
    pub before: Before,
}

/// A file before an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Before {
    /// Nothing is there, or nothing that an edit would change.
    Nothing,
    /// A file: its bytes, and whether it can be run.
    File(Vec<u8>, bool),
    /// A link, which an edit would delete: what it says.
    Link(Vec<u8>),
}

impl Root {
    /// What is at `path` now; `deletes` says that a link is meant itself.
    ///
    /// # Errors
    /// When the path cannot be followed, or what is there has more than 64 MiB: nobody could bring it back.
    pub fn standing(&self, path: &str, deletes: bool) -> Result<Standing, FileError> {
        let asked = Asked::parse(path, self)?;
        let nothing = |relative| Standing { relative, before: Before::Nothing };
        let place = match self.resolve(&asked, if deletes { Purpose::Delete } else { Purpose::Look }) {
            Err(FileError::NotFound { .. } | FileError::NotADirectory { .. }) => return Ok(nothing(asked.relative())),
            place => place?,
        };
        let failed = |error: std::io::Error| FileError::of_io(error, &asked.shown);
        let (name, before) = match &place.found {
            Found::Nothing(name) => (name, Before::Nothing),
            Found::Folder | Found::Special => return Ok(nothing(asked.relative())),
            Found::Link(name) => {
                let target = rustix::fs::readlinkat(place.folder(), name, Vec::new());
                (name, Before::Link(target.map_err(|errno| failed(errno.into()))?.into_bytes()))
            }
            Found::File(name) => {
                let bytes = place.read(&asked, MOST_KEPT_BYTES + 1)?;
                if bytes.len() as u64 > MOST_KEPT_BYTES {
                    return Err(FileError::TooLarge { path: asked.shown, most: MOST_KEPT_BYTES });
                }
                let stat = rustix::fs::statat(place.folder(), name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
                let mode = Mode::from_raw_mode(stat.map_err(|errno| failed(errno.into()))?.st_mode);
                (name, Before::File(bytes, mode.contains(Mode::XUSR)))
            }
        };
        Ok(Standing { relative: place.relative(name), before })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_stands_there_is_told_as_an_edit_would_find_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path(), ".state").unwrap();
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir(at("sub")).unwrap();
        std::fs::write(at("sub/a.sh"), "x").unwrap();
        std::fs::set_permissions(at("sub/a.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        symlink("sub", at("link")).unwrap();
        symlink("sub/a.sh", at("to-file")).unwrap();
        let file = Before::File(b"x".to_vec(), true);
        for (path, deletes, relative, before) in [
            ("sub/a.sh", false, "sub/a.sh", file.clone()),
            ("link/a.sh", true, "sub/a.sh", file.clone()),
            ("to-file", false, "sub/a.sh", file),
            ("to-file", true, "to-file", Before::Link(b"sub/a.sh".to_vec())),
            ("no", false, "no", Before::Nothing),
            ("link/no", false, "sub/no", Before::Nothing),
            ("no/no", false, "no/no", Before::Nothing),
            ("sub", false, "sub", Before::Nothing),
        ] {
            let expected = Standing { relative: relative.to_owned(), before };
            assert_eq!(root.standing(path, deletes).unwrap(), expected, "{path} {deletes}");
        }
        assert_eq!(root.standing(".git/config", false).unwrap_err().code(), "protected");
        let large = std::fs::File::create(at("large")).unwrap();
        large.set_len(MOST_KEPT_BYTES + 1).unwrap();
        assert_eq!(root.standing("large", false).unwrap_err().code(), "too_large");
    }
}
