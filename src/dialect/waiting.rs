//! Sentences about what waits for a person, for protocols that have no event for it.

use serde_json::Value;

use crate::chat::approval::APPROVAL_REQUEST;
use crate::chat::artifact::Artifact;

/// The sentence about a call or a preview that waits for a person, where it is one; `None` of other artifacts. People reach
/// this server at `public_url`, which is empty where that is not known.
pub(super) fn waits(artifact: &Artifact, public_url: &str) -> Option<String> {
    let page = match public_url {
        "" => "this server's page".to_owned(),
        url => format!("this server's page, {url}/#/waiting"),
    };
    let text = |name: &str| artifact.payload.get(name).and_then(Value::as_str);
    if let Some(preview) = text("preview_id") {
        return Some(format!(
            "A change is ready and not saved yet: accept or reject it on {page}, or at \
             {public_url}/v1/agent/previews/{preview}/decision."
        ));
    }
    let approval = text("approval_id").filter(|_| *artifact.kind == *APPROVAL_REQUEST)?;
    let tool = text("tool").unwrap_or("a tool");
    let who = if artifact.payload["not_requester"] == true { " else" } else { "" };
    let by = text("role").map(|role| format!(" of somebody{who} with the role {role}")).unwrap_or_default();
    Some(format!(
        "The call of {tool} waits for the approval{by}: decide it on {page}, or at \
         {public_url}/v1/agent/approvals/{approval}."
    ))
}
