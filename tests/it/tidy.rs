//! The architecture, held by a test: who may import whom, who may know what, how long a file may be.
//! `docs/ARCHITECTURE.md` tells the same; change both together.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use switchboard::llm::Vendor;

/// What each module may import from the crate. `agent` alone means its ports, which is all that siblings meet in.
const MAY_IMPORT: [(&str, &[&str]); 19] = [
    ("bounded", &["bounded"]),
    ("aws", &["aws", "bounded"]),
    ("observe", &["observe"]),
    ("chat", &["bounded", "chat"]),
    ("agent", &["bounded", "chat", "agent", "observe"]),
    ("dialect", &["bounded", "chat", "dialect"]),
    ("runs", &["bounded", "chat", "agent", "runs", "observe"]),
    ("directives", &["bounded", "chat", "agent::ports", "directives", "observe"]),
    ("webhooks", &["bounded", "chat", "agent::ports", "webhooks", "observe"]),
    ("llm", &["aws", "bounded", "chat", "agent::ports", "llm", "observe"]),
    ("tools", &["bounded", "chat", "agent::ports", "tools", "observe"]),
    ("toolsets", &["bounded", "chat", "agent::ports", "tools", "toolsets"]),
    ("files", &["aws", "bounded", "chat", "agent::ports", "files"]),
    ("workspace", &["bounded", "chat", "agent::ports", "workspace", "observe"]),
    ("store", &["bounded", "chat", "agent::ports", "store", "observe"]),
    ("demo", &["chat", "agent::ports", "demo"]),
    ("probe", &["chat", "agent::ports"]),
    ("http", &["bounded", "chat", "agent::ports", "dialect", "runs", "http", "observe"]),
    (
        "config",
        &[
            "aws",
            "bounded",
            "chat",
            "agent",
            "dialect",
            "runs",
            "directives",
            "webhooks",
            "files",
            "workspace",
            "llm",
            "tools",
            "store",
            "http",
            "config",
        ],
    ),
];

/// Words that only these places may say in code.
const ONLY_IN: [(&str, &[&str]); 14] = [
    ("axum::", &["src/http/", "src/demo/backend/", "src/app/"]),
    ("sqlx::", &["src/store/"]),
    ("redis::", &["src/runs/log/"]),
    (
        "reqwest::",
        &[
            "src/aws/",
            "src/bounded/client.rs",
            "src/http/auth/",
            "src/llm/",
            "src/tools/backend/",
            "src/tools/mcp/",
            "src/telemetry/",
            "src/toolsets/web/",
            "src/webhooks/",
            "src/app/",
        ],
    ),
    // Every client vets what names lead to, and says by ALPN which HTTP it speaks: reqwest's own word for that does not reach it.
    ("Client::builder()", &["src/bounded/client.rs"]),
    ("http1_only()", &[]),
    ("rmcp::", &["src/tools/mcp/"]),
    (
        "StatusCode",
        &["src/http/", "src/demo/backend/", "src/tools/backend/", "src/tools/mcp/post.rs", "src/llm/", "src/webhooks/"],
    ),
    ("content_chunk", &["src/dialect/"]),
    ("tool_call_result", &["src/dialect/"]),
    ("message_complete", &["src/dialect/"]),
    ("functionDeclarations", &["src/llm/gemini/"]),
    ("input_json_delta", &["src/llm/claude/", "src/dialect/messages/"]),
    ("std::env::", &["src/config/", "src/main.rs", "src/workspace/command/exec/", "src/workspace/files/tests/"]),
];

/// What the two lowest floors never say besides the names of vendors, comments and tests apart.
const NEVER_BELOW: [&str; 6] = ["axum", "reqwest", "sqlx", "anthropic", "workflow", "table_config"];

