//! A folder's files over the built-in ones: prompts, profiles, tools, demo data, and what is said when they are broken.

use switchboard::chat::template::Values;
use switchboard::config::{Sources, catalogue};
use switchboard::llm;
use switchboard::tools::BuiltIn;

use super::{file_problems, write};

const PROFILE: &str = r#"
id = "helper"
context_type = "helper"
instructions = ["workflow/role.md", "helper.md"]
tools = ["list_my_alerts"]
"#;

fn said(profile: &switchboard::agent::offer::profile::Profile) -> String {
    profile.prompt.render(&Values::default()).text()
}

#[tokio::test]
async fn a_folder_replaces_files_one_by_one_and_adds_its_own() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "prompts/workflow/role.md", "  You are new.\n");
    write(dir.path(), "prompts/helper.md", "You help.");
    write(dir.path(), "profiles/helper.toml", PROFILE);
    write(dir.path(), "profiles/notes.txt", "not a profile");
    assert_eq!(file_problems(dir.path()).await, [""; 0]);

    let sources = Sources { dir: Some(dir.path().to_owned()), ..Sources::default() };
    let profiles =
        catalogue::load(&sources.assets(), &llm::LlmConfig::default(), &catalogue::Referents::default(), |_| {
            Some(BuiltIn::default())
        })
        .unwrap()
        .profiles;
    assert_eq!(profiles.context_types(), ["helper", "tables", "workflow"]);
    let helper = profiles.of_type("helper").unwrap();
    assert_eq!(said(&helper), "You are new.\n\nYou help.");
    assert_eq!(helper.tools.iter().map(|tool| tool.def.name.as_str()).collect::<Vec<_>>(), ["list_my_alerts"]);
    assert!(said(&profiles.of_type("workflow").unwrap()).starts_with("You are new.\n\n"), "built-in profile, new text");

    let built_in = catalogue::load(
        &Sources::default().assets(),
        &llm::LlmConfig::default(),
        &catalogue::Referents::default(),
        |_| Some(BuiltIn::default()),
    )
    .unwrap()
    .profiles;
    assert!(!said(&built_in.of_type("workflow").unwrap()).contains("You are new."));
    let tables = |profiles: &switchboard::agent::offer::profile::Profiles| said(&profiles.of_type("tables").unwrap());
    assert_eq!(tables(&profiles), tables(&built_in), "what the folder does not have is built in");
}

#[tokio::test]
async fn a_broken_file_is_reported_by_its_path() {
    let with = |from: &str, to: &str| PROFILE.replace(from, to).into_bytes();
    let rows: [(&str, Vec<u8>, &[&str], &str); 18] = [
        ("profiles/helper.toml", b"id = ".to_vec(), &["profiles/helper.toml:1: "], "no TOML"),
        ("profiles/helper.toml", b"\xff".to_vec(), &["profiles/helper.toml: cannot be read"], "no text"),
        (
            "profiles/helper.toml",
            Vec::new(),
            &["profiles/helper.toml:1: id is missing", "profiles/helper.toml:1: context_type or page is missing"],
            "empty",
        ),
        (
            "profiles/helper.toml",
            with("helper.md", "workflow/context.md").into_iter().chain(*b"toolz = []").collect(),
            &["profiles/helper.toml:6: toolz is not a known key"],
            "an unknown key",
        ),
        (
            "profiles/helper.toml",
            PROFILE.into(),
            &["profiles/helper.toml:4: instructions prompts/helper.md cannot be read"],
            "a prompt that is not there",
        ),
        (
            "profiles/helper.toml",
            with("helper.md", "../../secret.md"),
            &["profiles/helper.toml:4: instructions prompts/../../secret.md cannot be read"],
            "a prompt outside of the folder",
        ),
        (
            "profiles/helper.toml",
            with("\"helper.md\"", "\"tables/role.md\"").iter().copied().chain(*b"accepts = [\"fly\"]").collect(),
            &["profiles/helper.toml:6: accepts no tool \"fly\" can run"],
            "a tool that is not there",
        ),
        (
            "profiles/workflow2.toml",
            with("context_type = \"helper\"", "context_type = \"workflow\""),
            &[
                "profiles/workflow2.toml:4: instructions prompts/helper.md cannot be read",
                "profiles/workflow2.toml:2: id \"helper\" is selected by \"workflow\", as the one in profiles/workflow.toml is",
            ],
            "a context type that is taken",
        ),
        (
            "profiles/workflow2.toml",
            with("\"helper.md\"", "\"tables/role.md\"").to_vec(),
            &[],
            "the file's name means nothing",
        ),
        (
            "profiles/helper.toml",
            String::from_utf8(with("\"helper.md\"", "\"tables/role.md\""))
                .unwrap()
                .replace("id = \"helper\"", "id = \"tables\"")
                .into(),
            &["profiles/tables.toml:2: id \"tables\" is already that of profiles/helper.toml"],
            "an id that is taken",
        ),
        (
            "prompts/workflow/role.md",
            b"\xff\xfe".to_vec(),
            &["profiles/workflow.toml:14: instructions prompts/workflow/role.md cannot be read"],
            "a prompt that is no text is not replaced by the built-in one",
        ),
        ("tools/workflow.json", b"[{]".to_vec(), &["tools/workflow.json:1: "], "no JSON"),
        ("tools/workflow.json", b"{}".to_vec(), &["tools/workflow.json:1: "], "no list"),
        ("tools/workflow.json", b"\xff".to_vec(), &["tools/workflow.json: cannot be read"], "no text"),
        (
            "tools/more.json",
            br#"[{"name": "a b", "description": "", "input_schema": {"type": "string"}}]"#.to_vec(),
            &[
                "tools/more.json: \"a b\" must be 1 to 64 of A-Z a-z 0-9 _ -",
                "tools/more.json: a b: input_schema must have the type \"object\"",
            ],
            "a name that vendors refuse, and arguments that are no object",
        ),
        (
            "tools/more.json",
            br#"[{"name": "list_my_alerts", "description": "", "input_schema": {"type": "object"}}]"#.to_vec(),
            &["tools/workflow.json: list_my_alerts is defined twice"],
            "a tool that is there already",
        ),
        ("demo/rules.json", b"[]]".to_vec(), &["demo: "], "demo data that cannot be read"),
        ("demo/unknown.json", b"[]]".to_vec(), &[], "a file that nobody reads"),
    ];
    for (path, bytes, expected, reason) in rows {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), path, bytes);
        let found = file_problems(dir.path()).await;
        let first: Vec<_> = found.iter().filter(|line| expected.iter().any(|start| line.starts_with(start))).collect();
        assert_eq!(first.len(), expected.len(), "{reason}: {found:#?}");
        assert!(!expected.is_empty() || found.is_empty(), "{reason}: {found:#?}");
    }
}

#[tokio::test]
async fn mistakes_in_several_files_are_reported_at_once() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "profiles/a.toml", "id = 1");
    write(dir.path(), "profiles/b.toml", "nothing");
    write(dir.path(), "tools/c.json", "nothing");
    write(dir.path(), "demo/rules.json", "nothing");
    let found = file_problems(dir.path()).await;
    let paths: Vec<_> = found.iter().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(paths, ["demo", "tools/c.json", "profiles/a.toml", "profiles/a.toml", "profiles/b.toml"], "{found:#?}");
}
