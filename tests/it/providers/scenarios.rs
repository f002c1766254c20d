//! Conversations as they stand before a model's turn, each about one thing that a request must get right.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use switchboard::agent::ports::llm::{Loaded, MustCall, SystemPrompt};
use switchboard::chat::answer_format::AnswerFormat;
use switchboard::chat::fate::CallFate;
use switchboard::chat::file::{FileKind, FileRef};
use switchboard::chat::ids::{FileId, ToolCallId};
use switchboard::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin, Replay, UserMessage};
use switchboard::chat::model::Effort;
use switchboard::chat::tool::{ToolCall, ToolDef, ToolInput, ToolResult};
use switchboard::llm::Vendor;

/// What a turn is asked with.
pub(super) struct Scenario {
    pub(super) system: SystemPrompt,
    pub(super) messages: Vec<Message>,
    pub(super) tools: Vec<Arc<ToolDef>>,
    pub(super) effort: Option<Effort>,
    pub(super) temperature: Option<f64>,
    pub(super) may_call: bool,
    pub(super) must_call: MustCall<'static>,
    pub(super) format: Option<AnswerFormat>,
    /// The bytes of the files that the messages name.
    pub(super) files: HashMap<FileId, Loaded>,
}

/// The model that is asked, and what its vendor wants back: with thinking, with a call, and as a piece of its own.
pub(super) struct Asked {
    pub(super) ours: Arc<ModelOrigin>,
    pub(super) on_thinking: Option<Replay>,
    pub(super) on_call: Option<Replay>,
    pub(super) alone: Option<Replay>,
}

impl Asked {
    pub(super) fn of(vendor: Vendor, ours: ModelOrigin) -> Self {
        let (on_thinking, on_call, alone) = match vendor {
            Vendor::Claude => (json!("SIG=="), Value::Null, json!({"type": "redacted_thinking", "data": "AAA="})),
            Vendor::Gemini | Vendor::Vertex => (Value::Null, json!("SIG=="), Value::Null),
            Vendor::Ollama => (Value::Null, Value::Null, Value::Null),
            Vendor::Bedrock => (json!("SIG=="), Value::Null, json!({"reasoningContent": {"redactedContent": "AAA="}})),
            Vendor::OpenAi => {
                (json!("reasoning_content"), json!({"google": {"thought_signature": "CiQB"}}), Value::Null)
            }
        };
        let [on_thinking, on_call, alone] = [on_thinking, on_call, alone].map(|data| replay(&data));
        Self { ours: Arc::new(ours), on_thinking, on_call, alone }
    }

    /// The same on the Responses wire, where nothing is said with a call.
    pub(super) fn of_responses(ours: ModelOrigin) -> Self {
        let item = json!({"type": "reasoning", "summary": [], "encrypted_content": "gAAAAAB=="});
        let on_thinking = replay(&json!({"reasoning_item": item}));
        Self { ours: Arc::new(ours), on_thinking, on_call: None, alone: None }
    }

    fn says(&self, parts: Vec<AssistantPart>) -> Message {
        Message::Assistant(AssistantMessage { origin: Arc::clone(&self.ours), parts })
    }

    fn thought(&self, text: &str) -> AssistantPart {
        AssistantPart::Thinking { text: text.to_owned(), replay: self.on_thinking.clone() }
    }
}

fn other_says(parts: Vec<AssistantPart>) -> Message {
    let origin = Arc::new(ModelOrigin { provider: "other".to_owned(), model: "m".to_owned() });
    Message::Assistant(AssistantMessage { origin, parts })
}

fn replay(data: &Value) -> Option<Replay> {
    (!data.is_null()).then(|| Replay::new(to_raw_value(data).unwrap()))
}

pub fn user(text: &str) -> Message {
    Message::User(UserMessage::new(text))
}

fn text(text: &str) -> AssistantPart {
    AssistantPart::Text { text: text.to_owned(), replay: None }
}

fn call(id: &ToolCallId, name: &str, input: &str, replay: Option<Replay>) -> AssistantPart {
    let call = ToolCall { id: id.clone(), name: name.to_owned(), input: ToolInput::parse(input) };
    AssistantPart::ToolCall { call, replay }
}

