//! Files that tools make: kept first, then shown to the model and told to the client.

use serde_json::json;

use crate::agent::ports::tools::ToolContext;
use crate::chat::artifact::{Artifact, FILE};
use crate::chat::file::{FileRef, NewFile};
use crate::chat::tool::ToolOutput;

/// The largest of them: 5 MiB.
pub(super) const FILE_BYTES: usize = 5 << 20;

/// What a client is told of a file.
pub(super) fn artifact(FileRef { id, kind, name, bytes, .. }: &FileRef) -> Artifact {
    let url = format!("/v1/agent/files/{id}/content");
    let payload =
        json!({"id": id.to_string(), "name": name, "media_type": kind.media_type(), "bytes": bytes, "url": url});
    Artifact { kind: FILE.into(), payload }
}

/// The output of a tool that answers with a picture: the model sees it. One that cannot be kept is a sentence.
pub(super) async fn picture(picture: NewFile, cx: &ToolContext<'_>) -> ToolOutput {
    let what = match &picture.media_type {
        Some(media_type) => format!("an image, {media_type}"),
        None => "an image".to_owned(),
    };
    match cx.files.keep(&cx.caller.owner, picture).await {
        Ok(file) => {
            let content = format!("[{what}, {}: as follows]", file.name);
            ToolOutput { artifacts: vec![artifact(&file)], files: vec![file], ..ToolOutput::ok(content) }
        }
        Err(error) => ToolOutput::ok(format!("[{what}: it cannot be shown here, {error}]")),
    }
}
