//! How a database's schema and ours fit together.

use super::OpenError;

/// The step for a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It is brought up to date.
    Migrate,
    /// It is ours already.
    Keep,
    /// It is the next one, and left alone.
    Leave,
}

/// The step for a schema of version `found` (0 in a new database) in a program that knows versions up to `known`. One
/// version of the schema is made so that the program before it goes on working, which lets replicas be replaced one by
/// one; more than one is not promised.
///
/// # Errors
/// [`OpenError::NewerSchema`] from the second newer version on.
pub(super) fn step(found: i64, known: i64) -> Result<Step, OpenError> {
    match found - known {
        ..0 => Ok(Step::Migrate),
        0 => Ok(Step::Keep),
        1 => Ok(Step::Leave),
        2.. => Err(OpenError::NewerSchema { found, known }),
    }
}
