//! The retry in the wanted language (protocol section 3): an answer in ideographs is held back and requested again,
//! once a run.
//!
//! From an answer's first ideograph on, text waits until it is certain whether the answer stands, and not longer. It
//! stands when a tool is called, when 40 letters have come since then and ideographs are fewer than one in ten of them,
//! and where ideographs are fewer than a fifth of its letters when 200 have been held or the turn ends. A quoted
//! product name therefore passes, and a rejected answer is never emitted. When 2 s are over, waiting text is emitted
//! unless it is more than a name could be. Text without ideographs is never delayed.

use std::time::Duration;

use tokio::time::Instant;

use crate::agent::offer::profile::ReplyLanguage;

/// After 40 letters since the first ideograph a quoted name and an answer differ.
const CERTAIN_LETTERS: u64 = 40;

/// 200 letters at most wait.
const MOST_LETTERS: u64 = 200;

/// 2 s at most are waited: longer, and a reader takes the answer for stuck.
const MOST_TIME: Duration = Duration::from_secs(2);

/// Ten ideographs are more than a name.
const MORE_THAN_A_NAME: u64 = 10;

impl ReplyLanguage {
    /// All of them, by their codes (ISO 639-1).
    pub const ALL: [(&'static str, Self); 11] = [
        ("de", Self::German),
        ("en", Self::English),
        ("es", Self::Spanish),
        ("fr", Self::French),
        ("it", Self::Italian),
        ("ja", Self::Japanese),
        ("ko", Self::Korean),
        ("nl", Self::Dutch),
        ("pl", Self::Polish),
        ("pt", Self::Portuguese),
        ("zh", Self::Chinese),
    ];

    /// The texts for the model and the client when an answer was rejected; `None` for languages that are written in
    /// ideographs themselves.
    pub fn retry(self) -> Option<Retry> {
        let (request, notice) = match self {
            Self::German => ("Bitte antworte auf Deutsch, nicht auf Chinesisch.", "[Neuer Versuch auf Deutsch...]"),
            Self::English => ("Please respond in English, not Chinese.", "[Retrying in English...]"),
            Self::Spanish => ("Por favor, responde en español, no en chino.", "[Nuevo intento en español...]"),
            Self::French => ("Merci de répondre en français, pas en chinois.", "[Nouvel essai en français...]"),
            Self::Italian => ("Per favore rispondi in italiano, non in cinese.", "[Nuovo tentativo in italiano...]"),
            Self::Korean => ("중국어가 아닌 한국어로 답해 주세요.", "[한국어로 다시 시도합니다...]"),
            Self::Dutch => {
                ("Antwoord alsjeblieft in het Nederlands, niet in het Chinees.", "[Nieuwe poging in het Nederlands...]")
            }
            Self::Polish => ("Proszę odpowiedz po polsku, nie po chińsku.", "[Ponowna próba po polsku...]"),
            Self::Portuguese => {
                ("Por favor, responda em português, não em chinês.", "[Nova tentativa em português...]")
            }
            Self::Japanese | Self::Chinese => return None,
        };
        Some(Retry { request, notice })
    }
}

/// The texts with which an answer is requested again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// For the model.
    pub request: &'static str,
    /// For the client.
    pub notice: &'static str,
}

/// Watches the text of one turn.
#[derive(Debug)]
pub struct LanguageGate {
    state: State,
    held: String,
    /// Of the whole turn.
    all: Count,
    /// From the first ideograph on.
    since: Count,
}

#[derive(Debug)]
enum State {
    /// No ideograph has come.
    Watching,
    /// Text waits until then.
    Holding(Instant),
    /// The answer does not stand.
    Rejected,
    /// Everything flows.
    Open,
    /// Nothing does: the answer has a form that whoever is to read it gets whole, or not at all.
    Shut,
}

#[derive(Debug, Default)]
struct Count {
    letters: u64,
    ideographs: u64,
}

impl Count {
    fn add(&mut self, c: char) {
        self.letters += u64::from(c.is_alphabetic());
        self.ideographs += u64::from(is_ideograph(c));
    }

    /// Whether ideographs are one in `nth` letters or more.
    fn is_one_in(&self, nth: u64) -> bool {
        self.ideographs > 0 && self.ideographs * nth >= self.letters
    }
}

