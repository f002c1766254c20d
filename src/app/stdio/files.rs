//! Files in results: a program that is started by a desktop has an address that nobody else knows, and a token that the desktop
//! does not have, so that small files are in the answer themselves.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::AUTHORIZATION;
use serde_json::{Value, json};

use super::{Carrier, CarryError};
use crate::bounded::json::value_of;
use crate::chat::causes::Causes;

/// 1 MiB of a file, and 4 MiB of all in one answer: it is one line.
const FILE_BYTES: u64 = 1 << 20;
const ALL_BYTES: u64 = 4 << 20;

/// What every such item says.
const LINK: &[u8] = b"resource_link";

impl Carrier {
    /// The answer with the files of this server that it links to; what is too large is named in words. As it came, where it has
    /// none.
    pub(super) async fn with_files(&self, answer: Vec<u8>) -> Vec<u8> {
        if !answer.windows(LINK.len()).any(|part| part == LINK) {
            return answer;
        }
        let Ok(mut read) = value_of(&answer) else { return answer };
        let mut left = ALL_BYTES;
        // A call's result, and that of a task.
        for path in ["/result/content", "/result/result/content"] {
            let Some(Value::Array(items)) = read.pointer_mut(path) else { continue };
            for item in items {
                if let Some(file) = self.file(item, &mut left).await {
                    *item = file;
                }
            }
        }
        // Values always serialise.
        serde_json::to_vec(&read).unwrap_or(answer)
    }

    /// What stands for `item`, where that links to a file of this server's.
    async fn file(&self, item: &Value, left: &mut u64) -> Option<Value> {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let is_here = |uri: &&str| uri.strip_prefix(&self.base).is_some_and(|path| path.starts_with('/'));
        let uri = text("uri").filter(is_here).filter(|_| text("type") == Some("resource_link"))?;
        let size = item.get("size").and_then(Value::as_u64);
        let fits = |size: u64| size <= FILE_BYTES && size <= *left;
        let bytes = match size.is_none_or(fits) {
            false => None,
            true => match self.bytes_at(uri).await {
                Ok(bytes) => Some(bytes).filter(|bytes| u64::try_from(bytes.len()).is_ok_and(fits)),
                Err(error) => {
                    tracing::warn!(error = %Causes(&error), "a file was not read");
                    None
                }
            },
        };
        let Some(bytes) = bytes else {
            let (name, kind) = (text("name").unwrap_or("file"), text("mimeType").unwrap_or("of an unknown type"));
            let words = format!("[file {name}, {kind}: not in this answer; with server.public_url it would be a link]");
            return Some(json!({"type": "text", "text": words}));
        };
        *left = left.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let mut resource = json!({"uri": uri, "blob": BASE64_STANDARD.encode(&bytes)});
        if let Some(kind) = text("mimeType") {
            resource["mimeType"] = kind.into();
        }
        Some(json!({"type": "resource", "resource": resource}))
    }

    /// The bytes of a file.
    async fn bytes_at(&self, uri: &str) -> Result<Vec<u8>, CarryError> {
        let answer = self.http.get(uri).header(AUTHORIZATION, self.authorization()?).send().await?;
        Ok(answer.error_for_status()?.bytes().await?.into())
    }
}
