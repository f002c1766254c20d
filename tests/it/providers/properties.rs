//! What holds for every answer, recorded or broken: the cuts of its bytes say nothing, half of it is never taken for the
//! whole, and whatever a server sends, the reading ends once and never panics.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;
use switchboard::agent::ports::llm::ProviderErrorKind;
use switchboard::llm::{Wire, recorded};

use super::RESPONSES;
use super::transcripts::{Case, corpus};
use crate::support::app::TestApp;
use crate::support::frames;
use crate::support::said::{End, Piece, Said};
use crate::support::upstream::Upstream;

/// Bodies up to this size are cut at every byte: the work grows with the square of the size.
const SMALL_BYTES: usize = 3 << 10;

fn small_cases() -> Vec<Case> {
    corpus().into_values().filter(|case| case.body.len() <= SMALL_BYTES).collect()
}

fn said<P: AsRef<[u8]>>(wire: &'static Wire, pieces: impl IntoIterator<Item = P>) -> Said {
    Said::of(recorded::events(wire, pieces))
}

/// `body` cut at `cuts`.
fn cut(body: &[u8], cuts: &[Index]) -> Vec<Vec<u8>> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
    at.sort_unstable();
    let mut rest = body;
    let mut pieces = Vec::new();
    for at in at {
        let (piece, after) = rest.split_at(at - (body.len() - rest.len()));
        pieces.push(piece.to_vec());
        rest = after;
    }
    pieces.push(rest.to_vec());
    pieces
}

/// One thing that goes wrong with bytes.
#[derive(Debug, Clone)]
enum Damage {
    Flip {
        at: Index,
        bits: u8,
    },
    Delete {
        at: Index,
        length: usize,
    },
    Repeat {
        at: Index,
        length: usize,
    },
    /// Goes on with another answer.
    Splice {
        at: Index,
        other: Index,
        from: Index,
    },
}

impl Damage {
    fn any() -> impl Strategy<Value = Self> {
        prop_oneof![
            (any::<Index>(), 1_u8..).prop_map(|(at, bits)| Self::Flip { at, bits }),
            (any::<Index>(), 1_usize..200).prop_map(|(at, length)| Self::Delete { at, length }),
            (any::<Index>(), 1_usize..200).prop_map(|(at, length)| Self::Repeat { at, length }),
            any::<(Index, Index, Index)>().prop_map(|(at, other, from)| Self::Splice { at, other, from }),
        ]
    }

    fn befall(&self, body: &mut Vec<u8>, others: &[Case]) {
        match self {
            Self::Flip { at, bits } => {
                if !body.is_empty() {
                    let at = at.index(body.len());
                    body[at] ^= bits;
                }
            }
            Self::Delete { at, length } => {
                let from = at.index(body.len() + 1);
                body.drain(from..(from + length).min(body.len()));
            }
            Self::Repeat { at, length } => {
                let from = at.index(body.len() + 1);
                let piece = body[from..(from + length).min(body.len())].to_vec();
                body.splice(from..from, piece);
            }
            Self::Splice { at, other, from } => {
                body.truncate(at.index(body.len() + 1));
                let other = &other.get(others).body;
                body.extend(&other[from.index(other.len() + 1)..]);
            }
        }
    }
}

fn run(cases: u32, test: impl Fn(&mut proptest::test_runner::TestRunner)) {
    // Failures are printed with their input, made small; nothing is written beside the sources.
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    test(&mut proptest::test_runner::TestRunner::new(config));
}

#[test]
fn an_answer_says_the_same_however_its_bytes_are_cut() {
    let cases = corpus().into_values().collect::<Vec<_>>();
    for case in &cases {
        let whole = said(case.wire, [&case.body]);
        assert_eq!(said(case.wire, case.body.chunks(1)), whole, "{} in single bytes", case.name);
    }
    run(600, |runner| {
        let input = (any::<Index>(), vec(any::<Index>(), 1..20));
        let property = |(which, cuts): (Index, Vec<Index>)| {
            let case = which.get(&cases);
            let pieces = cut(&case.body, &cuts);
            prop_assert_eq!(said(case.wire, &pieces), said(case.wire, [&case.body]), "{}", case.name);
            Ok(())
        };
        runner.run(&input, property).unwrap();
    });
}

#[test]
fn an_answer_cut_off_at_any_byte_is_an_error_or_lacks_nothing() {
    let cases = corpus().into_values().collect::<Vec<_>>();
    // Two threads: this is most of the work of the whole file.
    let (odd, even) = cases.iter().enumerate().partition::<Vec<_>, _>(|(nth, _)| nth % 2 == 1);
    std::thread::scope(|scope| {
        scope.spawn(|| odd.into_iter().for_each(|(_, case)| cut_everywhere(case)));
        even.into_iter().for_each(|(_, case)| cut_everywhere(case));
    });
}

