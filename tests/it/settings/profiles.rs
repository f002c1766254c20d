//! Profiles in layers: what a page, a tab and a tab in a tab have of each other, what pages have that nobody describes, and
//! what is said about mistakes in all of it.

use std::collections::BTreeSet;
use std::path::Path;

use switchboard::agent::offer::profile::{DiagnosticsShape, OnLimit, Profile, Profiles, ReplyLanguage, Selection};
use switchboard::chat::input::Screen;
use switchboard::chat::template::Values;
use switchboard::config::{Sources, catalogue};
use switchboard::llm;
use switchboard::tools::BuiltIn;

use super::{file_problems, lines, write};

const ANY_PAGE: &str = r#"
id = "anywhere"
page = "*"
app = "kh"
identity = "own/identity.md"
closing = ["own/closing.md"]
tools = ["list_my_alerts"]
payload_types = ["note"]
suggestions = true
[[client_action]]
name = "close_chat"
description = "Closes the chat."
[select_tools]
core = ["list_my_alerts"]
[bounds]
max_turns = 5
on_limit = "answer"
[diagnostics]
shape = "basic"
"#;

const REPORTS: &str = r#"
id = "reports-page"
page = "reports"
roles = ["analyst", "admin"]
instructions = ["own/page.md"]
tools = ["list_workflow_rules", "list_my_alerts"]
sources = ["weather"]
[[client_action]]
name = "close_chat"
description = "Closes the report's chat."
[select_tools]
most = 3
[diagnostics]
roles = ["admin"]
[model]
max_tokens = 77
[tabs.articles]
identity = "own/tab.md"
instructions = ["own/tab.md"]
closing = ["own/tab.md"]
tools = ["clock__now"]
accepts = ["discover"]
payload_types = ["query"]
reply_language = "en"
background = true
[tabs.articles.bounds]
max_turns = 0
max_tool_calls = 9
[tabs.articles.subtabs.notes]
roles = []
suggestions = false
[tabs.articles.subtabs.notes.diagnostics]
shape = "off"
"#;

const PAYLOADS: &str = r#"
[[payload_type]]
name = "query"
description = "A query"
marker = "QUERY:"
schema = '{"type": "object"}'
instructions = "Write one."
summary = "Query: {{ data.q|cut(40) }}"

[[payload_type]]
name = "note"
description = "A note"
schema = { type = "object" }
"#;

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in
        [("identity", "You are {{ user }}'s."), ("closing", "Be brief."), ("page", "A page."), ("tab", "A tab.")]
    {
        write(dir.path(), &format!("prompts/own/{name}.md"), text);
    }
    write(dir.path(), "payloads/own.toml", PAYLOADS);
    write(dir.path(), "profiles/any.toml", ANY_PAGE);
    write(dir.path(), "profiles/reports.toml", REPORTS);
    dir
}

fn load(dir: &Path) -> Result<Profiles, Vec<String>> {
    let sources = Sources { dir: Some(dir.to_owned()), ..Sources::default() };
    let referents = catalogue::Referents {
        sources: BTreeSet::from(["weather".to_owned(), "clock".to_owned()]),
        backends: BTreeSet::from(["web".to_owned()]),
        ..Default::default()
    };
    let loaded = catalogue::load(&sources.assets(), &llm::LlmConfig::default(), &referents, |name| {
        (!name.contains("__")).then(BuiltIn::default)
    });
    loaded.map(|catalogue| catalogue.profiles).map_err(|problems| lines(&problems))
}

fn page(path: &str) -> Screen {
    let mut names = path.split('|').map(|name| Some(name.to_owned()).filter(|name| !name.is_empty()));
    Screen::Page { page: names.next().flatten(), tab: names.next().flatten(), subtab: names.next().flatten() }
}

fn said(profile: &Profile) -> String {
    let values = serde_json::json!({"user": "ada"});
    profile.prompt.render(&Values::from(values.as_object().unwrap())).text().replace("\n\n", " ")
}

