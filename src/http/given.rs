//! The files of a question: those in the request are kept, and those that it names are looked for, before its run begins.

use bytes::Bytes;
use futures::{StreamExt, stream};

use super::Services;
use super::problem::Problem;
use crate::agent::ports::files::{FileError, Incoming};
use crate::chat::caller::Owner;
use crate::chat::file::{FileKind, FileRef, GivenFile, NewFile, file_name};
use crate::chat::ids::FileId;
use crate::chat::input::{Ask, ClientMessage};

/// So many of what a client tells of earlier are kept, the newest: no more are sent to a model.
const EARLIER: usize = 20;

/// The question and what was said before it, with their files kept.
///
/// # Errors
/// When there are too many, one is no file that is taken, or there is none of that name.
pub(super) async fn kept(
    services: &Services,
    owner: &Owner,
    ask: Ask<GivenFile>,
    earlier: Vec<ClientMessage<GivenFile>>,
) -> Result<(Ask, Vec<ClientMessage>), Problem> {
    let (mut told, mut new) = (Vec::new(), Vec::new());
    let mut note = |file| {
        told.push(file);
        told.len() - 1
    };
    let earlier: Vec<ClientMessage<usize>> = earlier.into_iter().map(|message| message.with_files(&mut note)).collect();
    let is_results = matches!(ask, Ask::Results(_));
    let ask: Ask<usize> = ask.with_files(&mut |file| {
        new.push(file);
        new.len() - 1
    });
    let most = services.file_limits.map_or(usize::MAX, |limits| limits.per_message);
    if !is_results && new.len() > most {
        return Err(Problem::bad_request(format!("a message has at most {most} files, not {}", new.len())));
    }
    let uploaded: Vec<FileId> = told.iter().chain(&new).filter_map(id).collect();
    let found = match uploaded.is_empty() {
        true => Vec::new(),
        false => services.files.find(owner, &uploaded).await?,
    };
    let found: Vec<FileRef> = found.into_iter().map(|record| record.file).collect();
    let old = told.len().saturating_sub(EARLIER);
    let mut before = Vec::with_capacity(told.len());
    for (at, file) in told.into_iter().enumerate() {
        before.push(match file {
            GivenFile::Uploaded(id) => found.iter().find(|file| file.id == id).cloned().unwrap_or_else(|| gone(id)),
            GivenFile::Inline(file) if at < old => unkept(&file),
            GivenFile::Inline(file) => keep_or_say(services, owner, file).await?,
        });
    }
    let mut now = Vec::with_capacity(new.len());
    for file in new {
        now.push(match file {
            GivenFile::Uploaded(id) => {
                let file = found.iter().find(|file| file.id == id).cloned();
                file.ok_or_else(|| Problem::not_found("there is no such file"))?
            }
            GivenFile::Inline(file) if is_results => keep_or_say(services, owner, file).await?,
            GivenFile::Inline(file) => keep(services, owner, file).await?,
        });
    }
    let of = |files: Vec<FileRef>| move |at: usize| files.get(at).cloned().unwrap_or_else(|| gone(FileId::fresh()));
    let (mut before, mut now) = (of(before), of(now));
    let earlier = earlier.into_iter().map(|message| message.with_files(&mut before)).collect();
    Ok((ask.with_files(&mut now), earlier))
}

fn id(file: &GivenFile) -> Option<FileId> {
    match file {
        GivenFile::Uploaded(id) => Some(*id),
        GivenFile::Inline(_) => None,
    }
}

async fn keep(services: &Services, owner: &Owner, file: NewFile) -> Result<FileRef, FileError> {
    let NewFile { name, media_type, data } = file;
    let content = stream::iter([Ok(Bytes::from(data))]).boxed();
    let incoming = Incoming { name: name.as_deref(), media_type: media_type.as_deref(), terms: None, content };
    Ok(services.files.keep(owner, incoming).await?.file)
}

/// The same of a file that nobody can leave out: one of an earlier message, or of a tool's result. What is not taken is told to
/// the model, and what cannot be kept now may come again.
async fn keep_or_say(services: &Services, owner: &Owner, file: NewFile) -> Result<FileRef, FileError> {
    let said = unkept(&file);
    match keep(services, owner, file).await {
        Err(error) if error.is_lasting() => Ok(said),
        kept => kept,
    }
}

/// Stands for a file of earlier that is not kept any more.
fn gone(id: FileId) -> FileRef {
    FileRef { id, kind: FileKind::Text, name: "file".to_owned(), bytes: 0, side: 0 }
}

/// Stands for a file of earlier that no model is sent any more.
fn unkept(file: &NewFile) -> FileRef {
    let kind = file.media_type.as_deref().and_then(FileKind::of_media_type).unwrap_or(FileKind::Text);
    let name = file_name(file.name.as_deref().unwrap_or_default(), "file");
    let bytes = u64::try_from(file.data.len()).unwrap_or(u64::MAX);
    FileRef { id: FileId::fresh(), kind, name, bytes, side: 0 }
}
