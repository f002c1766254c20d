//! The words of a text, as a search compares them. Pure; the index of either database holds these, and only splits them at
//! blanks.
//!
//! A word is a run of letters and digits in small letters, without accents and strokes (NFKD, so that wide and narrow letters are
//! the same, and so is what is written as one character or as several). Scripts that put no blanks between words (Chinese,
//! Japanese, Thai …) are cut into pairs of neighbouring characters, as Lucene's CJK analyser does: each pair is found, and each
//! longer text by all of its pairs. The last character of such a run stands alone besides, so that a single one is found wherever
//! it is. A pictogram is a word.

use std::collections::BTreeSet;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, compose};

/// 64 KiB of a message are indexed.
pub(super) const INDEXED_BYTES: usize = 64 << 10;

/// 32 characters of a word are compared.
const WORD_CHARS: usize = 32;

/// 24 words of a query are looked for.
const QUERY_WORDS: usize = 24;

/// A word, and where it stands in its text, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) at: Range<usize>,
    is_part: bool,
}

/// What a character belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    /// Of a script without blanks between words.
    Dense,
    Pictogram,
    /// It belongs to the character before it, and is not compared.
    Mark,
    Other,
}

fn class(c: char) -> Class {
    match u32::from(c) {
        // Thai, Lao, Tibetan, Myanmar, Khmer; kana; Han, its extensions and compatibility forms; narrow katakana.
        0x0E00..=0x0EFF | 0x0F00..=0x0FBC | 0x1000..=0x109F | 0x1780..=0x17D3 => Class::Dense,
        0x3005..=0x3007 | 0x3041..=0x3096 | 0x309D..=0x309F | 0x30A1..=0x30FA | 0x30FC..=0x30FF => Class::Dense,
        0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFD => Class::Dense,
        0xFF66..=0xFF9F => Class::Dense,
        0x2600..=0x27BF | 0x1F000..=0x1FAFF => Class::Pictogram,
        // Which way a pictogram is drawn, what joins it with the next, and what makes an Arabic word longer.
        0xFE00..=0xFE0F | 0x200C..=0x200D | 0x0640 => Class::Mark,
        _ if canonical_combining_class(c) != 0 => Class::Mark,
        _ if c.is_alphanumeric() => Class::Letter,
        _ => Class::Other,
    }
}

/// A character as it is compared. Kana stay whole with their marks.
fn folded(c: char, into: &mut String) {
    match u32::from(c) {
        0x3041..=0x30FF => into.push(c),
        _ => {
            let small = std::iter::once(c).nfkd().flat_map(char::to_lowercase);
            small.filter(|c| matches!(class(*c), Class::Letter | Class::Dense)).for_each(|c| plain(c, into));
        }
    }
}

/// Adds a small letter. Those with strokes, and two that are written as one, are none to Unicode that have something less.
fn plain(c: char, into: &mut String) {
    let letters = match c {
        // A sigma at the end of a word is one.
        'ς' => "σ",
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ħ' => "h",
        'ŧ' => "t",
        'ı' => "i",
        other => return into.push(other),
    };
    into.push_str(letters);
}

/// A narrow letter of Japanese as the wide one, and a Han character of compatibility as the one that it stands for.
fn whole(c: char) -> char {
    if class(c) != Class::Dense {
        return c;
    }
    let mut whole = std::iter::once(c).nfkc();
    match (whole.next(), whole.next()) {
        (Some(whole), None) => whole,
        _ => c,
    }
}

/// The words of `text`, in order.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut run: Vec<(char, Range<usize>)> = Vec::new();
    let mut of = Class::Other;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let end = at + if at < text.len() { c.len_utf8() } else { 0 };
        let c = whole(c);
        let here = class(c);
        if of == Class::Dense
            && let Some((last, range)) = run.last_mut()
            && let Some(one) = compose(*last, c)
        {
            (*last, range.end) = (one, end);
            continue;
        }
        match here {
            Class::Mark => {
                if let Some((_, range)) = run.last_mut() {
                    range.end = end;
                }
                continue;
            }
            Class::Letter | Class::Dense if here == of => run.push((c, at..end)),
            Class::Letter | Class::Dense | Class::Pictogram | Class::Other => {
                close(of, &mut run, &mut words);
                of = here;
                if here != Class::Other {
                    run.push((c, at..end));
                }
            }
        }
    }
    words
}

