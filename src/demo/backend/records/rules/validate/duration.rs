//! Spans of time as Go writes them: `300ms`, `1.5h`, `1h30m`.

const HOURS_PER_UNIT: [(&str, f64); 7] = [
    ("ns", 1.0 / 3.6e12),
    ("us", 1.0 / 3.6e9),
    ("µs", 1.0 / 3.6e9),
    ("ms", 1.0 / 3.6e6),
    ("s", 1.0 / 3600.0),
    ("m", 1.0 / 60.0),
    ("h", 1.0),
];

/// The span in hours, negative ones included; `None` when `text` is not one.
pub fn hours(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0.0);
    }
    if rest.is_empty() {
        return None;
    }
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut sum = 0.0;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c| !is_number(c))?);
        let (unit, next) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        let (_, per_unit) = HOURS_PER_UNIT.iter().find(|(name, _)| *name == unit)?;
        sum += number.parse::<f64>().ok()? * per_unit;
        rest = next;
    }
    Some(sign * sum)
}

#[cfg(test)]
mod tests {
    use super::hours;

    #[test]
    fn a_span_reads_as_go_reads_it() {
        let cases = [
            ("1h", Some(1.0), "one unit"),
            ("1h30m", Some(1.5), "several units"),
            ("1.5h", Some(1.5), "a fraction"),
            ("-2h", Some(-2.0), "a sign"),
            ("+2h", Some(2.0), "the other sign"),
            ("0", Some(0.0), "zero needs no unit"),
            ("", None, "nothing"),
            ("-", None, "only a sign"),
            ("5", None, "no unit"),
            ("5d", None, "a unit that Go lacks"),
            ("h", None, "no number"),
            ("1..5h", None, "two points"),
            ("1h 30m", None, "a blank"),
            ("３h", None, "a digit of another script"),
        ];
        for (text, expected, reason) in cases {
            assert_eq!(hours(text), expected, "{reason}: {text:?}");
        }
    }
}
