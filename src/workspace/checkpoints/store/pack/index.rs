//! Where in a pack which object is: git's index of version 2.

use super::super::Id;

/// Magic, version, and 256 counts of ids up to each first byte.
const HEAD: usize = 8 + 256 * 4;

/// An index whose tables are all there.
#[derive(Debug)]
pub(super) struct Index {
    bytes: Vec<u8>,
    count: usize,
}

impl Index {
    /// The index in these bytes, or `None`.
    pub(super) fn parse(bytes: Vec<u8>) -> Option<Self> {
        bytes.strip_prefix(b"\xfftOc\0\0\0\x02")?;
        let count = usize::try_from(number(&bytes, HEAD - 4)?).ok()?;
        // Ids, checksums, offsets; the two checksums at the end.
        let least = HEAD.checked_add(count.checked_mul(28)?)?.checked_add(40)?;
        (bytes.len() >= least).then_some(Self { bytes, count })
    }

    /// Where the object is in the pack.
    pub(super) fn offset(&self, id: Id) -> Option<u64> {
        let first = usize::from(id.as_bytes()[0]);
        let mut low = if first == 0 { 0 } else { self.bound(first - 1)? };
        let mut high = self.bound(first)?.min(self.count);
        while low < high {
            let middle = usize::midpoint(low, high);
            let place = HEAD + middle * 20;
            match self.bytes.get(place..place + 20)?.cmp(id.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.offset_at(middle),
            }
        }
        None
    }

    fn bound(&self, first: usize) -> Option<usize> {
        usize::try_from(number(&self.bytes, 8 + first * 4)?).ok()
    }

    fn offset_at(&self, place: usize) -> Option<u64> {
        let offset = number(&self.bytes, HEAD + self.count * 24 + place * 4)?;
        if offset & 0x8000_0000 == 0 {
            return Some(u64::from(offset));
        }
        // Packs of over 2 GiB have a table of longer offsets.
        let place = HEAD + self.count * 28 + usize::try_from(offset & 0x7fff_ffff).ok()? * 8;
        Some(u64::from_be_bytes(*self.bytes.get(place..)?.first_chunk()?))
    }
}

fn number(bytes: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(place..)?.first_chunk()?))
}
