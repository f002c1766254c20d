//! The users' view of stored conversations, as pure functions of rows: titles, cursors, messages.

use crate::agent::ports::conversations::{CallView, MessageView, Role};
use crate::chat::answer::{Answer, AnswerPiece};
use crate::chat::approval::Standing;
use crate::chat::artifact::CallArtifact;
use crate::chat::fate::CallFate;
use crate::chat::file::FileRef;
use crate::chat::ids::{ApprovalId, ConversationId, MessageId, RunId, ToolCallId};
use crate::chat::message::{AssistantMessage, Message};
use crate::chat::notice::Notice;
use crate::store::client::is_repetition;
use crate::store::fates::fates;

/// The longest title that is made of a message, in characters: a line in a list.
const TITLE_CHARS: usize = 80;

/// The title that a conversation has by itself: its first message's first line with anything on it, cut at a word.
pub(super) fn title(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.trim();
    let Some((end, _)) = line.char_indices().nth(TITLE_CHARS) else { return line.to_owned() };
    // One character is the ellipsis.
    let kept = line.char_indices().nth(TITLE_CHARS - 1).map_or(end, |(at, _)| at);
    let head = &line[..kept];
    // A word that ends just there stays; a single word that is longer is cut anywhere.
    let cut = match line[kept..].starts_with(char::is_whitespace) {
        true => head,
        false => head.rfind(char::is_whitespace).map_or(head, |at| &head[..at]),
    };
    format!("{}…", cut.trim_end())
}

/// Where a part of the list of conversations ends: whether its last one is pinned, its time of change and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeadCursor {
    pub(super) pinned: bool,
    pub(super) updated_at: i64,
    pub(super) id: String,
}

/// Stands before a cursor among the pinned ones.
const PINNED: &str = "p";

impl HeadCursor {
    /// Before the first one.
    pub(super) fn start() -> Self {
        Self { pinned: true, updated_at: i64::MAX, id: String::new() }
    }

    /// The cursor in `text`, as [`Self::text`] wrote it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (pinned, rest) = text.strip_prefix(PINNED).map_or((false, text), |rest| (true, rest));
        let (updated_at, id) = rest.split_once('.')?;
        let id = ConversationId::parse(id).ok()?;
        Some(Self { pinned, updated_at: number(updated_at)?, id: id.to_string() })
    }

    /// The cursor as text; opaque to whoever gets it.
    pub(super) fn text(&self) -> String {
        format!("{}{}.{}", if self.pinned { PINNED } else { "" }, self.updated_at, self.id)
    }
}

/// Where a part of what was found ends: when its last one was said, and its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchCursor {
    pub(super) at: i64,
    pub(super) id: String,
}

impl SearchCursor {
    /// Before the first one.
    pub(super) fn start() -> Self {
        Self { at: i64::MAX, id: String::new() }
    }

    /// The cursor in `text`, as [`Self::text`] wrote it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (at, id) = text.split_once('.')?;
        let id = ConversationId::parse(id).ok()?;
        Some(Self { at: number(at)?, id: id.to_string() })
    }

    /// The cursor as text; opaque to whoever gets it.
    pub(super) fn text(&self) -> String {
        format!("{}.{}", self.at, self.id)
    }
}

/// The number in `text`, which has digits only and no zero before them: each number has one text.
pub(super) fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_plain = digits && (text.len() == 1 || !text.starts_with('0'));
    is_plain.then(|| text.parse().ok()).flatten()
}

/// A message of a branch, as it was kept.
pub(super) struct Kept {
    pub(super) id: MessageId,
    pub(super) created_at_ms: i64,
    pub(super) what: ViewPart,
}

/// The part of a message that a view needs.
pub(super) enum ViewPart {
    User(String, Vec<FileRef>),
    Assistant(AssistantMessage),
    /// The fates of the calls before it.
    Fates(Vec<(String, CallFate)>),
}

impl ViewPart {
    /// The part of `message` that a view needs.
    pub(super) fn from_message(message: Message) -> Self {
        match message {
            Message::User(user) => Self::User(user.text, user.files),
            Message::Assistant(answer) => Self::Assistant(answer),
            Message::ToolResults(results) => Self::Fates(fates(&results)),
        }
    }
}

