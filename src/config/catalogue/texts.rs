//! The Markdown blocks of prompts: `prompts/**` as templates, each read once, its mistake reported once.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::agent::prompt::NAMES;
use crate::chat::template::{Template, Values};
use crate::config::Problem;
use crate::config::assets::Assets;
use crate::config::document::{Location, Problems};

/// The blocks that were read so far.
pub(super) struct Texts<'a> {
    assets: &'a Assets,
    problems: &'a Problems,
    read: RefCell<BTreeMap<String, Read>>,
}

/// The result of reading a file.
#[derive(Clone)]
enum Read {
    /// There is none, or it is no text.
    Nothing,
    /// It is no template; the mistake is reported.
    Wrong,
    Block(Template),
}

impl<'a> Texts<'a> {
    /// No block has been read yet.
    pub(super) fn new(assets: &'a Assets, problems: &'a Problems) -> Self {
        Self { assets, problems, read: RefCell::default() }
    }

    /// The block in the file `name` below `prompts/`, which is named at `location`.
    pub(super) fn block(&self, location: &Location<'_>, name: &str) -> Option<Template> {
        let path = format!("prompts/{name}");
        let known = self.read.borrow().get(name).cloned();
        let read = known.unwrap_or_else(|| {
            let read = self.read(&path);
            self.read.borrow_mut().insert(name.to_owned(), read.clone());
            read
        });
        match read {
            Read::Block(block) => Some(block),
            Read::Wrong => None,
            Read::Nothing => {
                location.wrong(format_args!("{path} cannot be read"));
                None
            }
        }
    }

    fn read(&self, path: &str) -> Read {
        // What leaves the folder is not read, whatever is there.
        if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Read::Nothing;
        }
        let Some(text) = self.assets.text(path) else { return Read::Nothing };
        let mut wrong = false;
        let mut note = |line: usize, reason: String| {
            wrong = true;
            self.problems.push(Problem::new(format!("{path}:{line}"), reason));
        };
        let block = Template::parse(&text).map_err(|error| note(error.line.max(1), error.reason)).ok();
        for name in block.iter().flat_map(Template::names).filter(|name| !NAMES.contains(name)) {
            let reason = format!("takes {name:?}, which prompts do not have; there are {}", NAMES.join(", "));
            note(line_of(&text, name), reason);
        }
        // One that takes no values is rendered when the profile is made, and its mistake would have no location.
        if let Some(Err(error)) =
            block.as_ref().filter(|b| b.names().next().is_none()).map(|b| b.render(&Values::default()))
        {
            note(error.line.max(1), error.reason);
        }
        match block.filter(|_| !wrong) {
            Some(block) => Read::Block(block),
            None => Read::Wrong,
        }
    }
}

/// The line on which a template first takes the value `name`, from 1.
fn line_of(text: &str, name: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let taken = text.match_indices(name).find(|(at, _)| {
        let (before, after) = (&text[..*at], &text[at + name.len()..]);
        let opens = before.rfind("{{").max(before.rfind("{%"));
        let closes = before.rfind("}}").max(before.rfind("%}"));
        let stands_alone = !before.ends_with(|c| is_word(c) || c == '.') && !after.starts_with(is_word);
        opens > closes && stands_alone
    });
    let at = taken.map_or(0, |(at, _)| at);
    text[..at].matches('\n').count() + 1
}
