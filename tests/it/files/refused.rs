//! What is refused, or harmless once it is kept: files that are too large, pictures that are bombs, files that are two things at
//! once, addresses instead of bytes, and more than a tenant may keep.

use serde_json::{Value, json};

use super::{get, playing, problem, upload, uploaded};
use crate::support::app::TestApp;
use crate::support::process::Folder;
use crate::support::upstream::{Answer, Upstream};

/// Pictures whose heads claim more pixels than may be, and those that cannot be read.
fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let png = |side: u32| {
        let side = side.to_be_bytes();
        [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], &side, &side, &[8, 6, 0, 0, 0, 0, 0, 0, 0]].concat()
    };
    let gif = |side: u16| [&b"GIF89a"[..], &side.to_le_bytes(), &side.to_le_bytes(), b"\0\0\0;"].concat();
    let jpeg =
        [&b"\xff\xd8\xff\xc0\0\x11\x08"[..], &[0xff; 4], b"\x03\x01\x22\0\x02\x11\x01\x03\x11\x01\xff\xd9"].concat();
    let webp = b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff".to_vec();
    vec![
        ("a PNG of 60,000 pixels a side", png(60_000)),
        ("a PNG of four billion", png(u32::MAX)),
        ("a PNG without pixels", png(0)),
        ("a GIF of 65,535", gif(u16::MAX)),
        ("a JPEG of 65,535", jpeg),
        ("a WebP of 16 million", webp),
        ("a PNG that is cut off in its head", png(1)[..18].to_vec()),
        ("a GIF that is cut off in its head", gif(1)[..7].to_vec()),
    ]
}

#[tokio::test]
async fn pictures_that_are_bombs_are_refused_by_their_heads() {
    let app = TestApp::demo().await;
    for (what, bytes) in bombs() {
        let refused = problem(upload(&app, &app.token, "a.png", bytes).await).await;
        assert_eq!(refused, (415, "file_unsupported".to_owned()), "{what}");
    }
    let list: Value = get(&app, &app.token, "/v1/agent/files").await.json().await.unwrap();
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn a_picture_that_is_a_page_too_is_never_one_that_a_browser_shows() {
    let app = TestApp::demo().await;
    // Its first bytes are those of a picture, and a browser that guesses finds markup.
    let both = b"GIF89a/*\x01\0\x01\0\0\0\0;*/=1;<html><script>alert(document.domain)</script></html>";
    for name in ["a.html", "a.svg", "a.gif"] {
        let kept = uploaded(&app, name, both.to_vec()).await;
        assert_eq!(kept["media_type"], "image/gif", "{name}");
        let content = get(&app, &app.token, kept["url"].as_str().unwrap()).await;
        let header = |name: &str| content.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), "image/gif", "{name}");
        assert!(header("content-disposition").starts_with("attachment;"), "{name}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("content-security-policy"), "sandbox; default-src 'none'");
    }
}

/// A message of each wire with a file at `url` instead of its bytes.
fn at(url: &str) -> Vec<(&'static str, Value)> {
    let chat = |part: Value| json!({"model": "workflow", "messages": [{"role": "user", "content": [part]}]});
    let responses = |part: Value| json!({"model": "workflow", "input": [{"role": "user", "content": [part]}]});
    let messages = |part: Value| json!({"model": "workflow", "max_tokens": 100, "messages": [{"role": "user", "content": [part]}]});
    let native = |file: Value| json!({"message": "?", "context_type": "workflow", "attachments": [file]});
    let ag_ui = |kind: &str| {
        json!({"threadId": "t", "runId": "r", "tools": [], "context": [], "state": {}, "forwardedProps": {},
            "messages": [{"id": "m", "role": "user", "content": [
                {"type": kind, "source": {"type": "url", "value": url, "mimeType": "image/png"}}]}]})
    };
    let ai_sdk = |media_type: &str| {
        json!({"id": "c", "messages": [{"id": "m", "role": "user",
            "parts": [{"type": "file", "mediaType": media_type, "filename": "a", "url": url}]}]})
    };
    vec![
        ("/v1/agent/chat", native(json!({"url": url}))),
        ("/v1/agent/chat", native(json!({"data": url}))),
        ("/v1/agent/chat", native(json!({"id": url}))),
        ("/v1/chat/completions", chat(json!({"type": "image_url", "image_url": {"url": url}}))),
        ("/v1/chat/completions", chat(json!({"type": "file", "file": {"file_data": url, "filename": "a.pdf"}}))),
        ("/v1/responses", responses(json!({"type": "input_image", "image_url": url}))),
        ("/v1/responses", responses(json!({"type": "input_file", "file_url": url}))),
        ("/v1/responses", responses(json!({"type": "input_file", "file_data": url, "filename": "a.pdf"}))),
        ("/v1/messages", messages(json!({"type": "image", "source": {"type": "url", "url": url}}))),
        ("/v1/messages", messages(json!({"type": "document", "source": {"type": "url", "url": url}}))),
        ("/v1/ai-sdk/chat?context_type=workflow", ai_sdk("image/png")),
        ("/v1/ai-sdk/chat?context_type=workflow", ai_sdk("application/pdf")),
        ("/v1/ag-ui/workflow", ag_ui("image")),
        ("/v1/ag-ui/workflow", ag_ui("document")),
    ]
}

