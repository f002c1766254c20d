//! Failures in plain words: what a tool said, and what the user can do about it.

use serde_json::Value;

use super::history::as_json;
use super::scene::Pause;
use super::words;

/// What to tell the user when a script stopped. A call is no failure and has no words.
pub(super) fn words(pause: &Pause) -> String {
    match pause {
        Pause::Call(_) => String::new(),
        Pause::Say(text) => text.clone(),
        Pause::NotOffered(tool) => {
            format!("That needs the tool {}, which is not offered on this screen.", words::code(tool))
        }
        Pause::Failed { tool, error } => failed(tool, error),
    }
}

/// What `tool` reported as `error`, and what to do.
fn failed(tool: &str, error: &str) -> String {
    let reason = reason(error);
    let low = error.to_lowercase();
    let is = |signs: &[&str]| signs.iter().any(|sign| low.contains(sign));
    let advice = if is(&["http 401", "unauthenticated"]) {
        "Your session is not accepted by the backend; please sign in again."
    } else if is(&["http 403", "permission_denied", "admin"]) {
        "Your account may not do this. It needs an administrator's rights; please ask one, or sign in with such an account."
    } else if is(&["draft"]) && is(&["not found", "expired"]) {
        "Drafts live for ten minutes after their last use. Start it again with *create a workflow called …*."
    } else if is(&["preview"]) && is(&["accept", "first"]) {
        "Nothing is saved before you have accepted a preview; ask me to preview it."
    } else if is(&["http 404", "not found", "unknown"]) {
        "Please check the name; ask me to list what there is if you are not sure."
    } else if is(&["could not be reached", "in time", "broke off", "http 5", "unavailable"]) {
        "The backend has trouble at the moment. Please try again shortly."
    } else if is(&["already exists", "duplicate"]) {
        "Please choose another name."
    } else if is(&["start action", "no actions"]) {
        "A workflow begins with exactly one step, and every other step follows one."
    } else {
        "Please change what you asked for and try again."
    };
    format!("That did not work. {} reported: {} {advice}", words::code(tool), words::sentence(&reason))
}

/// The backend's own message where `error` wraps one: `HTTP 403: {"code":…,"message":"…"}`.
fn reason(error: &str) -> String {
    let inner = error.find('{').and_then(|at| error.get(at..)).map(as_json);
    let message = inner.as_ref().and_then(|body| words::str_at(body, &["message", "error", "detail"]));
    words::plain(message.unwrap_or(error))
}

/// What to say of a preview that was not sent; `None` when it was.
pub(super) fn refused_preview(result: &Value) -> Option<String> {
    let is_refused = result.get("valid").and_then(Value::as_bool) == Some(false);
    is_refused.then(|| {
        let problems = problems(result);
        let list = match problems.is_empty() {
            true => "- it gave no reason".to_owned(),
            false => words::bullets(problems, None),
        };
        format!("The validation refused this, so I sent no preview:\n\n{list}\n\nTell me what to change and I will try again.")
    })
}

/// The texts of a validation's `errors`, whatever their shape.
pub(super) fn problems(result: &Value) -> Vec<String> {
    let list = words::items(result, &["errors"]);
    list.iter()
        .map(|problem| {
            let message = words::str_at(problem, &["message", "Message", "error"]);
            let field = words::str_at(problem, &["field", "Field", "path"]);
            match (field, message) {
                (Some(field), Some(message)) => format!("{}: {}", words::code(field), words::plain(message)),
                (None, Some(message)) => words::plain(message),
                (_, None) => words::brief(problem),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_in_plain_words_with_advice() {
        let cases = [
            (
                "HTTP 403: {\"code\":\"permission_denied\",\"message\":\"only admins may do this.\"}",
                "That did not work. `t` reported: only admins may do this. Your account may not do this. It needs an \
                 administrator's rights; please ask one, or sign in with such an account.",
            ),
            (
                "draft \"x\" not found or expired",
                "That did not work. `t` reported: draft \"x\" not found or expired. Drafts live for ten minutes after \
                 their last use. Start it again with *create a workflow called …*.",
            ),
            (
                "the backend could not be reached",
                "That did not work. `t` reported: the backend could not be reached. The backend has trouble at the \
                 moment. Please try again shortly.",
            ),
            ("{broken", "That did not work. `t` reported: {broken. Please change what you asked for and try again."),
        ];
        for (error, expected) in cases {
            let pause = Pause::Failed { tool: "t", error: error.to_owned() };
            assert_eq!(words(&pause), expected);
        }
    }
}