/// The verdict on a turn's text at its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The answer stands; this part of it has not been emitted yet.
    Accepted(String),
    /// The answer is to be requested again; the held text is dropped.
    Rejected,
}

impl LanguageGate {
    /// A gate that watches, or one that lets everything through at once.
    pub fn new(watch: bool) -> Self {
        let state = if watch { State::Watching } else { State::Open };
        Self { state, held: String::new(), all: Count::default(), since: Count::default() }
    }

    /// A gate that lets nothing through.
    pub fn shut() -> Self {
        Self { state: State::Shut, ..Self::new(false) }
    }

    /// The text that can be emitted now, possibly empty.
    pub fn push(&mut self, text: String) -> String {
        match self.state {
            State::Open => return text,
            State::Shut => return String::new(),
            State::Watching | State::Holding(_) | State::Rejected => {}
        }
        let mut emitted = 0;
        for (at, c) in text.char_indices() {
            self.all.add(c);
            if matches!(self.state, State::Watching) && is_ideograph(c) {
                self.state = State::Holding(Instant::now() + MOST_TIME);
                emitted = at;
            }
            if !matches!(self.state, State::Watching) {
                self.since.add(c);
            }
            if self.decides() {
                break;
            }
        }
        match self.state {
            State::Watching => text,
            State::Holding(_) | State::Rejected => {
                self.held.push_str(&text[emitted..]);
                text[..emitted].to_owned()
            }
            State::Open | State::Shut => std::mem::take(&mut self.held) + &text,
        }
    }

    /// Decides where it is certain by now, and says whether everything flows.
    fn decides(&mut self) -> bool {
        if matches!(self.state, State::Holding(_)) {
            if self.since.letters >= CERTAIN_LETTERS && !self.since.is_one_in(10) {
                self.state = State::Open;
            } else if self.since.letters >= MOST_LETTERS {
                self.state = if self.all.is_one_in(5) { State::Rejected } else { State::Open };
            }
        }
        matches!(self.state, State::Open)
    }

    /// Until when text may wait; `None` while none does.
    pub fn waits_until(&self) -> Option<Instant> {
        match self.state {
            State::Holding(until) => Some(until),
            State::Watching | State::Rejected | State::Open | State::Shut => None,
        }
    }

    /// Decides since the time is over; the text that waited, where it stands.
    pub fn out_of_time(&mut self) -> String {
        if self.since.ideographs >= MORE_THAN_A_NAME && self.all.is_one_in(5) {
            self.state = State::Rejected;
            return String::new();
        }
        self.open()
    }

    /// Opens the gate for the rest of the turn, since it calls a tool; the text that waited.
    pub fn open(&mut self) -> String {
        if !matches!(self.state, State::Shut) {
            self.state = State::Open;
        }
        std::mem::take(&mut self.held)
    }

    /// The verdict at the end of a turn without calls.
    pub fn close(&mut self) -> Verdict {
        match self.state {
            State::Rejected | State::Shut => Verdict::Rejected,
            State::Holding(_) if self.all.is_one_in(5) => Verdict::Rejected,
            State::Watching | State::Holding(_) | State::Open => Verdict::Accepted(self.open()),
        }
    }
}

