//! `[prices]`: what models cost, and what is no price.

use switchboard::agent::spend::prices::{Price, Prices};
use switchboard::config::{Config, Sources};

use super::{problems, write};

fn with(file: &str) -> (tempfile::TempDir, Sources) {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "default.toml", file);
    let sources = Sources { dir: Some(dir.path().to_owned()), ..Sources::default() };
    (dir, sources)
}

#[test]
fn prices_are_read_by_the_names_of_models() {
    let (_dir, sources) = with(
        "[prices.\"openai:gpt-5.5-mini\"]\ninput = 1\noutput = 2.5\ncached_input = 0.1\n[prices.big]\ninput = 0\noutput = 0.0\n",
    );
    let small = Price { input: 1.0, output: 2.5, cached_input: Some(0.1) };
    let big = Price { input: 0.0, output: 0.0, cached_input: None };
    let expected = Prices::new([("openai:gpt-5.5-mini".to_owned(), small), ("big".to_owned(), big)]);
    assert_eq!(Config::load(&sources).unwrap().prices, expected);
}

#[test]
fn what_is_no_price_is_named() {
    let amount = "must be a number of US dollars for a million tokens, at least 0";
    let rows = [
        ("prices = 3", vec!["prices: must be a section".to_owned()], "no section"),
        ("[prices]\nbig = 3", vec!["prices.big: must be a section with input and output".to_owned()], "a number alone"),
        (
            "[prices.\"gpt-5.5\"]\ninput = -1\noutput = nan\ncached_input = \"1\"",
            ["input", "output", "cached_input"].map(|key| format!("prices.gpt-5.5.{key}: {amount}")).to_vec(),
            "no amounts",
        ),
        ("[prices.big]\ninput = inf\noutput = 1", vec![format!("prices.big.input: {amount}")], "without end"),
        ("[prices.big]\noutput = 1", vec!["prices.big.input: is required".to_owned()], "half of it"),
        (
            "[prices.big]\ninput = 1\noutput = 1\nreasoning = 1",
            vec!["prices.big.reasoning: is not a known setting".to_owned()],
            "a key of nobody",
        ),
    ];
    for (file, expected, reason) in rows {
        let (_dir, sources) = with(file);
        assert_eq!(problems(&sources), expected, "{reason}");
    }
}
