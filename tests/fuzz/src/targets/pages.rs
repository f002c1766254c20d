//! Pages of the web, as `web_fetch` reads them.

use switchboard::toolsets::web::recorded::page;

use super::parts;

/// 200 KB of a page, and what stands behind it where it goes on.
const MOST_BYTES: usize = 200_000 + 100;

/// What grows with the square of its size would be seen at this one, in bytes.
const LARGE: usize = 1 << 16;

/// Elements whose content nobody reads, and whose end alone ends them.
const HIDDEN: [&str; 2] = ["script", "style"];

const UTF_8: &str = "text/html; charset=utf-8";

/// A content type before a page. A page alone is HTML.
pub fn html(input: &[u8]) {
    let cut = input.windows(5).position(|window| window == b"\n---\n");
    let (content_type, body) = match cut {
        Some(cut) => (String::from_utf8_lossy(&input[..cut]).into_owned(), &input[cut + 5..]),
        None => ("text/html".to_owned(), input),
    };
    read(&content_type, body);
    // Not for each input: this takes as long as some hundred others.
    if !body.is_empty() && input.len().is_multiple_of(16) {
        read(&content_type, &body.repeat(LARGE / body.len() + 1));
    }
    hidden(&String::from_utf8_lossy(body));
}

/// A page has a text of bounded length without control characters, or none.
fn read(content_type: &str, body: &[u8]) {
    let (encoding, text) = page(content_type, body);
    assert!(text.len() <= MOST_BYTES, "{} bytes", text.len());
    assert!(encoding.is_some() || text.is_empty());
    let bad = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
    assert_eq!(bad, None);
}

/// Nothing of a script or of styles is shown, whatever stands in them and behind them.
fn hidden(text: &str) {
    let (inside, behind) = parts(text.as_bytes());
    for element in HIDDEN {
        if inside.to_ascii_lowercase().contains(&format!("</{element}")) {
            continue;
        }
        let shown = |html: &str| page(UTF_8, html.as_bytes()).1;
        let secret = shown(&format!("seen<{element} a='>'>{inside}hidden-word{inside}</{element}>{behind}"));
        assert!(secret.starts_with("seen"), "{secret:?}");
        // Without its control characters, the text behind may say so too.
        let is_secret = !secret["seen".len()..].contains("hidden-word") || shown(&behind).contains("hidden-word");
        assert!(is_secret, "{secret:?}");
        // A script with `<!--<script` in it goes on behind its end.
        if element == "style" || !inside.contains("<!--") {
            // A byte order mark is one at the beginning of a document alone.
            let behind = behind.trim_start_matches('\u{feff}');
            assert_eq!(shown(&format!("<{element}>{inside}</{element}>{behind}")), shown(behind));
        }
    }
}
