//! Which stored configuration a call means: a UUID that the model gives is kept, anything else gives way to the
//! configuration that is open on the user's screen.

use uuid::Uuid;

use crate::agent::ports::tools::ToolContext;

/// Whether `text` is a UUID in its usual form, 8-4-4-4-12 hexadecimal digits.
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

/// The id of the configuration on the screen, if there is one.
pub fn on_screen<'a>(cx: &ToolContext<'a>) -> Option<&'a str> {
    let id = cx.context?.get("config_id")?.as_str()?;
    is_uuid(id).then_some(id)
}

/// The id that is meant by `given`.
pub fn meant<'a>(given: Option<&'a str>, cx: &ToolContext<'a>) -> Option<&'a str> {
    given.filter(|id| is_uuid(id)).or_else(|| on_screen(cx))
}