#[test]
fn an_inner_layer_has_what_the_outer_ones_have_and_says_the_rest() {
    let dir = folder();
    let profiles = load(dir.path()).unwrap();
    let summary = |context_type: &str| {
        let profile = profiles.of_type(context_type).unwrap();
        let tools: Vec<_> = profile.tools.iter().map(|tool| tool.def.name.as_str()).collect();
        let sourced: Vec<_> = profile.sourced.iter().map(|tool| tool.name.as_str()).collect();
        let types: Vec<_> = profile.payload_types.iter().map(|kind| kind.name.as_str()).collect();
        let actions: Vec<_> = profile.client_actions.iter().map(|action| action.description.as_str()).collect();
        let bounds = &profile.bounds;
        [
            said(&profile),
            format!("{} {} {}", profile.id, profile.app, profile.roles.join(",")),
            format!("{} | {} | {}", tools.join(","), sourced.join(","), profile.sources.join(",")),
            format!("{} | {} | {}", profile.accepts.join(","), types.join(","), actions.join(",")),
            format!("{:?} {:?} {:?}", bounds.max_turns, bounds.max_tool_calls, bounds.on_limit),
            format!("{:?} {}", profile.diagnostics.shape, profile.diagnostics.roles.join(",")),
            format!("{} {:?} {}", profile.suggestions, profile.reply_language, profile.background),
            format!("{}", profile.models.choice.max_tokens.unwrap_or_default()),
        ]
    };
    assert_eq!(
        summary("anywhere"),
        [
            "You are ada's. Be brief.",
            "anywhere kh ",
            "list_my_alerts |  | ",
            " | note | Closes the chat.",
            "Some(5) None Answer",
            "Some(Basic) ",
            "true None false",
            "0",
        ]
    );
    assert_eq!(
        summary("reports"),
        [
            "You are ada's. A page. Be brief.",
            "reports-page kh analyst,admin",
            "list_my_alerts,list_workflow_rules |  | weather",
            " | note | Closes the report's chat.",
            "Some(5) None Answer",
            "Some(Basic) admin",
            "true None false",
            "77",
        ]
    );
    assert_eq!(
        summary("reports/articles"),
        [
            "A tab. A page. A tab. Be brief. A tab.",
            "reports-page/articles kh analyst,admin",
            "list_my_alerts,list_workflow_rules | clock__now | weather",
            "discover | note,query | Closes the report's chat.",
            "Some(0) Some(9) Answer",
            "Some(Basic) admin",
            "true Some(English) true",
            "77",
        ]
    );
    assert_eq!(
        summary("reports/articles/notes"),
        [
            "A tab. A page. A tab. Be brief. A tab.",
            "reports-page/articles/notes kh ",
            "list_my_alerts,list_workflow_rules | clock__now | weather",
            "discover | note,query | Closes the report's chat.",
            "Some(0) Some(9) Answer",
            "None admin",
            "false Some(English) true",
            "77",
        ]
    );
    let selection =
        |core: &[&str], most| Some(Selection { core: core.iter().map(|s| (*s).to_owned()).collect(), most });
    assert_eq!(profiles.of_type("anywhere").unwrap().selection, selection(&["list_my_alerts"], 8));
    assert_eq!(profiles.of_type("reports/articles").unwrap().selection, selection(&["list_my_alerts"], 3));
    // A kind of screen is no page: it has nothing of what all pages have.
    let workflow = profiles.of_type("workflow").unwrap();
    assert_eq!((workflow.app.as_str(), workflow.suggestions, workflow.selection.is_none()), ("chat", false, true));
    assert_eq!((workflow.bounds.on_limit, workflow.diagnostics.shape), (OnLimit::Fail, None::<DiagnosticsShape>));
    assert_eq!(workflow.reply_language, Some(ReplyLanguage::English));
}

