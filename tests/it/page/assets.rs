//! The page's files: what is sent, with which headers, and that nothing is missing or from elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::app::TestApp;

const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; \
     frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify";

/// The policy of the frame in which diagrams are drawn.
const FRAME_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'self'; sandbox allow-scripts";

/// What everything that a browser ever loads for the page may be together, compressed; and what it loads at first.
const MOST_BYTES: usize = 285_000;
const FIRST_BYTES: usize = 152_000;

/// What draws diagrams, of which a browser loads the parts that a diagram needs, when it is drawn.
const DIAGRAM_BYTES: usize = 600_000;

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page")
}

/// The families of tools that bring a part of the page.
const FAMILIES: [&str; 2] = ["tables", "workflow"];

/// Where the file is that is served by this name.
fn source(name: &str) -> PathBuf {
    let family = name.split_once('/').filter(|(family, _)| FAMILIES.contains(family));
    match family {
        Some((family, name)) => {
            Path::new(env!("CARGO_MANIFEST_DIR")).join("src/toolsets").join(family).join("page").join(name)
        }
        None => home().join(name),
    }
}

/// The names that the page's files are served by.
fn files() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![String::new()];
    folders.extend(FAMILIES.map(|family| format!("{family}/")));
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(source(&folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{folder}{}", path.file_name().unwrap().to_str().unwrap());
            match path.is_dir() {
                true => folders.push(format!("{name}/")),
                false => drop(found.insert(name)),
            }
        }
    }
    found
}

/// What `toolsets.js` is, which the server makes.
fn toolsets() -> String {
    let families = ["workflow", "tables"];
    families.map(|family| format!("import './{family}/page.js';\n")).concat()
}

