//! Declared tools and data that take something of a large screen state, which is read where other large inputs are.

use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use futures::poll;
use serde_json::{Map, json};
use switchboard::agent::ports::clock::SystemClock;
use switchboard::agent::ports::data::{DataChanges, DataLoader, Loaded};
use switchboard::agent::ports::directives::{
    AskError, Asked, Change, ChangeError, Decided, DirectiveDesk, Requested, Wanted,
};
use switchboard::agent::ports::store_error::StoreError;
use switchboard::agent::ports::tools::ToolContext;
use switchboard::bounded::intake::{Intake, LARGE};
use switchboard::bounded::memory::Memory;
use switchboard::chat::caller::{Caller, Owner};
use switchboard::chat::directive::{Directive, DirectiveNotice};
use switchboard::chat::ids::{ConversationId, DirectiveId};
use switchboard::chat::screen::ScreenState;
use switchboard::config::{Sources, catalogue};
use switchboard::llm::LlmConfig;
use switchboard::tools::BuiltIn;
use switchboard::tools::backend::{Access, Backend, Backends};
use switchboard::tools::rest::data::Loaders;
use switchboard::tools::rest::registry::RestTools;

use crate::tools::{called, somebody};

/// The tools: one for each place where a template may stand, behind one that takes nothing of the screen.
const TOOLS: [(&str, &str); 11] = [
    ("nothing", r#"request = { path = "/a", query = { of = "{{ user }}" } }"#),
    ("inject", "request = { path = \"/a\" }\ninject = { id = \"{{ context.id }}\" }"),
    ("query", r#"request = { path = "/a", query = { of = "{{ context.id }}" } }"#),
    ("header", r#"request = { path = "/a", headers = { "X-Of" = "{{ context.id }}" } }"#),
    ("body", r#"request = { method = "POST", path = "/a", body = { of = "{{ context.id }}" } }"#),
    ("instead", "request = { path = \"/a\" }\ninstead = [{ when = \"{{ context.id == 'x' }}\", path = \"/b\" }]"),
    (
        "before",
        r#"request = { method = "POST", path = "/a", body = { of = "{{ before }}" } }
before = { when = "{{ user }}", path = "/b", query = { of = "{{ context.id }}" } }"#,
    ),
    ("move", "request = { path = \"/a\" }\nmove = { to = \"mine\", entity = \"{{ context.id }}\" }"),
    (
        "directive",
        r#"request = { method = "POST", path = "/a" }
directive = { name = "a.made", subject = { type = "a", id = "{{ context.id }}" } }"#,
    ),
    ("text", "request = { path = \"/a\" }\nresult = { text = \"{{ context.id }}: {{ result }}\" }"),
    ("answers", r#"answers = [{ when = "{{ context.id }}", text = "There." }, { text = "Nowhere." }]"#),
];

const PROFILE: &str = r#"
id = "mine"
context_type = "mine"
instructions = ["mine.md"]
closing = ["mine.md"]
tools = ["nothing"]
[[data]]
slot = "here"
when = "{{ context.id == 'elsewhere' }}"
request = { path = "/a" }
[[data]]
slot = "anywhere"
when = "{{ user == 'somebody' }}"
request = { path = "/a" }
"#;

/// Keeps nothing, and has no directives.
struct Nobody;

#[async_trait]
impl DataChanges for Nobody {
    async fn data_changes(&self, _: &Owner, _: &[String]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn data_version(&self, _: &Owner, _: &[String]) -> Result<i64, StoreError> {
        Ok(0)
    }
}

#[async_trait]
impl DirectiveDesk for Nobody {
    async fn request(&self, _: Wanted<'_>, _: &Caller) -> Result<Requested, AskError> {
        unreachable!()
    }

    async fn outcome(
        &self,
        _: &Caller,
        _: DirectiveId,
        _: Duration,
        _: &(dyn Fn(DirectiveNotice) + Send + Sync),
    ) -> Result<Option<Directive>, StoreError> {
        unreachable!()
    }

    async fn ask(&self, _: Asked<'_>, _: &Caller) -> Result<Requested, AskError> {
        unreachable!()
    }

    async fn decide(&self, _: &Caller, _: DirectiveId, _: Decided) -> Result<Directive, ChangeError> {
        unreachable!()
    }

    async fn change(&self, _: &Caller, _: DirectiveId, _: Change) -> Result<Directive, ChangeError> {
        unreachable!()
    }
}

#[tokio::test]
async fn a_large_screen_state_is_read_aside_for_each_template_that_takes_something_of_it_and_for_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let tools = TOOLS.map(|(name, says)| {
        let schema = r#"{ type = "object", properties = { id = { type = "string" } } }"#;
        format!("[[tool]]\nname = {name:?}\ndescription = \"Does it.\"\ninput_schema = {schema}\n{says}\n")
    });
    let files = [("tools/mine.toml", &*tools.concat()), ("profiles/mine.toml", PROFILE), ("prompts/mine.md", "Hello.")];
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let assets = Sources { dir: Some(dir.path().to_owned()), ..Sources::default() }.assets();
    let is_mine = |name: &str| TOOLS.iter().any(|(mine, _)| *mine == name);
    let built_in = |name: &str| (!is_mine(name)).then(BuiltIn::default);
    let loaded = catalogue::load(&assets, &LlmConfig::default(), &catalogue::Referents::default(), built_in).unwrap();

    let intake = Intake::new(Memory::new(0));
    let url = "http://127.0.0.1:9/".parse().unwrap();
    let main = Backend::new(url, Access::of_caller(false), None, 0, intake.clone()).unwrap();
    let backends = Backends { main: Arc::new(main), named: [].into(), services: [].into() };
    let loaders = Loaders::new(&backends, loaded.loaders, Arc::new(Nobody), Arc::new(SystemClock)).unwrap();
    let loaders = Arc::new(loaders);
    let desk: Arc<dyn DirectiveDesk> = Arc::new(Nobody);
    let mine = loaded.requests.into_iter().filter(|(name, _)| is_mine(name));
    let tools = RestTools::new(&backends, &loaders, mine).unwrap().handlers(&desk);
    assert_eq!(tools.len(), TOOLS.len());

    let (caller, conversation) = (somebody("t"), ConversationId::fresh());
    let large = ScreenState::parse(&json!({"id": "a-1", "rows": "x".repeat(LARGE)}).to_string());
    let cx = ToolContext { context: large.as_ref(), ..called(&caller, &conversation) };

    // Two at once are the most that any machine does.
    let (ends, waits): (Vec<_>, Vec<_>) = (0..2).map(|_| mpsc::channel::<()>()).unzip();
    let mut busy = pin!(join_all(waits.into_iter().map(|wait| intake.work(LARGE + 1, move || wait.recv().is_ok()))));
    assert!(poll!(&mut busy).is_pending());
    let args = Map::new();
    let mut waiting = Vec::new();
    for (name, tool) in &tools {
        let mut completed = tool.complete(&args, &cx);
        match poll!(&mut completed).is_pending() {
            true => waiting.push((name, completed)),
            false => assert_eq!(*name, "nothing"),
        }
    }
    assert_eq!(waiting.len(), TOOLS.len() - 1);
    let (mut here, mut anywhere) = (loaders.load("mine/here", &cx), loaders.load("mine/anywhere", &cx));
    assert!(poll!(&mut here).is_pending());
    assert!(poll!(&mut anywhere).is_ready());

    ends.iter().for_each(|end| end.send(()).unwrap());
    let completed = async {
        let mut all = Vec::new();
        for (name, completed) in waiting {
            all.push((name.to_string(), completed.await.unwrap()));
        }
        all
    };
    let (_, completed, here) = futures::join!(busy, completed, here);
    assert_eq!(here, Loaded::Nothing);
    for (name, completed) in completed {
        let expected = if name == "inject" { json!({"id": "a-1"}) } else { json!({}) };
        assert_eq!(json!(completed), expected, "{name}");
    }
}
