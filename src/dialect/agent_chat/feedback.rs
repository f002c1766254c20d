//! What a request says of an answer.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::bounded::json::parse;
use crate::chat::feedback::{Feedback, Score};
use crate::dialect::{DecodeError, FieldError, json};

/// The longest comment, in characters.
const COMMENT_CHARS: usize = 2000;

/// 10 tags of up to 40 characters.
const TAGS: usize = 10;
const TAG_CHARS: usize = 40;

/// Feedback on the answer of a run.
#[derive(Deserialize, ToSchema)]
#[schema(as = FeedbackRequest)]
pub struct FeedbackBody<'a> {
    /// 1 or -1.
    #[serde(borrow)]
    #[schema(value_type = i64, minimum = -1, maximum = 1)]
    score: Option<&'a RawValue>,
    /// Why, up to 2,000 characters.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, max_length = 2000)]
    comment: Option<&'a RawValue>,
    /// Why, in words of the front end: up to 10, of 1 to 40 characters each.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<String>>, max_items = 10)]
    tags: Option<&'a RawValue>,
}

impl FeedbackBody<'_> {
    /// The feedback of a body.
    ///
    /// # Errors
    /// The body's mistakes, in words for its sender.
    pub fn decode(body: &[u8]) -> Result<Feedback, DecodeError> {
        let fields: FeedbackBody<'_> =
            parse(json::object(body)?).map_err(|error| DecodeError::NotJson(error.to_string()))?;
        let mut errors = Vec::new();
        let mut wrong = |field, reason: String| errors.push(FieldError { field, reason });
        let score = fields.score.and_then(|raw| parse::<i64>(raw.get()).ok()).and_then(Score::of_number);
        if score.is_none() {
            wrong("score", "must be 1 or -1".to_owned());
        }
        let comment: Option<String> = match json::given(fields.comment).map(|raw| parse::<String>(raw.get())) {
            None => None,
            Some(Ok(comment)) if comment.chars().count() <= COMMENT_CHARS => Some(comment),
            Some(Ok(_) | Err(_)) => {
                wrong("comment", format!("must be a string of up to {COMMENT_CHARS} characters"));
                None
            }
        };
        let tags: Vec<String> = match json::given(fields.tags).map(|raw| parse::<Vec<String>>(raw.get())) {
            None => Vec::new(),
            Some(Ok(tags)) if tags.len() <= TAGS && tags.iter().all(|tag| is_tag(tag)) => tags,
            Some(Ok(_) | Err(_)) => {
                let of_each = format!("of 1 to {TAG_CHARS} characters each, none of them a control character");
                wrong("tags", format!("must be a list of up to {TAGS} strings, {of_each}"));
                Vec::new()
            }
        };
        match score.filter(|_| errors.is_empty()) {
            Some(score) => Ok(Feedback { score, comment: comment.filter(|text| !text.trim().is_empty()), tags }),
            None => Err(DecodeError::Fields(errors)),
        }
    }
}

fn is_tag(tag: &str) -> bool {
    !tag.trim().is_empty() && tag.chars().count() <= TAG_CHARS && !tag.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_is_bounded_and_every_mistake_is_named() {
        let good = |comment: Option<&str>, tags: &[&str]| {
            let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
            Ok(Feedback { score: Score::Good, comment: comment.map(str::to_owned), tags })
        };
        let long = format!(r#"{{"score": 1, "comment": "{}"}}"#, "x".repeat(2001));
        let many = format!(r#"{{"score": 1, "tags": [{}]}}"#, [r#""t""#; 11].join(","));
        let rows = [
            (r#"{"score": 1}"#, good(None, &[])),
            (r#"{"score": 1, "comment": "a\u0000\n<b>", "tags": ["wrong"]}"#, good(Some("a\0\n<b>"), &["wrong"])),
            (r#"{"score": 1, "comment": " ", "tags": null, "other": []}"#, good(None, &[])),
            ("{}", Err("score")),
            (r#"{"score": 0}"#, Err("score")),
            (r#"{"score": 1.5}"#, Err("score")),
            (r#"{"score": "1"}"#, Err("score")),
            (r#"{"score": 2, "comment": 7, "tags": {}}"#, Err("score comment tags")),
            (r#"{"score": 1, "tags": [""]}"#, Err("tags")),
            (r#"{"score": 1, "tags": ["a\nb"]}"#, Err("tags")),
            (&long, Err("comment")),
            (&many, Err("tags")),
        ];
        for (body, expected) in rows {
            let found = FeedbackBody::decode(body.as_bytes()).map_err(|error| match error {
                DecodeError::Fields(errors) => errors.iter().map(|error| error.field).collect::<Vec<_>>().join(" "),
                error => panic!("{error:?}"),
            });
            assert_eq!(found, expected.map_err(str::to_owned), "{body}");
        }
    }
}