fn result(id: &ToolCallId, name: &str, content: &str) -> ToolResult {
    ToolResult {
        id: id.clone(),
        name: name.to_owned(),
        content: content.to_owned(),
        fate: CallFate::Done,
        files: Vec::new(),
    }
}

fn failed(id: &ToolCallId, name: &str, content: &str) -> ToolResult {
    ToolResult { fate: CallFate::Failed, ..result(id, name, content) }
}

fn tools() -> Vec<Arc<ToolDef>> {
    let find = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"q": {"type": ["string", "null"]}, "n": {"type": "array", "items": {"type": "number"}}},
        "required": ["q"],
        "additionalProperties": false,
    });
    vec![tool("find", find), tool("list_all", json!({"type": "object"}))]
}

fn tool(name: &str, input_schema: Value) -> Arc<ToolDef> {
    Arc::new(ToolDef { name: name.to_owned(), description: format!("Runs {name}."), input_schema })
}

/// A scenario with tools, a screen and nothing chosen.
fn scenario(messages: Vec<Message>) -> Scenario {
    let system = SystemPrompt {
        instructions: "Be brief.".into(),
        client: String::new(),
        context: "The user looks at table 7.".to_owned(),
    };
    Scenario {
        system,
        messages,
        tools: tools(),
        effort: None,
        temperature: None,
        may_call: true,
        must_call: MustCall::No,
        format: None,
        files: HashMap::new(),
    }
}

/// The first words: no screen, no tools; a temperature.
pub(super) fn first_words(_: &Asked) -> Scenario {
    let system = SystemPrompt { instructions: "Be brief.".into(), client: String::new(), context: String::new() };
    Scenario { system, tools: Vec::new(), temperature: Some(0.5), ..scenario(vec![user("hello")]) }
}

