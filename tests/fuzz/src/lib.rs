//! What all targets check: whatever a server sends, reading it does not panic, ends exactly once and at the end, and gives
//! the same however the bytes are cut.
//!
//! The first four bytes of an input are not the server's: they say how the rest is cut, see [`pieces`].

pub mod frames;
#[path = "../../it/support/said.rs"]
pub mod said;
pub mod targets;

use said::Said;
use switchboard::llm::{Vendor, Wire, recorded};

/// How many bytes at the beginning of an input say how the rest is cut.
const CUT_BYTES: usize = 4;

/// An input's cut and its body; `None` when it is too short to have any.
pub fn parts(input: &[u8]) -> Option<(&[u8], &[u8])> {
    input.split_at_checked(CUT_BYTES)
}

/// `body` in pieces, whose sizes are the bytes of `cut` plus one, in turn.
pub fn pieces<'a>(cut: &[u8], body: &'a [u8]) -> Vec<&'a [u8]> {
    let mut rest = body;
    let mut pieces = Vec::new();
    for size in cut.iter().cycle().map(|byte| usize::from(*byte) + 1) {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at(size.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// What `body` says on `wire`, read in one piece and in pieces.
pub fn said(wire: impl Into<&'static Wire>, cut: &[u8], body: &[u8]) -> Said {
    let wire = wire.into();
    let whole = Said::of(recorded::events(wire, [body]));
    let in_pieces = Said::of(recorded::events(wire, pieces(cut, body)));
    assert_eq!(in_pieces, whole);
    whole
}

/// Reads an input as an answer on `wire`.
pub fn fold(wire: impl Into<&'static Wire>, input: &[u8]) {
    if let Some((cut, body)) = parts(input) {
        said(wire, cut, body);
    }
}

/// The other wire of the vendor that has two.
pub fn responses() -> &'static Wire {
    Vendor::OpenAi.wires().last().expect("a vendor has a wire")
}
