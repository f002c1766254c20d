//! The product's routes, as its description lists them, and what a stranger asks of each: with an id that is
//! somebody else's, and with one that is nobody's.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use switchboard::http::description::{Version, document};

use crate::description::operations;

/// What names somebody's things.
#[derive(Debug, Clone)]
pub struct Ids {
    pub conversation: String,
    pub run: String,
    pub message: String,
    pub approval: String,
    pub preview: String,
    pub plan: String,
    pub file: String,
    pub chat: String,
    pub key: String,
    pub cursor: String,
    pub user: String,
}

impl Ids {
    /// All of them, longest first, so that none is replaced as a part of another.
    pub fn all(&self) -> Vec<&str> {
        let Self { conversation, run, message, approval, preview, plan, file, chat: _, key, cursor, user: _ } = self;
        let mut all: Vec<&str> =
            [conversation, run, message, approval, preview, plan, file, key, cursor].map(String::as_str).into();
        all.sort_by_key(|id| std::cmp::Reverse(id.len()));
        all
    }
}

/// What a stranger asks.
pub struct Row {
    /// The method and the path as the page of routes says it.
    pub route: &'static str,
    /// The query, where there is one.
    pub query: fn(&Ids) -> String,
    pub body: fn(&Ids) -> Option<Value>,
    pub header: fn(&Ids) -> Option<(&'static str, String)>,
    pub kind: Kind,
}

/// How the answer for somebody else's id is judged. None ever says a word of somebody else's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is that for nobody's id, byte for byte, but for the id itself.
    AsUnknown,
    /// It is about the caller's own things; the reason.
    Own(&'static str),
}

use Kind::{AsUnknown, Own};

const fn row(route: &'static str, kind: Kind, body: fn(&Ids) -> Option<Value>) -> Row {
    Row { route, query: |_| String::new(), body, header: |_| None, kind }
}

/// The same of a client of Messages.
fn of_messages(row: Row) -> Row {
    Row { header: |_| Some(("anthropic-version", "2023-06-01".to_owned())), ..row }
}

fn nothing(_: &Ids) -> Option<Value> {
    None
}

fn ag_ui(ids: &Ids) -> Value {
    let message = json!({"id": "m1", "role": "user", "content": "Which rules do we have?"});
    json!({"threadId": ids.conversation, "runId": "r1", "messages": [message], "tools": [], "context": [], "state": {}, "forwardedProps": {}})
}

fn page_chat(ids: &Ids) -> Value {
    let number: u64 = ids.chat.parse().unwrap();
    json!({"message": "Hello", "context": {"current_page": "nowhere"}, "interaction_type": "text_input", "conversation_id": number})
}

/// A call of a tool, maybe one that goes on behind a decision on that run's call.
fn tool_call(arguments: Value, goes_on: Option<(&str, &str)>) -> Value {
    let mut params = json!({"name": "ask_workflow", "arguments": arguments});
    if let Some((run, approval)) = goes_on {
        params["requestState"] = json!(run);
        params["inputResponses"] = json!({approval: {"action": "accept", "content": {"decision": "approve"}}});
    }
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

/// Reading and deciding first, so that nothing is there yet that later rows begin.
pub fn rows() -> Vec<Row> {
    vec![
        row("GET /v1/agent/runs/{run_id}", AsUnknown, nothing),
        row("GET /v1/agent/runs/{run_id}/events", AsUnknown, nothing),
        Row { query: |_| "?after=0".to_owned(), ..row("GET /v1/agent/runs/{run_id}/events", AsUnknown, nothing) },
        Row {
            header: |_| Some(("last-event-id", "1".to_owned())),
            ..row("GET /v1/agent/runs/{run_id}/events", AsUnknown, nothing)
        },
        row("POST /v1/agent/runs/{run_id}/cancel", AsUnknown, nothing),
        row("GET /v1/agent/runs/{run_id}/calls", AsUnknown, nothing),
        row("POST /v1/agent/runs/{run_id}/continue", AsUnknown, |_| Some(json!({}))),
        row("POST /v1/agent/runs/{run_id}/feedback", AsUnknown, |_| Some(json!({"score": 1}))),
        row("DELETE /v1/agent/runs/{run_id}/feedback", AsUnknown, nothing),
        Row {
            query: |_| "?q=rules".to_owned(),
            ..row("GET /v1/agent/search", Own("what the caller has said"), nothing)
        },
        Row {
            query: |ids| format!("?q=rules&cursor={}", ids.cursor),
            ..row("GET /v1/agent/search", Own("a cursor is a place in any list, and no right"), nothing)
        },
        row("GET /v1/agent/conversations", Own("a list"), nothing),
        Row { query: |_| "?archived=true".to_owned(), ..row("GET /v1/agent/conversations", Own("a list"), nothing) },
        Row {
            query: |ids| format!("?limit=1&cursor={}", ids.cursor),
            ..row("GET /v1/agent/conversations", Own("a cursor is a place in any list, and no right"), nothing)
        },
        row("POST /v1/agent/conversations", Own("it is opened for whoever asks"), |_| {
            Some(json!({"context_type": "workflow", "entity_id": "x"}))
        }),
        row("GET /v1/agent/conversations/{conversation_id}", AsUnknown, nothing),
        Row {
            query: |ids| format!("?branch={}", ids.run),
            ..row("GET /v1/agent/conversations/{conversation_id}", AsUnknown, nothing)
        },
        row("PATCH /v1/agent/conversations/{conversation_id}", AsUnknown, |_| Some(json!({"title": "Stolen"}))),
        row("DELETE /v1/agent/conversations/{conversation_id}", AsUnknown, nothing),
        row("PATCH /v1/agent/conversations/{conversation_id}", AsUnknown, |_| Some(json!({"pinned": true}))),
        row("GET /v1/agent/conversations/{conversation_id}/export", AsUnknown, nothing),
        Row {
            query: |_| "?format=markdown".to_owned(),
            ..row("GET /v1/agent/conversations/{conversation_id}/export", AsUnknown, nothing)
        },
        row("GET /v1/agent/conversations/{conversation_id}/trail", AsUnknown, nothing),
        row("POST /v1/agent/conversations/{conversation_id}/prewarm", AsUnknown, nothing),
        Row {
            query: |ids| format!("?cursor={}", ids.cursor),
            ..row("GET /v1/agent/conversations/{conversation_id}/trail", Own("wrong cursors are told first"), nothing)
        },
        row("GET /v1/agent/profiles", Own("whom the caller may ask"), nothing),
        row("GET /v1/agent/files/{file_id}", AsUnknown, nothing),
        row("GET /v1/agent/files/{file_id}/content", AsUnknown, nothing),
        row("DELETE /v1/agent/files/{file_id}", AsUnknown, nothing),
        row("GET /v1/agent/files", Own("the caller's files"), nothing),
        Row {
            query: |ids| format!("?after={}", ids.file),
            ..row("GET /v1/agent/files", Own("a cursor is a place in the caller's own list"), nothing)
        },
        row("POST /v1/agent/files", Own("a file of the caller's"), |_| Some(json!({"a": 1}))),
        row("GET /v1/files/{file_id}", AsUnknown, nothing),
        row("GET /v1/files/{file_id}/content", AsUnknown, nothing),
        row("DELETE /v1/files/{file_id}", AsUnknown, nothing),
        row("GET /v1/files", Own("the caller's files"), nothing),
        Row { query: |ids| format!("?after=file-{}", ids.file), ..row("GET /v1/files", AsUnknown, nothing) },
        of_messages(row("GET /v1/files/{file_id}", AsUnknown, nothing)),
        of_messages(row("GET /v1/files/{file_id}/content", AsUnknown, nothing)),
        of_messages(row("DELETE /v1/files/{file_id}", AsUnknown, nothing)),
        of_messages(Row {
            query: |ids| format!("?before_id=file_{}", ids.file),
            ..row("GET /v1/files", AsUnknown, nothing)
        }),
        of_messages(Row {
            query: |ids| format!("?ids[]=file_{}", ids.file),
            ..row("GET /v1/files", AsUnknown, nothing)
        }),
        row("POST /v1/files", Own("refused: it is no form"), |_| Some(json!({"a": 1}))),
        row("GET /v1/agent/usage", Own("what the caller has used"), nothing),
        Row {
            query: |_| "?by=conversation".to_owned(),
            ..row("GET /v1/agent/usage", Own("what the caller has used"), nothing)
        },
        Row {
            query: |_| "?of=tenant".to_owned(),
            ..row("GET /v1/agent/usage", Own("of the caller's tenant, for a role"), nothing)
        },
        row("GET /v1/agent/audit", Own("of the caller's tenant, for a role"), nothing),
        row("DELETE /v1/agent/users/{user_id}", Own("of the caller's tenant, for a role"), nothing),
        row("GET /v1/agent/approvals", Own("a list"), nothing),
        row("GET /v1/agent/approvals/{approval_id}", AsUnknown, nothing),
        row("POST /v1/agent/approvals/{approval_id}", AsUnknown, |_| Some(json!({"decision": "approve"}))),
        row("POST /v1/agent/approvals/{approval_id}", AsUnknown, |_| Some(json!({"decision": "reject"}))),
        row("GET /v1/agent/plans/{plan_id}", AsUnknown, nothing),
        row("DELETE /v1/agent/plans/{plan_id}", AsUnknown, nothing),
        row("GET /v1/agent/conversations/{conversation_id}/plans", AsUnknown, nothing),
        row("GET /api/dialogs", Own("the caller's own list"), nothing),
        row("GET /api/dialogs/current", Own("the caller's own choice"), nothing),
        Row {
            query: |ids| format!("?id={}", ids.conversation),
            ..row("PATCH /api/dialogs/current", AsUnknown, nothing)
        },
        row("GET /api/dialogs/{dialog_id}", AsUnknown, nothing),
        row("GET /api/dialogs/{dialog_id}/history", AsUnknown, nothing),
        row("GET /api/dialogs/{dialog_id}/tool-results", AsUnknown, nothing),
        row("GET /api/dialogs/{dialog_id}/tool-results/{tool_call_id}", AsUnknown, nothing),
        row("GET /api/dialogs/{dialog_id}/checkpoints", AsUnknown, nothing),
        row("GET /api/dialogs/{dialog_id}/session", AsUnknown, nothing),
        row("POST /api/dialogs/{dialog_id}/restore", AsUnknown, |_| Some(json!({"checkpoint_id": "x"}))),
        row("POST /api/dialogs/{dialog_id}/approve", AsUnknown, nothing),
        row("POST /api/dialogs/{dialog_id}/reset", AsUnknown, nothing),
        row("PATCH /api/dialogs/{dialog_id}", AsUnknown, |_| Some(json!({"title": "x"}))),
        row("DELETE /api/dialogs/{dialog_id}", AsUnknown, nothing),
        row("POST /api/dialogs", Own("a new one"), |_| Some(json!({}))),
        row("GET /api/config", Own("the settings of all, the caller's own choice"), nothing),
        row("PUT /api/config", Own("the caller's own choice"), |_| Some(json!({"config": {}}))),
        row("POST /api/config/rename", Own("refused, whoever asks"), |_| {
            Some(json!({"type": "workload", "old_name": "x", "new_name": "y"}))
        }),
        row("POST /api/chat", Own("a run of the caller's own"), |_| {
            Some(json!({"messages": [{"role": "user", "content": "Hi"}]}))
        }),
        row("GET /v1/agent/conversations/{conversation_id}/changes", AsUnknown, nothing),
        row("GET /v1/agent/conversations/{conversation_id}/checkpoints", AsUnknown, nothing),
        row("POST /v1/agent/conversations/{conversation_id}/approve", AsUnknown, nothing),
        row("POST /v1/agent/conversations/{conversation_id}/reset", AsUnknown, nothing),
        row("POST /v1/agent/conversations/{conversation_id}/restore", AsUnknown, |_| {
            Some(json!({"checkpoint_id": "x"}))
        }),
        row("GET /v1/agent/directives", Own("a list"), nothing),
        row("POST /v1/agent/directives", Own("it is requested for whoever asks"), |_| Some(json!({"name": "a.b"}))),
        row("GET /v1/agent/directives/{directive_id}", AsUnknown, nothing),
        row("POST /v1/agent/directives/{directive_id}/decision", AsUnknown, |_| Some(json!({"decision": "approve"}))),
        row("POST /v1/agent/directives/{directive_id}/cancel", AsUnknown, nothing),
        row("POST /v1/agent/directives/{directive_id}/rerun", AsUnknown, nothing),
        row("GET /v1/agent/signals", Own("a list"), nothing),
        row("POST /v1/agent/signals", Own("for a role"), |_| Some(json!({"name": "a.b"}))),
        row("GET /v1/agent/signals/{signal_id}", AsUnknown, nothing),
        Row {
            query: |ids| format!("?correlation_id={}", ids.run),
            ..row("GET /v1/agent/timeline", Own("a list"), nothing)
        },
        row("POST /v1/agent/signals/replay", Own("of the caller's tenant, for a role"), |_| Some(json!({"recent": 1}))),
        row("GET /v1/agent/deliveries", Own("of the caller's tenant, for a role"), nothing),
        row("POST /v1/agent/deliveries/{delivery_id}/retry", Own("of the caller's tenant, for a role"), nothing),
        row("GET /v1/agent/previews/{preview_id}", AsUnknown, nothing),
        row("POST /v1/agent/previews/{preview_id}/decision", AsUnknown, |_| Some(json!({"decision": "accept"}))),
        row("POST /v1/agent/previews/{preview_id}/decision", AsUnknown, |_| Some(json!({"decision": "reject"}))),
        row("GET /v1/ai-sdk/chat/{chat_id}", AsUnknown, nothing),
        row("GET /v1/ai-sdk/chat/{chat_id}/stream", AsUnknown, nothing),
        Row {
            query: |ids| format!("sdk=6/{}/stream", ids.conversation),
            ..row("GET /v1/ai-sdk/chat", AsUnknown, nothing)
        },
        row("POST /v1/ai-sdk/chat/{chat_id}/stop", AsUnknown, nothing),
        row("GET /api/chats", Own("a list"), nothing),
        row("GET /api/chats/{number}", AsUnknown, nothing),
        row("GET /api/chats/admin/all", Own("a list of the tenant's, for administrators"), nothing),
        Row {
            query: |ids| format!("?user_id={}", ids.user),
            ..row("GET /api/chats/admin/all", Own("the user of that name in the caller's tenant"), nothing)
        },
        row("GET /api/chats/admin/{number}", AsUnknown, nothing),
        row("GET /api/agent/stream", Own("a list"), nothing),
        Row {
            query: |ids| format!("?session_id={}", ids.conversation),
            ..row("GET /api/agent/stream", AsUnknown, nothing)
        },
        row("GET /api/chat/sessions/{session_id}", AsUnknown, nothing),
        row("PATCH /api/chat/sessions/{session_id}", AsUnknown, |_| Some(json!({"title": "Stolen"}))),
        row("POST /api/chat/sessions/{session_id}/close", AsUnknown, |_| Some(json!({"context_type": "tables"}))),
        row("POST /api/chat/sessions/{session_id}/classify", AsUnknown, nothing),
        row("POST /api/agentic-chat/agent-message", Own("nothing is kept of it"), |_| {
            Some(json!({"agentId": "actionable_insight_agent", "projectId": "p", "goal": "g"}))
        }),
        row("POST /api/agent/prewarm", AsUnknown, |ids| Some(json!({"session_id": ids.conversation}))),
        row("DELETE /api/chat/sessions/{session_id}", AsUnknown, nothing),
        row("POST /api/agent/stream", AsUnknown, |ids| {
            Some(json!({"message": "Which rules do we have?", "session_id": ids.conversation}))
        }),
        row("POST /marketplace/install", Own("of the caller's tenant"), |_| Some(json!({"slug": "a"}))),
        row("POST /marketplace/uninstall", Own("of the caller's tenant"), |_| Some(json!({"slug": "a"}))),
        row("GET /marketplace/installations/status", Own("of the caller's tenant"), nothing),
        row("POST /chat/message", Own("a conversation of that name is the caller's"), |ids| {
            Some(json!({"message": "Which rules do we have?", "conversation_id": ids.conversation}))
        }),
        row("GET /v1/copilotkit/info", Own("whom the caller may ask"), nothing),
        row("POST /v1/copilotkit/agent/{agent}/connect", AsUnknown, |ids| Some(ag_ui(ids))),
        row("POST /v1/copilotkit/agent/{agent}/stop/{thread}", AsUnknown, nothing),
        row("GET /v1/responses/{response_id}", AsUnknown, nothing),
        Row {
            query: |_| "?stream=true&starting_after=1".to_owned(),
            ..row("GET /v1/responses/{response_id}", AsUnknown, nothing)
        },
        row("GET /v1/responses/{response_id}/input_items", AsUnknown, nothing),
        row("POST /v1/responses/{response_id}/cancel", AsUnknown, nothing),
        row("DELETE /v1/responses/{response_id}", AsUnknown, nothing),
        row("POST /mcp", AsUnknown, |ids| {
            Some(tool_call(json!({"message": "a", "conversation_id": ids.conversation}), None))
        }),
        row("POST /mcp", AsUnknown, |ids| {
            Some(tool_call(json!({"message": "a"}), Some((ids.run.as_str(), ids.approval.as_str()))))
        }),
        row("POST /mcp", AsUnknown, |ids| {
            Some(tool_call(json!({"message": "a"}), Some((ids.run.as_str(), ids.run.as_str()))))
        }),
        row("POST /mcp/{profile}", Own("whom the caller may ask"), |_| Some(tool_call(json!({}), None))),
        row("GET /.well-known/oauth-protected-resource", Own("the same for all"), nothing),
        row("GET /.well-known/oauth-protected-resource/mcp", Own("the same for all"), nothing),
        row("GET /.well-known/oauth-protected-resource/mcp/{profile}", Own("the same for all"), nothing),
        row("POST /v1/responses", AsUnknown, |ids| {
            let previous = format!("resp_{}", ids.run);
            Some(json!({"model": "workflow", "input": "Which rules do we have?", "previous_response_id": previous}))
        }),
        row("POST /v1/responses", AsUnknown, |ids| {
            let conversation = format!("conv_{}", ids.conversation);
            Some(json!({"model": "workflow", "input": "Which rules do we have?", "conversation": conversation}))
        }),
        row("POST /v1/responses", AsUnknown, |ids| {
            let decision = json!({"type": "mcp_approval_response", "approval_request_id": format!("mcpr_{}", ids.approval),
                "approve": true});
            Some(json!({"model": "workflow", "input": [decision]}))
        }),
        row("POST /v1/responses/input_tokens", Own("nothing is kept of it"), |_| Some(json!({"input": "Hello"}))),
        row("POST /v1/conversations", Own("it is opened for whoever asks"), nothing),
        row("GET /v1/conversations/{conversation}", AsUnknown, nothing),
        row("GET /v1/conversations/{conversation}/items", AsUnknown, nothing),
        row("GET /v1/conversations/{conversation}/items/{item_id}", AsUnknown, nothing),
        row("DELETE /v1/conversations/{conversation}", AsUnknown, nothing),
        row("POST /v1/messages", AsUnknown, |ids| {
            let call = format!("toolu_{}_t1", ids.conversation);
            let result = json!({"type": "tool_result", "tool_use_id": call, "content": "x"});
            Some(json!({"model": "workflow", "max_tokens": 9, "messages": [{"role": "user", "content": [result]}]}))
        }),
        row("POST /v1/messages/count_tokens", Own("nothing is kept of it"), |_| {
            Some(json!({"messages": [{"role": "user", "content": "Hello"}]}))
        }),
        row("GET /v1/models", Own("whom the caller may ask"), nothing),
        row("GET /v1/models/{model}", Own("a name of the settings"), nothing),
        row("GET /livez", Own("of the process"), nothing),
        row("GET /readyz", Own("of the process"), nothing),
        row("GET /health", Own("of the process"), nothing),
        // What begins something of the caller's own, at last: nobody's conversation of that name becomes theirs.
        row("POST /v1/agent/chat", AsUnknown, |ids| {
            let question = "Which rules do we have?";
            Some(json!({"message": question, "context_type": "workflow", "parent_message_id": ids.message,
                "conversation_id": "own"}))
        }),
        Row {
            header: |ids| Some(("idempotency-key", ids.key.clone())),
            ..row("POST /v1/agent/chat", AsUnknown, |ids| {
                let question = "Which rules do we have?";
                Some(json!({"message": question, "context_type": "workflow", "conversation_id": ids.conversation}))
            })
        },
        row("POST /v1/ai-sdk/chat", AsUnknown, |ids| {
            let message =
                json!({"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Which rules do we have?"}]});
            Some(json!({"id": ids.conversation, "messages": [message], "context_type": "workflow"}))
        }),
        row("POST /v1/ag-ui/{agent}", AsUnknown, |ids| Some(ag_ui(ids))),
        row("POST /v1/copilotkit/agent/{agent}/run", AsUnknown, |ids| Some(ag_ui(ids))),
        row("POST /v1/chat/completions", Own("names nothing that is kept"), |_| {
            let message = json!({"role": "user", "content": "Hello"});
            Some(json!({"model": "workflow", "messages": [message]}))
        }),
        row("POST /api/chat/stream", AsUnknown, |ids| Some(page_chat(ids))),
        row("POST /api/chat/stream", AsUnknown, |ids| {
            let mut body = page_chat(ids);
            body["interaction_type"] = json!("action_executed");
            body["action_metadata"] =
                json!({"action_identifier": "approve_call", "action_data": {"approval_id": ids.approval}});
            Some(body)
        }),
    ]
}

