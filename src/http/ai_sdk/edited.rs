//! Where a question stands: clients name messages by their own ids, and the answer before a message by ours.

use crate::agent::ports::conversations::{MessageView, Role};
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, MessageId};
use crate::chat::input::Parent;
use crate::dialect::ai_sdk::{Edited, Place};
use crate::dialect::{DecodeError, FieldError};
use crate::http::Services;
use crate::http::earlier::outline;
use crate::http::problem::Problem;

/// The message to go on from, where that is not the newest one.
///
/// # Errors
/// When the edited message is not on the newest branch, or the store failed.
pub(super) async fn parent(
    services: &Services,
    owner: &Owner,
    conversation: &ConversationId,
    from: Place,
) -> Result<Option<Parent>, Problem> {
    let (edited, is_again) = match from {
        Place::Newest => return Ok(None),
        Place::Question(message) => return Ok(Some(Parent::Message(message))),
        Place::Edited(Edited::First) => return Ok(Some(Parent::Root)),
        Place::Again(edited) => (edited, true),
        Place::Edited(edited) => (edited, false),
    };
    let messages = outline(services, owner, conversation, None).await?.unwrap_or_default();
    let parent = match is_again {
        true => itself(&messages, &edited).map(|question| Some(Parent::Message(question))),
        false => before(&messages, &edited),
    };
    parent.ok_or_else(|| {
        let reason = "names no message of the conversation's newest branch".to_owned();
        DecodeError::Fields(vec![FieldError { field: "messageId", reason }]).into()
    })
}

/// What came before the edited message; inside, `None` for the newest message.
fn before(messages: &[MessageView], edited: &Edited) -> Option<Option<Parent>> {
    // What never came here has its place at the end.
    let Some(at) = position(messages, edited)? else { return Some(None) };
    let before = at.checked_sub(1).and_then(|at| messages.get(at));
    Some(Some(before.map_or(Parent::Root, |message| Parent::Message(message.id))))
}

/// The message itself, where it is here and the user's.
fn itself(messages: &[MessageView], edited: &Edited) -> Option<MessageId> {
    let message = messages.get(position(messages, edited)??)?;
    (message.role == Role::User).then_some(message.id)
}

/// Where the message is; inside, `None` for one behind all others.
fn position(messages: &[MessageView], edited: &Edited) -> Option<Option<usize>> {
    match edited {
        Edited::First => Some(Some(0)),
        Edited::Message(id) => messages.iter().position(|message| message.id == *id).map(Some),
        Edited::After(MessageId { run, .. }) => {
            let answer = messages.iter().rposition(|message| message.id.run == *run)?;
            let next = messages.iter().skip(answer + 1).position(|message| message.role == Role::User);
            Some(next.map(|next| answer + 1 + next))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ids::RunId;

    fn message(run: RunId, seq: u32, role: Role) -> MessageView {
        MessageView { id: MessageId { run, seq }, role, text: String::new(), calls: Vec::new(), created_at_ms: 0 }
    }

    #[test]
    fn the_message_before_an_edited_one_is_found() {
        let [a, b, c] = [RunId::fresh(), RunId::fresh(), RunId::fresh()];
        // A question with two turns, an answer that went on in another run, and a second question.
        let messages = [
            message(a, 0, Role::User),
            message(a, 1, Role::Assistant),
            message(a, 3, Role::Assistant),
            message(b, 1, Role::Assistant),
            message(c, 0, Role::User),
            message(c, 1, Role::Assistant),
        ];
        let id = |run, seq| MessageId { run, seq };
        let after = |run, seq| Some(Some(Parent::Message(id(run, seq))));
        let [first, second] = [Some(id(a, 0)), Some(id(c, 0))];
        let rows = [
            (Edited::First, Some(Some(Parent::Root)), first, "the first has nothing before it"),
            (Edited::Message(id(a, 0)), Some(Some(Parent::Root)), first, "also by its id"),
            (Edited::Message(id(c, 0)), after(b, 1), second, "what the answer ended with, whatever run said it"),
            (Edited::Message(id(a, 1)), after(a, 0), None, "an answer is no question"),
            (Edited::After(id(a, 1)), after(b, 1), second, "an answer's first id names all of it"),
            (Edited::After(id(c, 1)), Some(None), None, "a question that was never kept comes last"),
            (Edited::Message(id(a, 9)), None, None, "no such message"),
            (Edited::After(id(RunId::fresh(), 1)), None, None, "no such answer"),
        ];
        for (edited, expected, question, reason) in rows {
            assert_eq!(before(&messages, &edited), expected, "{reason}");
            assert_eq!(itself(&messages, &edited), question, "{reason}");
        }
        assert_eq!(itself(&[], &Edited::First), None, "nothing was said yet");
    }
}
