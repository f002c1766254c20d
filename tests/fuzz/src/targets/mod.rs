//! What the fuzzers of everything but answers of models do with their bytes, one function each. Here and not beside the
//! targets, so that the test suite runs the very same: `tests/it/fuzzing` replays the seeds with a few changes each.
//!
//! An input that has several parts has a line `---` between them.

mod declared;
mod pages;
mod patches;
mod paths;
mod requests;
mod words;

/// A reader of somebody's bytes; it panics where it should not.
pub type Target = fn(&[u8]);

/// All of them, by the names of their folders of seeds.
pub const TARGETS: [(&str, Target); 17] = [
    ("request_native", requests::native),
    ("request_ag_ui", requests::ag_ui),
    ("request_ai_sdk", requests::ai_sdk),
    ("request_chat_message", requests::chat_message),
    ("request_chat_stream", requests::chat_stream),
    ("request_openai", requests::openai),
    ("ids", words::ids),
    ("names", words::names),
    ("markers", words::markers),
    ("template", declared::template),
    ("projection", declared::projection),
    ("arguments", declared::arguments),
    ("settings", declared::settings),
    ("openapi", declared::openapi),
    ("patches", patches::patches),
    ("paths", paths::paths),
    ("html", pages::html),
];

/// Reads `input` as the target of that name does.
pub fn run(name: &str, input: &[u8]) {
    match TARGETS.iter().find(|(known, _)| *known == name) {
        Some((_, target)) => target(input),
        None => panic!("there is no target {name}"),
    }
}

/// The two parts of an input; everything is the first where there is no second.
fn parts(input: &[u8]) -> (String, String) {
    let text = String::from_utf8_lossy(input);
    match text.split_once("\n---\n") {
        Some((first, second)) => (first.to_owned(), second.to_owned()),
        None => (text.into_owned(), String::new()),
    }
}
