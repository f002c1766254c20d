//! What a server says of itself, and its tools as they are listed.

use serde_json::{Value, json};

use super::{error, forms, messages, post, request, result, result_as};
use crate::openai::{playing, with};
use crate::support::model::Scripted;

fn names(list: &Value) -> Vec<&str> {
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

async fn list(s: &Scripted, token: &str) -> Value {
    result_as(&s.app, token, &request("tools/list", json!({}), forms())).await
}

#[tokio::test]
async fn a_server_says_what_it_speaks() {
    let s = playing([]).await;
    let found = result(&s.app, &request("server/discover", json!({}), forms())).await;
    assert_eq!(found["supportedVersions"][0], "2026-07-28");
    assert_eq!(
        (&found["resultType"], &found["capabilities"]["tools"], &found["cacheScope"]),
        (&json!("complete"), &json!({}), &json!("private"))
    );
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "switchboard");
}

#[tokio::test]
async fn a_client_of_the_revision_before_has_an_initialize_and_lists_too() {
    let s = playing([]).await;
    let rows = [
        ("2025-11-25", "2025-11-25"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("1999-01-01", "2025-11-25"),
    ];
    for (asked, expected) in rows {
        let params =
            json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": params});
        let response = post(&s.app, &s.app.token, "/mcp", &hello).await;
        assert!(response.headers().contains_key("mcp-session-id"), "a name");
        let all = messages(response).await;
        let [answer] = &all[..] else { panic!("{all:?}") };
        assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!("a"), &json!(expected)));
    }
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let response = post(&s.app, &s.app.token, "/mcp", &ready).await;
    assert_eq!((response.status().as_u16(), response.text().await.unwrap()), (202, String::new()));
    let old = result(&s.app, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    let new = list(&s, &s.app.token).await;
    assert_eq!((names(&old), &old["resultType"]), (names(&new), &Value::Null));
    assert_eq!(result(&s.app, &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await, json!({}));
    let unknown = json!({"jsonrpc": "2.0", "id": 1, "method": "prompts/list"});
    let (status, error) = error(post(&s.app, &s.app.token, "/mcp", &unknown).await).await;
    assert_eq!((status, &error["code"]), (200, &json!(-32601)));
}

#[tokio::test]
async fn tools_are_those_of_the_callers_roles_in_a_stable_order() {
    let s = playing([]).await;
    let chief = s.app.token_of("chief", None, &["CHIEF"]);
    let (ada, again, of_chief) = (list(&s, &s.app.token).await, list(&s, &s.app.token).await, list(&s, &chief).await);
    assert_eq!(ada, again);
    assert!(names(&ada).contains(&"ask_workflow") && names(&ada).contains(&"ask_open"), "{:?}", names(&ada));
    assert!(names(&of_chief).contains(&"ask_chief") && !names(&ada).contains(&"ask_chief"));
    assert!(names(&ada).is_sorted());
    assert_eq!((&ada["ttlMs"], &ada["cacheScope"]), (&json!(60_000), &json!("private")));
    let open = ada["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "ask_open").unwrap();
    assert_eq!((&open["title"], &open["inputSchema"]["required"]), (&json!("Open"), &json!(["message"])));
    assert_eq!(open["outputSchema"]["required"], json!(["answer", "conversation_id", "run_id", "state"]));
}

#[tokio::test]
async fn an_address_of_one_profile_has_its_tools_alone() {
    let s = playing([]).await;
    let message = request("tools/list", json!({}), forms());
    let all = messages(post(&s.app, &s.app.token, "/mcp/open", &message).await).await;
    let [answer] = &all[..] else { panic!("{all:?}") };
    assert_eq!(names(&answer["result"]), ["ask_open"]);
    for path in ["/mcp/chief", "/mcp/nobody"] {
        let (status, error) = error(post(&s.app, &s.app.token, path, &message).await).await;
        assert_eq!((status, &error["data"]["code"]), (404, &json!("not_found")), "{path}");
    }
}

#[tokio::test]
async fn exposed_tools_are_listed_with_what_they_do_and_not_for_others() {
    let profile = "id = \"desk\"\ncontext_type = \"desk\"\ntools = [\"get_ticket\", \"note\", \"secret\"]\n\
                   [mcp]\nexpose = [\"get_ticket\", \"note\", \"secret\"]\n";
    let tools = format!(
        "{}\n[[tool]]\nname = \"secret\"\ndescription = \"Secret.\"\nroles = [\"CHIEF\"]\n[tool.request]\npath = \"/v1/secret\"\n",
        crate::support::tickets::TOOLS
    );
    let s = with(&[("profiles/desk.toml", profile), ("tools/tickets.toml", tools.as_str())], &[], []).await;
    let ada = list(&s, &s.app.token).await;
    let of = |name: &str| ada["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name);
    let (reads, writes) = (of("get_ticket").unwrap(), of("note").unwrap());
    assert_eq!(
        (&reads["annotations"]["readOnlyHint"], &writes["annotations"]["readOnlyHint"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(reads["inputSchema"]["required"], json!(["id"]));
    assert!(of("secret").is_none() && of("refund").is_none());
    let chief = s.app.token_of("chief", None, &["CHIEF"]);
    assert!(names(&list(&s, &chief).await).contains(&"secret"));
}