fn cut_everywhere(case: &Case) {
    let length = case.body.len();
    let whole = said(case.wire, [&case.body]);
    // Of a larger body, the end, where what ends it stands, and places all over.
    let (stride, end) = match length {
        0..=SMALL_BYTES => (1, length),
        _ => (length.div_ceil(40), length - 100),
    };
    for at in (0..end).step_by(stride).chain(end..length) {
        check_cut(case, at, &whole);
    }
}

fn check_cut(case: &Case, at: usize, whole: &Said) {
    let name = &case.name;
    let mut part = said(case.wire, [&case.body[..at]]);
    if let (End::Finished { .. }, End::Failed { .. }) = (&part.end, &whole.end) {
        // An answer that ends well gives its signatures at the end; one that fails later has no use for them.
        part.pieces.retain(|piece| !matches!(piece, Piece::Replay { .. }));
    }
    assert!(part.begins(whole), "{name} at {at}: {part:#?} is no beginning of {whole:#?}");
    match (&part.end, &whole.end) {
        (End::Finished { reason, .. }, End::Finished { reason: whole_reason, .. }) => {
            // What may still come is usage, which is no part of the answer.
            assert_eq!((&part.pieces, reason), (&whole.pieces, whole_reason), "{name} at {at}");
        }
        (End::Finished { .. }, End::Failed { .. }) => {
            let kept = whole.pieces.iter().filter(|piece| !matches!(piece, Piece::Replay { .. }));
            assert!(part.pieces.iter().eq(kept), "{name} at {at}");
        }
        (End::Failed { kind, .. }, end) => {
            let is_told = *kind == ProviderErrorKind::Truncated || part.end == *end;
            assert!(is_told, "{name} at {at}: {:?} instead of {end:?}", part.end);
        }
    }
}

#[test]
fn a_damaged_answer_ends_once_and_says_the_same_however_it_is_cut() {
    let cases = small_cases();
    run(8_000, |runner| {
        let input = (any::<Index>(), vec(Damage::any(), 1..4), vec(any::<Index>(), 1..8));
        let property = |(which, damages, cuts): (Index, Vec<Damage>, Vec<Index>)| {
            let case = which.get(&cases);
            let mut body = case.body.clone();
            for damage in damages {
                damage.befall(&mut body, &cases);
            }
            // `Said` checks the end.
            prop_assert_eq!(said(case.wire, cut(&body, &cuts)), said(case.wire, [&body]), "{}", case.name);
            Ok(())
        };
        runner.run(&input, property).unwrap();
    });
}

#[tokio::test]
async fn an_answer_cut_off_is_never_shown_as_complete() {
    let cases = corpus();
    let settings = |base_url: &str, vendor: &str, wire: &str| {
        let key = format!("LLM__{}__BASE_URL", vendor.to_uppercase());
        let api_key = format!("LLM__{}__API_KEY", vendor.to_uppercase());
        [
            ("LLM__OPENAI__WIRE".to_owned(), if wire == RESPONSES { "responses" } else { "auto" }.to_owned()),
            ("LLM__PROVIDER".to_owned(), vendor.to_owned()),
            (key, base_url.to_owned()),
            (api_key, "sk-test".to_owned()),
            ("LLM__RETRY__ATTEMPTS".to_owned(), "1".to_owned()),
        ]
    };
    for (name, prefix) in [
        ("claude/tool-parallel", ""),
        ("claude/thinking-tool-signature", ""),
        ("gemini/tool-parallel-chunks", ""),
        ("gemini/text-multibyte", ""),
        ("ollama/tool-single", ""),
        ("ollama/text-recorded", ""),
        ("openai/tool-parallel", "/v1"),
        ("openai/text-multibyte", "/v1"),
        ("responses/reasoning-tool-parallel", "/v1"),
        ("responses/text-multibyte", "/v1"),
    ] {
        let case = &cases[name];
        let fails = |at: &usize| matches!(said(case.wire, [&case.body[..*at]]).end, End::Failed { .. });
        let stride = case.body.len().div_ceil(12);
        let cuts: Vec<usize> = (0..case.body.len()).step_by(stride).filter(fails).collect();
        assert!(cuts.len() > 5, "{name}: {cuts:?}");
        let answers = cuts.iter().map(|&at| case.answer_up_to(at));
        let upstream = Upstream::script(answers).await;
        let settings = settings(&format!("{}{prefix}", upstream.url()), case.vendor.name(), case.wire.name);
        let settings: Vec<_> = settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let app = TestApp::start(&settings).await;
        for at in cuts {
            let frames = app.chat(&json!({"message": "hello", "context_type": "workflow"})).await;
            let names = frames::names(&frames);
            assert_eq!(names.last(), Some(&"error"), "{name} at {at}: {frames:#?}");
            assert!(!names.contains(&"message_complete"), "{name} at {at}: {frames:#?}");
        }
    }
}
