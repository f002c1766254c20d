//! How deep a template goes, before it is compiled: blocks in blocks, and what stands in a tag.

use super::Nesting;

/// The weight of a bracket or a block, in operators: the compiler takes up to 22 KiB of stack for one, unoptimized, and
/// up to 3 KiB for an operator.
const BRACKET: usize = 8;

/// The weight of an `elif`: it stands in the one before it.
const ELIF: usize = 2;

/// 24 brackets and blocks, or 192 operators: half a mebibyte, a quarter of what a thread has.
const MAX_DEPTH: usize = 24 * BRACKET;

/// Refuses a template that would take the compiler too deep.
///
/// # Errors
/// The line where it goes too deep, from 1, and what is wrong in words for the operator.
pub fn check(text: &str) -> Result<(), (usize, String)> {
    let mut nesting = Nesting::new(BRACKET);
    let mut blocks: Vec<usize> = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find('{') {
        let before = text.len() - rest.len() + begin;
        let tag = &rest[begin + 1..];
        let at = blocks.last().copied().unwrap_or_default();
        rest = match tag.as_bytes().first() {
            Some(b'{') => behind(tag, 1 + nesting.read(&tag[1..], at, Some("}}"))),
            Some(b'%') => statement(&tag[1..], &mut nesting, &mut blocks),
            Some(b'#') => tag.find("#}").map_or("", |end| behind(tag, end)),
            Some(_) | None => tag,
        };
        if nesting.most() > MAX_DEPTH {
            let line = text[..before].matches('\n').count() + 1;
            let reason = format!(
                "goes too deep: more than {} brackets or blocks in each other, or {MAX_DEPTH} operators in a row",
                MAX_DEPTH / BRACKET
            );
            return Err((line, reason));
        }
    }
    Ok(())
}

/// Reads a tag of a statement; what stands behind it.
fn statement<'t>(tag: &'t str, nesting: &mut Nesting, blocks: &mut Vec<usize>) -> &'t str {
    let words = tag.trim_start_matches(['-', '+']).trim_start();
    let ends = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let word = &words[..words.find(ends).unwrap_or(words.len())];
    if word == "raw" {
        return tag.find("endraw").map_or("", |end| behind(tag, end));
    }
    let at = blocks.last().copied().unwrap_or_default();
    let length = nesting.read(tag, at, Some("%}"));
    let is_block = match word {
        "if" | "for" | "with" | "filter" | "autoescape" => true,
        // Without a value it takes what stands up to its end.
        "set" => !tag[..length].contains('='),
        "elif" => {
            if let Some(block) = blocks.last_mut() {
                *block += ELIF;
            }
            nesting.to(at + ELIF);
            false
        }
        ending if ending.starts_with("end") => {
            blocks.pop();
            false
        }
        _ => false,
    };
    if is_block {
        blocks.push(at + BRACKET);
        nesting.to(at + BRACKET);
    }
    behind(tag, length)
}

/// The text behind the two characters of an end at `offset`.
fn behind(text: &str, offset: usize) -> &str {
    text.get(offset + 2..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_that_goes_too_deep_is_refused_with_its_line() {
        let times = |count, text: &str| text.repeat(count);
        let in_each_other = |count, open: &str, close: &str| format!("{}a{}", times(count, open), times(count, close));
        let rows = [
            (times(5000, "{% if a.b %}{{ (c) }}{% endif %}"), true, "blocks beside each other"),
            (format!("{{{{ [{}] }}}}", times(5000, "a.b, ")), true, "a long list"),
            (times(5000, "{ { % ( [ a.b. "), true, "what only looks like a template"),
            (format!("{{# {} #}}", times(5000, "((")), true, "a note"),
            (format!("{{% raw %}}{}{{% endraw %}}", times(5000, "{% if a %}{{ (")), true, "text that is left alone"),
            (in_each_other(20, "{% for x in xs %}", "{% endfor %}"), true, "some blocks"),
            (in_each_other(25, "{% for x in xs %}", "{% endfor %}"), false, "blocks"),
            (in_each_other(25, "{% set x %}", "{% endset %}"), false, "blocks that set"),
            (format!("{{{{ {} }}}}", in_each_other(100, "a(", ")")), false, "calls"),
            (format!("{{{{ {} }}}}", in_each_other(100, "a[", "]")), false, "indices"),
            (format!("{{{{ {} }}}}", in_each_other(100, "a|default(", ")")), false, "arguments of filters"),
            (format!("{{{{ a{} }}}}", times(1100, ".a")), false, "fields"),
            (format!("{{{{ a{} }}}}", times(1100, "|length")), false, "filters"),
            (format!("{{{{ a{} }}}}", times(1100, " or a")), false, "words"),
            (format!("{{{{ {}a }}}}", times(1100, "-")), false, "signs"),
            (format!("{{% if a %}}{}{{% endif %}}", times(1100, "{% elif a %}")), false, "branches"),
            (format!("{{% for {} in a %}}{{% endfor %}}", in_each_other(1000, "(", ",)")), false, "names"),
            ("{{ (((((".repeat(5000), false, "without an end"),
        ];
        for (text, is_read, reason) in rows {
            assert_eq!(check(&text).is_ok(), is_read, "{reason}");
        }
        let third = format!("a\n{{{{ x }}}}\n{{{{ {}", times(1000, "("));
        assert_eq!(check(&third).unwrap_err().0, 3);
    }
}
