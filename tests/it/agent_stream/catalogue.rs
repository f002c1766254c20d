//! Every tool of the set: what a model says, what the backend gets, and what the model reads of the answer.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Url;
use serde_json::{Value, json};

use super::{Set, frame};
use crate::support::model::{Script, calls, says};
use crate::support::upstream::{Answer, Request, Upstream};

/// The table of `catalogue.txt`, a tool a paragraph:
///
/// ```text
/// [place: ]tool {arguments}
/// METHOD path?query        the request, its query decoded; `-` where there is none
/// {body}                   where there is one
/// => {data}                of the result; or `!! kind words` of the error
/// ```
///
/// `place` is a context type, `project` of `p1` where there is none. `@1` is an id, `$rows` what tables answer.
const TABLE: &str = include_str!("catalogue.txt");

/// What tables answer.
const ROWS: &str = r#"[{"id": "r1", "project": {"name": "Garden"}}]"#;

struct Row {
    place: String,
    tool: String,
    args: Value,
    request: Option<String>,
    body: Option<Value>,
    result: Result<Value, String>,
}

fn rows() -> Vec<Row> {
    let table = TABLE.replace('@', "0198c0de-0000-7000-8000-00000000000").replace("$rows", ROWS);
    let row = |paragraph: &str| {
        let json = |text: &str| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"));
        let mut lines = paragraph.lines().filter(|line| !line.starts_with('#'));
        let (head, args) = lines.next().unwrap().split_once(" {").unwrap();
        let (place, tool) = head.split_once(": ").unwrap_or(("project", head));
        let (place, tool) = (place.to_owned(), tool.to_owned());
        let (request, mut next) = (lines.next().unwrap(), lines.next().unwrap());
        let body = next.starts_with('{').then(|| {
            let body = json(next);
            next = lines.next().unwrap();
            body
        });
        let result = match next.strip_prefix("=> ") {
            Some(data) => Ok(json(data)),
            None => Err(next.strip_prefix("!! ").unwrap_or_else(|| panic!("{next}")).to_owned()),
        };
        assert_eq!(lines.next(), None, "{paragraph}");
        let request = (request != "-").then(|| request.to_owned());
        Row { place, tool, args: json(&format!("{{{args}")), request, body, result }
    };
    table.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()).map(|text| row(text.trim())).collect()
}

