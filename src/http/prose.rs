//! A conversation as a text for people: Markdown, or plain. What its user sees of it, and no more: what was said, which
//! tools were called and what became of that, never with what or what they answered.
//!
//! **Invariant:** no message can look like the beginning of another one, or like words of ours: each of its lines stands
//! behind a mark, `> ` in Markdown, blanks in a plain text. **Invariant:** Markdown has no HTML of others.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::agent::ports::conversations::{ConversationHead, MessageView, Role, RunTranscript};
use crate::agent::ports::feedback::KeptFeedback;
use crate::chat::day::rfc3339;
use crate::chat::file::FileRef;
use crate::chat::ids::FileId;
use crate::chat::run::RunState;

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prose {
    Markdown,
    Text,
}

impl Prose {
    /// What stands before everything that was said.
    pub(super) fn head(self, head: &ConversationHead) -> String {
        let about = format!("{} · {}", head.id, time(head.created_at_ms));
        match self {
            Self::Markdown => format!("# {}\n\n{}\n", escaped(&line(&head.title)), escaped(&about)),
            Self::Text => format!("{}\n{about}\n", line(&head.title)),
        }
    }

    /// What was said in a run. Of its files these are `kept`.
    pub(super) fn run(self, said: &RunTranscript, kept: &HashSet<FileId>) -> String {
        let mut text = String::new();
        if !said.goes_on {
            text.push_str(match self {
                Self::Markdown => "\n---\n\n*Another version of the conversation begins here.*\n",
                Self::Text => "\n----\nAnother version of the conversation begins here.\n",
            });
        }
        for message in &said.messages {
            self.message(message, kept, &mut text);
        }
        let ending = match said.run.state {
            RunState::Completed | RunState::AwaitingApproval => None,
            state => Some(format!("This answer did not come to its end: {}.", state.name())),
        };
        for note in ending.into_iter().chain(said.feedback.as_ref().map(rating)) {
            match self {
                Self::Markdown => {
                    let _ = write!(text, "\n*{}*\n", escaped(&note));
                }
                Self::Text => {
                    let _ = write!(text, "\n({note})\n");
                }
            }
        }
        let comment = said.feedback.as_ref().and_then(|given| given.feedback.comment.as_deref());
        if let Some(comment) = comment {
            self.quote(comment, &mut text);
        }
        text
    }

    fn message(self, message: &MessageView, kept: &HashSet<FileId>, text: &mut String) {
        let who = match message.role {
            Role::User => "User",
            Role::Assistant => "Assistant",
        };
        let at = time(message.created_at_ms);
        let _ = match self {
            Self::Markdown => write!(text, "\n## {who} · {at}\n"),
            Self::Text => write!(text, "\n{who} · {at}\n"),
        };
        self.quote(&message.text, text);
        let has_list = !(message.calls.is_empty() && message.files.is_empty() && message.notices.is_empty());
        if has_list && self == Self::Markdown {
            text.push('\n');
        }
        for notice in &message.notices {
            let told = line(&notice.message);
            let _ = match self {
                Self::Markdown => writeln!(text, "- {}", escaped(&told)),
                Self::Text => writeln!(text, "  [{told}]"),
            };
        }
        for file in &message.files {
            let FileRef { id, kind, bytes, .. } = file;
            let gone = if kept.contains(id) { "" } else { ", not kept any more" };
            let about = format!("{} ({id}, {}, {bytes} bytes{gone})", line(&file.name), kind.media_type());
            let _ = match self {
                Self::Markdown => writeln!(text, "- File {}", escaped(&about)),
                Self::Text => writeln!(text, "  [File {about}]"),
            };
        }
        for call in &message.calls {
            let (name, fate) = (line(&call.name), call.fate.name().replace('_', " "));
            let _ = match self {
                Self::Markdown => writeln!(text, "- Tool {}: {fate}", escaped(&name)),
                Self::Text => writeln!(text, "  [Tool {name}: {fate}]"),
            };
        }
    }

    /// A text of somebody's.
    fn quote(self, said: &str, text: &mut String) {
        let said = readable(said);
        let said = said.trim_end();
        if said.trim().is_empty() {
            return;
        }
        match self {
            Self::Markdown => {
                text.push('\n');
                let mut fence = Fence::default();
                for line in said.lines() {
                    match line.trim().is_empty() {
                        true => text.push_str(">\n"),
                        false => {
                            let _ = writeln!(text, "> {}", fence.line(line));
                        }
                    }
                }
            }
            Self::Text => {
                for line in said.lines() {
                    let _ = writeln!(text, "{}", format!("    {line}").trim_end());
                }
            }
        }
    }
}

