//! Where a question stands: clients name messages by their own ids, and the answer before a message by ours.

use crate::agent::ports::conversations::{MessageView, Role};
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, MessageId};
use crate::chat::input::Parent;
use crate::dialect::ai_sdk::{Edited, Place};
use crate::dialect::{DecodeError, FieldError};
use crate::http::Services;
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
    let edited = match from {
        Place::Newest => return Ok(None),
        Place::Question(message) => return Ok(Some(Parent::Message(message))),
        Place::Edited(Edited::First) => return Ok(Some(Parent::Root)),
        Place::Edited(edited) => edited,
    };
    let view = services.conversations.conversation(owner, conversation).await?;
    let messages = view.map(|view| view.messages).unwrap_or_default();
    before(&messages, &edited).ok_or_else(|| {
        let reason = "names no message of the conversation's newest branch".to_owned();
        DecodeError::Fields(vec![FieldError { field: "messageId", reason }]).into()
    })
}

/// What came before the edited message; inside, `None` for the newest message.
fn before(messages: &[MessageView], edited: &Edited) -> Option<Option<Parent>> {
    let at = match edited {
        Edited::First => 0,
        Edited::Message(id) => messages.iter().position(|message| message.id == *id)?,
        Edited::After(MessageId { run, .. }) => {
            let answer = messages.iter().rposition(|message| message.id.run == *run)?;
            let next = messages.iter().skip(answer + 1).position(|message| message.role == Role::User);
            match next {
                Some(next) => answer + 1 + next,
                // It never came here: its place is at the end.
                None => return Some(None),
            }
        }
    };
    let before = at.checked_sub(1).and_then(|at| messages.get(at));
    Some(Some(before.map_or(Parent::Root, |message| Parent::Message(message.id))))
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
        let rows = [
            (Edited::First, Some(Some(Parent::Root)), "the first has nothing before it"),
            (Edited::Message(id(a, 0)), Some(Some(Parent::Root)), "also by its id"),
            (Edited::Message(id(c, 0)), after(b, 1), "what the answer ended with, whatever run said it"),
            (Edited::After(id(a, 1)), after(b, 1), "an answer's first id names all of it"),
            (Edited::After(id(c, 1)), Some(None), "a question that was never kept comes last"),
            (Edited::Message(id(a, 9)), None, "no such message"),
            (Edited::After(id(RunId::fresh(), 1)), None, "no such answer"),
        ];
        for (edited, expected, reason) in rows {
            assert_eq!(before(&messages, &edited), expected, "{reason}");
        }
    }
}