impl Row {
    /// The request's method and path for these ids.
    pub fn asks(&self, ids: &Ids) -> (Method, String) {
        let (method, path) = self.route.split_once(' ').unwrap();
        let path = path
            .replace("{run_id}", &ids.run)
            .replace("{conversation_id}", &ids.conversation)
            .replace("{response_id}", &format!("resp_{}", ids.run))
            .replace("{conversation}", &format!("conv_{}", ids.conversation))
            .replace("{item_id}", &format!("msg_{}_0", ids.run))
            .replace("{approval_id}", &ids.approval)
            .replace("{preview_id}", &ids.preview)
            .replace("{plan_id}", &ids.plan)
            .replace("{file_id}", &ids.file)
            // Those that are there are asked for in `directives::requests`.
            .replace("{directive_id}", &ids.plan)
            .replace("{signal_id}", &ids.plan)
            .replace("{delivery_id}", &ids.plan)
            .replace("{chat_id}", &ids.conversation)
            .replace("{session_id}", &ids.conversation)
            .replace("{dialog_id}", &ids.conversation)
            .replace("{tool_call_id}", &ids.plan)
            .replace("{number}", &ids.chat)
            .replace("{agent}", "workflow")
            .replace("{profile}", "workflow")
            .replace("{thread}", &ids.conversation)
            .replace("{*model}", "workflow");
        (method.parse().unwrap(), format!("{path}{}", (self.query)(ids)))
    }
}

/// The routes that are described, which are all but those of documents: method and path.
pub fn listed() -> BTreeSet<String> {
    let all = operations(&document(Version::V31)).into_iter();
    all.map(|(method, path, _)| format!("{} {path}", method.to_uppercase())).collect()
}

#[test]
fn every_route_is_asked_by_a_stranger() {
    // By their number, and not by the conversation's id.
    let of_numbers = |route: &str| match route {
        "GET /api/chats/{chat_id}" => "GET /api/chats/{number}".to_owned(),
        "GET /api/chats/admin/{chat_id}" => "GET /api/chats/admin/{number}".to_owned(),
        other => other.to_owned(),
    };
    let listed: BTreeSet<String> = listed().iter().map(|route| of_numbers(route)).collect();
    let asked: BTreeSet<String> = rows().iter().map(|row| row.route.to_owned()).collect();
    assert!(listed.len() > 25, "{listed:?}");
    let missing: Vec<_> = listed.difference(&asked).collect();
    assert!(missing.is_empty(), "these routes have no row in `rows`: {missing:?}");
    let gone: Vec<_> = asked.difference(&listed).collect();
    assert!(gone.is_empty(), "there are no such routes any more: {gone:?}");
}