/// Han ideographs of all planes, compatibility ideographs included. Kana and Hangul are letters, not ideographs.
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
        let emitted = pieces.iter().map(|piece| gate.push((*piece).to_owned())).collect();
        (emitted, gate.close())
    }

    #[test]
    fn answers_are_rejected_from_a_fifth_of_ideographs_on() {
        let rows: [(&[&str], &[&str], Verdict, &str); 6] = [
            (&["The rule ", "fires"], &["The rule ", "fires"], Verdict::Accepted(String::new()), "plain English flows"),
            (&["这个工作", "流程"], &["", ""], Verdict::Rejected, "a Chinese answer is never emitted"),
            (&["abcd中"], &["abcd"], Verdict::Rejected, "one in five letters is the border"),
            (&["abcde中"], &["abcde"], Verdict::Accepted("中".into()), "one in six is below it"),
            (
                &["Stock of 茶 tea ", "is low"],
                &["Stock of ", ""],
                Verdict::Accepted("茶 tea is low".into()),
                "a quoted name waits and passes",
            ),
            (&["한국어 답변"], &["한국어 답변"], Verdict::Accepted(String::new()), "Hangul is not an ideograph"),
        ];
        for (pieces, emitted, verdict, reason) in rows {
            assert_eq!(run(pieces), (emitted.iter().map(|s| (*s).to_owned()).collect(), verdict), "{reason}");
        }
    }

    #[test]
    fn what_is_held_flows_or_falls_as_soon_as_it_is_certain() {
        let mut gate = LanguageGate::new(true);
        assert_eq!(gate.push("The tea 绿茶 is ".into()), "The tea ");
        let (first, second) = ("low on stock in the main ", "warehouse, and so are ");
        assert_eq!(gate.push(first.into()), "", "23 letters since the first ideograph");
        assert_eq!(gate.push(second.into()), format!("绿茶 is {first}{second}"), "2 of 40 letters are ideographs");
        assert_eq!(gate.push("咖啡。这个工作流程".into()), "咖啡。这个工作流程", "and the rest flows, whatever it is");
        assert_eq!(gate.close(), Verdict::Accepted(String::new()));

        let rows = [
            ("a".repeat(500) + "中文中文中文", "中".repeat(30) + &"a".repeat(170), Some(false), "30 of 700 letters"),
            (String::new(), "中".repeat(30) + &"a".repeat(170), Some(false), "30 of 200 letters"),
            (String::new(), "中".repeat(40) + &"a".repeat(160), Some(true), "40 of 200 letters"),
            (String::new(), "中".repeat(30) + &"a".repeat(169), None, "one letter less"),
        ];
        for (before, text, expected, reason) in rows {
            let mut gate = LanguageGate::new(true);
            gate.push(before);
            gate.push(text);
            let rejected = match gate.state {
                State::Rejected => Some(true),
                State::Open => Some(false),
                State::Watching | State::Holding(_) | State::Shut => None,
            };
            assert_eq!(rejected, expected, "{reason}");
        }
    }

    #[test]
    fn when_the_time_is_over_a_name_is_emitted_and_an_answer_is_not() {
        let rows = [
            ("Made of 绿茶", "绿茶", Verdict::Accepted("x".into()), "a name behind words"),
            ("绿茶", "绿茶", Verdict::Accepted("x".into()), "a name alone"),
            ("这个工作流程有三个步骤", "", Verdict::Rejected, "more than a name"),
        ];
        for (text, emitted, verdict, reason) in rows {
            let mut gate = LanguageGate::new(true);
            assert_eq!(gate.waits_until(), None, "{reason}");
            gate.push(text.into());
            assert!(gate.waits_until().is_some(), "{reason}");
            assert_eq!(gate.out_of_time(), emitted, "{reason}");
            assert_eq!(gate.waits_until(), None, "{reason}");
            let rest = gate.push("x".into());
            let at_end = match gate.close() {
                Verdict::Accepted(end) => Verdict::Accepted(rest + &end),
                Verdict::Rejected => Verdict::Rejected,
            };
            assert_eq!(at_end, verdict, "{reason}");
        }
    }

    #[test]
    fn each_language_asks_in_its_own_words_and_those_of_ideographs_do_not_ask() {
        let retries: Vec<_> = ReplyLanguage::ALL.iter().filter_map(|(_, language)| language.retry()).collect();
        let texts: std::collections::BTreeSet<_> =
            retries.iter().flat_map(|retry| [retry.request, retry.notice]).collect();
        assert_eq!((retries.len(), texts.len()), (9, 18));
        assert!(!texts.iter().any(|words| words.chars().any(is_ideograph)));
        assert_eq!((ReplyLanguage::Chinese.retry(), ReplyLanguage::Japanese.retry()), (None, None));
    }

    #[test]
    fn a_tool_call_releases_what_waited_and_the_rest_flows() {
        let mut gate = LanguageGate::new(true);
        assert_eq!(gate.push("看 ".into()), "");
        assert_eq!(gate.open(), "看 ");
        assert_eq!(gate.push("更多".into()), "更多");
        assert_eq!(gate.close(), Verdict::Accepted(String::new()));
    }

    #[test]
    fn a_gate_that_does_not_watch_lets_everything_through() {
        let mut gate = LanguageGate::new(false);
        assert_eq!(gate.push("这个".into()), "这个");
        assert_eq!(gate.close(), Verdict::Accepted(String::new()));
    }
}