#[tokio::test]
async fn an_address_instead_of_bytes_is_refused_by_every_wire_and_never_fetched() {
    let there = Upstream::choosing(|_| Some(Answer::ok("image/png", super::pixel()))).await;
    let s = playing("gpt-4o", []).await;
    for url in [format!("{}/a.png", there.url()), "http://169.254.169.254/latest/meta-data".to_owned()] {
        for (path, body) in at(&url) {
            let request = s.app.http.post(s.app.url(path)).bearer_auth(&s.app.token).json(&body);
            let response = request.send().await.unwrap();
            let (status, text) = (response.status(), response.text().await.unwrap());
            assert_eq!(status, 400, "{path} {body}: {text}");
        }
    }
    assert_eq!((there.connections(), s.model.requests().len()), (0, 0));
}

#[tokio::test]
async fn a_tenant_keeps_so_much_whoever_of_it_does() {
    let app = TestApp::start(&[("FILES__USER_BYTES", "150000"), ("FILES__TENANT_BYTES", "200000")]).await;
    let put = async |user: &str, tenant: &str, text: &str, bytes: usize| {
        let token = app.token_of(user, Some(tenant), &["USER"]);
        upload(&app, &token, "a.txt", text.repeat(bytes).into_bytes()).await
    };
    for (user, tenant) in [("ann", "acme"), ("bob", "acme"), ("eve", "umbrella")] {
        assert_eq!(put(user, tenant, "x", 90_000).await.status(), 201, "{user}");
    }
    let full = (507, "storage_quota_exceeded".to_owned());
    assert_eq!(problem(put("bob", "acme", "y", 30_000).await).await, full, "of a tenant that has no room");
    assert_eq!(problem(put("cat", "acme", "x", 30_000).await).await, full, "also for who keeps nothing yet");
    assert_eq!(put("eve", "umbrella", "y", 30_000).await.status(), 201, "another tenant has its own");
}

/// What a process may hold more while it refuses 20 MiB: two parts of an upload and what comes, and less than half of it.
const MOST_KIB: u64 = 10 << 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_byte_more_than_may_be_is_refused_and_no_such_file_stands_in_memory() {
    let (folder, settings) = (Folder::new(), [("LLM__PROVIDER", "demo")]);
    let (serving, token) = (folder.serve(&settings), folder.token_with(&["--user", "ada"], &settings));
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let send = async |bytes: usize| {
        let pieces = (0..bytes.div_ceil(64 << 10)).map(move |nth| {
            let length = (bytes - nth * (64 << 10)).min(64 << 10);
            Ok::<_, std::io::Error>(vec![b'x'; length])
        });
        let body = reqwest::Body::wrap_stream(futures::stream::iter(pieces));
        http.post(serving.url("/v1/agent/files?name=a.txt")).bearer_auth(&token).body(body).send().await.unwrap()
    };
    // What any upload takes is there.
    assert_eq!(send(6 << 20).await.status(), 201);
    let grown = serving
        .grows_by(async {
            assert_eq!(problem(send((20 << 20) + 1).await).await, (413, "field_too_large".to_owned()));
        })
        .await;
    assert!(grown < MOST_KIB, "{grown} KiB more for what is refused");
    let grown = serving
        .grows_by(async {
            assert_eq!(send(20 << 20).await.status(), 201, "the control: so much may be");
        })
        .await;
    assert!(grown < MOST_KIB, "{grown} KiB more for what is kept");
}
