//! The drawings: what is told of a change, what a user sees of it and can do with it, and what a half-written answer looks like.

use serde_json::{Value, json};

use super::{nothing, see};
use crate::support::app::TestApp;
use crate::support::node;

/// What needs no browser.
async fn parts() -> Option<Value> {
    node::run("page/parts.mjs", &[], &TestApp::demo().await).await
}

#[tokio::test]
async fn differences_are_told_in_words() {
    let Some(seen) = parts().await else { return };
    let expected = json!({
        "the same in another order of keys": [],
        "plain values": ["a: 1 → 2", "b: “x” → “y”", "c: null → 0", "d: true removed", "e: false added"],
        "a list of plain values is a bag": ["to: “b” removed", "to: “c” added"],
        "whose order counts": ["to: the order changed"],
        "items with names": ["x › v: 1 → 2", "z: {name: \"z\"} added", "the order changed"],
        "items without": ["2 › v: 2 → 3", "3: {v: 4} added"],
        "names twice": ["2: {id: 1} removed"],
        "another kind of value": ["a: [1] → {0: 1}"],
        "what is not seen": ["a: “x” removed", "a⟨U+202E⟩: “x⟨U+200B⟩y” added"],
        "names that every object has": ["constructor: 1 removed", "__proto__: 2 added", "toString: 3 added"],
        "nothing at all": [],
        "the end of long texts": [
            "a: “…xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxone” → “…xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxtwo”",
            "b: “…👩👩👩👩👩👩👩👩👩👩👩👩👩👩👩1” → “…👩👩👩👩👩👩👩👩👩👩👩👩👩👩👩2”",
        ],
        "blanks alone": ["a: “x y” → “x y” (other blanks)"],
        "too deep in a value": ["a: 7 → [[[[[[[…]]]]]]]"],
    });
    assert_eq!(seen["differences"], expected);
    let cut_short = [
        ["Step “One”: more changes than are listed"],
        ["Filter changed: there are more than 200; the rest is not listed"],
    ];
    assert_eq!(seen["cutShort"], json!(cut_short), "what is not listed is told");
    assert_eq!((&seen["wide"], &seen["deepWords"]), (&json!(201), &json!(1)), "bounds in width and depth");
    let texts = json!([
        "a⟨U+202E⟩b⟨U+0000⟩c⟨U+FEFF⟩d⟨U+E0041⟩e⟨U+D800⟩f👩‍👩",
        "👩…",
        "{a: [\"x\", 1, null], b : true}",
        "xxxx…",
        "\"xxx\n… 8 more characters",
    ]);
    assert_eq!(seen["texts"], texts, "what is not seen, and what is cut");
}

#[tokio::test]
async fn two_workflows_are_one_graph_with_what_changed() {
    let Some(seen) = parts().await else { return };
    let expected = json!({
        "a new one is not marked": {
            "nodes": ["One: same", "Two: same"],
            "edges": ["null --> One: same", "One -success-> Two: same"],
            "said": [],
        },
        "the same, with ids in capitals and places for ids": {
            "nodes": ["One: same", "Two: same"],
            "edges": ["null --> One: same", "One -success-> Two: same"],
            "said": [],
        },
        "a step without its id is made anew": {
            "nodes": ["One: same", "Two: changed"],
            "edges": ["null --> One: same", "One -success-> Two: same"],
            "said": ["Step “Two”: id: “B2” → “a new one”"],
        },
        "another port": {
            "nodes": ["One: same", "Two: same"],
            "edges": ["null --> One: same", "One -failure-> Two: added", "One -success-> Two: removed"],
            "said": [
                "The connection from “One” on “failure” to “Two” is added",
                "The connection from “One” on “success” to “Two” is removed",
            ],
        },
        "a step that went earlier": {
            "nodes": ["One: same", "Two: same"],
            "edges": ["null --> One: same", "One -success-> Two: same"],
            "said": [],
        },
        "a step that is switched off, and one renamed": {
            "nodes": ["One: changed", "Second: changed"],
            "edges": ["null --> One: same", "One -success-> Second: same"],
            "said": ["Step “One”: active: true → false", "Step “Second”: name: “Two” → “Second”"],
        },
        "the samples": {
            "nodes": [
                "Check Stock Level: changed",
                "Notify Warehouse Team: changed",
                "Order More: added",
                "Wait A Day: added",
                "Record Stock Check: removed",
            ],
            "edges": [
                "null --> Check Stock Level: same",
                "Check Stock Level -true-> Wait A Day: added",
                "Wait A Day -success-> Notify Warehouse Team: added",
                "Notify Warehouse Team -success-> Order More: added",
                "Check Stock Level -true-> Notify Warehouse Team: removed",
                "Check Stock Level -false-> Record Stock Check: removed",
            ],
            "said": [
                "Rule: description: “Warns the warehouse when an item's stock falls below its minimum” → “Warns the warehouse, and orders more”",
                "Step “Check Stock Level”: conditions › quantity › value: 10 → 25",
                "Step “Notify Warehouse Team”: severity: “high” → “critical”",
                "Step “Notify Warehouse Team”: recipients › users: “22222222-2222-4222-8222-222222222222” removed",
                "Step “Notify Warehouse Team”: recipients › roles: “a0000000-0000-4000-8000-000000000003” removed",
                "Step “Notify Warehouse Team”: recipients › roles: “a0000000-0000-4000-8000-000000000002” added",
                "Step “Order More” (create_entity) is added",
                "Step “Wait A Day” (delay) is added",
                "Step “Record Stock Check” (log_audit_entry) is removed",
                "The connection from “Check Stock Level” on “true” to “Wait A Day” is added",
                "The connection from “Wait A Day” on “success” to “Notify Warehouse Team” is added",
                "The connection from “Notify Warehouse Team” on “success” to “Order More” is added",
                "The connection from “Check Stock Level” on “true” to “Notify Warehouse Team” is removed",
                "The connection from “Check Stock Level” on “false” to “Record Stock Check” is removed",
            ],
        },
    });
    assert_eq!(seen["workflows"], expected);
    assert_eq!(seen["overlaps"], json!([]), "no step is drawn on another");
}

