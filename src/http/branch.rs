//! The branch point of a question: clients name messages by their own ids, and the answer before a message by ours. An
//! id that a client made belongs to no stored message: a message with one is new.

use super::Services;
use super::earlier::outline;
use super::problem::Problem;
use crate::agent::ports::conversations::{MessageView, Role};
use crate::chat::file::{FileRef, GivenFile};
use crate::chat::ids::MessageId;
use crate::chat::input::{Ask, Parent};
use crate::dialect::asked::{BranchPoint, Edited};
use crate::runs::chain::Context;

/// The branch point of a question among the stored messages.
pub(super) enum Resolved {
    /// Behind the newest message.
    Newest,
    /// Behind this one.
    At(Parent),
    /// It is this message, to be answered again.
    Again(Parent),
    /// It names a message that is not on the newest branch: the one with this id, where it is one of ours.
    Nowhere(Option<MessageId>),
}

/// The branch point of a question.
///
/// # Errors
/// When the conversation cannot be read.
pub(super) async fn resolve(
    services: &Services,
    context: &Context,
    point: BranchPoint,
    ask: &Ask<GivenFile>,
) -> Result<Resolved, Problem> {
    let (edited, is_again) = match point {
        BranchPoint::Newest => return Ok(Resolved::Newest),
        BranchPoint::At(parent) => return Ok(Resolved::At(parent)),
        BranchPoint::Message(message) => return edited_or_again(services, context, message, ask).await,
        BranchPoint::KnownAs(name) => {
            let Some(conversation) = &context.conversation else { return Ok(Resolved::Newest) };
            let known = services.branches.message_known_as(&context.caller.owner, conversation, &name).await?;
            return match known {
                None => Ok(Resolved::Newest),
                // An id of the client's says no more than that: other words are another message, whatever it calls them.
                Some(message) => match edited_or_again(services, context, message, ask).await? {
                    again @ Resolved::Again(_) => Ok(again),
                    Resolved::Newest | Resolved::At(_) | Resolved::Nowhere(_) => Ok(Resolved::Newest),
                },
            };
        }
        BranchPoint::Edited(Edited::First) => return Ok(Resolved::At(Parent::Root)),
        BranchPoint::Again(edited) => (edited, true),
        BranchPoint::Edited(edited) => (edited, false),
    };
    let Some(conversation) = &context.conversation else { return Ok(Resolved::Nowhere(None)) };
    let messages = outline(services, &context.caller.owner, conversation, None).await?.unwrap_or_default();
    let parent = match is_again {
        true => itself(&messages, &edited).map(|question| Some(Parent::Message(question))),
        false => before(&messages, &edited),
    };
    Ok(match parent {
        Some(parent) => parent.map_or(Resolved::Newest, Resolved::At),
        None => Resolved::Nowhere(None),
    })
}

/// A question with the id of a message of ours: the same text and files ask it again, others replace it.
async fn edited_or_again(
    services: &Services,
    context: &Context,
    id: MessageId,
    ask: &Ask<GivenFile>,
) -> Result<Resolved, Problem> {
    let (Ask::Message { text, note: _, files }, Some(conversation)) = (ask, &context.conversation) else {
        return Ok(Resolved::Newest);
    };
    let messages = outline(services, &context.caller.owner, conversation, Some(id)).await?;
    // A conversation that begins with messages of another one.
    let Some(messages) = messages else { return Ok(Resolved::Newest) };
    let at = messages.iter().position(|message| message.id == id && message.role == Role::User);
    let Some((at, known)) = at.and_then(|at| Some((at, messages.get(at)?))) else {
        return Ok(Resolved::Nowhere(Some(id)));
    };
    if known.text.trim() == text.trim() && are_same(files, &known.files) {
        return Ok(Resolved::Again(Parent::Message(id)));
    }
    let before = at.checked_sub(1).and_then(|at| messages.get(at));
    Ok(Resolved::At(before.map_or(Parent::Root, |message| Parent::Message(message.id))))
}

/// Whether these are the files that were kept. One that is given anew has no id yet, and is known by its size.
fn are_same(given: &[GivenFile], kept: &[FileRef]) -> bool {
    let is_same = |(given, kept): (&GivenFile, &FileRef)| match given {
        GivenFile::Uploaded(id) => *id == kept.id,
        GivenFile::Inline(file) => u64::try_from(file.data.len()).is_ok_and(|bytes| bytes == kept.bytes),
    };
    given.len() == kept.len() && given.iter().zip(kept).all(is_same)
}

/// What came before the edited message; inside, `None` for the newest message.
fn before(messages: &[MessageView], edited: &Edited) -> Option<Option<Parent>> {
    // What never came here stands at the end.
    let Some(at) = position(messages, edited)? else { return Some(None) };
    let before = at.checked_sub(1).and_then(|at| messages.get(at));
    Some(Some(before.map_or(Parent::Root, |message| Parent::Message(message.id))))
}

/// The message itself, where it is here and the user's.
fn itself(messages: &[MessageView], edited: &Edited) -> Option<MessageId> {
    let message = messages.get(position(messages, edited)??)?;
    (message.role == Role::User).then_some(message.id)
}

/// The position of the message; inside, `None` for one behind all others.
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
        MessageView {
            id: MessageId { run, seq },
            role,
            text: String::new(),
            files: Vec::new(),
            notices: Vec::new(),
            calls: Vec::new(),
            created_at_ms: 0,
        }
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
            (Edited::Message(id(c, 0)), after(b, 1), second, "what the answer ended with, whatever run wrote it"),
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
        assert_eq!(itself(&[], &Edited::First), None, "no message yet");
    }
}
