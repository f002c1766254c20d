//! Date patterns. The screens format with date-fns, so a Go layout (`2006-01-02`), which the backend's own language
//! would take, is refused here with the pattern that was meant.

/// The pattern a date column gets when the model sets none.
pub const DEFAULT: &str = "yyyy-MM-dd";

/// The tokens worth telling, and what they write.
pub const TOKENS: &[(&str, &str)] = &[
    ("yyyy", "year, 2026"),
    ("yy", "year, 26"),
    ("MM", "month, 02"),
    ("MMM", "month, Feb"),
    ("MMMM", "month, February"),
    ("dd", "day, 09"),
    ("d", "day, 9"),
    ("EEE", "weekday, Mon"),
    ("EEEE", "weekday, Monday"),
    ("HH", "hour 00 to 23"),
    ("hh", "hour 01 to 12"),
    ("a", "AM or PM"),
    ("mm", "minute"),
    ("ss", "second"),
    ("SSS", "millisecond"),
    ("xxx", "offset, +01:00"),
];

/// Letters that begin a date-fns token.
const TOKEN_LETTERS: &str = "GyYRuQqMLwIdDioEecabBhHkKmsSXxOztTpP";

/// Parts of a Go layout and the date-fns tokens for them; longer parts stand before those they contain.
const GO_PARTS: &[(&str, &str)] = &[
    ("2006", "yyyy"),
    ("January", "MMMM"),
    ("Monday", "EEEE"),
    ("Jan", "MMM"),
    ("Mon", "EEE"),
    ("-07:00", "xxx"),
    ("000", "SSS"),
    ("01", "MM"),
    ("02", "dd"),
    ("15", "HH"),
    ("03", "hh"),
    ("04", "mm"),
    ("05", "ss"),
    ("06", "yy"),
    ("PM", "a"),
];

/// Checks that `pattern` is one of date-fns.
///
/// # Errors
/// The mistake in it, and a pattern that would do.
pub fn check(pattern: &str) -> Result<(), String> {
    let Err(complaint) = complaint(pattern) else { return Ok(()) };
    let mut suggestion = pattern.to_owned();
    for (go, token) in GO_PARTS {
        suggestion = suggestion.replace(go, token);
    }
    suggestion = suggestion.replace("YYYY", "yyyy").replace("DD", "dd");
    if self::complaint(&suggestion).is_err() {
        suggestion = DEFAULT.to_owned();
    }
    Err(format!("{pattern:?} {complaint}; use date-fns tokens, for example {suggestion:?}"))
}

fn complaint(pattern: &str) -> Result<(), String> {
    let mut is_quoted = false;
    let mut has_token = false;
    for c in pattern.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '0'..='9' => return Err("is a Go layout or holds digits that are not quoted".to_owned()),
            _ if TOKEN_LETTERS.contains(c) => has_token = true,
            _ if c.is_alphabetic() => return Err(format!("has {c:?}, which is no token and not quoted")),
            _ => {}
        }
    }
    if is_quoted {
        return Err("has a quote that does not end".to_owned());
    }
    // date-fns throws on these two without an option for them: they mean week-year and day of year.
    if pattern.contains("YYYY") || pattern.contains("DD") {
        return Err("uses YYYY or DD, which are not the calendar year and the day".to_owned());
    }
    if !has_token {
        return Err("has no token".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_fns_patterns_pass() {
        for pattern in
            ["yyyy-MM-dd", "dd MMM yyyy, HH:mm", "d. MMMM yyyy", "hh:mm a", "yyyy-MM-dd'T'HH:mm:ssxxx", "PPpp"]
        {
            assert_eq!(check(pattern), Ok(()));
        }
    }

    #[test]
    fn other_patterns_are_refused_with_the_one_that_was_meant() {
        for (pattern, expected, reason) in [
            (
                "2006-01-02",
                "\"2006-01-02\" is a Go layout or holds digits that are not quoted; use date-fns tokens, for example \"yyyy-MM-dd\"",
                "a Go layout",
            ),
            (
                "Jan 02, 2006 03:04 PM",
                "\"Jan 02, 2006 03:04 PM\" has 'J', which is no token and not quoted; use date-fns tokens, for example \"MMM dd, yyyy hh:mm a\"",
                "a Go layout with words",
            ),
            (
                "YYYY-MM-DD",
                "\"YYYY-MM-DD\" uses YYYY or DD, which are not the calendar year and the day; use date-fns tokens, for example \"yyyy-MM-dd\"",
                "moment.js tokens",
            ),
            (
                "yyyy 'at",
                "\"yyyy 'at\" has a quote that does not end; use date-fns tokens, for example \"yyyy-MM-dd\"",
                "an open quote",
            ),
            ("--", "\"--\" has no token; use date-fns tokens, for example \"yyyy-MM-dd\"", "writes no date at all"),
        ] {
            assert_eq!(check(pattern), Err(expected.to_owned()), "{reason}");
        }
    }
}
