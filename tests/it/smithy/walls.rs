//! What a model cannot do by an editor's tools: leave the folder, stall the server with an expression, or reach an address that
//! is not public.

use serde_json::{Value, json};

use super::{Editor, kinds};
use crate::support::model::{Script, says, turn};
use crate::support::upstream::{Answer, Upstream};

/// A turn of one call, and an answer.
fn one(call: &str, tool: &str, args: &Value) -> Vec<Script> {
    vec![turn().call(call, tool, args).done(), says("Done.")]
}

/// What the call of this id has said in the dialog `d`.
async fn said(editor: &Editor, call: &str) -> Value {
    let events = editor.chat("Go", json!({"dialog_id": "d"})).await;
    assert_eq!(kinds(&events).last(), Some(&"done"));
    editor.get(&format!("/api/dialogs/d/tool-results/{call}")).await["result"].clone()
}

#[tokio::test]
async fn no_tool_reads_or_changes_anything_outside_of_the_folder() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.txt");
    let absolute = secret.to_str().unwrap();
    let up = format!("../{}/secret.txt", outside.path().file_name().unwrap().to_str().unwrap());
    let replace = "------- SEARCH\nsecret\n=======\nopen\n+++++++ REPLACE\n";
    let mut tried = Vec::new();
    for path in [absolute, &up, "link.txt", "folder/secret.txt", "folder/../folder/secret.txt"] {
        tried.extend([
            ("read_file", path, json!({"path": path})),
            ("write_to_file", path, json!({"path": path, "content": "open\n"})),
            ("replace_in_file", path, json!({"path": path, "diff": replace})),
            ("delete_file", path, json!({"path": path})),
        ]);
    }
    tried.push(("list_files", ".", json!({"path": ".", "recursive": true})));
    tried.push(("search_files", ".", json!({"path": ".", "regex": "secret"})));
    // An answer each: ten failures in a row would end one.
    let calls = tried.iter().enumerate();
    let turns = calls.flat_map(|(number, (tool, _, args))| one(&format!("c{number}"), tool, args)).collect();
    let editor = Editor::with(&[], &[], turns).await;
    std::os::unix::fs::symlink(outside.path(), editor.root.path().join("folder")).unwrap();
    for (number, (tool, path, _)) in tried.iter().enumerate() {
        std::fs::write(&secret, "secret\n").unwrap();
        let link = editor.root.path().join("link.txt");
        if std::fs::symlink_metadata(&link).is_err() {
            std::os::unix::fs::symlink(&secret, link).unwrap();
        }
        let result = said(&editor, &format!("c{number}")).await;
        let told = result.to_string();
        assert!(!told.contains("secret\\n"), "{tool} {path}: {told}");
        match (*tool, *path) {
            ("list_files" | "search_files", _) => assert!(!told.contains("secret.txt"), "{tool}: {told}"),
            // A link itself may be deleted: what it leads to stays.
            ("delete_file", "link.txt") => {}
            _ => assert_eq!(result["code"], "outside_workspace", "{tool} {path}: {told}"),
        }
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret\n", "{tool} {path}");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1, "{tool} {path}");
    }
}

#[tokio::test]
async fn an_expression_that_explodes_ends_and_hits_are_bounded() {
    let hits = "needle\n".repeat(30_000);
    let files = [("long.txt", "a".repeat(60_000) + "!\n"), ("hits.txt", hits), ("binary.bin", "needle\0\n".repeat(9))];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    let args = json!({"path": ".", "regex": "^(a|aa|a*)+\\1b$"});
    let needle = json!({"path": ".", "regex": "needle"});
    let turns = [one("c1", "search_files", &args), one("c2", "search_files", &needle)].concat();
    let editor = Editor::with(&files, &[], turns).await;
    let result = said(&editor, "c1").await;
    assert!(result["type"] == "search_files_error" || result["results"] == json!([]), "{result}");
    let result = said(&editor, "c2").await;
    let found = result["results"].as_array().unwrap();
    assert!(!found.is_empty() && found.len() < 30_000, "{}", found.len());
    let text = editor.path("hits.txt");
    assert!(found.iter().all(|hit| hit["file"] == text.as_str()), "a binary file is not searched");
    assert_eq!(found[0]["line"], 1);
}

#[tokio::test]
async fn pages_of_all_kinds_are_read_where_their_host_is_allowed() {
    let site = Upstream::choosing(|request| {
        Some(match request.path.as_str() {
            "/html" => {
                Answer::ok("text/html; charset=latin1", b"<title>T</title><p>Caf\xe9<script>x()</script>".as_slice())
            }
            "/json" => Answer::ok("application/json", "{\"a\":  1}"),
            "/binary" => Answer::ok("image/png", vec![0, 159, 146, 150]),
            "/long" => Answer::ok("text/plain", "words ".repeat(200_000)),
            _ => Answer::status(404, "text/html", "<p>gone"),
        })
    })
    .await;
    let host = site.url().replace("http://", "");
    let pages = [
        ("html", 200, "Café"),
        ("json", 200, "{\"a\":  1}"),
        ("binary", 200, ""),
        ("long", 200, "words "),
        ("none", 404, ""),
    ];
    let reading =
        |(name, _, _): (&str, u16, &str)| one(name, "web_fetch", &json!({"url": format!("{}/{name}", site.url())}));
    let turns = pages.into_iter().flat_map(reading).collect();
    let editor = Editor::with(&[], &[("WEB__ALLOW_HOSTS", &host)], turns).await;
    for (name, status, text) in pages {
        let result = said(&editor, name).await;
        assert_eq!(json!([result["type"], result["status"]]), json!(["web_browse_result", status]), "{result}");
        let read = result["text"].as_str().unwrap();
        assert!(read.contains(text) && !read.contains("x()") && read.len() < 200_100, "{name}: {read:.300}");
        assert_eq!(read.is_empty(), text.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn no_spelling_of_a_private_address_is_connected_to() {
    let site = Upstream::choosing(|_| Some(Answer::ok("text/plain", "secret"))).await;
    let port = site.url().rsplit(':').next().unwrap().to_owned();
    let hosts = [
        "127.0.0.1",
        "localhost",
        "LOCALHOST.",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "%31%32%37.0.0.1",
        "169.254.169.254",
        "10.0.0.1",
    ];
    let mut urls: Vec<String> = hosts.iter().map(|host| format!("http://{host}:{port}/")).collect();
    urls.extend(
        ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "http://user:pass@127.0.0.1/"]
            .map(str::to_owned),
    );
    let calls = urls.iter().enumerate();
    let turns = calls.flat_map(|(number, url)| one(&format!("c{number}"), "web_fetch", &json!({"url": url}))).collect();
    let editor = Editor::with(&[], &[], turns).await;
    for (number, url) in urls.iter().enumerate() {
        let result = said(&editor, &format!("c{number}")).await;
        assert_eq!(result["type"], "web_browse_error", "{url}: {result}");
        assert!(!result.to_string().contains("secret"), "{url}: {result}");
    }
    assert_eq!((site.requests().len(), site.connections()), (0, 0));
}
