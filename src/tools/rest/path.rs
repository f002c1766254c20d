//! A path with placeholders, such as `/v1/things/{id}/close`. A value fills its placeholder and no more: it is sent
//! as one segment, whatever is in it.

use serde_json::{Map, Value};

use crate::tools::ToolError;

/// A path below the backend's root.
#[derive(Debug, Clone, PartialEq)]
pub struct PathTemplate {
    segments: Vec<Vec<Piece>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    Argument(String),
}

/// Why a text is no such path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It begins with something else.
    #[error("must begin with /")]
    NotRooted,
    /// `//`.
    #[error("must not have an empty part")]
    EmptyPart,
    /// `.` or `..`.
    #[error("must not have the part {0:?}")]
    Dots(String),
    /// A brace without its other half, or nothing between two.
    #[error("must have braces in pairs, each around the name of an argument")]
    Braces,
    /// Something that is not written in paths; a query is made of arguments, and encoding is done here.
    #[error("must not have {0:?}")]
    Character(char),
}

impl PathTemplate {
    /// The template in `text`.
    ///
    /// # Errors
    /// See [`PathError`].
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let path = text.strip_prefix('/').ok_or(PathError::NotRooted)?;
        // The root is one empty segment. Some APIs want a slash at the end: an empty segment behind the others.
        let (path, is_open) = match path {
            "" => return Ok(Self { segments: vec![Vec::new()] }),
            _ => path.strip_suffix('/').map_or((path, false), |path| (path, true)),
        };
        let mut segments = path.split('/').map(segment).collect::<Result<Vec<_>, _>>()?;
        segments.extend(is_open.then(Vec::new));
        Ok(Self { segments })
    }

    /// Its text.
    pub fn written(&self) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Argument(name) => format!("{{{name}}}"),
        };
        self.segments.iter().map(|pieces| format!("/{}", pieces.iter().map(piece).collect::<String>())).collect()
    }

    /// The names of the arguments in it, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flatten().filter_map(|piece| match piece {
            Piece::Argument(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// Whether the argument `name` is in it.
    pub fn has(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// The segments, not yet encoded, with every placeholder filled.
    ///
    /// # Errors
    /// [`ToolError::BadParams`] for an argument that is absent, or that no segment can be made of.
    pub fn fill(&self, args: &Map<String, Value>) -> Result<Vec<String>, ToolError> {
        let fill = |pieces: &Vec<Piece>| {
            pieces.iter().try_fold(String::new(), |segment, piece| match piece {
                Piece::Text(text) => Ok(segment + text),
                Piece::Argument(name) => Ok(segment + &value(name, args.get(name))?),
            })
        };
        self.segments.iter().map(fill).collect()
    }
}

fn segment(text: &str) -> Result<Vec<Piece>, PathError> {
    match text {
        "" => return Err(PathError::EmptyPart),
        "." | ".." => return Err(PathError::Dots(text.to_owned())),
        _ => {}
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (literal, after) = rest.split_at(rest.find(['{', '}']).unwrap_or(rest.len()));
        if let Some(odd) = literal.chars().find(|c| !is_plain(*c)) {
            return Err(PathError::Character(odd));
        }
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal.to_owned()));
        }
        if after.is_empty() {
            break;
        }
        let (name, after) = after.strip_prefix('{').and_then(|open| open.split_once('}')).ok_or(PathError::Braces)?;
        if name.is_empty() || name.contains('{') {
            return Err(PathError::Braces);
        }
        pieces.push(Piece::Argument(name.to_owned()));
        rest = after;
    }
    Ok(pieces)
}

/// What RFC 3986 lets stand in a segment as it is.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@".contains(c)
}

fn value(name: &str, value: Option<&Value>) -> Result<String, ToolError> {
    let text = match value {
        None | Some(Value::Null) => return Err(ToolError::BadParams(format!("missing {name}"))),
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
        Some(Value::Array(_) | Value::Object(_)) => {
            return Err(ToolError::BadParams(format!("{name} must be text, a number or a bool")));
        }
    };
    // Nothing would lead to the parent of what is meant, and dots would lead anywhere.
    match text.trim() {
        "" | "." | ".." => Err(ToolError::BadParams(format!("{name} must name one thing, and {text:?} does not"))),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(path: &str, args: Value) -> Result<Vec<String>, String> {
        let template = PathTemplate::parse(path).unwrap();
        template.fill(args.as_object().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_template_is_a_path_with_names_in_braces() {
        type Names<'a> = Result<&'a [&'a str], PathError>;
        let rows: [(&str, Names<'_>, &str); 15] = [
            ("/v1/things", Ok(&[]), "no argument"),
            ("/v1/{a}/b/{c}", Ok(&["a", "c"]), "whole segments"),
            ("/v{version}/{id}.json", Ok(&["version", "id"]), "parts of segments"),
            ("/{a}-{b}/{a}", Ok(&["a", "b", "a"]), "two in one segment, one twice"),
            ("v1/things", Err(PathError::NotRooted), "not below the root"),
            ("https://evil.example/", Err(PathError::NotRooted), "another origin"),
            ("//evil.example/", Err(PathError::EmptyPart), "another origin in short"),
            ("/v1/things/", Ok(&[]), "a slash at the end"),
            ("/v1//", Err(PathError::EmptyPart), "two of them"),
            ("/", Ok(&[]), "the root"),
            ("/v1/../admin", Err(PathError::Dots("..".to_owned())), "upwards"),
            ("/v1/{id", Err(PathError::Braces), "not closed"),
            ("/v1/id}", Err(PathError::Braces), "not opened"),
            ("/v1/{}", Err(PathError::Braces), "no name"),
            ("/v1/things?all=1", Err(PathError::Character('?')), "a query"),
        ];
        for (path, expected, reason) in rows {
            let names =
                PathTemplate::parse(path).map(|template| template.names().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(names, expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect()), "{reason}");
        }
    }

    #[test]
    fn a_value_fills_its_placeholder_or_is_refused() {
        let rows = [
            (json!({"id": "a/b"}), Ok("a/b"), "still unencoded, and one segment"),
            (json!({"id": 7}), Ok("7"), "a number"),
            (json!({"id": true}), Ok("true"), "a bool"),
            (json!({"id": "..."}), Ok("..."), "three dots mean nothing"),
            (json!({}), Err("bad params: missing id"), "absent"),
            (json!({"id": null}), Err("bad params: missing id"), "null"),
            (json!({"id": ""}), Err("bad params: id must name one thing, and \"\" does not"), "empty"),
            (json!({"id": " "}), Err("bad params: id must name one thing, and \" \" does not"), "blank"),
            (json!({"id": ".."}), Err("bad params: id must name one thing, and \"..\" does not"), "upwards"),
            (json!({"id": ["a"]}), Err("bad params: id must be text, a number or a bool"), "a list"),
        ];
        for (args, expected, reason) in rows {
            let expected = expected.map(|id| vec!["v1".to_owned(), id.to_owned(), "close".to_owned()]);
            assert_eq!(filled("/v1/{id}/close", args), expected.map_err(str::to_owned), "{reason}");
        }
        assert_eq!(filled("/v{n}/{a}-{b}", json!({"n": 2, "a": "x", "b": "y"})), Ok(vec!["v2".into(), "x-y".into()]));
    }
}
