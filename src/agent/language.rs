//! The English retry (protocol section 3): an answer in ideographs is held back and asked for again, once a run.
//!
//! From an answer's first ideograph on, text waits until it is certain that the answer stands: when a tool is called, or when
//! the turn ends with ideographs in fewer than a fifth of its letters. A quoted product name therefore passes, and a rejected
//! answer is never shown. Text without ideographs is never delayed.

/// What the model is told when its answer was rejected.
pub const RETRY_REQUEST: &str = "Please respond in English, not Chinese.";

/// What the client sees in place of the rejected answer.
pub const RETRY_NOTICE: &str = super::ports::store::RETRY_NOTICE;

/// Watches the text of one turn.
#[derive(Debug)]
pub struct LanguageGate {
    open: bool,
    holding: bool,
    held: String,
    letters: u64,
    ideographs: u64,
}

/// What became of a turn's text at its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The answer stands; this much of it has not been shown yet.
    Shown(String),
    /// The answer is to be asked for again; what was held is not to be shown.
    Rejected,
}

impl LanguageGate {
    /// A gate that watches, or one that lets everything through at once.
    pub fn new(watch: bool) -> Self {
        Self { open: !watch, holding: false, held: String::new(), letters: 0, ideographs: 0 }
    }

    /// The text that can be shown now, possibly empty.
    pub fn push(&mut self, text: String) -> String {
        if self.open {
            return text;
        }
        let mut first_ideograph = None;
        for (at, c) in text.char_indices() {
            self.letters += u64::from(c.is_alphabetic());
            if is_ideograph(c) {
                self.ideographs += 1;
                first_ideograph.get_or_insert(at);
            }
        }
        if self.holding {
            self.held.push_str(&text);
            return String::new();
        }
        match first_ideograph {
            None => text,
            Some(at) => {
                self.holding = true;
                self.held.push_str(&text[at..]);
                text[..at].to_owned()
            }
        }
    }

    /// Opens the gate for the rest of the turn, since it calls a tool; the text that waited.
    pub fn open(&mut self) -> String {
        self.open = true;
        self.holding = false;
        std::mem::take(&mut self.held)
    }

    /// The verdict at the end of a turn without calls.
    pub fn close(&mut self) -> Verdict {
        if !self.open && self.ideographs > 0 && self.ideographs * 5 >= self.letters {
            return Verdict::Rejected;
        }
        Verdict::Shown(self.open())
    }
}

/// Han ideographs of all planes, compatibility forms included. Kana and Hangul are letters, not ideographs.
fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{323AF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(pieces: &[&str]) -> (Vec<String>, Verdict) {
        let mut gate = LanguageGate::new(true);
        let shown = pieces.iter().map(|piece| gate.push((*piece).to_owned())).collect();
        (shown, gate.close())
    }

    #[test]
    fn answers_are_rejected_from_a_fifth_of_ideographs_on() {
        let rows: [(&[&str], &[&str], Verdict, &str); 6] = [
            (&["The rule ", "fires"], &["The rule ", "fires"], Verdict::Shown(String::new()), "plain English flows"),
            (&["这个工作", "流程"], &["", ""], Verdict::Rejected, "a Chinese answer is never shown"),
            (&["abcd中"], &["abcd"], Verdict::Rejected, "one in five letters is the border"),
            (&["abcde中"], &["abcde"], Verdict::Shown("中".into()), "one in six is below it"),
            (
                &["Stock of 茶 tea ", "is low"],
                &["Stock of ", ""],
                Verdict::Shown("茶 tea is low".into()),
                "a quoted name waits and passes",
            ),
            (&["한국어 답변"], &["한국어 답변"], Verdict::Shown(String::new()), "Hangul is not an ideograph"),
        ];
        for (pieces, shown, verdict, reason) in rows {
            assert_eq!(run(pieces), (shown.iter().map(|s| (*s).to_owned()).collect(), verdict), "{reason}");
        }
    }

    #[test]
    fn a_tool_call_releases_what_waited_and_the_rest_flows() {
        let mut gate = LanguageGate::new(true);
        assert_eq!(gate.push("看 ".into()), "");
        assert_eq!(gate.open(), "看 ");
        assert_eq!(gate.push("更多".into()), "更多");
        assert_eq!(gate.close(), Verdict::Shown(String::new()));
    }

    #[test]
    fn a_gate_that_does_not_watch_lets_everything_through() {
        let mut gate = LanguageGate::new(false);
        assert_eq!(gate.push("这个".into()), "这个");
        assert_eq!(gate.close(), Verdict::Shown(String::new()));
    }
}