#[test]
fn an_unknown_tab_has_what_its_page_has_and_an_unknown_page_what_all_pages_have() {
    let dir = folder();
    let profiles = load(dir.path()).unwrap();
    let rows = [
        ("reports", "reports", "a page"),
        ("reports|articles", "reports/articles", "a tab"),
        ("reports|articles|notes", "reports/articles/notes", "a tab in a tab"),
        ("reports|authors", "reports", "an unknown tab"),
        ("reports|authors|notes", "reports", "a known tab in an unknown one"),
        ("reports|articles|links", "reports/articles", "an unknown tab in a tab"),
        ("reports||notes", "reports", "a tab in no tab"),
        ("nowhere", "anywhere", "an unknown page"),
        ("nowhere|articles", "anywhere", "a known tab of an unknown page"),
        ("reports/articles", "anywhere", "a page with a slash is no tab"),
        ("|articles", "anywhere", "a tab of no page"),
        ("", "anywhere", "no page"),
    ];
    for (screen, expected, reason) in rows {
        let found = profiles.select(&page(screen)).map(|profile| profile.context_type.clone());
        assert_eq!(found.as_deref(), Some(expected), "{reason}");
    }
    assert!(profiles.select(&Screen::Type("nowhere".to_owned())).is_none(), "an unknown kind of screen is none");

    std::fs::remove_file(dir.path().join("profiles/any.toml")).unwrap();
    let profiles = load(dir.path()).unwrap();
    assert!(profiles.select(&page("nowhere")).is_none(), "where nothing is said of all pages");
}

#[tokio::test]
async fn every_mistake_of_every_layer_is_told_at_once_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let profile = r#"
id = "a b"
page = "x/y"
app = ""
roles = ["ok", ""]
identity = "own/none.md"
instructions = [
  "own/bad.md",
  "own/odd.md",
  "own/sum.md",
]
closing = ["own/odd.md", "../default.toml"]
tools = [
  "list_my_alerts",
  "list_my_alerts",
  "fly",
  "weather__now",
]
accepts = ["swim"]
sources = ["weather"]
payload_types = ["nothing"]
suggestions = "yes"
reply_language = "xx"
colour = "blue"
[[client_action]]
name = "go"
description = ""
[[client_action]]
colour = "blue"
[select_tools]
core = ["list_workflow_rules"]
most = -1
[bounds]
on_limit = "stop"
max_turns = 5000000000
[diagnostics]
shape = "all"
[tabs.one]
app = "kh"
[tabs."a/b"]
id = "c"
[tabs.one.subtabs.two.subtabs.three]
"#;
    write(dir.path(), "profiles/mine.toml", profile);
    write(dir.path(), "prompts/own/bad.md", "One\n{{ two");
    write(dir.path(), "prompts/own/odd.md", "contxt\n{{ context.contxt }}\n{% if contxt %}{{ usr }}{% endif %}");
    write(dir.path(), "prompts/own/sum.md", "One\n{{ [] + 1 }}");
    let expected = [
        "profiles/mine.toml:2: id must be 1 to 64 of A-Z a-z 0-9 _ -",
        "profiles/mine.toml:3: page must not have a slash; tabs are tables in the file of their page",
        "profiles/mine.toml:4: app must not be empty",
        "profiles/mine.toml:5: roles must not have an empty name",
        "profiles/mine.toml:6: identity prompts/own/none.md cannot be read",
        "prompts/own/bad.md:2: unexpected end of input, expected end of variable block",
        "prompts/own/odd.md:3: takes \"contxt\", which prompts do not have; there are context, place, user, tenant, roles, \
         conversation_id, now, data, tools, payload_types, client_actions, suggestions, payloads, plans, recap, fence",
        "prompts/own/odd.md:3: takes \"usr\", which prompts do not have; there are context, place, user, tenant, roles, \
         conversation_id, now, data, tools, payload_types, client_actions, suggestions, payloads, plans, recap, fence",
        "prompts/own/sum.md:2: tried to use + operator on unsupported types sequence and number",
        "profiles/mine.toml:12: closing prompts/../default.toml cannot be read",
        "profiles/mine.toml:15: tools \"list_my_alerts\" is listed twice",
        "profiles/mine.toml:16: tools \"fly\" is no tool that is built in or in a file",
        "profiles/mine.toml:17: tools \"weather__now\" is of \"weather\", which has no section [mcp.weather]",
        "profiles/mine.toml:19: accepts no tool \"swim\" can run",
        "profiles/mine.toml:20: sources \"weather\" has no section [mcp.weather] in the settings",
        "profiles/mine.toml:21: payload_types \"nothing\" is not defined in payloads/*.toml",
        "profiles/mine.toml:27: client_action[0].description must not be empty",
        "profiles/mine.toml:28: client_action[1].name is missing",
        "profiles/mine.toml:28: client_action[1].description is missing",
        "profiles/mine.toml:29: client_action[1].colour is not a known key",
        "profiles/mine.toml:22: suggestions must be true or false",
        "profiles/mine.toml:23: reply_language must be one of: de, en, es, fr, it, ja, ko, nl, pl, pt, zh",
        "profiles/mine.toml:35: bounds.max_turns must be at most 4294967295",
        "profiles/mine.toml:34: bounds.on_limit must be one of: fail, answer",
        "profiles/mine.toml:37: diagnostics.shape must be one of: off, basic, trace",
        "profiles/mine.toml:32: select_tools.most must be a whole number, from 0",
        "profiles/mine.toml:31: select_tools.core \"list_workflow_rules\" is not among the tools",
        "profiles/mine.toml:40: tabs.a/b must have a name without a slash",
        "profiles/mine.toml:41: tabs.a/b.id is not a known key",
        "profiles/mine.toml:39: tabs.one.app is not a known key",
        "profiles/mine.toml:42: tabs.one.subtabs.two.subtabs is not a known key",
        "profiles/mine.toml:24: colour is not a known key",
    ];
    assert_eq!(file_problems(dir.path()).await, expected);
}