/// The messages that a user sees: `kept` without the tools' results, which tell what became of the calls before them.
pub(super) fn messages(kept: Vec<Kept>) -> Vec<MessageView> {
    let mut seen: Vec<MessageView> = Vec::new();
    for Kept { id, created_at_ms, what } in kept {
        match what {
            ViewPart::User(text, files) => {
                let (calls, notices) = (Vec::new(), Vec::new());
                seen.push(MessageView { id, role: Role::User, text, files, notices, calls, created_at_ms });
            }
            ViewPart::Assistant(answer) => {
                let mut calls: Vec<CallView> = answer.calls().map(|call| call_view(&call.id, &call.name)).collect();
                if is_repetition(&answer) {
                    calls.iter_mut().for_each(|call| call.of_client = true);
                    stand_for_left(&seen, &mut calls);
                }
                let (text, files, notices) = (answer.text(), Vec::new(), Vec::new());
                seen.push(MessageView { id, role: Role::Assistant, text, files, notices, calls, created_at_ms });
            }
            ViewPart::Fates(fates) => {
                let answer = seen.last_mut().filter(|answer| answer.id.run == id.run);
                for call in answer.into_iter().flat_map(|answer| &mut answer.calls) {
                    tell(call, &fates);
                }
            }
        }
    }
    seen
}

/// Calls that a run repeats with what its client says came of them stand for those that were left to it: of each tool in their
/// order, among the calls of the turn before that were not made here.
fn stand_for_left(before: &[MessageView], calls: &mut [CallView]) {
    let Some(asking) = before.iter().rev().find(|message| !message.calls.is_empty()) else { return };
    let is_left = |call: &&CallView| matches!(call.fate, CallFate::NotRun | CallFate::AwaitsClient);
    let mut left: Vec<&CallView> = asking.calls.iter().filter(is_left).collect();
    for call in calls {
        if let Some(at) = left.iter().position(|left| left.name == call.name) {
            call.stands_for = Some((asking.id.run, left.remove(at).id.clone()));
        }
    }
}

/// The calls of that approval stand for the call of `run` that was let through: there are several where it was let through
/// more than once.
pub(super) fn link_approved(messages: &mut [MessageView], approval: ApprovalId, (run, call): (RunId, &str)) {
    let calls = messages.iter_mut().flat_map(|message| &mut message.calls);
    for made in calls.filter(|made| ToolCallId::is_of_approval(&made.id, approval)) {
        made.stands_for = Some((run, call.to_owned()));
    }
}

/// Gives a call of `run` where its approval stands.
pub(super) fn set_standing(messages: &mut [MessageView], run: RunId, call: &str, standing: Standing) {
    let of_run = messages.iter_mut().filter(|message| message.id.run == run);
    if let Some(asking) = of_run.flat_map(|message| &mut message.calls).find(|asking| asking.id == call) {
        asking.approval = Some(standing);
    }
}

/// Gives a call of a run what it has made, itself or by helpers: the last one of its id.
pub(super) fn add_artifact(messages: &mut [MessageView], run: RunId, made: CallArtifact) {
    let of_run = messages.iter_mut().filter(|message| message.id.run == run && message.role == Role::Assistant);
    let calls = of_run.flat_map(|message| &mut message.calls).filter(|call| call.id == made.shown_with().as_str());
    if let Some(call) = calls.last() {
        call.artifacts.push(made);
    }
}

/// Gives the messages of `run` the text that its user saw, instead of the model's: without markers; and what they were told
/// beside it. An answer is in
/// parts, each of which ends with the calls of its turn; a message that has other calls than the next part got no part
/// of its own, and its text is in a later one's. So did one without calls that is not the last: it was asked for once more.
pub(super) fn replace_with_answer_text(messages: &mut [MessageView], run: RunId, answer: &Answer) {
    let mut parts = parts(answer).into_iter().peekable();
    let of_run = |message: &&mut MessageView| match message.role {
        Role::Assistant => message.id.run == run,
        Role::User => false,
    };
    let mut left = messages.iter_mut().filter(of_run).count();
    for message in messages.iter_mut().filter(of_run) {
        left -= 1;
        let called: Vec<&str> = message.calls.iter().map(|call| call.id.as_str()).collect();
        let part = parts.next_if(|part| match called.is_empty() || part.calls.is_empty() {
            // Of calls: the run ended before any of them was answered, so nothing comes behind them.
            true => left == 0,
            false => called.starts_with(&part.calls),
        });
        let Part { text, notices, calls: _ } = part.unwrap_or_default();
        (message.text, message.notices) = (text, notices);
    }
}

/// The part of an answer for one turn.
#[derive(Default)]
struct Part<'a> {
    text: String,
    notices: Vec<Notice>,
    calls: Vec<&'a str>,
}

