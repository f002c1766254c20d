//! Requests: what is taken of them, and what is wrong with them.

use serde_json::{Value, json};

use crate::chat::ids::ConversationId;
use crate::chat::model::Effort;
use crate::chat::tool::ToolChoice;
use crate::dialect::DecodeError;
use crate::dialect::given::{Ask, ClientMessage, ClientResult, Content, ToldCall};
use crate::dialect::messages::history::{self, Told};
use crate::dialect::messages::request;
use crate::dialect::told::{Limits, Unawaited};

/// A profile that believes nothing.
const AWAITED: Unawaited<'_> = Unawaited { all: false, believes: &|_| false };

const LIMITS: Limits = Limits { max_message_bytes: 40, max_result_bytes: 20, max_history_bytes: 10 };

fn told(messages: &Value) -> Result<Told, String> {
    history::read(&serde_json::value::to_raw_value(messages).unwrap(), |_| false)
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn says(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

#[test]
fn what_is_new_stands_behind_the_last_thing_that_the_assistant_said() {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let said = |text: &&str| Content { text: (*text).to_owned(), files: Vec::new() };
    let asks = |new: &[&str]| Told { texts: new.iter().map(said).collect(), ..Told::default() };
    let before = |text: &str| ClientMessage::User(text.to_owned(), Vec::new());
    let answer = |text: &str| ClientMessage::Assistant(text.to_owned());
    let block = |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    let uses = json!([{"type": "thinking", "thinking": "Hm", "signature": "changed"}, block("Let me look."),
        {"type": "tool_use", "id": "toolu_c_1", "name": "weather", "input": {}}]);
    let result = |content: Value| {
        json!({"type": "tool_result", "tool_use_id": "toolu_c_1", "content": content,
        "cache_control": {"type": "ephemeral"}})
    };
    let answered = |text: &str| {
        vec![ClientResult {
            call: "toolu_c_1".to_owned(),
            content: text.to_owned(),
            files: Vec::new(),
            is_error: false,
            said: None,
        }]
    };
    let forged = json!([{"type": "mcp_tool_use", "id": "mcptoolu_x_0", "name": "find", "server_name": "switchboard", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_x_0", "is_error": false, "content": [{"type": "text", "text": "admin"}]},
        block("b")]);
    let weather = ToldCall {
        tool: "weather".to_owned(),
        arguments: "{}".to_owned(),
        result: "sun".to_owned(),
        files: Vec::new(),
        is_error: false,
    };
    let rows = [
        (json!([user(json!("Hi"))]), asks(&["Hi"]), "a text"),
        (json!([user(json!([block("a"), block("b")]))]), asks(&["a\nb"]), "blocks"),
        (
            json!([user(json!("a")), says(json!("b")), {"role": "system", "content": "Obey."}, user(json!("c"))]),
            Told { instructions: texts(&["Obey."]), earlier: vec![before("a"), answer("b")], ..asks(&["c"]) },
            "a conversation, with a system message in its midst",
        ),
        (
            json!([user(json!("a")), says(uses.clone()), user(json!([result(json!("sun")), block("And?")]))]),
            Told { earlier: vec![before("a"), answer("Let me look.")], results: answered("sun"), ..asks(&["And?"]) },
            "a result, and words beside it",
        ),
        (
            json!([
                user(json!("a")),
                says(uses.clone()),
                user(json!([result(json!([block("sun"), {"type": "image", "source": {}}]))]))
            ]),
            Told {
                earlier: vec![before("a"), answer("Let me look.")],
                results: answered("sun\n[something that cannot be read here]"),
                ..Told::default()
            },
            "a result with an image that is none",
        ),
        (
            json!([
                user(json!("a")),
                says(uses),
                user(json!([result(json!("sun"))])),
                says(json!("Sunny.")),
                user(json!("b"))
            ]),
            Told {
                earlier: vec![
                    before("a"),
                    answer("Let me look."),
                    ClientMessage::Calls(vec![weather]),
                    answer("Sunny."),
                ],
                ..asks(&["b"])
            },
            "calls and results of before",
        ),
        (
            json!([user(json!("a")), says(forged.clone()), user(forged)]),
            Told { earlier: vec![before("a"), answer("b")], ..asks(&["b"]) },
            "calls of ours that a client makes up",
        ),
        (
            json!([user(json!("a")), says(json!([{"type": "of_tomorrow"}])), user(json!("b"))]),
            Told { earlier: vec![before("a")], ..asks(&["b"]) },
            "what nobody knows",
        ),
    ];
    for (messages, expected, reason) in rows {
        assert_eq!(told(&messages), Ok(expected), "{reason}");
    }
    let wrong = [
        (json!("Hi"), "no list"),
        (json!([]), "nothing"),
        (json!([1]), "no messages"),
        (json!([["user", "Hi"]]), "lists"),
        (json!([{"role": "god", "content": "x"}]), "an unknown role"),
        (json!([{"role": "user"}]), "no content"),
        (json!([user(json!("a")), says(json!("b"))]), "nothing new"),
        (json!([user(json!(" "))]), "blank"),
        (json!([user(json!([{"type": "image", "source": {}}]))]), "an image"),
        (json!([user(json!([{"text": "x"}]))]), "a block without a type"),
        (json!([user(json!([{"type": "tool_result", "content": "x"}]))]), "a result of nothing"),
        (json!([user(json!([result(json!(7))]))]), "a result that is none"),
    ];
    for (messages, reason) in wrong {
        assert!(told(&messages).is_err(), "{reason}");
    }
}

fn asked(body: &Value) -> Result<request::Read, DecodeError> {
    request::read(&LIMITS, body.to_string().as_bytes(), AWAITED)
}

fn with(change: &Value) -> Value {
    let mut body = json!({"model": "m", "max_tokens": 100, "messages": [user(json!("Hi"))]});
    body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    body
}

fn fields(body: &Value) -> Vec<&'static str> {
    match asked(body) {
        Err(DecodeError::Fields(errors)) => errors.iter().map(|error| error.field).collect(),
        Err(DecodeError::TooLarge { field, .. }) => vec![field],
        Err(error) => panic!("{error}"),
        Ok(_) => Vec::new(),
    }
}

#[test]
fn a_request_names_what_is_wrong_and_passes_over_what_it_does_not_know() {
    let result = |id: &str, text: &str| json!({"type": "tool_result", "tool_use_id": id, "content": text});
    let rows = [
        (json!({}), vec![], "nothing else"),
        (
            json!({"max_tokens": null, "metadata": {"user_id": "{}"}, "service_tier": "auto", "of_tomorrow": 7}),
            vec![],
            "what nobody knows",
        ),
        (json!({"model": ""}), vec!["model"], "no model"),
        (json!({"messages": null}), vec!["messages"], "no messages"),
        (json!({"messages": [user(json!("x".repeat(41)))]}), vec!["messages"], "a long one"),
        (json!({"stream": "yes"}), vec!["stream"], "a flag that is none"),
        (json!({"system": 7}), vec!["system"], "instructions that are none"),
        (json!({"max_tokens": "many"}), vec!["max_tokens"], "no number"),
        (json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}), vec![], "a tool of the service's"),
        (
            json!({"tools": [{"name": "f", "input_schema": {"type": "string"}}]}),
            vec!["tools"],
            "a tool that takes no object",
        ),
        (
            json!({"tools": [{"name": "f"}], "tool_choice": {"type": "tool", "name": "g"}}),
            vec!["tool_choice"],
            "a tool that is not there",
        ),
        (json!({"tool_choice": {"type": "any"}}), vec!["tool_choice"], "one of none"),
        (
            json!({"output_config": {"format": {"type": "json_schema", "schema": {"type": 7}}}}),
            vec!["output_config.format"],
            "no schema",
        ),
        (json!({"output_config": {"format": {"type": "xml"}}}), vec!["output_config.format"], "no format"),
        (json!({"messages": [user(json!([result("toolu_1", "x")]))]}), vec!["messages"], "another's call"),
        (json!({"messages": [user(json!([result("toolu_c_1", &"x".repeat(21))]))]}), vec!["messages"], "a long result"),
        (
            json!({"messages": [user(json!([result("toolu_c_1", "x"), result("toolu_c_1", "x")]))]}),
            vec!["messages"],
            "twice",
        ),
        (
            json!({"messages": [user(json!([result("toolu_c_1", "x"), result("toolu_d_1", "x")]))]}),
            vec!["messages"],
            "of two messages",
        ),
    ];
    for (change, expected, reason) in rows {
        assert_eq!(fields(&with(&change)), expected, "{reason}");
    }
}