async fn get(app: &TestApp, path: &str, headers: &[(&str, &str)]) -> reqwest::Response {
    let mut request = app.http.get(app.url(path));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

fn header<'a>(response: &'a reqwest::Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn the_page_and_its_files_are_served_with_a_strict_policy() {
    let app = TestApp::demo().await;
    let rows = [
        ("/", 200, "text/html; charset=utf-8"),
        ("/page/index.html", 200, "text/html; charset=utf-8"),
        ("/page/app.js", 200, "text/javascript; charset=utf-8"),
        ("/page/style.css", 200, "text/css; charset=utf-8"),
        ("/page/icon.svg", 200, "image/svg+xml"),
        ("/page/session", 200, "application/json"),
        ("/page/nothing.js", 404, "application/problem+json"),
    ];
    for (path, status, content_type) in rows {
        let response = get(&app, path, &[]).await;
        assert_eq!(
            (response.status().as_u16(), header(&response, "content-type")),
            (status, Some(content_type)),
            "{path}"
        );
        let expected = [
            ("content-security-policy", CONTENT_SECURITY_POLICY),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ];
        for (name, value) in expected {
            assert_eq!(header(&response, name), Some(value), "{path}: {name}");
        }
    }
}

/// Whoever shows the frame, its document has no origin; so its scripts are for documents of any origin, and nothing else is.
#[tokio::test]
async fn the_frame_of_diagrams_has_a_policy_of_its_own() {
    let app = TestApp::demo().await;
    let index = get(&app, "/", &[]).await.text().await.unwrap();
    let folder = named(&index, "src=\"./page/").first().and_then(|name| name.split_once('/')).unwrap().0.to_owned();
    let rows = [
        ("diagram.html", FRAME_POLICY, None),
        ("diagram-frame.js", CONTENT_SECURITY_POLICY, Some("*")),
        ("vendor/mermaid/mermaid.esm.min.mjs", CONTENT_SECURITY_POLICY, Some("*")),
        ("diagram.js", CONTENT_SECURITY_POLICY, None),
        ("app.js", CONTENT_SECURITY_POLICY, None),
    ];
    for (name, policy, shared) in rows {
        for path in [format!("/page/{name}"), format!("/page/{folder}/{name}")] {
            let response = get(&app, &path, &[("origin", "null")]).await;
            assert_eq!(response.status(), 200, "{path}");
            assert_eq!(header(&response, "content-security-policy"), Some(policy), "{path}");
            assert_eq!(header(&response, "access-control-allow-origin"), shared, "{path}");
            assert_eq!(header(&response, "x-content-type-options"), Some("nosniff"), "{path}");
        }
    }
}

#[tokio::test]
async fn every_file_is_served_as_it_is() {
    let app = TestApp::demo().await;
    // The markup leads to what is put together.
    for file in files().into_iter().filter(|file| file != "index.html") {
        let response = get(&app, &format!("/page/{file}"), &[]).await;
        assert_eq!((response.status().as_u16(), header(&response, "content-encoding")), (200, None), "{file}");
        assert!(response.bytes().await.unwrap() == fs::read(source(&file)).unwrap(), "{file} is another file");
    }
    let response = get(&app, "/page/toolsets.js", &[]).await;
    assert_eq!(response.text().await.unwrap(), toolsets(), "what loads the parts of the families");
}

#[tokio::test]
async fn nothing_outside_of_the_folder_is_served() {
    let app = TestApp::demo().await;
    for path in [
        "/page/",
        "/page",
        "/page/vendor",
        "/page/vendor/",
        "/page/..%2f..%2fCargo.toml",
        "/page/%2e%2e/%2e%2e/Cargo.toml",
        "/page//app.js",
        "/page/App.js",
    ] {
        let response = get(&app, path, &[]).await;
        let status = response.status().as_u16();
        let problem: Value = response.json().await.unwrap();
        assert_eq!((status, &problem["code"]), (404, &Value::from("not_found")), "{path}");
    }
    let posted = app.http.post(app.url("/page/app.js")).send().await.unwrap();
    assert_eq!((posted.status().as_u16(), header(&posted, "allow")), (405, Some("GET,HEAD")));
}

#[tokio::test]
async fn a_file_that_the_browser_has_is_not_sent_again() {
    let app = TestApp::demo().await;
    for path in ["/", "/page/app.js"] {
        let first = get(&app, path, &[]).await;
        let etag = header(&first, "etag").unwrap().to_owned();
        assert_eq!(header(&first, "cache-control"), Some("no-cache"), "{path}");
        let strong = etag.trim_start_matches("W/").to_owned();
        let listed = format!("\"other\", {etag}");
        for (tag, status) in [(&*etag, 304), (&strong, 304), (&listed, 304), ("*", 304), ("\"other\"", 200), ("", 200)]
        {
            let again = get(&app, path, &[("if-none-match", tag)]).await;
            assert_eq!(again.status(), status, "{path}: {tag}");
            assert_eq!(header(&again, "etag"), Some(&*etag), "{path}: {tag}");
            assert_eq!(header(&again, "content-security-policy"), Some(CONTENT_SECURITY_POLICY), "{path}: {tag}");
            assert_eq!(again.bytes().await.unwrap().is_empty(), status == 304, "{path}: {tag}");
        }
    }
    let [one, other] = [get(&app, "/", &[]).await, get(&app, "/page/app.js", &[]).await];
    assert_ne!(header(&one, "etag"), header(&other, "etag"));
}

#[tokio::test]
async fn files_are_compressed_for_who_takes_that() {
    let app = TestApp::demo().await;
    let plain = get(&app, "/page/app.js", &[]).await.bytes().await.unwrap();
    let rows = [
        ("gzip", true),
        ("br, GZip;q=0.5", true),
        ("deflate,gzip", true),
        ("gzip;q=0", false),
        ("gzip; q=0.0, br", false),
        ("*", false),
        ("br", false),
        ("gzipped", false),
    ];
    for (accepted, is_compressed) in rows {
        let response = get(&app, "/page/app.js", &[("accept-encoding", accepted)]).await;
        let encoding = header(&response, "content-encoding").map(str::to_owned);
        assert_eq!(encoding.as_deref(), is_compressed.then_some("gzip"), "{accepted}");
        assert_eq!(header(&response, "vary"), Some("accept-encoding"), "{accepted}");
        let body = response.bytes().await.unwrap();
        assert_eq!(body.len() < plain.len(), is_compressed, "{accepted}");
        assert_eq!(body.starts_with(&[0x1f, 0x8b]), is_compressed, "{accepted}: gzip begins so");
    }
}

#[tokio::test]
async fn streams_are_never_compressed() {
    let app = TestApp::demo().await;
    let body = serde_json::json!({"message": "hello", "context_type": "workflow"});
    let request = app.http.post(app.url("/v1/agent/chat")).bearer_auth(&app.token).header("accept-encoding", "gzip");
    let response = request.json(&body).send().await.unwrap();
    assert_eq!(
        (header(&response, "content-type"), header(&response, "content-encoding")),
        (Some("text/event-stream"), None)
    );
}

/// What a text names between a mark and the quotation mark behind it.
fn named<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
    text.split(mark).skip(1).filter_map(|rest| rest.split(['"', '\'']).next()).collect()
}

/// A path relative to a file of `folder`.
fn joined(folder: &Path, relative: &str) -> String {
    let mut path = PathBuf::new();
    for part in folder.join(relative).components() {
        match part {
            std::path::Component::ParentDir => assert!(path.pop(), "{relative} leaves the folder"),
            std::path::Component::CurDir => {}
            part => path.push(part),
        }
    }
    path.to_str().unwrap().to_owned()
}