#[tokio::test]
async fn what_profiles_say_of_each_other_has_to_fit() {
    let any = |id: &str| format!("id = \"{id}\"\npage = \"*\"\n");
    type Files<'a> = &'a [(&'a str, String)];
    let rows: [(Files<'_>, &[&str], &str); 6] = [
        (
            &[("a", any("a")), ("b", any("b"))],
            &["profiles/b.toml:1: id \"b\" is for all pages, as profiles/a.toml is"],
            "two for all pages",
        ),
        (
            &[("a", any("a")), ("b", "id = \"b\"\npage = \"a\"".to_owned())],
            &["profiles/b.toml:1: id \"b\" is selected by \"a\", as the one in profiles/a.toml is"],
            "a page with the name of what all pages have",
        ),
        (
            &[("a", "id = \"a\"\npage = \"tables\"".to_owned())],
            &["profiles/tables.toml:2: id \"tables\" is selected by \"tables\", as the one in profiles/a.toml is"],
            "a page with the name of a kind of screen",
        ),
        (
            &[("a", "id = \"a\"\npage = \"p\"\ncontext_type = \"p\"".to_owned())],
            &["profiles/a.toml:2: page must not be given beside context_type"],
            "both",
        ),
        (
            &[("a", "id = \"a\"\ncontext_type = \"p\"\napp = \"kh\"\n[tabs.x]".to_owned())],
            &["profiles/a.toml:3: app is only for pages", "profiles/a.toml:4: tabs is only for pages"],
            "what only pages have",
        ),
        (
            &[("a", format!("{}[tabs.x]", any("a")))],
            &["profiles/a.toml:3: tabs is not for what all pages have"],
            "tabs of all pages",
        ),
    ];
    for (files, expected, reason) in rows {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            write(dir.path(), &format!("profiles/{name}.toml"), text);
        }
        assert_eq!(file_problems(dir.path()).await, expected, "{reason}");
    }
}

#[tokio::test]
async fn every_mistake_of_payload_types_is_told_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"
colour = "blue"
[[payload_type]]
name = "Query"
description = "A"
marker = "query"
[[payload_type]]
name = "a"
description = "A"
marker = "SUGGESTED_VALUES:"
instructions = "i"
[[payload_type]]
name = "a"
description = "A"
marker = "A:"
summary = "{{ data.x }} {{ context }}"
[[payload_type]]
name = "b"
description = ""
schema = '{"type": 7}'
[[payload_type]]
name = "a"
description = "A"
marker = "A:"
instructions = "i"
schema = """
{
"type" 7
}"""
summary = "{{ x"
"#;
    write(dir.path(), "payloads/own.toml", text);
    let found = file_problems(dir.path()).await;
    let starts = [
        "payloads/own.toml:4: payload_type[0].name must be 1 to 64 of a-z 0-9 _",
        "payloads/own.toml:6: payload_type[0].marker must be of A-Z 0-9 _ with a colon behind",
        "payloads/own.toml:3: payload_type[0] instructions are missing: a model that may write it is told when and how",
        "payloads/own.toml:10: payload_type[1].marker \"SUGGESTED_VALUES:\" is the marker of suggestions",
        "payloads/own.toml:12: payload_type[2] instructions are missing",
        "payloads/own.toml:16: payload_type[2].summary takes \"context\"; there is only data",
        "payloads/own.toml:12: payload_type[2] \"a\" is defined twice",
        "payloads/own.toml:19: payload_type[3].description must not be empty",
        "payloads/own.toml:20: payload_type[3].schema is no schema: ",
        "payloads/own.toml:28: payload_type[4].schema is no JSON: ",
        "payloads/own.toml:30: payload_type[4].summary unexpected end of input",
        "payloads/own.toml:21: payload_type[4] has the marker of \"a\"",
        "payloads/own.toml:21: payload_type[4] \"a\" is defined twice",
        "payloads/own.toml:2: colour is not a known key",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (line, start) in found.iter().zip(starts) {
        assert!(line.starts_with(start), "{line} is not {start}");
    }
}

#[test]
fn a_profile_may_have_other_names_and_answer_for_all_others() {
    let profile = |id: &str, more: &str| {
        format!("id = \"{id}\"\ncontext_type = \"{id}\"\ninstructions = [\"workflow/role.md\"]\n{more}\n")
    };
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "profiles/global.toml", profile("global", "aliases = [\"general\", \"all\"]\nfallback = true"));
    write(dir.path(), "profiles/project.toml", profile("project", "read_only = true"));
    let profiles = load(dir.path()).unwrap();
    let selected = |name: &str| profiles.select(&Screen::Type(name.to_owned())).map(|profile| profile.id.clone());
    for (name, id) in [("global", "global"), ("general", "global"), ("project", "project"), ("weather", "global")] {
        assert_eq!(selected(name).as_deref(), Some(id), "{name}");
    }
    assert!(profiles.context_types().iter().all(|name| *name != "general"), "another name is none more");
    let project = profiles.of_type("project").unwrap();
    assert_eq!((project.read_only, profiles.of_type("global").unwrap().read_only), (true, false));

    write(dir.path(), "profiles/project.toml", profile("project", "aliases = [\"all\", \"global\"]\nfallback = true"));
    let problems = load(dir.path()).unwrap_err();
    let expected = [
        "profiles/project.toml:5: fallback is already true in profiles/global.toml",
        "profiles/project.toml:4: aliases \"project\" is selected by \"all\", as the one in profiles/global.toml is",
        "profiles/project.toml:4: aliases \"project\" is selected by \"global\", as the one in profiles/global.toml is",
    ];
    assert_eq!(problems, expected);
}
