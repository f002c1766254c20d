//! Folders as objects: how they are written, what differs between two of them, and what is added to one.

use std::collections::BTreeMap;

use super::read::corrupt;
use super::{Id, Intake, Kind, Leaf, Mode, Store};
use crate::workspace::checkpoints::CheckpointError;

/// An entry of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    Folder(Id),
    File(Leaf),
}

impl Item {
    fn octal(self) -> &'static [u8] {
        match self {
            Self::Folder(_) => b"40000",
            Self::File(Leaf { mode: Mode::File, .. }) => b"100644",
            Self::File(Leaf { mode: Mode::Executable, .. }) => b"100755",
            Self::File(Leaf { mode: Mode::Link, .. }) => b"120000",
        }
    }

    fn of_octal(octal: &[u8], id: Id) -> Option<Self> {
        let mode = match octal {
            b"40000" => return Some(Self::Folder(id)),
            b"100644" => Mode::File,
            b"100755" => Mode::Executable,
            b"120000" => Mode::Link,
            _ => return None,
        };
        Some(Self::File(Leaf { mode, id }))
    }

    fn id(self) -> Id {
        match self {
            Self::Folder(id) | Self::File(Leaf { id, .. }) => id,
        }
    }

    fn folder(self) -> Option<Id> {
        match self {
            Self::Folder(id) => Some(id),
            Self::File(_) => None,
        }
    }

    fn leaf(self) -> Option<Leaf> {
        match self {
            Self::Folder(_) => None,
            Self::File(leaf) => Some(leaf),
        }
    }
}

/// The content of a tree object. Git sorts folders as if their names ended in a slash.
pub(crate) fn encode(mut items: Vec<(&[u8], Item)>) -> Vec<u8> {
    fn key<'a>((name, item): &'a (&[u8], Item)) -> impl Iterator<Item = u8> + 'a {
        name.iter().copied().chain(item.folder().map(|_| b'/'))
    }
    items.sort_unstable_by(|a, b| key(a).cmp(key(b)));
    let mut content = Vec::with_capacity(items.iter().map(|(name, _)| name.len() + 28).sum());
    for (name, item) in items {
        content.extend_from_slice(item.octal());
        content.push(b' ');
        content.extend_from_slice(name);
        content.push(0);
        content.extend_from_slice(item.id().as_bytes());
    }
    content
}

/// A folder's entries by name. Names that lead elsewhere are in no tree of ours: such a tree is damaged.
fn decode(store: &Store, tree: Option<Id>) -> Result<BTreeMap<Vec<u8>, Item>, CheckpointError> {
    let mut items = BTreeMap::new();
    let Some(tree) = tree else {
        return Ok(items);
    };
    let content = store.read(tree, Kind::Tree)?;
    let mut rest = content.as_slice();
    while !rest.is_empty() {
        let (name, item, after) = entry(rest).ok_or_else(|| corrupt(tree))?;
        items.insert(name.to_vec(), item);
        rest = after;
    }
    Ok(items)
}

fn entry(bytes: &[u8]) -> Option<(&[u8], Item, &[u8])> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    let (head, rest) = (&bytes[..end], &bytes[end + 1..]);
    let blank = head.iter().position(|&byte| byte == b' ')?;
    let (octal, name) = (&head[..blank], &head[blank + 1..]);
    let (id, after) = rest.split_first_chunk()?;
    let is_name = !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.eq_ignore_ascii_case(b".git");
    is_name.then_some((name, Item::of_octal(octal, Id::of_bytes(*id))?, after))
}

/// Calls `found` for every path whose file differs between the two trees, with what it is in the one and the other.
/// Equal folders are not read. The order is that of no sort.
///
/// # Errors
/// A tree is not there, is damaged or cannot be read; or what `found` says.
pub(crate) fn differences(
    store: &Store,
    from: Option<Id>,
    to: Option<Id>,
    found: &mut impl FnMut(&[u8], Option<Leaf>, Option<Leaf>),
) -> Result<(), CheckpointError> {
    between(store, from, to, &mut Vec::new(), found)
}

fn between(
    store: &Store,
    from: Option<Id>,
    to: Option<Id>,
    path: &mut Vec<u8>,
    found: &mut impl FnMut(&[u8], Option<Leaf>, Option<Leaf>),
) -> Result<(), CheckpointError> {
    if from == to {
        return Ok(());
    }
    let (before, mut after) = (decode(store, from)?, decode(store, to)?);
    let pairs = before.into_iter().map(|(name, item)| {
        let other = after.remove(&name);
        (name, Some(item), other)
    });
    let pairs: Vec<_> = pairs.collect();
    let pairs = pairs.into_iter().chain(after.into_iter().map(|(name, item)| (name, None, Some(item))));
    for (name, old, new) in pairs {
        if old == new {
            continue;
        }
        let len = path.len();
        if len > 0 {
            path.push(b'/');
        }
        path.extend_from_slice(&name);
        let (old_leaf, new_leaf) = (old.and_then(Item::leaf), new.and_then(Item::leaf));
        if old_leaf != new_leaf {
            found(path, old_leaf, new_leaf);
        }
        between(store, old.and_then(Item::folder), new.and_then(Item::folder), path, found)?;
        path.truncate(len);
    }
    Ok(())
}

/// The file at a path of a tree, if there is one.
///
/// # Errors
/// A tree is not there, is damaged or cannot be read.
pub(crate) fn leaf_at(store: &Store, tree: Id, path: &[u8]) -> Result<Option<Leaf>, CheckpointError> {
    let mut item = Some(Item::Folder(tree));
    for name in path.split(|&byte| byte == b'/') {
        let Some(Item::Folder(folder)) = item else {
            return Ok(None);
        };
        item = decode(store, Some(folder))?.remove(name);
    }
    Ok(item.and_then(Item::leaf))
}

/// The tree with these files added. A path that the tree has, or that stands in the way of one of the tree's, stays as
/// it is.
///
/// # Errors
/// As [`differences`], or an object cannot be written.
pub(crate) fn add(
    store: &Store,
    intake: &Intake,
    tree: Option<Id>,
    files: &BTreeMap<&[u8], Leaf>,
) -> Result<Id, CheckpointError> {
    let mut items = decode(store, tree)?;
    let mut below: BTreeMap<&[u8], BTreeMap<&[u8], Leaf>> = BTreeMap::new();
    for (&path, &leaf) in files {
        match path.iter().position(|&byte| byte == b'/') {
            None => {
                items.entry(path.to_vec()).or_insert(Item::File(leaf));
            }
            Some(slash) => {
                below.entry(&path[..slash]).or_default().insert(&path[slash + 1..], leaf);
            }
        }
    }
    for (name, files) in below {
        let old = match items.get(name) {
            Some(Item::File(_)) => continue,
            Some(&Item::Folder(id)) => Some(id),
            None => None,
        };
        let new = add(store, intake, old, &files)?;
        items.insert(name.to_vec(), Item::Folder(new));
    }
    let content = encode(items.iter().map(|(name, item)| (name.as_slice(), *item)).collect());
    intake.write(store, Kind::Tree, &content)?.ok_or(CheckpointError::Unknown)
}

/// The folders and the files that are directly in a tree.
pub(super) fn children(store: &Store, tree: Id) -> Result<(Vec<Id>, Vec<Id>), CheckpointError> {
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    for item in decode(store, Some(tree))?.into_values() {
        match item {
            Item::Folder(id) => folders.push(id),
            Item::File(leaf) => files.push(leaf.id),
        }
    }
    Ok((folders, files))
}
