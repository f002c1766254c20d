//! The questions the model asks back, and how the user's answer completes the message that led to one.

/// What a workflow watches.
pub(super) const ENTITY: &str = "Which entity should it watch?";
/// What a condition compares.
pub(super) const CONDITION: &str = "Which condition should it check?";
/// Whom an e-mail goes to.
pub(super) const RECIPIENT: &str = "Who should get the e-mail?";
/// Whom a notification goes to.
pub(super) const NOTIFIED: &str = "Who should be notified?";
/// What a field update sets.
pub(super) const ASSIGNMENT: &str = "Which field should it set, and to what?";
/// How long a delay lasts.
pub(super) const DURATION: &str = "How long should it wait?";
/// Who approves.
pub(super) const APPROVERS: &str = "Who should approve?";
/// What a step does.
pub(super) const STEP: &str = "What kind of step should it be?";
/// Whether the draft is to be shown; a "yes" answers it.
pub(super) const PREVIEW: &str = "Shall I preview it?";

/// The questions whose answer is read together with the message before.
const COMPLETING: [&str; 8] = [ENTITY, CONDITION, RECIPIENT, NOTIFIED, ASSIGNMENT, DURATION, APPROVERS, STEP];

/// How a report of a finished draft step begins.
pub(super) const DONE: [&str; 3] = ["I've started a draft", "I added the step", "I removed the step"];

/// Whether `answer` waits for words that complete the user's message.
pub(super) fn waits_for_more(answer: &str) -> bool {
    COMPLETING.iter().any(|question| answer.contains(question))
}

/// How many draft steps `answer` reports as done before it asks.
pub(super) fn steps_done(answer: &str) -> usize {
    answer.lines().filter(|line| DONE.iter().any(|report| line.starts_with(report))).count()
}

/// Whether `text` agrees.
pub(super) fn is_yes(text: &str) -> bool {
    const YES: [&str; 10] = ["yes", "yep", "yeah", "ok", "okay", "sure", "please", "do", "go", "y"];
    let first = text.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
    first.is_some_and(|word| YES.contains(&word.to_lowercase().as_str()))
}