#[tokio::test]
async fn two_table_configurations_are_one_list_of_columns() {
    let Some(seen) = parts().await else { return };
    let expected = json!({
        "columns": [
            "Id: same",
            "Order: same",
            "Status: same",
            "Total: changed",
            "Due: removed",
            "Priority: added",
            "Created: same",
            "Customer: same",
        ],
        "said": [
            "title: “Orders” → “Urgent orders”",
            "Column “Total”: header: “Amount” → “Total”",
            "Column “Total”: format › precision: 2 → 0",
            "Column “Total”: width: 140 added",
            "Column “Due” is removed",
            "Column “Priority” is added",
            "Filter added: priority is one of [\"high\", \"urgent\"] (shown as “Priority”, users can change it)",
            "Sort added: amount, highest or newest first, place 1",
            "Sort added: created_date, highest or newest first, place 2",
            "Sort removed: created_date, highest or newest first, place 1",
        ],
        "same": [],
    });
    assert_eq!(seen["tables"], expected);
}

#[tokio::test]
async fn the_code_of_others_is_as_it_came() {
    let Some(seen) = parts().await else { return };
    assert_eq!(seen["vendored"], json!({"listed": 91, "changed": []}));
}

#[tokio::test]
async fn the_drawings_are_read_used_and_decided() {
    let Some(mut seen) = see("states.mjs", &[]).await else { return };
    assert_eq!(seen["watched"].take(), nothing());
    assert_eq!(seen["tooWide"], json!([]), "everything fits into 900 and 320 pixels, or scrolls in a box of its own");
    let workflow = json!({
        "title": ["Change to the workflow: Low Stock Alert"],
        "nodes": [
            "Check Stock Level, evaluate_condition, changed",
            "Notify Warehouse Team, create_alert, changed",
            "Order More, create_entity, added",
            "Record Stock Check, log_audit_entry, removed",
            "Wait A Day, delay, added, switched off",
        ],
        "ports": ["+ success", "+ success", "+ true", "start", "− false", "− true"],
        "changes": [
            "~ Rule: description: “Warns the warehouse when an item's stock falls below its minimum” → “Warns the warehouse, and orders more”",
            "~ Step “Check Stock Level”: conditions › quantity › value: 10 → 25",
            "~ Step “Notify Warehouse Team”: severity: “high” → “critical”",
            "~ Step “Notify Warehouse Team”: recipients › users: “22222222-2222-4222-8222-222222222222” removed",
            "~ Step “Notify Warehouse Team”: recipients › roles: “a0000000-0000-4000-8000-000000000003” removed",
            "~ Step “Notify Warehouse Team”: recipients › roles: “a0000000-0000-4000-8000-000000000002” added",
            "+ Step “Order More” (create_entity) is added",
            "+ Step “Wait A Day” (delay) is added",
            "− Step “Record Stock Check” (log_audit_entry) is removed",
            "+ The connection from “Check Stock Level” on “true” to “Wait A Day” is added",
            "+ The connection from “Wait A Day” on “success” to “Notify Warehouse Team” is added",
            "+ The connection from “Notify Warehouse Team” on “success” to “Order More” is added",
            "− The connection from “Check Stock Level” on “true” to “Notify Warehouse Team” is removed",
            "− The connection from “Check Stock Level” on “false” to “Record Stock Check” is removed",
        ],
        "asked": ["p7"],
        "chosen": "Notify Warehouse Team",
        "larger": true,
        "closed": true,
        "byPointer": true,
        "decided": [{"decision": "accept", "comment": "please"}],
        "deciding": true,
        "failed": ["That did not work. You can try again. The backend refused."],
        "accepted": [["You accepted this; it is saved."], false],
    });
    assert_eq!(seen["workflow"], workflow);
    let stale = json!({
        "before": [["Accept", "Reject"], 14],
        "after": [
            ["Ask the assistant again", "Reject"],
            ["It has changed since this was proposed. Drawn is what this would change now."],
            ["Nothing was saved."],
            "~ Rule: name: “Renamed meanwhile” → “Low Stock Alert”",
        ],
        "isFocusKept": "sb-said",
        "said": ["The workflow “Low Stock Alert” has changed since you proposed this change. Read it again and make a new preview."],
        "decided": [{"decision": "reject"}],
        "gone": ["It is not there any more."],
        "unknown": ["It has changed since this was proposed, and what it is now cannot be shown."],
    });
    assert_eq!(seen["stale"], stale);
    let table = json!({
        "title": ["Change to the table: orders_table"],
        "columns": ["Id", "Order", "Status", "Total ↓1", "Due", "Priority", "Created ↓2", "Customer"],
        "badges": ["~ changed", "− removed", "+ added"],
        "changes": [
            "~ title: “Orders” → “Urgent orders”",
            "~ Column “Total”: header: “Amount” → “Total”",
            "~ Column “Total”: format › precision: 2 → 0",
            "~ Column “Total”: width: 140 added",
            "− Column “Due” is removed",
            "+ Column “Priority” is added",
            "+ Filter added: priority is one of [\"high\", \"urgent\"] (shown as “Priority”, users can change it)",
            "+ Sort added: amount, highest or newest first, place 1",
            "+ Sort added: created_date, highest or newest first, place 2",
            "− Sort removed: created_date, highest or newest first, place 1",
        ],
    });
    assert_eq!(seen["table"], table);
    let approval = json!({
        "title": ["May I call close_ticket?"],
        "arguments": [
            "4711",
            "Closed on request of the customer",
            "ada@example.com",
            "bob@exa⟨U+200B⟩mple.com",
            "duplicate ⟨U+202E⟩txt.exe",
        ],
        "unseen": 4,
        "left": true,
        "decided": [{"decision": "reject", "digest": "sha256:5f1d0c"}],
        "inexact": [
            "A number is larger than this page can show digit by digit. Its last digits may differ from what is sent.",
        ],
        "late": [
            "expired",
            ["Nobody decided in time; the call is not made."],
            false,
            "Somebody with the role “ADMIN” has to approve this.",
        ],
    });
    assert_eq!(seen["approval"], approval);
    let payload =
        json!({"rows": 50, "last": [["101 to 120 of 120"], 20, true], "tree": ["warehouse: North", "checked: true"]});
    assert_eq!(seen["payload"], payload);
    let streaming = json!({
        "half": {
            "a **bo": "<p>a <strong>bo</strong></p>",
            "a `co": "<p>a <code>co</code></p>",
            "see [the te": "<p>see the te</p>",
            "see [text](http://exa": "<p>see text</p>",
            "![alt](http://exa": "<p>alt</p>",
            "| a | b |": "<div><table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n</table></div>",
            "| a | b |\n|--": "<div><table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n</table></div>",
            "| a | b |\n|---|---|\n| 1": "<div><table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody><tr>\n<td>1</td>\n<td></td>\n</tr>\n</tbody></table></div>",
            "```js\nlet a": "<div><div><span>js</span><button>Copy</button></div><pre><code>let a</code></pre></div>",
            "```js\nlet a\n``": "<div><div><span>js</span><button>Copy</button></div><pre><code>let a</code></pre></div>",
            "text\n-": "<p>text</p>",
            "a <b": "<p>a </p>",
            "- one\n-": "<ul>\n<li>one</li>\n</ul>",
            "# ": "",
            "a *it": "<p>a <em>it</em></p>",
            "1. one\n2": "<ol>\n<li>one</li>\n</ol>",
            "x **b** y *": "<p>x <strong>b</strong> y </p>",
        },
        "isSame": true,
        "isKept": true,
        "links": [
            [
                "the handbook (example.com)",
                "https://example.com/rules",
                "noopener noreferrer nofollow",
                "_blank",
            ],
            ["https://example.org/", "https://example.org/", "noopener noreferrer nofollow", "_blank"],
            [
                "The chart (example.com)",
                "https://example.com/chart.png",
                "noopener noreferrer nofollow",
                "_blank",
            ],
        ],
        "late": "https://good.test/",
        "label": "jsonCopy",
        "text": true,
    });
    assert_eq!(seen["streaming"], streaming);
}
