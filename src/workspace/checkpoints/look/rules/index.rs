//! The paths that git tracks, from its index file.
//!
//! Only the names are of interest here, and the file is one that commands of a model may write: it is read as plain
//! bytes, every length is checked, and what does not fit is no index.

/// Bytes before the name of an entry: ten numbers of four bytes, the id, two bytes of flags.
const FIXED: usize = 40;

/// What is added to the fixed part of an entry when its flags say so.
const MORE_FLAGS: usize = 2;

/// A folder that is not checked out stands for all that is in it; a submodule for its files.
const FOLDER_MODES: [u32; 2] = [0o040_000, 0o160_000];

/// An index that was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    /// The tracked files, as they come.
    pub(super) paths: Vec<Vec<u8>>,
    /// The checksum of the file that this one is based on, in hexadecimal digits: git keeps it beside the index, as
    /// `sharedindex.…`.
    pub(super) base: Option<String>,
}

/// The names in an index file whose ids are `id_len` bytes long, or `None` when it is none.
pub(super) fn parse(bytes: &[u8], id_len: usize) -> Option<Index> {
    let content = bytes.get(..bytes.len().checked_sub(id_len)?)?;
    let mut rest = content.strip_prefix(b"DIRC")?;
    let version = number(&mut rest)?;
    let count = number(&mut rest)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut index = Index::default();
    let mut last = Vec::new();
    for _ in 0..count {
        let start = rest.len();
        let mode = u32::from_be_bytes(*rest.get(24..)?.first_chunk()?);
        let flags = u16::from_be_bytes(*rest.get(FIXED + id_len..)?.first_chunk()?);
        let has_more = flags & 0x4000 != 0 && version > 2;
        rest = rest.get(FIXED + id_len + 2 + if has_more { MORE_FLAGS } else { 0 }..)?;
        if version == 4 {
            // The name is what is left of the last one, and what is new.
            let dropped = varint(&mut rest)?;
            last.truncate(last.len().checked_sub(dropped)?);
        } else {
            last.clear();
        }
        let end = rest.iter().position(|&byte| byte == 0)?;
        last.extend_from_slice(&rest[..end]);
        // Entries of older versions are filled up with NULs, one to eight of them.
        let filled = if version == 4 { end + 1 } else { end + 8 - (start - rest.len() + end) % 8 };
        rest = rest.get(filled..)?;
        if !FOLDER_MODES.contains(&(mode & 0o170_000)) && !last.is_empty() {
            index.paths.push(last.clone());
        }
    }
    while !rest.is_empty() {
        let name: [u8; 4] = take(&mut rest)?;
        let len = usize::try_from(number(&mut rest)?).ok()?;
        let (extension, after) = rest.split_at_checked(len)?;
        rest = after;
        match &name {
            b"link" => {
                let id = extension.get(..id_len)?;
                let is_set = id.iter().any(|&byte| byte != 0);
                index.base = is_set.then(|| id.iter().map(|byte| format!("{byte:02x}")).collect());
            }
            b"sdir" => {}
            // Extensions in lower case change what the index means; the others may be left out.
            [b'a'..=b'z', ..] => return None,
            _ => {}
        }
    }
    Some(index)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*first)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    take(rest).map(u32::from_be_bytes)
}

/// A number in groups of seven bits, the highest ones first; every further group counts from one.
fn varint(rest: &mut &[u8]) -> Option<usize> {
    let [mut byte] = take(rest)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        [byte] = take(rest)?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_index_is_refused_wherever_it_is_cut() {
        let mut bytes = b"DIRC\0\0\0\x02\0\0\0\x01".to_vec();
        bytes.extend_from_slice(&[0; 24]);
        bytes.extend_from_slice(&0o100_644_u32.to_be_bytes());
        bytes.extend_from_slice(&[0; 12 + 20]);
        bytes.extend_from_slice(&[0, 3]);
        bytes.extend_from_slice(b"a/b");
        while !(bytes.len() - 12).is_multiple_of(8) || bytes.last() != Some(&0) {
            bytes.push(0);
        }
        let whole = bytes.len() + 20;
        bytes.extend_from_slice(&[0; 20]);
        assert_eq!(parse(&bytes, 20), Some(Index { paths: vec![b"a/b".to_vec()], base: None }));
        for end in 0..whole {
            assert_eq!(parse(&bytes[..end], 20), None, "{end}");
        }
    }
}
