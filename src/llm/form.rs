//! What a vendor cannot hold its model to, in words at the end of the system prompt: the form of the answer, and that a tool
//! has to be called.

use super::schema;
use crate::agent::ports::llm::{ChatRequest, MustCall};
use crate::chat::answer_format::AnswerFormat;

/// The form of an answer for a model that nothing else tells of it.
pub(crate) fn of_answer(format: &AnswerFormat) -> String {
    let form = "When you have called all the tools that you need, your answer is one JSON object and nothing else: no words around it, \
                no block of code.";
    match format {
        AnswerFormat::Object => form.to_owned(),
        AnswerFormat::Schema(schema) => {
            // Nothing in it can end the block.
            let json = schema.schema.to_string().replace("```", "\\u0060\\u0060\\u0060");
            format!("{form} It fits this JSON Schema:\n```json\n{json}\n```")
        }
    }
}

/// That a tool has to be called, for a model that nothing else forces to it; `None` where it decides.
pub(crate) fn of_call(must_call: MustCall<'_>) -> Option<String> {
    match must_call {
        MustCall::No => None,
        MustCall::Any => Some("Do not answer in words: call a tool.".to_owned()),
        MustCall::This(name) => Some(format!("Do not answer in words: call the tool {name}.")),
    }
}

/// What a model is told that may not call a tool, where its request cannot say so.
pub(crate) fn of_no_call() -> String {
    "Do not call a tool: answer in words.".to_owned()
}

/// The whole system prompt as one text, `words` at its end.
pub(crate) fn system(chat: &ChatRequest<'_>, words: Option<&str>) -> String {
    let mut system = chat.system.text();
    if let Some(words) = words {
        if !system.is_empty() {
            system.push_str("\n\n");
        }
        system.push_str(words);
    }
    system
}

/// Whether the model can call a tool.
pub(crate) fn has_tools(chat: &ChatRequest<'_>) -> bool {
    chat.may_call && !chat.tools.is_empty()
}

/// Whether the client wants its schema held to the letter, and it is one that vendors can hold a model to so.
pub(crate) fn is_strict(format: &AnswerFormat) -> bool {
    match format {
        AnswerFormat::Object => false,
        AnswerFormat::Schema(answer) => answer.is_strict && schema::is_strict(&answer.schema),
    }
}