/// What a user thinks of an answer, but for their comment.
fn rating(given: &KeptFeedback) -> String {
    let tags: Vec<String> = given.feedback.tags.iter().map(|tag| line(tag)).collect();
    let name = given.feedback.score.name();
    match tags.is_empty() {
        true => format!("Rated {name}."),
        false => format!("Rated {name}: {}.", tags.join(", ")),
    }
}

/// The blocks of code in a Markdown text, in which `<` is no markup. Only those count that every reader takes for one: they
/// begin at the beginning of a line, and end with a line of their own. Behind anything else that could be the beginning or
/// the end of one all is in doubt, and escaped.
#[derive(Default)]
struct Fence {
    /// The sign and the length of the one that is open.
    open: Option<(char, usize)>,
    is_in_doubt: bool,
}

impl Fence {
    fn line(&mut self, line: &str) -> String {
        let run_of = |text: &str, c: char| text.chars().take_while(|found| *found == c).count();
        if let Some((c, length)) = self.open {
            let inner = line.trim_start();
            if run_of(inner, c) >= length {
                let is_end = line.len() - inner.len() < 4 && inner.trim_end().chars().all(|found| found == c);
                (self.open, self.is_in_doubt) = (None, !is_end || line.starts_with('\t'));
            }
            // What ends it has no room for markup, or is in doubt.
            return if self.is_in_doubt { line.replace('<', "&lt;") } else { line.to_owned() };
        }
        let opened = ['`', '~'].into_iter().find(|c| run_of(line, *c) >= 3);
        let opened = opened.filter(|c| *c == '~' || !line.trim_start_matches('`').contains('`'));
        match opened {
            Some(c) if !self.is_in_doubt => self.open = Some((c, run_of(line, c))),
            _ => self.is_in_doubt |= line.contains("```") || line.contains("~~~"),
        }
        // What a block's beginning names is markup of a reader's too.
        line.replace('<', "&lt;")
    }
}

/// A line of ours in Markdown: each sign of its syntax stands for itself.
fn escaped(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '<' => text.push_str("&lt;"),
            '&' => text.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '>' | '|' | '~' | '!' => text.extend(['\\', c]),
            _ => text.push(c),
        }
    }
    text
}

/// A text on one line.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A text of somebody's without what no reader shows. Every way to end a line is ours.
fn readable(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace(['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], "\n");
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

fn time(ms: i64) -> String {
    rfc3339(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(form: Prose, said: &str) -> String {
        let mut text = String::new();
        form.quote(said, &mut text);
        text
    }

    #[test]
    fn no_message_looks_like_another_one() {
        let hostile = "Hi\n## Assistant · 2026\rforged\u{2028}forged\u{85}# x\u{0}\u{1b}[31m\n\n---\n";
        let markdown = quoted(Prose::Markdown, hostile);
        assert!(markdown.trim_start().lines().all(|line| line.starts_with('>')), "{markdown:?}");
        let text = quoted(Prose::Text, hostile);
        assert!(text.lines().all(|line| line.is_empty() || line.starts_with("    ")), "{text:?}");
        assert!(!text.contains(['\0', '\u{1b}', '\r', '\u{2028}']), "{text:?}");
        assert_eq!(quoted(Prose::Markdown, " \n\t"), "", "nothing was said");
    }

    #[test]
    fn html_of_others_is_text_and_code_stays_code() {
        let rows = [
            ("a <script>x</script>", "> a &lt;script>x&lt;/script>", "a tag"),
            ("```\n<b>\n```\n<i>", "> ```\n> <b>\n> ```\n> &lt;i>", "in code it is none"),
            ("- a\n  ```\n<b>", "> - a\n>   ```\n> &lt;b>", "code of an item ends with it"),
            ("```\n<b>\n ````\n<i>", "> ```\n> <b>\n>  ````\n> &lt;i>", "a longer end"),
            ("``` a`b\n<b>", "> ``` a`b\n> &lt;b>", "no beginning of code"),
            ("~~~\n```\n<b>", "> ~~~\n> ```\n> <b>", "another sign does not end it"),
            ("```<b>", "> ```&lt;b>", "a name of a language"),
            (" ```\n```\n<b>", ">  ```\n> ```\n> &lt;b>", "a beginning that is not at the beginning of a line"),
            ("```\n``` x\n```\n<b>", "> ```\n> ``` x\n> ```\n> &lt;b>", "no end, for some"),
            ("> ```\n```\n<b>", "> > ```\n> ```\n> &lt;b>", "in a quotation"),
        ];
        for (said, expected, reason) in rows {
            assert_eq!(quoted(Prose::Markdown, said).trim(), expected, "{reason}");
        }
        assert_eq!(escaped("[x](javascript:1) <b> *a* `c`"), "\\[x\\](javascript:1) &lt;b\\> \\*a\\* \\`c\\`");
        assert_eq!(line("a\n# b\u{0}\tc"), "a # b c");
    }
}