fn parts(answer: &Answer) -> Vec<Part<'_>> {
    let mut parts = vec![Part::default()];
    for piece in &answer.pieces {
        match (piece, parts.last_mut()) {
            (AnswerPiece::Text(text), Some(part)) => part.text.push_str(text),
            // The loop says this one, not the model.
            (AnswerPiece::Notice(_), _) => {}
            (AnswerPiece::NotShown(notice), Some(part)) => part.notices.push(notice.clone()),
            (AnswerPiece::Call(id), Some(part)) => part.calls.push(id.as_str()),
            (AnswerPiece::RoundEnd, _) => parts.push(Part::default()),
            (AnswerPiece::Text(_) | AnswerPiece::NotShown(_) | AnswerPiece::Call(_), None) => {}
        }
    }
    parts
}

/// A call before its result is known, which is what one without a result stays.
fn call_view(id: &ToolCallId, name: &str) -> CallView {
    let (id, name) = (id.as_str().to_owned(), name.to_owned());
    let (fate, artifacts) = (CallFate::NotRun, Vec::new());
    CallView { id, name, fate, approval: None, artifacts, stands_for: None, of_client: false }
}

fn tell(call: &mut CallView, fates: &[(String, CallFate)]) {
    if let Some((_, fate)) = fates.iter().find(|(id, _)| *id == call.id) {
        call.fate = *fate;
    }
}

#[cfg(test)]
mod tests {
    use super::{HeadCursor, call_view, number, replace_with_answer_text, title};
    use crate::agent::ports::conversations::{MessageView, Role};
    use crate::chat::answer::{Answer, AnswerPiece};
    use crate::chat::ids::{MessageId, RunId, ToolCallId};

    #[test]
    fn an_answer_that_was_asked_for_once_more_is_the_last_messages() {
        let (run, call) = (RunId::fresh(), ToolCallId::from_model("a"));
        let message = |seq, text: &str, calls| {
            let (id, text, role) = (MessageId { run, seq }, text.to_owned(), Role::Assistant);
            MessageView { id, role, text, files: Vec::new(), notices: Vec::new(), calls, created_at_ms: 0 }
        };
        let calls = vec![call_view(&call, "find")];
        let mut messages = [message(1, "I look", calls), message(3, "It is 7.", vec![]), message(5, "{}", vec![])];
        let text = |text: &str| AnswerPiece::Text(text.to_owned());
        let pieces = vec![text("I look"), AnswerPiece::Call(call), AnswerPiece::RoundEnd, text("{}")];
        replace_with_answer_text(&mut messages, run, &Answer { pieces, ..Answer::default() });
        assert_eq!(messages.map(|message| message.text), ["I look", "", "{}"]);
    }

    #[test]
    fn a_title_is_the_first_line_cut_at_a_word() {
        let eighty = "x".repeat(80);
        let words = "word ".repeat(20);
        let rows = [
            ("Why did it fire?", "Why did it fire?".to_owned(), "a short message is its own title"),
            ("\n  \n Two \nlines", "Two".to_owned(), "the first line that says anything"),
            ("a\tb\u{0}c \u{0}", "a b c".to_owned(), "no control characters"),
            (&eighty, eighty.clone(), "80 characters fit"),
            (&format!("{eighty}y"), format!("{}…", "x".repeat(79)), "one word too long is cut anywhere"),
            (&words, format!("{}…", "word ".repeat(15) + "word"), "a word that ends at the border stays"),
            (&format!("ab {words}"), format!("ab {}…", "word ".repeat(15).trim_end()), "no half of a word"),
            (&"ü".repeat(81), format!("{}…", "ü".repeat(79)), "characters are counted, not bytes"),
            ("", String::new(), "nothing has no title"),
        ];
        for (text, expected, reason) in rows {
            assert_eq!(title(text), expected, "{reason}");
        }
    }

    #[test]
    fn a_cursor_reads_back_and_nonsense_is_none() {
        for pinned in [false, true] {
            let cursor = HeadCursor { pinned, updated_at: 17, id: "a.b:c".into() };
            assert_eq!(HeadCursor::parse(&cursor.text()), Some(cursor));
        }
        let rows = [
            ("", "nothing"),
            ("p", "nothing but that it is pinned"),
            ("pp17.c", "pinned twice"),
            ("17", "no id"),
            ("17.", "an empty id"),
            (".c", "no time"),
            ("-1.c", "a sign"),
            ("017.c", "another text of the same number"),
            ("17.a b", "an id with a space"),
            ("99999999999999999999.c", "a number beyond all times"),
        ];
        for (text, reason) in rows {
            assert_eq!(HeadCursor::parse(text), None, "{reason}");
        }
        assert_eq!((number("0"), number("10"), number("1 ")), (Some(0), Some(10), None));
    }
}
