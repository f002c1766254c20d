//! An object as the difference from another one: pieces of that one, and what is new.

use super::LONGEST;

/// The object that a difference makes from its base, or `None` when they do not fit.
pub(super) fn apply(base: &[u8], mut delta: &[u8]) -> Option<Vec<u8>> {
    if length(&mut delta)? != base.len() {
        return None;
    }
    let len = length(&mut delta)?;
    if len as u64 > LONGEST {
        return None;
    }
    let mut content = Vec::with_capacity(len);
    while let Some((&command, rest)) = delta.split_first() {
        delta = rest;
        let piece = if command & 0x80 != 0 {
            let start = number(command, 4, &mut delta)?;
            let count = match number(command >> 4, 3, &mut delta)? {
                0 => 0x1_0000,
                count => count,
            };
            base.get(start..start.checked_add(count)?)?
        } else if command == 0 {
            return None;
        } else {
            let (new, rest) = delta.split_at_checked(usize::from(command))?;
            delta = rest;
            new
        };
        content.extend_from_slice(piece);
        if content.len() > len {
            return None;
        }
    }
    (content.len() == len).then_some(content)
}

/// A length in groups of seven bits, the lowest first.
fn length(delta: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    for shift in (0..usize::BITS).step_by(7) {
        let (&byte, rest) = delta.split_first()?;
        *delta = rest;
        value |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// A number of up to so many bytes, of which only those are there whose bit is set.
fn number(bits: u8, most: u32, delta: &mut &[u8]) -> Option<usize> {
    let mut value = 0;
    for place in 0..most {
        if bits >> place & 1 != 0 {
            let (&byte, rest) = delta.split_first()?;
            *delta = rest;
            value |= usize::from(byte) << (8 * place);
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_put_together() {
        // From eleven bytes to ten: seven from the fourth on, then three new ones.
        let delta = b"\x0b\x0a\x91\x04\x07\x03new";
        assert_eq!(apply(b"abcdefghijk", delta).as_deref(), Some(b"efghijknew".as_slice()));
        for end in 0..delta.len() {
            assert_eq!(apply(b"abcdefghijk", &delta[..end]), None, "{end}");
        }
        assert_eq!(apply(b"another length", delta), None);
        assert_eq!(apply(b"abcdefghijk", b"\x0b\x0a\x91\x08\x07\x03new"), None, "beyond the end");
    }
}
