//! Failures in the words of a tool's own protocol: an object with its type, a code, and a sentence for the model.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{ToolError, parse_args};
use crate::chat::fate::CallError;
use crate::chat::tool::ToolOutput;
use crate::chat::worded::Worded;

/// The code of arguments that are missing, or of the wrong type.
const ARGS_VALIDATION: &str = "args_validation";

/// What the model reads of arguments that are none.
pub(super) const NO_OBJECT: &str = "the arguments are not a JSON object";

/// A tool that words its failures: its name, and the `type` of what the model reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wording {
    /// The tool's name.
    pub name: &'static str,
    /// Such as `run_command_error`; `tool_error` where a tool has none of its own.
    pub kind: &'static str,
}

impl Wording {
    /// The failure with this code, in these words.
    pub fn error(&self, code: &'static str, words: &str) -> ToolError {
        let error = match code {
            "timeout" => CallError::TimedOut,
            ARGS_VALIDATION | "bad_params" => CallError::BadArguments,
            _ => CallError::Failed,
        };
        self.worded((self.kind, code), words, None, error)
    }

    /// A call whose time was over, with what there is of it.
    pub fn timeout(&self, kind: &'static str, words: &str, details: Value) -> ToolError {
        self.worded((kind, "timeout"), words, Some(details), CallError::TimedOut)
    }

    /// Arguments that are no JSON object.
    pub fn no_object(&self) -> ToolError {
        self.error(ARGS_VALIDATION, NO_OBJECT)
    }

    /// The arguments as a handler's own type.
    ///
    /// # Errors
    /// With the path of the argument and what is wrong with it.
    pub fn args<T: DeserializeOwned>(&self, args: &Map<String, Value>) -> Result<T, ToolError> {
        parse_args(args).map_err(|error| match error {
            ToolError::BadParams(reason) => self.error(ARGS_VALIDATION, &reason),
            other => other,
        })
    }

    fn worded(&self, (kind, code): (&str, &str), error: &str, details: Option<Value>, why: CallError) -> ToolError {
        let worded = Worded { kind, name: self.name, code, error, details };
        match worded.to_json() {
            Ok(content) => ToolError::Worded { content, error: why },
            Err(error) => ToolError::Refused(error.to_string()),
        }
    }
}

/// A result as JSON.
pub fn told(result: &impl Serialize) -> ToolOutput {
    match serde_json::to_string(result) {
        Ok(content) => ToolOutput::ok(content),
        Err(error) => ToolOutput::error(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Args {
        #[expect(dead_code, reason = "only its presence matters")]
        path: String,
    }

    #[test]
    fn a_failure_is_an_object_of_the_tools_own_type() {
        let wording = Wording { name: "read_file", kind: "read_file_error" };
        let content = |error: ToolError| match error {
            ToolError::Worded { content, error } => (serde_json::from_str::<Value>(&content).unwrap(), error),
            other => panic!("{other}"),
        };
        let missing = wording.args::<Args>(&Map::new()).unwrap_err();
        let expected = json!({
            "type": "read_file_error", "name": "read_file", "code": "args_validation", "error": "missing field `path`",
        });
        assert_eq!(content(missing), (expected, CallError::BadArguments));
        let late = wording.timeout("read_timeout", "too late", json!({"stdout": "x"}));
        let expected = json!({
            "type": "read_timeout", "name": "read_file", "code": "timeout", "error": "too late",
            "details": {"stdout": "x"},
        });
        assert_eq!(content(late), (expected, CallError::TimedOut));
    }
}
