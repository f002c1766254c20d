//! Requests that a front end makes for itself about a chat (a title, what to ask next, a summary of what no longer fits): they
//! have the chat's id, and are no part of it. Open WebUI says so in the header `X-OpenWebUI-Task`, where its connection
//! sends that (`{{TASK}}`), and in its templates, which operators may change: all of them begin with a task and quote the chat.

/// The first heading of a template. A question with documents has it too.
const TASK: &str = "### Task:";

/// The tags in which templates quote a chat.
const QUOTED_CHAT: (&str, &str) = ("<chat_history>", "</chat_history>");

/// The beginning of other headings, one of which is about a chat's messages.
const HEADING: &str = "### ";

/// How headings name a chat's messages.
const MESSAGES: [&str; 3] = ["Messages", "Chat History", "Conversation"];

/// Behind this tag a question quotes documents, whatever they say.
const DOCUMENTS: &str = "<context>";

/// How its own instructions begin, for tasks whose text is no template.
const OWN_INSTRUCTIONS: &str = "You are Open WebUI's ";

/// Whether a text that is all of a request is a task: it begins with one, and a part of it quotes a chat.
pub(super) fn is_task(text: &str) -> bool {
    let Some(template) = text.trim_start().strip_prefix(TASK) else { return false };
    let template = template.split(DOCUMENTS).next().unwrap_or_default();
    let (begin, end) = QUOTED_CHAT;
    let quotes = template.split_once(begin).is_some_and(|(_, quoted)| quoted.contains(end));
    quotes || template.lines().any(is_about_messages)
}

/// Whether a line is the heading of messages.
fn is_about_messages(line: &str) -> bool {
    let heading = line.strip_prefix(HEADING).and_then(|line| line.trim_end().strip_suffix(':'));
    heading.is_some_and(|heading| MESSAGES.iter().any(|name| heading.contains(name)))
}

/// Whether instructions are those of a task.
pub(super) fn is_own_instruction(text: &str) -> bool {
    text.trim_start().starts_with(OWN_INSTRUCTIONS)
}

#[cfg(test)]
mod tests {
    use super::is_task;

    #[test]
    fn a_task_quotes_the_chat_and_a_question_does_not() {
        let rows = [
            (
                "### Task:\nPredict 3-5 useful messages.\n### Chat History:\n<chat_history>\nHi\n</chat_history>",
                true,
                "what is next",
            ),
            (
                "### Task:\nSummarize the conversation history.\n\n### Previous Summary:\n\n\n### Messages Being Compacted:\nHi",
                true,
                "what no longer fits",
            ),
            ("### Task:\nBenenne den Chat.\n<chat_history>\nHallo\n</chat_history>", true, "an operator's own words"),
            (
                "### Task:\nRespond to the user query.\n<context>\n### Messages:\n<chat_history>a</chat_history>\n</context>\nWhich?",
                false,
                "a question with documents, whatever is in them",
            ),
            ("### Task:\nGenerate a concise report of my rules", false, "a user's own words"),
            ("### Task:\nExplain what <chat_history> means", false, "a tag alone quotes nothing"),
            ("Messages\n### Messages:\nHi", false, "no task"),
        ];
        for (text, expected, reason) in rows {
            assert_eq!(is_task(text), expected, "{reason}");
        }
    }
}