/// What a browser loads for the page: `index.html` and all that it and its modules name.
fn loaded() -> BTreeSet<String> {
    let index = fs::read_to_string(home().join("index.html")).unwrap();
    let mut wanted: Vec<String> =
        ["href=\"./page/", "src=\"./page/"].iter().flat_map(|mark| named(&index, mark)).map(str::to_owned).collect();
    let mut loaded = BTreeSet::from(["index.html".to_owned()]);
    while let Some(file) = wanted.pop() {
        if !loaded.insert(file.clone()) || !file.ends_with("js") {
            continue;
        }
        let text = match file.as_str() {
            "toolsets.js" => toolsets(),
            _ => fs::read_to_string(source(&file)).unwrap_or_else(|error| panic!("{file}: {error}")),
        };
        let folder = Path::new(&file).parent().unwrap();
        for mark in ["from \"./", "from '../", "from './", "from \"../", "import \"./", "import './"] {
            let up = if mark.ends_with("../") { "../" } else { "" };
            wanted.extend(named(&text, mark).into_iter().map(|name| joined(folder, &format!("{up}{name}"))));
        }
    }
    loaded
}

#[tokio::test]
async fn every_file_that_is_named_is_there() {
    let app = TestApp::demo().await;
    let loaded = loaded();
    assert!(loaded.len() > 20 && loaded.contains("client.js"), "{loaded:?}");
    for file in &loaded {
        let response = get(&app, &format!("/page/{file}"), &[("accept-encoding", "gzip")]).await;
        assert_eq!(response.status(), 200, "{file}");
    }
}