/// Adds the words of a run of characters of one class.
fn close(of: Class, run: &mut Vec<(char, Range<usize>)>, words: &mut Vec<Word>) {
    let folded_of = |chars: &[(char, Range<usize>)]| {
        let mut text = String::new();
        chars.iter().for_each(|(c, _)| folded(*c, &mut text));
        // The parts of a syllable of Hangul are one again.
        text.nfc().take(WORD_CHARS).collect()
    };
    let word = |chars: &[(char, Range<usize>)], is_part: bool| {
        let (first, last) = (chars.first()?, chars.last()?);
        let text = match of {
            Class::Pictogram => first.0.to_string(),
            _ => folded_of(chars),
        };
        Some(Word { text, at: first.1.start..last.1.end, is_part }).filter(|word| !word.text.is_empty())
    };
    match of {
        Class::Letter | Class::Pictogram => words.extend(word(run, false)),
        Class::Dense => {
            words.extend(run.windows(2).filter_map(|pair| word(pair, true)));
            words.extend(run.last().and_then(|last| word(std::slice::from_ref(last), run.len() > 1)));
        }
        Class::Mark | Class::Other => {}
    }
    run.clear();
}

/// The words of a text for the index, each once behind its owner's `mark`, with blanks between them.
pub(super) fn indexed(text: &str, mark: &str) -> String {
    let mut end = text.len().min(INDEXED_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let words: BTreeSet<String> = words(&text[..end]).into_iter().map(|word| format!("{mark}{}", word.text)).collect();
    words.into_iter().collect::<Vec<_>>().join(" ")
}

/// What is looked for: words, and beginnings of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted(Vec<(String, bool)>);

impl Wanted {
    /// What a query looks for. A word of two letters or more is found as the beginning of another one too.
    pub(super) fn of_query(query: &str) -> Self {
        let mut wanted: Vec<(String, bool)> = Vec::new();
        let found = words(query);
        for (at, word) in found.iter().enumerate() {
            // The last character of a longer run is in its last pair.
            let is_in_pair = word.is_part && at > 0 && found[at - 1].at.end == word.at.end;
            let dense = word.text.chars().next().is_some_and(|c| class(c) == Class::Dense);
            let may_go_on = if dense { word.text.chars().count() == 1 } else { word.text.chars().count() >= 2 };
            let one = (word.text.clone(), may_go_on);
            if !is_in_pair && !wanted.contains(&one) {
                wanted.push(one);
            }
        }
        wanted.truncate(QUERY_WORDS);
        Self(wanted)
    }

    /// Whether nothing is looked for.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As a parameter of a statement: the words behind their owner's mark, `*` behind beginnings.
    pub(super) fn expression(&self, mark: &str) -> String {
        let one = |(word, may_go_on): &(String, bool)| format!("{mark}{word}{}", if *may_go_on { "*" } else { "" });
        self.0.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    /// Whether that word is looked for.
    pub(super) fn has(&self, word: &str) -> bool {
        self.0.iter().any(|(wanted, may_go_on)| word == wanted || (*may_go_on && word.starts_with(wanted.as_str())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        words(text).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn words_are_what_a_reader_takes_for_the_same() {
        let rows: [(&str, &[&str], &str); 18] = [
            ("The Invoice, no. 4711!", &["the", "invoice", "no", "4711"], "letters and digits"),
            ("Müller MÜLLER Mu\u{308}ller", &["muller", "muller", "muller"], "accents do not count"),
            ("ＡＢＣ ﬁn", &["abc", "fin"], "nor does the width, and a ligature is its letters"),
            ("ΟΔΟΣ οδος İstanbul", &["οδοσ", "οδοσ", "istanbul"], "small letters of all scripts"),
            ("ŁÓDŹ Sørensen Đorđe ħ", &["lodz", "sorensen", "dorde", "h"], "nor do strokes"),
            ("Straße STRASSE ẞ", &["strasse", "strasse", "ss"], "two letters that are written as one"),
            (
                "Ærø Œuvre ısparta ISPARTA",
                &["aero", "oeuvre", "isparta", "isparta"],
                "the same; with a dot and without",
            ),
            (
                "أحمد احمد إلى مـــرحبا",
                &["احمد", "احمد", "الى", "مرحبا"],
                "marks of Arabic, and what makes words longer",
            ),
            ("ｶﾞﾗｽ ﾊﾟ", &["ガラ", "ラス", "ス", "パ"], "narrow kana with marks of their own"),
            ("東京都", &["東京", "京都", "都"], "pairs where there are no blanks, and the last one"),
            ("東", &["東"], "a single one"),
            ("iPhoneの値段", &["iphone", "の値", "値段", "段"], "a script ends a word"),
            ("カード ｶﾀ", &["カー", "ード", "ド", "カタ", "タ"], "narrow kana are kana"),
            ("학교에서", &["학교에서"], "Hangul has blanks"),
            ("done 👍🏽 ❤️", &["done", "👍", "🏽", "❤"], "pictograms are words"),
            ("مرحبا \u{202E}abc", &["مرحبا", "abc"], "what turns the direction is no letter"),
            ("a\0b\u{1}c", &["a", "b", "c"], "nor is a NUL"),
            ("\"* AND NOT (", &["and", "not"], "nothing else of a query language"),
        ];
        for (text, expected, reason) in rows {
            assert_eq!(texts(text), expected, "{reason}");
        }
        assert_eq!(texts(&"x".repeat(500))[0].len(), WORD_CHARS);
    }

    #[test]
    fn what_is_written_as_one_character_or_as_several_is_the_same() {
        let rows =
            ["학교에서 한글", "がっこう ガラス パン", "Ångström Łódź ế", "أحمد آب", "ऩ क़ ো", "ဦး", "Ǿre ǽ", "神"];
        for text in rows {
            let (one, several): (String, String) = (text.nfc().collect(), text.nfd().collect());
            assert_eq!(texts(&one), texts(&several), "{text}");
        }
        let apart: String = "がっこう".nfd().collect();
        assert_eq!(words(&apart)[0].at, 0..9, "its mark belongs to it");
    }

    #[test]
    fn what_goes_to_a_database_is_never_more_than_letters() {
        let hostile = "\0\u{1}'\"*():&|!<>\\-^+~ NEAR(a, 2) {x} x:y ½ ㏂ ℡ ﷺ \u{FDFA} \u{FFFD} \u{1F600} ١٢";
        for text in [hostile.to_owned(), hostile.repeat(3000)] {
            let index = indexed(&text, "q0z1");
            let query = Wanted::of_query(&text).expression("q0z1");
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || !c.is_ascii();
            assert!(index.split(' ').all(|word| !word.is_empty() && word.chars().all(is_plain)), "{index}");
            assert!(query.split(' ').all(|word| word.trim_end_matches('*').chars().all(is_plain)), "{query}");
            assert!(query.split(' ').count() <= QUERY_WORDS);
        }
        let long = "é".repeat(INDEXED_BYTES);
        assert_eq!(
            indexed(&format!("a {long} b"), "m"),
            format!("ma m{}", "e".repeat(WORD_CHARS)),
            "the end is left out"
        );
    }

    #[test]
    fn beginnings_are_looked_for_and_pairs_are_whole() {
        let rows = [
            ("Invoice a", "minvoice* ma", "a single letter is no beginning"),
            ("東京都", "m東京 m京都", "the last character is in its pair"),
            ("都", "m都*", "a single one is looked for at the beginning of pairs too"),
            ("a a a", "ma", "each once"),
            ("!?", "", "nothing"),
        ];
        for (query, expected, reason) in rows {
            assert_eq!(Wanted::of_query(query).expression("m"), expected, "{reason}");
        }
        let wanted = Wanted::of_query("inv 東");
        assert!(wanted.has("invoice") && wanted.has("東京") && !wanted.has("in"));
        assert!(Wanted::of_query("\0 *").is_empty());
    }
}