/// One call and its result.
pub(super) fn one_call(asked: &Asked) -> Scenario {
    let id = ToolCallId::from_model("toolu_1");
    scenario(vec![
        user("Who is Jane?"),
        asked.says(vec![text("One moment."), call(&id, "find", r#"{"q":"Jane"}"#, asked.on_call.clone())]),
        Message::ToolResults(vec![result(&id, "find", r#"{"id":7}"#)]),
    ])
}

/// Two calls at once, the second without an id of the vendor, answered in another order and one with an error.
pub(super) fn parallel_calls(asked: &Asked) -> Scenario {
    let (given, minted) = (ToolCallId::from_model("toolu_1"), ToolCallId::from_minted("call_0123"));
    scenario(vec![
        user("Who is Jane, and who else is there?"),
        asked.says(vec![
            call(&given, "find", r#"{"q":"Jane","n":[1,2.5]}"#, asked.on_call.clone()),
            call(&minted, "list_all", "", None),
        ]),
        Message::ToolResults(vec![
            failed(&minted, "list_all", r#"{"error":"not now"}"#),
            result(&given, "find", r#"{"id":7}"#),
        ]),
    ])
}

/// The second step of a turn that thinks, after a run that thought as well.
pub(super) fn thinking(asked: &Asked) -> Scenario {
    let (first, second) = (ToolCallId::from_model("toolu_1"), ToolCallId::from_model("toolu_2"));
    let mut step = vec![asked.thought("Look her up.")];
    step.extend(asked.alone.clone().map(AssistantPart::Opaque));
    step.push(call(&first, "find", r#"{"q":"Jane"}"#, asked.on_call.clone()));
    let messages = vec![
        user("hello"),
        asked.says(vec![asked.thought("A greeting."), text("Hello!")]),
        user("Who is Jane's boss?"),
        asked.says(step),
        Message::ToolResults(vec![result(&first, "find", r#"{"id":7,"boss":8}"#)]),
        asked.says(vec![
            asked.thought(""),
            text("Her boss is 8."),
            call(&second, "find", r#"{"q":"8"}"#, asked.on_call.clone()),
        ]),
        Message::ToolResults(vec![result(&second, "find", r#"{"id":8}"#)]),
    ];
    Scenario { effort: Some(Effort::Medium), ..scenario(messages) }
}

/// Another model began the conversation and its last turn's calls; this one takes over with the results.
pub(super) fn fallback(_: &Asked) -> Scenario {
    let (odd, minted) = (ToolCallId::from_model("functions.find:0"), ToolCallId::from_minted("call_0123"));
    let foreign = || replay(&json!("foreign"));
    let messages = vec![
        user("hello"),
        other_says(vec![AssistantPart::Thinking { text: "secret".to_owned(), replay: foreign() }, text("Hello!")]),
        user("Who is Jane?"),
        other_says(vec![
            AssistantPart::Thinking { text: "secret".to_owned(), replay: foreign() },
            AssistantPart::Text { text: " ".to_owned(), replay: foreign() },
            call(&odd, "find", r#"{"q":"Jané"}"#, foreign()),
            AssistantPart::Opaque(foreign().unwrap()),
            call(&minted, "list_all", "{}", None),
        ]),
        Message::ToolResults(vec![result(&odd, "find", r#"{"id":7}"#), result(&minted, "list_all", "[]")]),
    ];
    Scenario { effort: Some(Effort::Low), ..scenario(messages) }
}

/// A run that thought and stopped with results, before this run's words.
pub(super) fn stopped(asked: &Asked) -> Scenario {
    let Scenario { mut messages, .. } = thinking(asked);
    messages.push(user("Go on."));
    Scenario { effort: Some(Effort::Max), ..scenario(messages) }
}

/// A turn that this model began with a thought, and goes on with after another model's answer.
pub(super) fn interrupted(asked: &Asked) -> Scenario {
    let ids = ["a", "b", "c"].map(ToolCallId::from_model);
    let [a, b, c] = &ids;
    let results = |id: &ToolCallId| Message::ToolResults(vec![result(id, "list_all", "[]")]);
    let step = |id: &ToolCallId| call(id, "list_all", "{}", asked.on_call.clone());
    let messages = vec![
        user("Who is there?"),
        asked.says(vec![asked.thought("Look."), step(a)]),
        results(a),
        other_says(vec![call(b, "list_all", "{}", None)]),
        results(b),
        asked.says(vec![step(c)]),
        results(c),
    ];
    Scenario { effort: Some(Effort::Low), ..scenario(messages) }
}

/// Text before and after a call, and a signature that came alone at the end.
pub(super) fn text_around_a_call(asked: &Asked) -> Scenario {
    let id = ToolCallId::from_model("toolu_1");
    let signature = AssistantPart::Text { text: String::new(), replay: asked.on_call.clone() };
    scenario(vec![
        user("Who is Jane?"),
        asked.says(vec![text("One moment."), call(&id, "find", "{}", None), text("Here."), signature]),
        Message::ToolResults(vec![result(&id, "find", "[]")]),
    ])
}

/// Everything at once: arguments that are no JSON, an error that is no JSON, a lost result, another model's turns, and a
/// run that failed before its answer.
pub(super) fn everything(asked: &Asked) -> Scenario {
    let given = ToolCallId::from_model("toolu_1");
    let minted = ToolCallId::from_minted("call_0123");
    let odd = ToolCallId::from_model("functions.find:0");
    let mut first = vec![asked.thought("Look it up.")];
    first.extend(asked.alone.clone().map(AssistantPart::Opaque));
    first.extend([
        text("One moment."),
        call(&given, "find", r#"{"q":"Jane","n":[1,2.5]}"#, asked.on_call.clone()),
        call(&minted, "list_all", r#"{"cut"#, None),
    ]);
    let foreign = vec![
        AssistantPart::Thinking { text: "secret".to_owned(), replay: replay(&json!("foreign")) },
        text(" "),
        call(&odd, "find", r#"{"q":"é"}"#, replay(&json!("foreign"))),
        call(&ToolCallId::from_model("lost"), "find", "{}", None),
    ];
    scenario(vec![
        user("Who is Jane?"),
        asked.says(first),
        Message::ToolResults(vec![
            result(&given, "find", r#"{"id":7}"#),
            failed(&minted, "list_all", r#"{"error":"arguments are not json"}"#),
        ]),
        other_says(vec![text("Jane is "), text("7.")]),
        user("And her boss?"),
        other_says(foreign),
        Message::ToolResults(vec![failed(&odd, "find", "no such person")]),
        user("Never mind."),
        user("Hello?"),
    ])
}

/// A tool whose schema no vendor takes as it is, except those that take everything.
pub(super) fn schemas(_: &Asked) -> Scenario {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "oneOf": [
            {"properties": {"by": {"const": "code"}, "code": {"type": "string", "pattern": "^[A-Z]{3}$"}}, "required": ["by", "code"]},
            {"properties": {"by": {"const": "tree"}, "tree": {"$ref": "#/$defs/Node"}}, "required": ["by"]},
        ],
        "properties": {"rows": {"type": "integer", "exclusiveMinimum": 0, "default": 10}, "day": {"type": ["string", "null"], "format": "date"}},
        "$defs": {"Node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "required": ["name", "children"],
        }},
    });
    Scenario { tools: vec![tool("search", schema)], ..scenario(vec![user("hello")]) }
}

/// The messages of four moments: with results, with the next step's results, with the next run's words, and its results.
/// Each begins with the one before.
pub(super) fn growing(asked: &Asked) -> (Scenario, [usize; 4]) {
    let ids = ["a", "b", "c"].map(ToolCallId::from_model);
    let [a, b, c] = &ids;
    let messages = vec![
        user("Who is Jane?"),
        asked.says(vec![text("One moment."), call(a, "find", r#"{"q":"Jane"}"#, asked.on_call.clone())]),
        Message::ToolResults(vec![result(a, "find", r#"{"id":7}"#)]),
        asked.says(vec![call(b, "list_all", "", asked.on_call.clone())]),
        Message::ToolResults(vec![result(b, "list_all", "[7,8]")]),
        asked.says(vec![text("She is 7 of 2.")]),
        user("And 8?"),
        asked.says(vec![call(c, "find", r#"{"q":"8"}"#, asked.on_call.clone())]),
        Message::ToolResults(vec![failed(c, "find", "nobody")]),
    ];
    (scenario(messages), [3, 5, 7, 9])
}

/// A picture, a document and a text in a question, one file that is gone, and what tools have made: a picture, a text, and a
/// picture of a call that failed.
pub(super) fn files(asked: &Asked) -> Scenario {
    let mut bytes = HashMap::new();
    let mut file = |kind, name: &str, content: &'static str| {
        let file = FileRef { id: FileId::fresh(), kind, name: name.to_owned(), bytes: content.len() as u64, side: 1 };
        let is_kept = !content.is_empty();
        let content = is_kept.then(|| Bytes::from_static(content.as_bytes())).ok_or("it is not kept any more");
        bytes.insert(file.id, Loaded { bytes: content, rank: 1 });
        file
    };
    let given = vec![
        file(FileKind::Png, "chart.png", "a picture"),
        file(FileKind::Pdf, "paper.pdf", "a document"),
        file(FileKind::Csv, "table.csv", "a,b\n1,2"),
        file(FileKind::Jpeg, "gone.jpg", ""),
    ];
    let [drawn, listed, broken] = [
        file(FileKind::Png, "drawn.png", "drawn"),
        file(FileKind::Text, "list.txt", "one, two"),
        file(FileKind::Gif, "broken.gif", "broken"),
    ];
    let [draw, list, fail] = ["call_1", "call_2", "call_3"].map(ToolCallId::from_model);
    let calls = vec![
        call(&draw, "find", r#"{"q":"chart"}"#, asked.on_call.clone()),
        call(&list, "list_all", "{}", None),
        call(&fail, "find", r#"{"q":"other"}"#, None),
    ];
    let results = vec![
        ToolResult { files: vec![drawn], ..result(&draw, "find", "Drawn.") },
        ToolResult { files: vec![listed], ..result(&list, "list_all", "2 rows.") },
        ToolResult { files: vec![broken], ..failed(&fail, "find", "It broke.") },
    ];
    let question = UserMessage { files: given, ..UserMessage::new("What is in these?") };
    let messages = vec![Message::User(question), asked.says(calls), Message::ToolResults(results)];
    Scenario { files: bytes, ..scenario(messages) }
}