/// The files that `/` names.
async fn first(app: &TestApp) -> BTreeSet<String> {
    let index = get(app, "/", &[]).await.text().await.unwrap();
    let marks = ["href=\"./page/", "src=\"./page/"];
    marks.iter().flat_map(|mark| named(&index, mark)).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_page_is_a_few_small_files_that_browsers_keep_for_good() {
    let app = TestApp::demo().await;
    let first = first(&app).await;
    let folder = first.first().unwrap().split_once('/').unwrap().0.to_owned();
    let expected = ["app.js", "icon.svg", "style.css", "theme.js"].map(|name| format!("{folder}/{name}"));
    assert_eq!(first, BTreeSet::from(expected), "{folder}");
    let mut total = get(&app, "/", &[("accept-encoding", "gzip")]).await.bytes().await.unwrap().len();
    for file in &first {
        let response = get(&app, &format!("/page/{file}"), &[("accept-encoding", "gzip")]).await;
        let kept = header(&response, "cache-control").map(str::to_owned);
        assert_eq!((response.status().as_u16(), kept.as_deref()), (200, Some("public, max-age=31536000, immutable")));
        total += response.bytes().await.unwrap().len();
    }
    println!("{total} bytes at first");
    assert!(total < FIRST_BYTES, "{total} bytes at first");
    let is_later = |file: &String| {
        let is_code = file.starts_with("vendor/highlight/") || file.starts_with("vendor/temml/");
        is_code && file.ends_with(".js")
            || [
                "attachments.css",
                "attachments.js",
                "changes.js",
                "context-edit.js",
                "diagram.css",
                "diagram.js",
                "directives.js",
                "file-edit.js",
                "restore.js",
                "trail.js",
                "usage.js",
                "waiting.js",
                "worker.js",
            ]
            .contains(&&**file)
    };
    for file in files().iter().filter(|file| is_later(file)) {
        let response = get(&app, &format!("/page/{folder}/{file}"), &[("accept-encoding", "gzip")]).await;
        assert_eq!(response.status(), 200, "{file}");
        total += response.bytes().await.unwrap().len();
    }
    assert!(total < MOST_BYTES, "{total} bytes in all");
    let is_diagram =
        |file: &&String| file.ends_with(".mjs") || ["diagram.html", "diagram-frame.js"].iter().any(|name| file == name);
    let mut diagrams = 0;
    for file in files().iter().filter(is_diagram) {
        let response = get(&app, &format!("/page/{folder}/{file}"), &[("accept-encoding", "gzip")]).await;
        assert_eq!(response.status(), 200, "{file}");
        diagrams += response.bytes().await.unwrap().len();
    }
    println!("{total} bytes, and {diagrams} for diagrams");
    assert!((1..DIAGRAM_BYTES).contains(&diagrams), "{diagrams} bytes for diagrams");

    // A browser that comes from a server of another version gets what is here, and keeps nothing.
    let other = get(&app, "/page/v-0123456789abcdef/app.js", &[]).await;
    assert_eq!((other.status().as_u16(), header(&other, "cache-control")), (200, Some("no-cache")));
    for path in ["/page/v-0123456789abcdeg/app.js", "/page/v-0123/app.js", &format!("/page/{folder}/nothing.js")] {
        assert_eq!(get(&app, path, &[]).await.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn a_deployment_gives_the_page_its_own_name_and_looks() {
    let logo = tempfile::Builder::new().suffix(".svg").tempfile().unwrap();
    fs::write(logo.path(), "<svg xmlns=\"http://www.w3.org/2000/svg\"/>").unwrap();
    let app = TestApp::start(&[
        ("PAGE__NAME", "Ask <Ada>"),
        ("PAGE__LOGO", logo.path().to_str().unwrap()),
        ("PAGE__ACCENT", "#7a1fa2"),
        ("PAGE__STARTERS", "What is new?"),
    ])
    .await;
    let index = get(&app, "/", &[]).await.text().await.unwrap();
    assert!(index.contains("<title>Ask &lt;Ada&gt;</title>"), "{index}");
    let first = first(&app).await;
    assert!(first.iter().any(|file| file.ends_with("/logo.svg")), "{first:?}");
    let named = |end: &str| format!("/page/{}", first.iter().find(|file| file.ends_with(end)).unwrap());
    let script = get(&app, &named("app.js"), &[]).await.text().await.unwrap();
    let brand = r#"brand = {"name":"Ask <Ada>","logo":"logo.svg","starters":["What is new?"]}"#;
    assert!(script.contains(brand), "the page is told");
    assert!(get(&app, &named("style.css"), &[]).await.text().await.unwrap().contains("--accent: light-dark(#7a1fa2,"));
    let icon = get(&app, &named("logo.svg"), &[]).await;
    assert_eq!(header(&icon, "content-type"), Some("image/svg+xml"));
}

/// The texts that a script says by `t("…")`.
fn said(script: &str) -> BTreeSet<String> {
    let mut said = BTreeSet::new();
    for mark in [" t(\"", "(t(\"", "[t(\"", " t('", "(t('", "[t('"] {
        let quote = mark.chars().last().unwrap();
        for rest in script.split(mark).skip(1) {
            let mut text = String::new();
            let mut chars = rest.chars();
            while let Some(c) = chars.next().filter(|c| *c != quote) {
                text.push(if c == '\\' { chars.next().unwrap() } else { c });
            }
            said.insert(text);
        }
    }
    said
}

#[test]
fn every_text_of_the_page_is_said_in_every_language() {
    let scripts = files().into_iter().filter(|file| file.ends_with(".js") && !file.starts_with("vendor/"));
    let (languages, scripts): (Vec<_>, Vec<_>) = scripts.partition(|file| file.starts_with("texts-"));
    assert!(!languages.is_empty());
    let texts = scripts.iter().flat_map(|file| said(&fs::read_to_string(source(file)).unwrap()));
    let texts: BTreeSet<String> = texts.collect();
    assert!(texts.len() > 300, "{}", texts.len());
    for language in languages {
        let table = fs::read_to_string(source(&language)).unwrap();
        let known: Vec<&str> = table
            .lines()
            .filter_map(|line| line.strip_prefix("  \"")?.split_once("\": "))
            .map(|(key, _)| key)
            .collect();
        let missing: Vec<&String> = texts.iter().filter(|text| !known.contains(&text.as_str())).collect();
        assert!(missing.is_empty(), "{language} does not say {missing:#?}");
        let twice: Vec<&&str> =
            known.iter().filter(|key| known.iter().filter(|other| other == key).count() > 1).collect();
        assert!(twice.is_empty(), "{language} says twice {twice:?}");
    }
}

#[test]
fn nothing_is_loaded_from_elsewhere_and_nothing_of_it_stands_in_the_markup() {
    let index = fs::read_to_string(home().join("index.html")).unwrap();
    for word in ["http:", "https:", "=\"//", "=\"/", "style=", "onclick", "javascript:", "<style"] {
        assert!(!index.contains(word), "index.html: {word}");
    }
    for script in index.split("<script").skip(1) {
        assert!(script.split('>').nth(1).unwrap().starts_with("</script"), "a script in the markup: {script}");
    }
    for file in files().iter().filter(|file| !file.starts_with("vendor/") && file.ends_with(".js")) {
        let text = fs::read_to_string(source(file)).unwrap();
        let sinks = [
            "innerHTML =",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "srcdoc",
            "import(\"http",
        ];
        for word in sinks.iter().filter(|word| text.contains(**word)) {
            // The frame has no origin, and its policy runs nothing that stands in markup.
            assert!(file == "diagram-frame.js" && *word == "innerHTML =", "{file}: {word}");
        }
    }
}

#[tokio::test]
async fn without_the_page_its_addresses_are_nobodys() {
    let app = TestApp::start(&[("SERVER__PAGE", "false")]).await;
    for path in ["/", "/page/app.js", "/page/session"] {
        assert_eq!(get(&app, path, &[]).await.status(), 404, "{path}");
    }
    assert_eq!(get(&app, "/livez", &[]).await.status(), 200);
}
