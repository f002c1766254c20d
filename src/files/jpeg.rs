//! How large a JPEG is on the screen, read while its bytes come (ITU-T T.81, annex B). What cameras write stands before it, and
//! may be megabytes: it is passed over.

/// Walks along the segments of a JPEG, up to the one that tells its size.
#[derive(Debug, Default)]
pub(super) struct Jpeg {
    /// The bytes of a segment that have come, as far as they say something.
    part: Vec<u8>,
    /// Bytes of it that are passed over.
    left: usize,
    found: Found,
}

#[derive(Debug, Default)]
enum Found {
    #[default]
    NotYet,
    Size {
        width: u16,
        height: u16,
    },
    /// It is no JPEG, or its size does not come where it must.
    Nothing,
}

impl Jpeg {
    /// Looks at the next bytes.
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while let Found::NotYet = self.found {
            let passed = self.left.min(bytes.len());
            self.left -= passed;
            let [next, rest @ ..] = &bytes[passed..] else { return };
            bytes = rest;
            self.part.push(*next);
            self.step();
        }
    }

    fn step(&mut self) {
        match self.part[..] {
            // What stands before the size and is no segment: the beginning, and marks without a length.
            [0xff, 0xd8 | 0x01 | 0xd0..=0xd7] => self.part.clear(),
            // A marker may have any number of these before it.
            [0xff, 0xff] => self.part.truncate(1),
            // The end, the picture itself, and what is no marker.
            [0xff, 0xd9 | 0xda | 0x00] => self.found = Found::Nothing,
            [0xff] | [0xff, _] | [0xff, _, _] => {}
            // The frame's size; 0xc4, 0xc8 and 0xcc are something else.
            [0xff, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf, _, _, ref size @ ..] => {
                if let [_precision, h1, h2, w1, w2] = *size {
                    let (width, height) = (u16::from_be_bytes([w1, w2]), u16::from_be_bytes([h1, h2]));
                    self.found = Found::Size { width, height };
                }
            }
            // The length counts its own two bytes.
            [0xff, _, l1, l2] => match usize::from(u16::from_be_bytes([l1, l2])).checked_sub(2) {
                Some(left) => {
                    self.left = left;
                    self.part.clear();
                }
                None => self.found = Found::Nothing,
            },
            _ => self.found = Found::Nothing,
        }
    }

    /// Its width and its height, where they have come.
    pub(super) fn size(&self) -> Option<(usize, usize)> {
        match self.found {
            Found::Size { width, height } => Some((width.into(), height.into())),
            Found::NotYet | Found::Nothing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment with this marker and so many bytes in it, which look like markers.
    fn segment(marker: u8, bytes: u16) -> Vec<u8> {
        let length = (bytes + 2).to_be_bytes();
        let inside = b"\xff\xd9".repeat(usize::from(bytes));
        [&[0xff, marker, length[0], length[1]][..], &inside[..usize::from(bytes)]].concat()
    }

    /// The frame of a picture that is 4,000 wide and 3,000 high.
    fn frame(marker: u8) -> Vec<u8> {
        [&[0xff, marker, 0, 17, 8][..], &3000_u16.to_be_bytes(), &4000_u16.to_be_bytes(), &[3; 10]].concat()
    }

    #[test]
    fn the_size_is_found_behind_whatever_stands_before_it() {
        let (begin, end) = (vec![0xff, 0xd8], vec![0xff, 0xd9]);
        let found = Some((4000, 3000));
        let rows = [
            (vec![begin.clone(), frame(0xc0)], found, "at once"),
            (vec![begin.clone(), segment(0xe0, 14), segment(0xdb, 65), frame(0xc2)], found, "behind tables"),
            (vec![begin.clone(), segment(0xc4, 30), frame(0xc1)], found, "tables that have a frame's number nearly"),
            (vec![begin.clone(), segment(0xe1, 65_533).repeat(40), frame(0xc0)], found, "what a telephone says of it"),
            (vec![begin.clone(), segment(0xfe, 0), frame(0xc0)], found, "a comment without words"),
            (vec![begin.clone(), vec![0xff; 700], segment(0xe1, 9), vec![0xff; 3], frame(0xc0)], found, "fill bytes"),
            (vec![begin.clone(), segment(0xe0, 14)], None, "it is cut off"),
            (vec![begin.clone(), frame(0xc0)[..8].to_vec()], None, "within its size"),
            (vec![begin.clone(), end, frame(0xc0)], None, "it ends before"),
            (vec![begin.clone(), segment(0xda, 10), frame(0xc0)], None, "the picture comes before"),
            (vec![begin, vec![0xff, 0xe0, 0, 1], frame(0xc0)], None, "a segment shorter than its length"),
            (vec![b"a text".to_vec(), frame(0xc0)], None, "no JPEG"),
        ];
        for (segments, expected, reason) in rows {
            for at_once in [1, 2, 7, 4096, usize::MAX] {
                let mut jpeg = Jpeg::default();
                segments.concat().chunks(at_once).for_each(|piece| jpeg.take(piece));
                assert_eq!(jpeg.size(), expected, "{reason}, {at_once} at once");
                assert!(jpeg.part.len() <= 9, "{reason}: nothing is kept");
            }
        }
    }
}
