//! Section 3: the bounded loop, the history it keeps, the English retry, the ids it fills in.

use serde_json::{Value, json};

use crate::support::app::{ADA, LOW_STOCK, TestApp};
use crate::support::frames;
use crate::support::model::{Script, Scripted, calls, says, turn, with_plain_marks};
use crate::support::upstream::Upstream;

fn results(frames: &[frames::Frame]) -> Vec<(&str, bool)> {
    let results = frames.iter().filter(|frame| frame.event == "tool_call_result");
    results.map(|f| (f.data["tool_use_id"].as_str().unwrap(), f.data["is_error"].as_bool().unwrap())).collect()
}

#[tokio::test]
async fn the_history_grows_by_what_was_said_called_and_returned() {
    let lookup = turn().text("Looking.").call("t1", "list_workflow_rules", &json!({})).done();
    let s = Scripted::playing([lookup, says("Done.")]).await;
    s.app.say("c", "List the rules").await;
    let asked = s.last_asked();
    let roles: Vec<_> = asked.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    assert_eq!(asked[1]["content"], "List the rules");
    assert_eq!(asked[2]["content"], "Looking.");
    assert_eq!(asked[2]["tool_calls"][0]["function"]["name"], "list_workflow_rules");
    assert!(s.result_of("t1")["results"].as_array().unwrap().len() > 5);
}

#[tokio::test]
async fn all_calls_of_a_turn_run_and_each_has_its_result() {
    let both = turn()
        .call("t1", "list_workflow_rules", &json!({}))
        .call("t2", "get_workflow_rule", &json!({"workflow_id": LOW_STOCK}))
        .call("t3", "no_such_tool", &json!({}))
        .done();
    let s = Scripted::playing([both, says("Both.")]).await;
    let frames = s.app.say("c", "Both at once").await;
    let expected = [
        "message_start",
        "tool_call_start",
        "tool_call_start",
        "tool_call_start",
        "tool_call_result",
        "tool_call_result",
        "tool_call_result",
        "message_start",
        "content_chunk",
        "message_complete",
    ];
    assert_eq!(frames::names(&frames), expected);
    assert_eq!(results(&frames), [("t1", false), ("t2", false), ("t3", true)]);
    assert_eq!(s.result_of("t2")["rule"]["name"], "Low Stock Alert");
    assert!(s.result_of("t3").to_string().contains("unknown tool: no_such_tool"));
}

#[tokio::test]
async fn a_tool_of_the_other_profile_is_unknown() {
    let s = Scripted::playing([calls("t1", "get_table_config", &json!({"name": "Orders"})), says("No.")]).await;
    let frames = s.app.say("c", "Show the table").await;
    assert_eq!(results(&frames), [("t1", true)]);
    assert!(s.result_of("t1").to_string().contains("unknown tool"));
}

