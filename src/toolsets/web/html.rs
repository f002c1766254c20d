//! HTML becomes text: words, lines and paragraphs, without markup, scripts and styles.
//!
//! A tokenizer reads the document once and no tree is built: a tree costs its reader time and memory that grow with the
//! square of a hostile document's size, and its depth costs stack. Here both grow with the size alone, whatever nests.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

/// The text of `html`, of `most` bytes or a word more, and whether that is all of it.
pub(super) fn text(html: &str, most: usize) -> (String, bool) {
    let mut writer = Writer { most, ..Writer::default() };
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| writer.see(event));
    // What stands in scripts and styles is no markup.
    emitter.naively_switch_states(true);
    let is_cut = Tokenizer::new_with_emitter(html, emitter).next().is_some();
    (writer.out, !is_cut)
}

/// The text has its size.
struct Full;

/// What stands between two words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Space,
    Line,
    Paragraph,
}

/// What a tag means for the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Role {
    /// Nothing: it is inside of a line.
    #[default]
    Inline,
    /// Neither it nor what is in it is shown.
    Hidden,
    /// On lines of its own.
    Line,
    /// With an empty line around.
    Paragraph,
    /// A list, whose last item ends with it.
    List,
    Item,
    Table,
    Row,
    Cell,
    /// Its blanks and line ends count.
    Preformatted,
}

impl Role {
    fn of(name: &[u8]) -> Self {
        match name {
            b"iframe" | b"noembed" | b"noframes" | b"noscript" | b"object" | b"script" | b"style" | b"svg"
            | b"template" => Self::Hidden,
            b"address" | b"article" | b"aside" | b"br" | b"dd" | b"details" | b"div" | b"dt" | b"fieldset"
            | b"figcaption" | b"figure" | b"footer" | b"form" | b"header" | b"hr" | b"main" | b"nav" | b"option"
            | b"section" | b"summary" => Self::Line,
            b"blockquote" | b"caption" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"p" | b"title" => {
                Self::Paragraph
            }
            b"dl" | b"menu" | b"ol" | b"ul" => Self::List,
            b"li" => Self::Item,
            b"table" => Self::Table,
            b"tr" => Self::Row,
            b"td" | b"th" => Self::Cell,
            b"listing" | b"plaintext" | b"pre" | b"textarea" | b"xmp" => Self::Preformatted,
            _ => Self::Inline,
        }
    }
}

/// Writes words with the gaps that the tags between them ask for.
#[derive(Debug, Default)]
struct Writer {
    out: String,
    most: usize,
    gap: Gap,
    /// Whether the gap stays as it is: in front of the first word of an item or a cell, whatever stands around it there.
    is_settled: bool,
    /// An item has begun, and no word of it has come.
    bullet: bool,
    /// Cells that have begun since the last word.
    cells: usize,
    /// Whether the row has a cell.
    is_in_row: bool,
    /// Elements around whose blanks count.
    preformatted: usize,
    /// The start tag that is being read.
    tag: (Role, Vec<u8>),
    /// The hidden element, and how many of its name are open.
    hidden: Option<(Vec<u8>, usize)>,
}

