//! The file that keeps what was seen over a restart. It only saves reading: without it everything is read once.

use std::fs;
use std::io;
use std::path::Path;

use flate2::Crc;

use super::memory::{Entry, Folder, Node, Seen};
use super::stamp::Stamp;
use super::walk::DEEPEST;
use crate::workspace::checkpoints::store::{Id, Leaf, Mode};

/// What the file begins with; another format gets another number.
const MAGIC: &[u8; 8] = b"SBLOOK\0\x01";

/// Stands for the tree that is not written yet.
const NO_TREE: [u8; 20] = [0; 20];

/// What was seen, or `None` when the file is not there or is not whole.
pub(crate) fn load(path: &Path) -> Option<Folder> {
    let bytes = fs::read(path).ok()?;
    let (content, sum) = bytes.split_last_chunk::<4>()?;
    if checksum(content) != u32::from_le_bytes(*sum) {
        return None;
    }
    let mut rest = content.strip_prefix(MAGIC)?;
    let folder = read_folder(&mut rest, 0)?;
    rest.is_empty().then_some(folder)
}

/// Replaces the file. It need not be brought onto the disk: what is not whole after a crash is not used.
///
/// # Errors
/// It cannot be written.
pub(crate) fn save(path: &Path, folder: &Folder) -> io::Result<()> {
    let mut bytes = MAGIC.to_vec();
    write_folder(&mut bytes, folder);
    bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
    let temporary = path.with_extension("new");
    fs::write(&temporary, bytes)?;
    fs::rename(&temporary, path)
}

fn checksum(content: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(content);
    crc.sum()
}

/// What an entry is, as its first byte.
mod tag {
    pub(super) const FOLDER: u8 = 0;
    pub(super) const FILE: u8 = 1;
    pub(super) const EXECUTABLE: u8 = 2;
    pub(super) const LINK: u8 = 3;
    /// Set for files with a stamp.
    pub(super) const HAS_MORE: u8 = 0x10;
}

fn write_folder(out: &mut Vec<u8>, folder: &Folder) {
    out.extend_from_slice(&length(folder.entries.len()));
    for Entry { name, node } in &folder.entries {
        match node {
            Node::Folder(below) => {
                out.push(tag::FOLDER);
                write_name(out, name);
                write_folder(out, below);
            }
            Node::File(Seen { leaf, stamp }) => {
                let kind = match leaf.mode {
                    Mode::File => tag::FILE,
                    Mode::Executable => tag::EXECUTABLE,
                    Mode::Link => tag::LINK,
                };
                out.push(kind | if stamp.is_some() { tag::HAS_MORE } else { 0 });
                write_name(out, name);
                out.extend_from_slice(leaf.id.as_bytes());
                if let Some(stamp) = stamp {
                    out.extend_from_slice(&stamp.size.to_le_bytes());
                    for (seconds, nanoseconds) in [stamp.modified, stamp.changed] {
                        out.extend_from_slice(&seconds.to_le_bytes());
                        out.extend_from_slice(&nanoseconds.to_le_bytes());
                    }
                    out.extend_from_slice(&stamp.inode.to_le_bytes());
                    out.extend_from_slice(&stamp.mode.to_le_bytes());
                }
            }
        }
    }
    out.extend_from_slice(folder.tree.as_ref().map_or(&NO_TREE, Id::as_bytes).as_slice());
}

fn write_name(out: &mut Vec<u8>, name: &[u8]) {
    out.extend_from_slice(&length(name.len()));
    out.extend_from_slice(name);
}

/// Lengths take four bytes. What is longer is not in a folder; if it were, the file would not be taken for whole.
fn length(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes()
}

fn read_folder(rest: &mut &[u8], depth: usize) -> Option<Folder> {
    if depth > DEEPEST {
        return None;
    }
    let count = u32::from_le_bytes(array(rest)?);
    let mut entries = Vec::new();
    for _ in 0..count {
        let [kind] = array(rest)?;
        let len = usize::try_from(u32::from_le_bytes(array(rest)?)).ok()?;
        let (name, after) = rest.split_at_checked(len)?;
        *rest = after;
        let mode = match kind & !tag::HAS_MORE {
            tag::FOLDER => {
                let below = read_folder(rest, depth + 1)?;
                entries.push(Entry { name: name.into(), node: Node::Folder(below) });
                continue;
            }
            tag::FILE => Mode::File,
            tag::EXECUTABLE => Mode::Executable,
            tag::LINK => Mode::Link,
            _ => return None,
        };
        let leaf = Leaf { mode, id: Id::of_bytes(array(rest)?) };
        let stamp = if kind & tag::HAS_MORE == 0 { None } else { Some(read_stamp(rest)?) };
        entries.push(Entry { name: name.into(), node: Node::File(Seen { leaf, stamp }) });
    }
    let tree: [u8; 20] = array(rest)?;
    Some(Folder::new(entries, (tree != NO_TREE).then(|| Id::of_bytes(tree))))
}

fn read_stamp(rest: &mut &[u8]) -> Option<Stamp> {
    let size = u64::from_le_bytes(array(rest)?);
    let modified = (i64::from_le_bytes(array(rest)?), u32::from_le_bytes(array(rest)?));
    let changed = (i64::from_le_bytes(array(rest)?), u32::from_le_bytes(array(rest)?));
    let inode = u64::from_le_bytes(array(rest)?);
    let mode = u32::from_le_bytes(array(rest)?);
    Some(Stamp { size, modified, changed, inode, mode })
}

fn array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*first)
}
