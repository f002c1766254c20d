//! Why a tool's call failed: a code that programs know, and words that help a model.

use std::io;

use rustix::io::Errno;

/// Why nothing was read, found or changed. Paths are shown as they were asked for.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Nothing is there.
    #[error("there is no \"{path}\"")]
    NotFound {
        /// As it was asked for.
        path: String,
    },
    /// A folder, a socket, a pipe or a device.
    #[error("\"{path}\" is not a regular file")]
    NotAFile {
        /// As it was asked for.
        path: String,
    },
    /// A file, or below one.
    #[error("\"{path}\" is not a folder, or leads through something that is none")]
    NotADirectory {
        /// As it was asked for.
        path: String,
    },
    /// The operating system refuses.
    #[error("the permissions of \"{path}\" or of its folder do not allow this")]
    PermissionDenied {
        /// As it was asked for.
        path: String,
    },
    /// No text.
    #[error("\"{path}\" is not text in UTF-8")]
    Decode {
        /// As it was asked for.
        path: String,
    },
    /// More than is read or written at once.
    #[error("\"{path}\" is larger than {most} bytes, or would become so")]
    TooLarge {
        /// As it was asked for.
        path: String,
        /// How many bytes are allowed.
        most: u64,
    },
    /// A block of an edit stands nowhere in the file.
    #[error("block {block} was not found in \"{path}\", so that nothing was changed; the file begins with:\n{head}")]
    NoMatch {
        /// As it was asked for.
        path: String,
        /// Which one, from 1 on.
        block: usize,
        /// The first lines of the file.
        head: String,
    },
    /// An edit that leaves the file as it is.
    #[error("the edit leaves \"{path}\" as it is")]
    NoChange {
        /// As it was asked for.
        path: String,
    },
    /// An edit that cannot be understood, or contradicts itself.
    #[error("the edit cannot be applied: {reason}")]
    BadDiff {
        /// What is wrong with it.
        reason: String,
    },
    /// No expression, or no pattern for names; or one that takes too long.
    #[error("{reason}")]
    Regex {
        /// What is wrong with it.
        reason: String,
    },
    /// No place inside of the root.
    #[error("\"{path}\" is no place in the workspace: {reason}")]
    Outside {
        /// As it was asked for.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A place that tools leave alone.
    #[error("\"{path}\" is protected: tools leave it alone")]
    Protected {
        /// As it was asked for.
        path: String,
    },
    /// The disk is full, cannot be written to, or fails.
    #[error("\"{path}\" could not be read or written: {source}")]
    Io {
        /// As it was asked for.
        path: String,
        /// What the operating system says.
        source: io::Error,
    },
}

impl FileError {
    /// The code by which programs know this failure.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::NotAFile { .. } => "not_a_file",
            Self::NotADirectory { .. } => "not_a_directory",
            Self::PermissionDenied { .. } => "permission_denied",
            Self::Decode { .. } => "decode_error",
            Self::TooLarge { .. } => "too_large",
            Self::NoMatch { .. } => "no_match",
            Self::NoChange { .. } => "no_change",
            Self::BadDiff { .. } => "bad_diff",
            Self::Regex { .. } => "regex_error",
            Self::Outside { .. } => "outside_workspace",
            Self::Protected { .. } => "protected",
            Self::Io { .. } => "io_error",
        }
    }

    /// What `error` means for `path`.
    pub(super) fn of_io(error: io::Error, path: &str) -> Self {
        let path = path.to_owned();
        match Errno::from_io_error(&error) {
            // A link that leads in a circle, or has just taken the place of a file: there is no file by that name.
            Some(Errno::NOENT | Errno::LOOP) => Self::NotFound { path },
            Some(Errno::NOTDIR) => Self::NotADirectory { path },
            Some(Errno::ISDIR) => Self::NotAFile { path },
            Some(Errno::ACCESS | Errno::PERM) => Self::PermissionDenied { path },
            Some(Errno::NAMETOOLONG) => Self::Outside { path, reason: "it is too long" },
            _ => Self::Io { path, source: error },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_operating_system_says_becomes_a_code() {
        for (errno, code) in [
            (Errno::NOENT, "not_found"),
            (Errno::LOOP, "not_found"),
            (Errno::NOTDIR, "not_a_directory"),
            (Errno::ISDIR, "not_a_file"),
            (Errno::ACCESS, "permission_denied"),
            (Errno::PERM, "permission_denied"),
            (Errno::NAMETOOLONG, "outside_workspace"),
            (Errno::NOSPC, "io_error"),
            (Errno::ROFS, "io_error"),
            (Errno::DQUOT, "io_error"),
        ] {
            assert_eq!(FileError::of_io(errno.into(), "x").code(), code, "{errno:?}");
        }
    }
}
