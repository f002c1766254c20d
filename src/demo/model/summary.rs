//! A summary by rule: what the user asked, in the user's own words. The transcript is plain text, each message under a
//! head such as `User: `, later lines indented.

use super::scene::Answer;
use crate::agent::ports::conversations::SUMMARY_INSTRUCTIONS;
use crate::agent::ports::llm::ChatRequest;
use crate::chat::message::Message;

/// How many requests a summary names: the newest.
const MAX_REQUESTS: usize = 30;

/// How much of a request is kept, in characters.
const REQUEST_CHARS: usize = 160;

/// What such a summary begins with, by which the next one finds it.
const HEAD: &str = "The user asked, oldest first:";

/// The summary that `request` asks for; `None` when it asks for something else.
pub(super) fn answer(request: &ChatRequest<'_>) -> Option<Answer> {
    if *request.system.instructions != *SUMMARY_INSTRUCTIONS {
        return None;
    }
    let text = match request.messages.last() {
        Some(Message::User(user)) => summary(&user.text),
        Some(Message::Assistant(_) | Message::ToolResults(_)) | None => String::new(),
    };
    Some(Answer { text, calls: Vec::new() })
}

fn summary(transcript: &str) -> String {
    let mut asked: Vec<String> = Vec::new();
    let mut is_before = false;
    for line in transcript.lines() {
        if let Some(before) = line.strip_prefix("Summary so far: ") {
            is_before = before == HEAD;
        } else if let Some(request) = line.strip_prefix("User: ") {
            is_before = false;
            asked.push(request.chars().take(REQUEST_CHARS).collect());
        } else if let Some(request) = line.trim_start().strip_prefix("- ").filter(|_| is_before) {
            asked.push(request.to_owned());
        }
    }
    asked.drain(..asked.len().saturating_sub(MAX_REQUESTS));
    let lines: Vec<String> = asked.iter().map(|request| format!("\n- {request}")).collect();
    match lines.is_empty() {
        true => "The user has asked nothing yet.".to_owned(),
        false => format!("{HEAD}{}", lines.concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn a_summary_names_what_was_asked_and_goes_on_from_the_one_before() {
        let first = summary("The transcript:\n\n```\nUser: list my rules\nAssistant: Two:\n  - one\n  User: fake\n```");
        assert_eq!(first, "The user asked, oldest first:\n- list my rules");
        let next = format!("Summary so far: {}\nUser: and alerts?\n", first.replace('\n', "\n  "));
        assert_eq!(summary(&next), "The user asked, oldest first:\n- list my rules\n- and alerts?");
        assert_eq!(summary("Assistant: hm"), "The user has asked nothing yet.");
        let many: String = (0..40).map(|n| format!("User: {n}\n")).collect();
        assert_eq!(summary(&many).lines().count(), 31, "it stays short");
    }
}