impl Writer {
    fn see(&mut self, event: CallbackEvent<'_>) -> Option<Full> {
        match event {
            CallbackEvent::OpenStartTag { name } => self.tag = (Role::of(name), name.to_owned()),
            CallbackEvent::CloseStartTag { self_closing } => self.open(self_closing),
            CallbackEvent::EndTag { name } => self.close(name),
            CallbackEvent::String { value } if self.hidden.is_none() => self.words(&String::from_utf8_lossy(value)),
            CallbackEvent::String { .. }
            | CallbackEvent::AttributeName { .. }
            | CallbackEvent::AttributeValue { .. }
            | CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
        (self.out.len() >= self.most).then_some(Full)
    }

    fn open(&mut self, is_empty: bool) {
        let (role, name) = std::mem::take(&mut self.tag);
        if let Some((hidden, open)) = &mut self.hidden {
            *open += usize::from(*hidden == name);
            return;
        }
        match role {
            Role::Inline => {}
            // Elements of HTML cannot be empty in this way.
            Role::Hidden if is_empty && name == b"svg" => {}
            Role::Hidden => self.hidden = Some((name, 1)),
            // A list in an item goes on below it.
            Role::Line | Role::List => self.gap(Gap::Line),
            Role::Paragraph | Role::Table => self.gap(Gap::Paragraph),
            Role::Item => {
                self.gap(Gap::Line);
                (self.bullet, self.is_settled) = (true, true);
            }
            Role::Row => self.row(),
            Role::Cell => {
                if self.is_in_row {
                    self.cells += 1;
                    self.gap = Gap::Space;
                }
                (self.is_in_row, self.is_settled) = (true, true);
            }
            Role::Preformatted => {
                self.gap(Gap::Paragraph);
                self.preformatted += 1;
            }
        }
    }

    fn close(&mut self, name: &[u8]) {
        if let Some((hidden, open)) = &mut self.hidden {
            if hidden == name {
                *open -= 1;
                if *open == 0 {
                    self.hidden = None;
                }
            }
            return;
        }
        match Role::of(name) {
            Role::Inline | Role::Hidden | Role::Cell => {}
            Role::Line => self.gap(Gap::Line),
            Role::Paragraph => self.gap(Gap::Paragraph),
            Role::Table => {
                self.row();
                self.gap(Gap::Paragraph);
            }
            Role::List => {
                (self.bullet, self.is_settled) = (false, false);
                self.gap(Gap::Paragraph);
            }
            Role::Item => {
                (self.bullet, self.is_settled) = (false, false);
                self.gap(Gap::Line);
            }
            Role::Row => self.row(),
            Role::Preformatted => {
                self.preformatted = self.preformatted.saturating_sub(1);
                self.gap(Gap::Paragraph);
            }
        }
    }

    /// Asks for a gap.
    fn gap(&mut self, gap: Gap) {
        if !self.is_settled {
            self.gap = self.gap.max(gap);
        }
    }

    fn row(&mut self) {
        (self.cells, self.is_in_row, self.is_settled) = (0, false, false);
        self.gap(Gap::Line);
    }

    fn words(&mut self, text: &str) {
        if self.preformatted > 0 {
            if !text.is_empty() {
                // The line end behind the tag is none of the text's.
                let text = if self.gap == Gap::Paragraph { text.strip_prefix('\n').unwrap_or(text) } else { text };
                self.begin();
                self.out.push_str(text);
            }
            return;
        }
        let is_blank = |c: char| c.is_ascii_whitespace();
        if text.starts_with(is_blank) {
            self.gap(Gap::Space);
        }
        for word in text.split_ascii_whitespace() {
            if self.out.len() >= self.most {
                return;
            }
            self.begin();
            self.out.push_str(word);
            self.gap = Gap::Space;
        }
        if !text.ends_with(is_blank) && self.gap == Gap::Space {
            self.gap = Gap::None;
        }
    }

    /// Writes what stands in front of a word.
    fn begin(&mut self) {
        self.is_settled = false;
        let gap = match std::mem::take(&mut self.gap) {
            _ if self.out.is_empty() => "",
            Gap::None => "",
            Gap::Space if self.out.ends_with(['\n', ' ']) => "",
            Gap::Space => " ",
            Gap::Line if self.out.ends_with('\n') => "",
            Gap::Line => "\n",
            Gap::Paragraph if self.out.ends_with("\n\n") => "",
            Gap::Paragraph if self.out.ends_with('\n') => "\n",
            Gap::Paragraph => "\n\n",
        };
        self.out.push_str(gap);
        for _ in 0..std::mem::take(&mut self.cells) {
            self.out.push_str(if self.out.ends_with([' ', '\n']) { "| " } else { " | " });
        }
        if std::mem::take(&mut self.bullet) {
            self.out.push_str("- ");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOST: usize = 200_000;

    fn whole(html: &str) -> String {
        let (text, is_whole) = text(html, MOST);
        assert!(is_whole);
        text
    }

    #[test]
    fn words_are_told_and_markup_is_not() {
        let rows = [
            ("<p>one</p><p>two", "one\n\ntwo"),
            ("a<br>b<BR/>c", "a\nb\nc"),
            ("<div>a</div><div><div>b</div></div>", "a\nb"),
            ("some <b>bold</b>, <i> slanted </i>word<em>s</em>", "some bold, slanted words"),
            ("  many \n\t blanks  ", "many blanks"),
            ("<h1>Title</h1>text<h2>next</h2>more", "Title\n\ntext\n\nnext\n\nmore"),
            ("<ul><li>a<li><p>b</p><ul><li>c</ul></ul>d", "- a\n- b\n\n- c\n\nd"),
            ("<ol><li></li><li>a</li></ol><p>b", "- a\n\nb"),
            ("<table><tr><th>a<th>b</tr><tr><td><p>1</p></td><td></td><td>3</td></tr></table>x", "a | b\n1 | | 3\n\nx"),
            ("a<pre>\n  x\n    y</pre>b", "a\n\n  x\n    y\n\nb"),
            ("&lt;b&gt; &amp; &eacute;&#x4e2d; &unknown;", "<b> & é中 &unknown;"),
            ("<a href='x' title='>'>link</a><img alt=picture>", "link"),
            ("<title>T</title><body>b", "T\n\nb"),
            ("a<!-- <p>comment --><!doctype x><![CDATA[y]]>b", "ab"),
            ("a < b and 1<2", "a < b and 1<2"),
            ("a</p></p></li></td></table></pre>b", "a\n\nb"),
            ("", ""),
        ];
        for (html, expected) in rows {
            assert_eq!(whole(html), expected, "{html}");
        }
    }

    #[test]
    fn scripts_and_styles_are_hidden() {
        let rows = [
            ("a<script>if (1 < 2) { '</p>' }</script>b", "ab"),
            ("a<SCRIPT src=x></SCRIPT >b", "ab"),
            ("a<script/>hidden</script>b", "ab"),
            ("a<style>p > b { }</style><noscript><p>x</noscript>b", "ab"),
            ("a<svg><g><title>x</title></g><svg>y</svg>z</svg><svg/>b", "ab"),
            ("a<template><template>x</template>y</template>b", "ab"),
            ("a<iframe><p>x</iframe>b", "ab"),
            ("a<script>never closed <p>b", "a"),
        ];
        for (html, expected) in rows {
            assert_eq!(whole(html), expected, "{html}");
        }
    }

    /// What makes builders of trees slow, deep or large. A stack of 64 KiB is enough for all of it.
    #[test]
    fn hostile_documents_end() {
        let reader = std::thread::Builder::new().stack_size(64 << 10).spawn(read_hostile_documents);
        reader.unwrap().join().unwrap();
    }

    fn read_hostile_documents() {
        let size = 300_000;
        let units = [
            "<div>",
            "<b>x",
            "<a href=x>y",
            "<table><tr><td>x",
            "<td>",
            "<td>x",
            "<ul><li>",
            "<blockquote>x",
            "<form><div>",
            "<dl><dd>x",
            "<svg>",
            "<svg><title>x",
            "<pre>",
            "</p>",
            "<!---->",
            "<!--",
            "<![CDATA[",
            "&lt;",
            "&",
            "&#x",
            "<",
            "</",
            "<a b",
            "\0",
            "x",
            "<script>",
            "<textarea>",
            "</script",
            "<p>x",
            "<select><option>x",
        ];
        for unit in units {
            let (text, _) = text(&unit.repeat(size / unit.len()), MOST);
            assert!(text.len() <= 2 * size, "{unit}: {}", text.len());
        }
        let attributes: String = (0..size / 10).map(|i| format!(" a{i}=b")).collect();
        assert_eq!(whole(&format!("<p{attributes}>x")), "x");
        let entries: String = (0..size / 10).map(|i| format!("<b id={i}><p>x")).collect();
        assert_eq!(whole(&entries), vec!["x"; size / 10].join("\n\n"));
    }

    #[test]
    fn a_text_stops_at_its_size() {
        let (out, is_whole) = text(&"<p>word</p>".repeat(100), 60);
        assert!(!is_whole && out.len() < 70, "{out}");
        let (out, is_whole) = text(&"word ".repeat(100), 60);
        assert!(!is_whole && out.len() < 70, "{out}");
    }

    proptest! {
        #[test]
        fn any_document_is_read(html in r#"(<|>|/|!|-|&|#|;|=|"|'| |\n|a|é|p|li|td|tr|table|pre|script|svg|title){0,60}"#) {
            let (text, is_whole) = text(&html, MOST);
            prop_assert!(is_whole);
            prop_assert!(!text.starts_with(' ') || html.contains("pre"));
        }
    }
}
