//! The bounds of plans: how many steps run at once, what a profile's files may say, and that a plan leaves other turns as
//! they were.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use super::{TOOLS, plans, told};
use crate::support::model::says;
use crate::support::upstream::Answer;
use crate::tools::rest::{Setup, answer};

#[tokio::test]
async fn so_many_steps_run_at_once_and_the_next_one_waits_for_a_place() {
    for (parallel, expected) in [("2", 2), ("9", 5)] {
        let mut setup = Setup::of(TOOLS);
        setup.profile = "[plan]";
        setup.settings = vec![("PLANS__PARALLEL", parallel)];
        let steps: Vec<_> =
            (1..=5).map(|at| json!({"tools": ["look"], "arguments": {"id": format!("t{at}")}})).collect();
        let most = Arc::new(AtomicUsize::new(0));
        let seen = most.clone();
        // Each answer takes a moment, so that all that may be asked for at once are.
        let asked = Arc::new(AtomicUsize::new(0));
        let backend = move |_: &crate::support::upstream::Request| {
            let now = asked.fetch_add(1, Ordering::SeqCst) + 1;
            seen.fetch_max(now, Ordering::SeqCst);
            let asked = asked.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(190)).await;
                asked.fetch_sub(1, Ordering::SeqCst);
            });
            Some(Answer::ok("application/json", "").later(Duration::from_millis(200), r#"{"id": "t"}"#))
        };
        let (s, _backend) = setup.start([plans(&json!(steps)), says("Done.")], backend).await;
        let frames = told(&s.app, "Go").await;
        let finished = frames.iter().filter(|frame| frame.event == "step_finished").count();
        assert_eq!((finished, most.load(Ordering::SeqCst)), (5, expected), "{parallel}");
    }
}

#[tokio::test]
async fn what_profiles_say_of_plans_is_checked() {
    use switchboard::config::{Sources, catalogue};
    let of = |text: &str| {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            (
                "profiles/mine.toml",
                format!("id = \"mine\"\ncontext_type = \"mine\"\ninstructions = [\"a.md\"]\n{text}"),
            ),
            ("prompts/a.md", "Hello.".to_owned()),
        ];
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let sources = Sources { dir: Some(dir.path().to_owned()), ..Sources::default() };
        let llm = switchboard::llm::LlmConfig::default();
        let loaded = catalogue::load(&sources.assets(), &llm, &catalogue::Referents::default(), |_| {
            Some(switchboard::tools::BuiltIn::default())
        });
        loaded.err().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let rows = [
        ("[plan]\ntool = \"no blanks\"", "must be 1 to 64"),
        ("[plan]\nsteps = 3", "not a known key"),
        ("[plan.begins_with]\ntool = \"x\"", "gives"),
        ("[[agents]]\nprofile = \"nowhere\"\ndescription = \"x\"", "nowhere"),
        ("[[agents]]\nprofile = \"mine\"", "description"),
        ("[delegate]\ntools = 3", "tools"),
    ];
    for (text, named) in rows {
        let problems = of(text);
        assert!(problems.contains(named), "{text}: {problems:?}");
    }
    assert_eq!(of("[plan]\n[delegate]\n[[agents]]\nprofile = \"mine\"\ndescription = \"x\""), "");
}

#[tokio::test]
async fn a_profile_without_plans_has_none_of_their_tools() {
    let setup = Setup::of(TOOLS);
    let (s, _backend) = setup.start([plans(&json!([])), says("No.")], |_| answer(&json!({}))).await;
    told(&s.app, "Go").await;
    let tools = s.model.requests()[0].json()["tools"].to_string();
    assert!(!tools.contains("create_plan") && !tools.contains("delegate"), "{tools}");
    assert!(
        s.last_asked()
            .iter()
            .any(|message| message["content"].as_str().is_some_and(|text| text.contains("unknown tool")))
    );
}
