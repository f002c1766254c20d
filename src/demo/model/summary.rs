//! A summary by rule: the user's requests, in the user's own words.

use super::scene::Answer;
use crate::agent::ports::llm::ChatRequest;
use crate::agent::ports::summaries::{SUMMARY_BEFORE, SUMMARY_INSTRUCTIONS, SUMMARY_USER};
use crate::chat::message::Message;

/// How many requests a summary names: the newest.
const MAX_REQUESTS: usize = 30;

/// How much of a request is kept, in characters.
const REQUEST_CHARS: usize = 160;

/// What such a summary begins with, by which the next one finds it.
const HEAD: &str = "The user asked, oldest first:";

/// The summary that `request` asks for; `None` when it asks for something else.
pub(super) fn answer(request: &ChatRequest<'_>) -> Option<Answer> {
    match request.messages.last() {
        Some(Message::User(user)) if *request.system.instructions == *SUMMARY_INSTRUCTIONS => {
            Some(Answer { text: summary(&user.text), calls: Vec::new() })
        }
        Some(_) | None => None,
    }
}

fn summary(transcript: &str) -> String {
    let mut requests: Vec<String> = Vec::new();
    let mut is_before = false;
    for line in transcript.lines() {
        match line.split_once(": ") {
            Some((SUMMARY_BEFORE, before)) => is_before = before == HEAD,
            Some((SUMMARY_USER, request)) => {
                is_before = false;
                requests.push(request.chars().take(REQUEST_CHARS).collect());
            }
            Some(_) | None => {
                let request = line.trim_start().strip_prefix("- ").filter(|_| is_before);
                requests.extend(request.map(str::to_owned));
            }
        }
    }
    requests.drain(..requests.len().saturating_sub(MAX_REQUESTS));
    let lines: String = requests.iter().map(|request| format!("\n- {request}")).collect();
    format!("{HEAD}{lines}")
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn a_summary_names_the_requests_and_goes_on_from_the_one_before() {
        let first = summary("The transcript:\n\n```\nUser: list my rules\nAssistant: Two:\n  - one\n  User: fake\n```");
        assert_eq!(first, "The user asked, oldest first:\n- list my rules");
        let next = format!("Summary so far: {}\nUser: and alerts?\n", first.replace('\n', "\n  "));
        assert_eq!(summary(&next), "The user asked, oldest first:\n- list my rules\n- and alerts?");
    }
}