#[tokio::test]
async fn arguments_that_are_no_object_are_an_error_that_the_model_reads() {
    let rows: [(&str, bool, &str); 6] = [
        ("", false, "no arguments at all are an empty object"),
        ("null", false, "and so is null"),
        ("\"\"", true, "a string is no object"),
        ("[1]", true, "a list is no object"),
        (r#"{"status": "active""#, true, "cut off"),
        ("not json", true, "no JSON"),
    ];
    for (args, is_error, reason) in rows {
        let s = Scripted::playing([turn().call_raw("t1", "list_my_alerts", args).done(), says("I see.")]).await;
        let frames = s.app.say("c", "My alerts").await;
        assert_eq!(results(&frames), [("t1", is_error)], "{reason}");
        assert_eq!(s.result_of("t1").to_string().contains("bad params"), is_error, "{reason}");
        assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{reason}");
    }
}

#[tokio::test]
async fn after_twenty_turns_the_run_ends_with_the_documented_message() {
    let turns = (0..20).map(|n| calls(&format!("t{n}"), "discover_trigger_types", &json!({})));
    let s = Scripted::playing(turns).await;
    let frames = s.app.say("c", "Go on for ever").await;
    let names = frames::names(&frames);
    assert_eq!(names.iter().filter(|name| **name == "message_start").count(), 20);
    assert_eq!(results(&frames).len(), 20);
    assert_eq!(names.last(), Some(&"error"));
    assert_eq!(frames::data(&frames, "error")["message"], "Maximum tool-call rounds exceeded");
    assert_eq!(frames::data(&frames, "error")["code"], "max_turns");
}

#[tokio::test]
async fn a_run_ends_with_the_calls_that_it_may_make() {
    let tools =
        ["list_workflow_rules", "list_my_alerts", "discover_trigger_types", "list_workflow_rules", "list_my_alerts"];
    let many = (0..).zip(tools).fold(turn(), |turn, (n, tool)| turn.call(&format!("t{n}"), tool, &json!({})));
    let s = Scripted::with(&[("RUNS__MAX_TOOL_CALLS", "3")], [many.done().answer(), says("Well.").answer()]).await;
    let frames = s.app.say("c", "All of them").await;
    let made = [("t0", false), ("t1", false), ("t2", false), ("t3", true), ("t4", true)];
    assert_eq!(results(&frames), made, "those within the limit are made");
    assert_eq!(frames::data(&frames, "error")["code"], "tool_call_limit");
    s.app.say("c", "And now?").await;
    assert!(!s.result_of("t2").to_string().contains("limit"), "what was done is kept: {}", s.result_of("t2"));
    assert!(s.result_of("t4").to_string().contains("the limit of tool calls is reached"));
}

#[tokio::test]
async fn an_answer_in_ideographs_is_asked_for_again_and_never_shown() {
    let chinese = turn().text("OK: ").text("这个工作流程").text("有三个步骤").done();
    let s = Scripted::playing([chinese, says("This workflow has three steps.")]).await;
    let frames = s.app.say("c", "What does it do?").await;
    let chunks: Vec<_> = frames.iter().filter_map(|frame| frame.data["chunk"].as_str()).collect();
    assert_eq!(chunks, ["OK: ", "[Retrying in English...]", "This workflow has three steps."]);
    let asked = s.last_asked();
    assert_eq!(asked[asked.len() - 2]["content"], "OK: 这个工作流程有三个步骤", "the model keeps what it said");
    assert_eq!(asked[asked.len() - 1]["content"], "Please respond in English, not Chinese.");
}

#[tokio::test]
async fn the_retry_happens_once_a_run() {
    let s = Scripted::playing([says("这个工作流程"), says("有三个步骤")]).await;
    let frames = s.app.say("c", "What does it do?").await;
    assert_eq!(frames::text(&frames), "[Retrying in English...]有三个步骤");
    assert_eq!(frames::names(&frames).last(), Some(&"message_complete"));
}

#[tokio::test]
async fn a_quoted_name_or_a_tool_call_is_no_reason_to_retry() {
    let quoted = turn().text("The product 绿茶 is low ").text("on stock in the main warehouse.").done();
    let with_call = turn().text("让我看看").call("t1", "discover_trigger_types", &json!({})).done();
    let s = Scripted::playing([quoted, with_call, says("Four triggers.")]).await;
    let frames = s.app.say("c", "Which product?").await;
    assert_eq!(frames::text(&frames), "The product 绿茶 is low on stock in the main warehouse.");
    let frames = s.app.say("c", "Which triggers?").await;
    assert_eq!(frames::text(&frames), "让我看看Four triggers.");
}

#[tokio::test]
async fn the_context_fills_in_the_workflow_id() {
    let rows: [(Value, &str, &str); 6] = [
        (json!({}), "Low Stock Alert", "missing"),
        (json!({"workflow_id": ""}), "Low Stock Alert", "empty"),
        (json!({"workflow_id": null}), "Low Stock Alert", "null"),
        (json!({"workflow_id": 7}), "Low Stock Alert", "not a string"),
        (json!({"workflow_id": "A rule nobody has"}), "Low Stock Alert", "no rule of that name"),
        (json!({"workflow_id": "Simple Test Workflow"}), "Simple Test Workflow", "the name of another rule"),
    ];
    for (args, expected, reason) in rows {
        let s = Scripted::playing([calls("t1", "get_workflow_rule", &args), says("Here.")]).await;
        let context = json!({"workflow_id": LOW_STOCK, "rule_name": "Low Stock Alert"});
        s.app.chat(&json!({"message": "Explain", "context_type": "workflow", "context": context})).await;
        assert_eq!(s.result_of("t1")["rule"]["name"], expected, "{reason}");
    }
}

#[tokio::test]
async fn the_prompt_is_assembled_from_its_blocks_and_the_screen() {
    let s = Scripted::playing([says("Hello."), says("Hello.")]).await;
    let context = json!({"workflow_id": LOW_STOCK, "rule_name": "Low Stock Alert", "nodes": []});
    s.app.chat(&json!({"message": "Hi", "context_type": "workflow", "context": context})).await;
    s.app.chat(&json!({"message": "Hi", "context_type": "tables"})).await;
    let system: Vec<String> = s.asked().iter().map(|m| m[0]["content"].as_str().unwrap().to_owned()).collect();
    let block =
        |path: &str| std::fs::read_to_string(format!("{}/config/prompts/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut from = 0;
    for name in ["role.md", "tool-guidance.md", "response-guidance.md", "context.md"] {
        let text = block(&format!("workflow/{name}"));
        // Of a template the lines between its tags stand as they are.
        for line in text.lines().filter(|line| !line.is_empty() && !line.contains("{%") && !line.contains("{{ ")) {
            from += system[0][from..].find(line).unwrap_or_else(|| panic!("{name} is missing or out of order: {line}"));
        }
    }
    let fenced = format!("[data MARK]\n```json\n{context}\n```\n[end of data MARK]");
    let screen = format!("\n\n**Current workflow ID: `{LOW_STOCK}`** (`Low Stock Alert`)\n\n{fenced}");
    assert!(with_plain_marks(&system[0]).ends_with(&screen), "{}", system[0]);
    assert!(system[1].starts_with(block("tables/role.md").trim()));
    assert!(!system[1].contains("```json\n{\"workflow_id\""));
    let offered: Vec<usize> = s.model.requests().iter().map(|r| r.json()["tools"].as_array().unwrap().len()).collect();
    assert_eq!(offered, [18, 12]);
}

#[tokio::test]
async fn the_token_goes_to_the_backend_and_never_to_the_model() {
    let s = Scripted::playing([calls("t1", "list_my_alerts", &json!({})), says("Here.")]).await;
    s.app.say("c", "My alerts").await;
    assert!(s.result_of("t1")["total"].as_u64().unwrap() > 0, "the demo backend knows {ADA} by her token");
    for request in s.model.requests() {
        let seen = format!("{:?}{}", request.headers, String::from_utf8_lossy(&request.body));
        assert!(!seen.contains(&s.app.token), "{seen}");
    }
}

#[tokio::test]
async fn a_quoted_name_does_not_hold_up_the_rest_of_the_answer() {
    let rest = "is low on stock in the main warehouse, so order some";
    // The model hangs: whatever is read was not held back until the turn's end.
    let hanging = turn().text("The tea 绿茶 ").text(rest).text(" and 咖啡 too").hangs();
    let s = Scripted::playing([hanging]).await;
    let body = json!({"message": "Which tea?", "context_type": "workflow", "conversation_id": "c"});
    let mut response = s.app.post(&body).await;
    let seen = frames::read_until(&mut response, "too\"").await;
    assert!(seen.contains("绿茶") && seen.contains("咖啡"), "{seen}");
}

#[tokio::test]
async fn what_waits_is_shown_while_the_model_is_silent() {
    let s = Scripted::playing([turn().text("The tea is 绿茶").hangs()]).await;
    let body = json!({"message": "Which tea?", "context_type": "workflow", "conversation_id": "c"});
    let mut response = s.app.post(&body).await;
    frames::read_until(&mut response, "绿茶").await;
}

#[tokio::test]
async fn an_answer_is_asked_for_again_in_the_language_of_its_profile() {
    let chinese = || says("这个工作流程有三个步骤，我来解释一下");
    let profile = |id: &str, language: &str| {
        format!(
            "id = \"{id}\"\ncontext_type = \"{id}\"\ninstructions = [\"workflow/role.md\"]\nreply_language = \"{language}\"\n"
        )
    };
    let data = tempfile::tempdir().unwrap();
    for (id, language) in [("german", "de"), ("chinese", "zh")] {
        let path = data.path().join("config/profiles").join(format!("{id}.toml"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, profile(id, language)).unwrap();
    }
    let model = Upstream::script([chinese(), says("Drei Schritte."), chinese()].map(Script::answer)).await;
    let base_url = format!("{}/v1", model.url());
    let settings = [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &*base_url)];
    let s = Scripted { app: TestApp::start_in(data, &settings).await, model };
    let asks =
        |context_type: &str| json!({"message": "?", "context_type": context_type, "conversation_id": context_type});
    let german = s.app.chat(&asks("german")).await;
    assert_eq!(frames::text(&german), "[Neuer Versuch auf Deutsch...]Drei Schritte.");
    let asked = s.last_asked();
    assert_eq!(asked[asked.len() - 1]["content"], "Bitte antworte auf Deutsch, nicht auf Chinesisch.");
    let chinese = s.app.chat(&asks("chinese")).await;
    assert_eq!(frames::text(&chinese), "这个工作流程有三个步骤，我来解释一下");

    // The server's own words are not the model's, wherever they stand.
    let read = s.app.http.get(s.app.url("/v1/agent/conversations/german")).bearer_auth(&s.app.token);
    let read: Value = read.send().await.unwrap().json().await.unwrap();
    assert!(!read.to_string().contains("Neuer Versuch"), "{read}");
}
