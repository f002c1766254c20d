//! The memory that values take, and the budget for those of one text.

use serde_json::Value;

use super::JsonError;
use crate::bounded::memory::Reservation;

/// How much memory the values of a text may take for each byte of it; with the text itself it is eight times its bytes. Rows
/// of texts and ids take four to six.
const TIMES: usize = 7;

/// 8 MiB, which small texts may take whatever they are: the worst of them, of 200 KiB, reach it.
const FLOOR: usize = 8 << 20;

/// A reservation grows by so much at a time.
const STEP: usize = 256 << 10;

/// See [`block`].
const SLICE: usize = 64 << 10;

/// The bytes of a value where it stands: in a list, or as a field of an object.
pub(super) const VALUE: usize = size_of::<Value>();

/// A field where it stands: its hash, its name and its value.
pub(super) const FIELD: usize = size_of::<(usize, String, Value)>();

/// The memory that the values of a text of so many bytes may take.
pub const fn budget_for(bytes: usize) -> usize {
    let budget = bytes.saturating_mul(TIMES);
    if budget > FLOOR { budget } else { FLOOR }
}

/// The memory that is left for the values of one text, and what is reserved for them.
#[derive(Debug)]
pub struct NodeBudget {
    most: usize,
    left: usize,
    held: Option<Reservation>,
    /// Bytes that are reserved and not used yet.
    unused: usize,
}

impl NodeBudget {
    /// A budget for a text of so many bytes. Memory that is taken is added to `held`.
    pub fn for_bytes(bytes: usize, held: Option<Reservation>) -> Self {
        let most = budget_for(bytes);
        Self { most, left: most, held, unused: 0 }
    }

    /// A budget without a limit: no values are made, and no memory is held.
    pub(super) fn endless() -> Self {
        Self { most: usize::MAX, left: usize::MAX, held: None, unused: 0 }
    }

    /// What may still be taken.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// The budget of each of so many copies.
    pub(super) fn for_each_of(self, copies: usize) -> Self {
        Self { left: self.left / copies.max(1), ..self }
    }

    /// Counts memory that is about to be taken.
    ///
    /// # Errors
    /// When it is over this budget or the process's.
    pub fn take(&mut self, bytes: usize) -> Result<(), JsonError> {
        let left = self.left.checked_sub(bytes).ok_or(JsonError::TooMany(self.most))?;
        if let Some(held) = &mut self.held {
            if self.unused < bytes {
                let more = (bytes - self.unused).max(STEP);
                held.grow(more)?;
                self.unused += more;
            }
            self.unused -= bytes;
        }
        self.left = left;
        Ok(())
    }

    /// Counts memory that is about to be taken beside that of the values.
    ///
    /// # Errors
    /// When it is over that of the process.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<(), JsonError> {
        match &mut self.held {
            Some(held) => Ok(held.grow(bytes)?),
            None => Ok(()),
        }
    }

    /// Counts memory that is free again.
    pub fn give_back(&mut self, bytes: usize) {
        self.left += bytes;
        if self.held.is_some() {
            self.unused += bytes;
        }
    }

    /// Gives the budget back what is not used.
    pub(super) fn settle(&mut self) {
        if let Some(held) = &mut self.held {
            held.shrink_to(held.bytes() - std::mem::take(&mut self.unused));
        }
    }
}

/// The memory that a value takes, roughly.
pub fn memory(value: &Value) -> usize {
    VALUE + inside(value)
}

/// The bytes that a value takes beside those of [`VALUE`].
fn inside(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => block(text.len()),
        Value::Array(items) => block(items.len() * VALUE) + items.iter().map(inside).sum::<usize>(),
        Value::Object(fields) => {
            let inner = |(name, value): (&String, &Value)| block(name.len()) + inside(value);
            fields_of(fields.len()) + fields.iter().map(inner).sum::<usize>()
        }
    }
}

/// The memory that the allocator takes for so many bytes: it has four sizes between two powers of two, and gives what is large
/// in slices of 64 KiB.
pub(super) const fn block(bytes: usize) -> usize {
    let step = bytes.next_power_of_two() / 8;
    match step {
        ..16 => bytes.next_multiple_of(16),
        16..SLICE => bytes.next_multiple_of(step),
        _ => bytes.next_multiple_of(SLICE),
    }
}

/// The memory of an object's fields, without their names and the insides of their values: a list of them, and a table
/// of their positions.
pub(super) fn fields_of(fields: usize) -> usize {
    match fields {
        0 => 0,
        _ => {
            let buckets = (fields.saturating_mul(8) / 7).next_power_of_two().max(4);
            block(fields.saturating_mul(FIELD)) + block(buckets.saturating_mul(9) + 16)
        }
    }
}
