//! Which of their files clients ask for: the parameters of either protocol.

use std::borrow::Cow;
use std::cmp::Reverse;

use url::form_urlencoded;

use super::wrong;
use crate::agent::ports::files::{FilePart, FileRecord};
use crate::chat::caller::Owner;
use crate::chat::file::Purpose;
use crate::chat::ids::FileId;
use crate::dialect::file_id;
use crate::http::Services;
use crate::http::pages::limit;
use crate::http::problem::Problem;
use crate::http::uploads::place;

/// Files of a part, usually and at most, by OpenAI's protocol; and as many as come at once, whatever is asked for.
const LIMITS: (u32, u32) = (10_000, 10_000);
const PAGE: u32 = 1000;

/// The same by Messages, and how many ids it may name.
const LIMITS_OF_MESSAGES: (u32, u32) = (20, PAGE);
const IDS: usize = 100;

/// What a cursor of Messages begins with.
const CURSOR: &str = "page_";

/// A part of a user's files.
#[derive(Default)]
pub(super) struct Listed {
    pub(super) records: Vec<FileRecord>,
    /// Whether there are more of them in the same direction.
    pub(super) has_more: bool,
    /// Where the next part begins, in Messages.
    pub(super) next_page: Option<String>,
}

/// The parameters of a request.
struct Parameters<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Parameters<'a> {
    fn read(query: &'a str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).filter(|(_, value)| !value.is_empty()).collect())
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// # Errors
    /// When it is given twice.
    fn one(&self, name: &'static str) -> Result<Option<&str>, Problem> {
        let mut all = self.all(name);
        let first = all.next();
        match all.next() {
            Some(_) => Err(wrong(name, "may be given once")),
            None => Ok(first),
        }
    }
}

/// Those that a client of OpenAI's protocol asks for.
///
/// # Errors
/// When a parameter is none, or the files could not be read.
pub(super) async fn of_openai(services: &Services, owner: &Owner, query: &str) -> Result<Listed, Problem> {
    let parameters = Parameters::read(query);
    let most = limit(parameters.one("limit")?, LIMITS)?.min(PAGE);
    let oldest_first = match parameters.one("order")? {
        None | Some("desc") => false,
        Some("asc") => true,
        Some(_) => return Err(wrong("order", "must be asc or desc")),
    };
    let purpose = match parameters.one("purpose")?.map(Purpose::named) {
        // No file here has it.
        Some(None) => return Ok(Listed::default()),
        Some(purpose) => purpose,
        None => None,
    };
    let after = behind(services, owner, "after", parameters.one("after")?).await?;
    part(services, owner, FilePart { after, oldest_first, purpose, most }).await
}

/// Those that a client of Messages asks for.
///
/// # Errors
/// When a parameter is none, or the files could not be read.
pub(super) async fn of_messages(services: &Services, owner: &Owner, query: &str) -> Result<Listed, Problem> {
    let parameters = Parameters::read(query);
    let (page, count) = (parameters.one("page")?, parameters.one("limit")?);
    let (after, before) = (parameters.one("after_id")?, parameters.one("before_id")?);
    let most = limit(count, LIMITS_OF_MESSAGES)?;
    let places = [page, after, before].into_iter().flatten().count();
    let ids: Vec<&str> = parameters.all("ids[]").chain(parameters.all("ids")).collect();
    if !ids.is_empty() {
        if places != 0 || count.is_some() {
            return Err(wrong("ids", "stands without limit, page, after_id and before_id"));
        }
        return of_these(services, owner, &ids).await;
    }
    if parameters.one("scope_id")?.is_some() {
        // No file here belongs to a session.
        return Ok(Listed::default());
    }
    if places > 1 {
        return Err(Problem::bad_request("page, after_id and before_id exclude each other"));
    }
    let after = match page {
        Some(page) => {
            let place = page.strip_prefix(CURSOR).and_then(place);
            Some(place.ok_or_else(|| Problem::cursor_invalid("page must be next_page of a part of this list"))?)
        }
        None => behind(services, owner, "after_id", after).await?,
    };
    let before = behind(services, owner, "before_id", before).await?;
    // The next ones before a file are found from it on, and told in the order of the list.
    let oldest_first = before.is_some();
    let mut listed =
        part(services, owner, FilePart { after: before.or(after), oldest_first, purpose: None, most }).await?;
    if oldest_first {
        listed.records.reverse();
        return Ok(listed);
    }
    let last = listed.records.last().filter(|_| listed.has_more);
    listed.next_page = last.map(|record| format!("{CURSOR}{}.{}", record.created_ms, record.file.id));
    Ok(listed)
}

/// The files of these ids, the newest first. What is none of the owner's is left out.
async fn of_these(services: &Services, owner: &Owner, ids: &[&str]) -> Result<Listed, Problem> {
    let mut found: Vec<FileId> = Vec::new();
    for id in ids.iter().filter_map(|id| file_id(id)) {
        if !found.contains(&id) {
            found.push(id);
        }
        if found.len() > IDS {
            return Err(wrong("ids", &format!("may name {IDS} files at most")));
        }
    }
    let mut records = services.files.find(owner, &found).await?;
    records.sort_by_key(|record| Reverse((record.created_ms, record.file.id.to_string())));
    Ok(Listed { records, ..Listed::default() })
}

/// When the file of that id came, and which it is. Behind one that is gone stands all: who deletes what a list has said goes on.
async fn behind(
    services: &Services,
    owner: &Owner,
    name: &'static str,
    id: Option<&str>,
) -> Result<Option<(i64, FileId)>, Problem> {
    let Some(id) = id else { return Ok(None) };
    let none = || wrong(name, "must be the id of a file of this list");
    let id = file_id(id).ok_or_else(none)?;
    Ok(services.files.find(owner, &[id]).await?.pop().map(|record| (record.created_ms, id)))
}

async fn part(services: &Services, owner: &Owner, part: FilePart) -> Result<Listed, Problem> {
    // One more tells whether there are more.
    let mut records = services.files.list(owner, FilePart { most: part.most + 1, ..part }).await?;
    let most = usize::try_from(part.most).unwrap_or(usize::MAX);
    let has_more = records.len() > most;
    records.truncate(most);
    Ok(Listed { records, has_more, next_page: None })
}
