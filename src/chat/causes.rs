//! An error with all its causes in one line, for the log: formats that print errors as text would show only the outermost one.

use std::error::Error;
use std::fmt;

/// Shows an error and its sources, outermost first, with colons between.
pub struct Causes<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}