/// Whatever is asked of the application and the tables.
fn answers(request: &Request) -> Option<Answer> {
    let (method, path) = (request.method.as_str(), request.path.split('?').next().unwrap());
    let data = match path {
        _ if path.starts_with("/rest/v1/") => return Some(Answer::ok("application/json", ROWS)),
        "/search" => return Some(Answer::ok("application/json", r#"{"results": [{"title": "A"}]}"#)),
        "/api/onto/search" => json!({"results": [{"id": "r1"}], "total": 7}),
        "/api/onto/projects/instantiate" => json!({"project_id": "p1", "counts": {"tasks": 1}}),
        "/api/onto/edges" => json!({"created": 1}),
        _ if method == "GET" && path.ends_with("/documents") => {
            json!({"documents": [{"id": "d1"}], "scratch_pad": null})
        }
        _ if path.ends_with("/doc-tree") => json!({
            "structure": {"root": [{"id": "d0", "children": [{"id": "d1"}]}]},
            "documents": {"d0": {"title": "Top"}, "d1": {"title": "Leaf"}}, "unlinked": [],
        }),
        "/api/calendar" => json!({"events": [{"id": "e1"}, {"id": "e2"}]}),
        _ if path.ends_with("/events") && method == "GET" => json!([{"id": "e1"}]),
        "/api/onto/edges/linked" => {
            json!({"sourceEntity": {"id": "x"}, "linkedEntities": {"goals": [{"id": "g1"}], "plans": []}})
        }
        _ if method == "DELETE" => return Some(Answer::ok("application/json", r#"{"success": true}"#)),
        _ => json!({"id": "x1", "description": "Old", "content": "Old"}),
    };
    Some(Answer::ok("application/json", json!({"success": true, "data": data}).to_string()))
}

/// What clients are told that a call does: action and kind; nothing of what is no thing with a name.
fn operation(tool: &str) -> Option<String> {
    let told = match tool {
        "get_onto_project_graph" => "read project",
        "get_document_tree" | "get_document_path" => "read document",
        "list_task_documents" => "list document",
        "create_task_document" => "create document",
        "move_document" => "update document",
        "reorganize_onto_project_graph" => "update project",
        _ => {
            let (action, kind) = tool.split_once("_onto_")?;
            let (action, kind) = match action {
                "get" => ("read", kind.strip_suffix("_details")?),
                "list" | "search" => (action, kind.strip_suffix('s')?),
                "create" | "update" | "delete" => (action, kind),
                _ => return None,
            };
            return Some(format!("{action} {kind}"));
        }
    };
    Some(told.to_owned())
}

/// Path and decoded parameters.
fn address(path: &str) -> (String, Vec<(String, String)>) {
    let url = Url::parse(&format!("http://x{path}")).unwrap();
    let path = path.split('?').next().unwrap().to_owned();
    (path, url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
}

#[tokio::test]
async fn each_tool_makes_its_request_and_reads_its_answer() {
    let rows = rows();
    let turns = rows.iter().flat_map(|row| [calls("c1", &row.tool, &row.args), says("Done.")]);
    let model = Upstream::script(turns.map(Script::answer).collect::<Vec<_>>()).await;
    let key = [("BACKENDS__WEB__API_KEY", "of-the-service")];
    let set = Set::over(model, Upstream::choosing(answers).await, &key).await;
    let mut wrong = Vec::new();
    for row in &rows {
        let before = set.backend.requests().len();
        let body = match row.place.as_str() {
            "project" => json!({"message": "Go", "context_type": "project", "entity_id": "p1"}),
            place => json!({"message": super::CLEAR, "context_type": place}),
        };
        let response = set.post(&body).await;
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        let (run, session) = (header("x-run-id"), header("x-conversation-id"));
        let frames = super::read(&response.text().await.unwrap());
        let result = &frame(&frames, "tool_result")["result"];
        let found = match result["success"] == true {
            true => Ok(result["data"].clone()),
            false => Err(format!("{} {}", result["errorType"].as_str().unwrap(), result["error"].as_str().unwrap())),
        };
        let name = format!("{} {}", row.tool, row.args);
        let is_wanted = match (&row.result, &found) {
            // Of a text its beginning.
            (Ok(Value::String(begin)), Ok(Value::String(found))) => found.starts_with(begin.as_str()),
            (Ok(data), Ok(found)) => data == found,
            (Err(words), Err(found)) => found.starts_with(words),
            _ => false,
        };
        if !is_wanted {
            wrong.push(format!("{name}\n  wanted {:?}\n  found {found:?}", row.result));
        }
        let told = frames.iter().filter(|frame| frame["type"] == "operation").map(|frame| &frame["operation"]);
        let told: Vec<String> = told
            .map(|told| {
                let name = told["entity_name"].as_str().unwrap();
                let is_id = name.contains("0198c0de") || ["x1", "p1", "t1", "d1", "g1"].contains(&name);
                let kinds = [&told["action"], &told["entity_type"]].map(|kind| kind.as_str().unwrap());
                format!("{}{}", kinds.join(" "), if is_id { " told by its id" } else { "" })
            })
            .collect();
        let wanted: Vec<String> = operation(&row.tool).into_iter().flat_map(|told| [told.clone(), told]).collect();
        if told != wanted {
            wrong.push(format!("{} {}\n  operations: wanted {wanted:?}, found {told:?}", row.tool, row.args));
        }
        // What is loaded for prompts, and looked up or read before, comes first; a new project is loaded behind it.
        let requests = set.backend.requests().split_off(before);
        let is_loaded = |request: &&Request| request.method == "GET" && request.path == "/api/onto/projects/p1";
        let sent = requests.iter().rev().find(|request| !is_loaded(request) && request.path != "/api/onto/projects");
        let Some(wanted) = &row.request else {
            if let Some(sent) = sent {
                wrong.push(format!("{name}\n  nothing is to be sent, but {} {}", sent.method, sent.path));
            }
            continue;
        };
        let Some(sent) = sent else {
            wrong.push(format!("{name}\n  sends nothing"));
            continue;
        };
        let (method, path) = wanted.split_once(' ').unwrap();
        if (method, address(path)) != (sent.method.as_str(), address(&sent.path)) {
            wrong.push(format!("{name}\n  wanted {wanted}\n  found {} {:?}", sent.method, address(&sent.path)));
        }
        let sent_body: Option<Value> = serde_json::from_slice(&sent.body).ok();
        if sent_body != row.body {
            wrong.push(format!("{name}\n  wanted {:?}\n  found {sent_body:?}", row.body));
        }
        let is_write =
            method != "GET" && !["/search", "/api/onto/search", "/api/calendar"].contains(&sent.path.as_str());
        let mut headers: BTreeMap<&str, Option<String>> = BTreeMap::from([
            ("authorization", Some(format!("Bearer {}", set.app().token))),
            ("x-change-source", Some("chat".to_owned())),
            ("x-chat-session-id", Some(session)),
            ("idempotency-key", is_write.then(|| format!("{run}.c1"))),
            ("cookie", None),
        ]);
        if path == "/search" {
            headers.insert("authorization", Some("Bearer of-the-service".to_owned()));
            headers.extend([("x-change-source", None), ("x-chat-session-id", None)]);
        }
        for (header, value) in headers {
            let found = sent.header(header).map(str::to_owned);
            let is_wanted = match (header, &value, &found) {
                ("idempotency-key", Some(begin), Some(found)) => found.starts_with(begin.as_str()),
                _ => value == found,
            };
            if !is_wanted {
                wrong.push(format!("{name}\n  {header}: wanted {value:?}, found {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    let tools = set.offered(0).into_iter().filter(|name| name != "agent_create_plan").collect::<BTreeSet<_>>();
    let tested = rows.iter().map(|row| row.tool.clone()).collect::<BTreeSet<_>>();
    assert_eq!(tested, tools, "every tool is in the table");
}

/// The arguments of the contract's catalogue: `*` has to be given, also where the place says it.
const ARGUMENTS: &str = "
search_ontology *query project_id types limit
get_onto_project_details *project_id
get_onto_project_graph *project_id
get_onto_task_details *task_id
get_onto_goal_details *goal_id
get_onto_plan_details *plan_id
get_onto_document_details *document_id
get_onto_milestone_details *milestone_id
get_onto_risk_details *risk_id
get_onto_requirement_details *requirement_id
list_task_documents *task_id
get_document_tree *project_id include_content
get_document_path project_id *document_id
get_linked_entities *entity_id *entity_kind filter_kind
list_calendar_events timeMin timeMax limit calendar_scope project_id calendar_id
get_calendar_event_details onto_event_id event_id calendar_id calendar_scope project_id
get_project_calendar *project_id
list_onto_projects state_key type_key limit
list_onto_tasks project_id state_key limit
list_onto_goals project_id limit
list_onto_plans project_id limit
list_onto_documents project_id type_key state_key limit
list_onto_milestones project_id state_key limit
list_onto_risks project_id state_key impact limit
list_onto_requirements project_id type_key limit
search_onto_projects *search state_key type_key limit
search_onto_tasks *search project_id state_key limit
search_onto_documents *search project_id type_key state_key limit
get_entity_relationships *entity_id direction
create_onto_task *project_id *title description type_key state_key priority plan_id goal_id supporting_milestone_id parent parents connections start_at due_at props
create_onto_goal *project_id *name description type_key props
create_onto_plan *project_id *name description type_key state_key props goal_id milestone_id parent parents
create_onto_document *project_id *title type_key state_key *content props parent_id position parent parents
create_task_document *task_id document_id title type_key state_key role content props
create_onto_project *project *entities *relationships context_document clarifications meta
link_onto_entities *src_kind *src_id *dst_kind *dst_id *rel props
unlink_onto_edge *edge_id
reorganize_onto_project_graph *project_id *nodes options
move_document project_id *document_id *new_parent_id position
update_onto_project *project_id name description update_strategy merge_instructions state_key props
update_onto_task *task_id title description update_strategy merge_instructions type_key state_key priority goal_id supporting_milestone_id start_at due_at props
update_onto_goal *goal_id name description update_strategy merge_instructions priority target_date measurement_criteria props
update_onto_plan *plan_id name description update_strategy merge_instructions start_date end_date state_key props
update_onto_document *document_id title type_key state_key content update_strategy merge_instructions props
update_onto_milestone *milestone_id title due_at state_key description props
update_onto_risk *risk_id title impact probability state_key content description mitigation_strategy owner props
update_onto_requirement *requirement_id text priority type_key props
delete_onto_task *task_id
delete_onto_goal *goal_id
delete_onto_plan *plan_id
delete_onto_document *document_id
create_calendar_event *title *start_at end_at description location project_id task_id calendar_scope calendar_id sync_to_calendar
update_calendar_event onto_event_id event_id calendar_id title start_at end_at description location sync_to_calendar
delete_calendar_event onto_event_id event_id calendar_id title start_at end_at description location sync_to_calendar
set_project_calendar *project_id action name description color_id sync_enabled
get_field_info *entity_type field_name
get_buildos_overview
get_buildos_usage_guide
web_search *query search_depth max_results include_answer include_domains exclude_domains
";

#[tokio::test]
async fn each_context_offers_its_pool_and_each_tool_its_arguments() {
    const BASE: [&str; 6] = [
        "get_field_info",
        "get_entity_relationships",
        "get_linked_entities",
        "web_search",
        "get_buildos_overview",
        "get_buildos_usage_guide",
    ];
    let all: BTreeMap<&str, Vec<&str>> = ARGUMENTS
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.split_once(' ').map_or((line, Vec::new()), |(tool, args)| (tool, args.split(' ').collect())))
        .collect();
    let reads = |name: &&str| ["get_", "list_", "search_", "web_"].iter().any(|begin| name.starts_with(begin));
    let everywhere = |name: &&str| {
        let is_list = name.starts_with("list_onto_") || name.starts_with("search_ont");
        BASE.contains(name) || is_list || name.contains("_calendar_event")
    };
    let everything: BTreeSet<&str> = all.keys().copied().collect();
    let of =
        |keep: &dyn Fn(&&str) -> bool| everything.iter().copied().filter(|name| keep(name)).collect::<BTreeSet<_>>();
    let pools = [
        ("global", of(&everywhere), true),
        ("calendar", of(&everywhere), true),
        ("brain_dump", of(&everywhere), false),
        ("project", everything.clone(), true),
        ("ontology", everything.clone(), true),
        ("project_audit", of(&reads), true),
        ("project_forecast", of(&reads), true),
        ("daily_brief_update", of(&|name| BASE.contains(name)), false),
        ("project_create", of(&|name| BASE.contains(name) || *name == "create_onto_project"), true),
    ];
    let set = Set::playing(pools.iter().map(|_| says("Yes."))).await;
    for (at, (context, pool, plans)) in pools.iter().enumerate() {
        let entity = context.starts_with("project").then_some("p1");
        set.turn(&json!({"message": super::CLEAR, "context_type": context, "entity_id": entity})).await;
        let mut offered: BTreeSet<String> = set.offered(at).into_iter().collect();
        offered.remove("find_tools");
        assert_eq!(offered.remove("agent_create_plan"), *plans, "{context}");
        assert_eq!(offered.iter().map(String::as_str).collect::<BTreeSet<_>>(), *pool, "{context}");
    }
    // Of what the place or a default fills in, nothing is asked for.
    const FILLED: [&str; 3] = ["project_id", "entities", "relationships"];
    let at = pools.iter().position(|(context, ..)| *context == "project").unwrap();
    for tool in set.s.model.requests()[at].json()["tools"].as_array().unwrap() {
        let (name, schema) = (tool["function"]["name"].as_str().unwrap(), &tool["function"]["parameters"]);
        let Some(arguments) = all.get(name) else { continue };
        let known: BTreeSet<&str> =
            schema["properties"].as_object().into_iter().flat_map(|all| all.keys()).map(String::as_str).collect();
        let declared: BTreeSet<&str> = arguments.iter().map(|name| name.trim_start_matches('*')).collect();
        assert_eq!(known, declared, "{name}");
        let required: BTreeSet<&str> =
            schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap()).collect();
        let wanted = arguments.iter().filter_map(|name| name.strip_prefix('*')).filter(|name| !FILLED.contains(name));
        assert_eq!(required, wanted.collect::<BTreeSet<_>>(), "{name}");
    }
}
