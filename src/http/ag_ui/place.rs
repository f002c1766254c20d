//! Where the newest words stand: those that have the id of a message of ours ask it again, or stand in its place. Ids that
//! the client made are nobody's, and what has one is new.

use super::Turn;
use crate::agent::ports::conversations::Role;
use crate::chat::ids::MessageId;
use crate::chat::input::{Ask, Parent};
use crate::dialect::{DecodeError, FieldError};
use crate::http::earlier::outline;
use crate::http::problem::Problem;

/// What `ask` asks where it has the id of `place`, and the message to go on from, where that is not the newest one.
///
/// # Errors
/// When the thread's newest branch has no such message, or it could not be read.
pub(super) async fn of(turn: &Turn, ask: Ask, place: Option<MessageId>) -> Result<(Ask, Option<Parent>), Problem> {
    let (Some(place), Ask::Message { text, note: _ }) = (place, &ask) else { return Ok((ask, None)) };
    let messages = outline(&turn.services, &turn.caller.owner, &turn.thread, Some(place)).await?;
    // A thread that begins with messages of another one.
    let Some(messages) = messages else { return Ok((ask, None)) };
    let at = messages.iter().position(|message| message.id == place && message.role == Role::User);
    let Some((at, known)) = at.and_then(|at| Some((at, messages.get(at)?))) else {
        let reason = format!("has the id {place}, which is no message of the user on the newest branch of this thread");
        return Err(DecodeError::Fields(vec![FieldError { field: "messages", reason }]).into());
    };
    if known.text.trim() == text.trim() {
        return Ok((Ask::Again, Some(Parent::Message(place))));
    }
    let before = at.checked_sub(1).and_then(|at| messages.get(at));
    Ok((ask, Some(before.map_or(Parent::Root, |message| Parent::Message(message.id)))))
}