/// Who makes values of JSON besides the one reader of what others write (`src/bounded/json/`): of rows and lines of our own,
/// of the operator's files, of values that the reader has made; what makes
/// results fit, which keeps their text; and the demo, which stands for somebody else's server.
const OWN_JSON: [&str; 10] = [
    "src/bounded/json/",
    "src/chat/fit/",
    "src/config/",
    "src/demo/",
    "src/http/auth/keys.rs",
    "src/http/conversation_views.rs",
    "src/runs/log/wire.rs",
    "src/store/",
    "src/toolsets/workflow/draft/document.rs",
    "src/workspace/journal.rs",
];

pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// The lines that are code.
    pub(crate) fn code(&self) -> impl Iterator<Item = &str> {
        self.text.lines().filter(|line| !line.trim_start().starts_with("//"))
    }

    fn module(&self) -> &str {
        self.path.trim_start_matches("src/").split('/').next().unwrap().trim_end_matches(".rs")
    }

    fn lines(&self) -> usize {
        self.text.lines().count()
    }
}

pub(crate) fn sources(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                // What the fuzz targets are built into.
                if !path.ends_with("target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.push(Source { path: name, text: fs::read_to_string(&path).unwrap() });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

pub(crate) fn none(violations: Vec<String>) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn imports_point_down() {
    let rules: BTreeMap<_, _> = MAY_IMPORT.into_iter().collect();
    let mut violations = Vec::new();
    for source in sources("src") {
        let Some(allowed) = rules.get(source.module()) else { continue };
        for line in source.code() {
            for (at, _) in line.match_indices("crate::") {
                let path = &line[at + "crate::".len()..];
                let fits = allowed.iter().any(|module| {
                    path.strip_prefix(module).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
                });
                if !fits {
                    violations.push(format!("{}: {}", source.path, line.trim()));
                }
            }
        }
    }
    none(violations);
}

#[test]
fn every_module_has_a_floor() {
    let floors: Vec<&str> = MAY_IMPORT.iter().map(|(module, _)| *module).collect();
    let plain = ["app", "arguments", "healthcheck", "lib", "main", "telemetry"];
    none(
        sources("src")
            .iter()
            .filter(|source| !floors.contains(&source.module()) && !plain.contains(&source.module()))
            .map(|source| format!("{} belongs to no floor", source.path))
            .collect(),
    );
}

#[test]
fn knowledge_stays_in_its_place() {
    let mut violations = Vec::new();
    for source in sources("src") {
        for line in source.code() {
            for (word, places) in ONLY_IN {
                if line.contains(word) && !places.iter().any(|place| source.path.starts_with(place)) {
                    violations.push(format!("{}: {word}: {}", source.path, line.trim()));
                }
            }
        }
        let low = source.path.starts_with("src/chat/") || source.path.starts_with("src/agent/");
        for line in source.code().take_while(|line| low && !line.contains("#[cfg(test)]")) {
            let mut words = NEVER_BELOW.into_iter().chain(Vendor::ALL.map(Vendor::name));
            if words.any(|word| line.to_lowercase().contains(word)) {
                violations.push(format!("{}: {}", source.path, line.trim()));
            }
        }
    }
    none(violations);
}

#[test]
fn json_of_others_is_read_in_one_place() {
    let mut violations = Vec::new();
    for source in sources("src").iter().filter(|source| !source.path.contains("tests")) {
        let code = source.code().take_while(|line| !line.contains("#[cfg(test)]"));
        for line in code.filter(|line| line.contains("serde_json::from_") || line.contains("Deserializer::from_")) {
            if !OWN_JSON.iter().any(|place| source.path.starts_with(place)) {
                violations.push(format!("{}: {}", source.path, line.trim()));
            }
        }
        if source.text.contains("serde_saphyr") && !source.path.starts_with("src/bounded/json/") {
            violations.push(format!("{}: YAML", source.path));
        }
    }
    none(violations);
}

#[test]
fn every_file_begins_with_its_story() {
    let files = ["src", "tests", "benches"].into_iter().flat_map(sources);
    none(files.filter(|file| !file.text.starts_with("//! ")).map(|file| file.path).collect());
}

#[test]
fn files_stay_readable() {
    let files: Vec<Source> = ["src", "tests", "benches"].into_iter().flat_map(sources).collect();
    none(files.iter().filter(|f| f.lines() > 600).map(|f| format!("{}: {} lines", f.path, f.lines())).collect());

    let mut lengths: Vec<usize> =
        files.iter().filter(|file| file.path.starts_with("src/")).map(Source::lines).collect();
    lengths.sort_unstable();
    let (median, p90) = (lengths[lengths.len() / 2], lengths[lengths.len() * 9 / 10]);
    println!("{} files, median {median}, p90 {p90}, longest {}", lengths.len(), lengths[lengths.len() - 1]);
    assert!(median <= 160, "the median file has {median} lines");
    assert!(p90 <= 400, "the 90th percentile file has {p90} lines");
}

/// A port is for one kind of use, so that a fake of it is short.
#[test]
fn a_port_has_five_methods_at_most() {
    let (mut ports, mut violations) = (0, Vec::new());
    for file in sources("src")
        .iter()
        .filter(|file| file.path.starts_with("src/agent/ports/") || file.path == "src/runs/log/mod.rs")
    {
        for port in file.text.split("\npub trait ").skip(1) {
            let (head, body) = port.split_once('\n').unwrap_or((port, ""));
            let methods = match head.ends_with("{}") {
                true => 0,
                false => body.split("\n}\n").next().unwrap_or_default().matches(" fn ").count(),
            };
            ports += 1;
            if methods > 5 {
                violations.push(format!("{}: {head} has {methods} methods", file.path));
            }
        }
    }
    assert!(ports > 20, "only {ports} ports were found: the search has gone blind");
    none(violations);
}

#[test]
fn tests_have_no_way_out() {
    // Split, so that this file does not accuse itself.
    let escapes = [concat!("#[", "ignore"), concat!("should_", "panic"), concat!("set_", "var(")];
    let mut violations = Vec::new();
    for file in sources("src").iter().chain(&sources("tests")) {
        for escape in escapes.iter().filter(|escape| file.text.contains(**escape)) {
            violations.push(format!("{}: {escape}", file.path));
        }
    }
    none(violations);
}

/// Who is new here reads it first, and goes where it sends them.
#[test]
fn the_map_is_short_and_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = fs::read_to_string(root.join("docs/ARCHITECTURE.md")).unwrap();
    assert!(map.lines().count() <= 120, "it has {} lines", map.lines().count());
    let mut violations: Vec<String> =
        map.lines().filter(|line| line.chars().count() > 140).map(|line| format!("too long: {line}")).collect();
    let places = map.split('`').skip(1).step_by(2).filter(|text| text.contains('/') && !text.contains(['<', '\n']));
    let paths: Vec<String> = places.flat_map(spelled_out).collect();
    assert!(paths.len() > 60, "only {} paths were found: the search has gone blind", paths.len());
    let is_there = |path: &String| ["src", ""].into_iter().any(|folder| root.join(folder).join(path).exists());
    violations.extend(paths.into_iter().filter(|path| !is_there(path)).map(|path| format!("{path} is not there")));
    none(violations);
}

/// The paths of `a/{b,c}.rs`.
fn spelled_out(path: &str) -> Vec<String> {
    match path.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?))) {
        Some((head, (names, tail))) => names.split(',').map(|name| format!("{head}{name}{tail}")).collect(),
        None => vec![path.to_owned()],
    }
}

#[test]
fn every_setting_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let defaults: toml::Table = fs::read_to_string(root.join("config/default.toml")).unwrap().parse().unwrap();
    let docs = fs::read_to_string(root.join("docs/CONFIG.md")).unwrap();
    let mut missing = Vec::new();
    let mut sections = vec![(String::new(), defaults)];
    while let Some((path, table)) = sections.pop() {
        for (key, value) in table {
            let path = if path.is_empty() { key } else { format!("{path}.{key}") };
            match value {
                toml::Value::Table(table) => sections.push((path, table)),
                _ if docs.contains(&format!("`{path}`")) => {}
                _ => missing.push(path),
            }
        }
    }
    none(missing);
}