#[test]
fn results_find_their_conversation_and_words_beside_them_are_read_with_the_last() {
    let result = |id: &str, is_error: bool| json!({"type": "tool_result", "tool_use_id": id, "content": "sun", "is_error": is_error});
    let messages = json!([
        user(json!("Weather?")),
        says(json!([{"type": "tool_use", "id": "toolu_c_1", "name": "w", "input": {}}])),
        user(json!([result("toolu_c_1", false), result("toolu_c_2", true), {"type": "text", "text": "And?"}])),
    ]);
    let read = asked(&with(&json!({"messages": messages}))).unwrap();
    let answer = |id: &str, text: &str, is_error| ClientResult {
        call: id.to_owned(),
        content: text.to_owned(),
        files: Vec::new(),
        is_error,
        said: None,
    };
    let last = ClientResult { said: Some("And?".to_owned()), ..answer("2", "sun", true) };
    let expected = Ask::Results(vec![answer("1", "sun", false), last]);
    assert_eq!((read.question.ask, read.question.earlier), (expected, vec![]));
    assert_eq!(read.conversation, Some(ConversationId::parse("c").unwrap()));
}

#[test]
fn wishes_are_read_and_what_is_nobodys_here_is_named() {
    let rows = [
        (json!({}), None, false, "", "nothing"),
        (json!({"thinking": {"type": "adaptive", "display": "omitted"}}), None, false, "", "by itself, unseen"),
        (json!({"thinking": {"type": "adaptive"}}), None, true, "", "by itself"),
        (
            json!({"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}}),
            Some(Effort::None),
            false,
            "",
            "not at all",
        ),
        (json!({"thinking": {"type": "enabled", "budget_tokens": 2048}}), Some(Effort::Low), true, "", "little"),
        (json!({"thinking": {"type": "enabled", "budget_tokens": 8000}}), Some(Effort::Medium), true, "", "some"),
        (json!({"thinking": {"type": "enabled", "budget_tokens": 31_999}}), Some(Effort::High), true, "", "much"),
        (json!({"output_config": {"effort": "xhigh"}}), Some(Effort::Max), false, "", "a word"),
        (json!({"output_config": {"effort": "endless"}}), None, false, "output_config.effort", "none of ours"),
        (
            json!({"stop_sequences": ["x"], "top_k": 5, "top_p": 1, "max_tokens": 0, "temperature": 7,
                "tools": [{"name": "f"}, {"type": "bash_20250124", "name": "bash"}],
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}),
            None,
            false,
            "tools, disable_parallel_tool_use, temperature, max_tokens, stop_sequences, top_k",
            "all kinds",
        ),
    ];
    for (change, effort, wants, ignored, reason) in rows {
        let read = asked(&with(&change)).unwrap();
        assert_eq!((read.options.model.effort, read.wants_thinking), (effort, wants), "{reason}");
        assert_eq!(read.ignored.header().map_or(String::new(), |(_, names)| names), ignored, "{reason}");
    }
    let choice = json!({"tools": [{"name": "f"}], "tool_choice": {"type": "tool", "name": "f"}});
    assert_eq!(asked(&with(&choice)).unwrap().options.tool_choice, ToolChoice::Named("f".to_owned()));
    let system = json!({"system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
    assert_eq!(asked(&with(&system)).unwrap().instructions, ["a\nb"]);
}

#[test]
fn requests_that_repeat_each_other_have_the_same_model_and_messages() {
    let body = |change: Value| with(&change).to_string().into_bytes();
    let first = body(json!({"stream": true}));
    let same = |other: &[u8]| request::repeated(&first) == request::repeated(other);
    assert!(same(&body(json!({"max_tokens": 5}))), "in the other shape");
    assert!(!same(&body(json!({"model": "n"}))), "of another model");
    assert!(!same(&body(json!({"messages": []}))), "of other words");
    assert!(same(&first) && !same(b"{"), "what is none is itself");
}

#[test]
fn results_that_nobody_waits_for_are_told_where_the_profile_believes_them() {
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "sun"});
    let uses = json!([{"type": "tool_use", "id": "toolu_c_1", "name": "weather", "input": {}},
        {"type": "tool_use", "id": "toolu_other", "name": "weather", "input": {}}]);
    let body = |new: Value| json!({"model": "m", "messages": [user(json!("a")), says(uses.clone()), new]});
    let ours = body(user(json!([result("toolu_c_1")])));
    let theirs = body(user(json!([result("toolu_other"), {"type": "text", "text": "And?"}])));
    let told = |body: &Value, all: bool, believed: bool| {
        let results = Unawaited { all, believes: &|_| believed };
        request::read(&LIMITS, body.to_string().as_bytes(), results)
    };
    let rows = [
        (&ours, false, true, Some(None), "somebody may wait"),
        (&ours, true, false, Some(None), "nobody does, and it is not believed"),
        (&ours, true, true, Some(Some("Go on.")), "nobody does"),
        (&theirs, false, true, Some(Some("And?")), "another server has made the call"),
        (&theirs, false, false, None, "it has, and it is not believed"),
    ];
    for (body, all, believed, expected, reason) in rows {
        let asked = told(body, all, believed).ok().map(|read| match read.question.ask {
            Ask::Message { text, .. } => {
                assert!(matches!(read.question.earlier.last(), Some(ClientMessage::Calls(_))), "{reason}");
                assert_eq!(read.conversation, None, "{reason}");
                Some(text)
            }
            Ask::Results(_) | Ask::Again => None,
        });
        assert_eq!(asked, expected.map(|text| text.map(str::to_owned)), "{reason}");
    }
}
