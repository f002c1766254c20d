//! The same files as clients of OpenAI's protocols and of Messages know them, at `/v1/files`.

use futures::stream;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use super::{PIXEL, get, pixel, playing, problem, upload, uploaded};
use crate::support::app::TestApp;
use crate::support::model::{Scripted, says};

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    OpenAi,
    Messages,
}

use Client::{Messages, OpenAi};

/// A part of a form: its name, what its head says besides, its bytes.
type Part<'a> = (&'a str, &'a str, &'a [u8]);

/// A part with a text.
fn field<'a>(name: &'a str, text: &'a [u8]) -> Part<'a> {
    (name, "", text)
}

const FORM: &str = "multipart/form-data; boundary=edge";

fn form(parts: &[Part<'_>]) -> Vec<u8> {
    let mut form = Vec::new();
    for (name, more, bytes) in parts {
        form.extend(format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n").bytes());
        form.extend_from_slice(bytes);
        form.extend_from_slice(b"\r\n");
    }
    form.extend_from_slice(b"--edge--\r\n");
    form
}

/// A status and a body.
async fn read(response: Response) -> (u16, Value) {
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    (status, serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status} {text}")))
}

impl Client {
    fn asks(self, app: &TestApp, token: &str, method: Method, path: &str) -> RequestBuilder {
        let asks = |path: &str| app.http.request(method.clone(), app.url(path)).bearer_auth(token);
        match self {
            OpenAi => asks(path),
            Messages => asks(&format!("{path}{}beta=true", if path.contains('?') { '&' } else { '?' }))
                .header("anthropic-version", "2023-06-01")
                .header("anthropic-beta", "files-api-2025-04-14"),
        }
    }

    async fn send(self, app: &TestApp, body: impl Into<reqwest::Body>) -> Response {
        let request = self.asks(app, &app.token, Method::POST, "/v1/files").header("content-type", FORM);
        request.body(body).send().await.unwrap()
    }

    async fn upload(self, app: &TestApp, parts: &[Part<'_>]) -> (u16, Value) {
        read(self.send(app, form(parts)).await).await
    }

    /// Uploads a text of that name.
    async fn text(self, app: &TestApp, name: &str, text: &str) -> Value {
        let more = format!("; filename=\"{name}\"");
        let parts: [Part<'_>; 2] = [field("purpose", b"user_data"), ("file", &more, text.as_bytes())];
        let parts = if self == OpenAi { &parts[..] } else { &parts[1..] };
        let (status, file) = self.upload(app, parts).await;
        assert_eq!(status, 200, "{file}");
        file
    }

    async fn get(self, app: &TestApp, path: &str) -> (u16, Value) {
        read(self.asks(app, &app.token, Method::GET, path).send().await.unwrap()).await
    }

    /// The names of the files that a list has, and whether there are more.
    async fn list(self, app: &TestApp, query: &str) -> Value {
        let (status, list) = self.get(app, &format!("/v1/files{query}")).await;
        assert_eq!(status, 200, "{list}");
        let data = list["data"].as_array().unwrap();
        let ids = [data.first(), data.last()].map(|file| file.map_or(json!(null), |file| file["id"].clone()));
        let none = if self == OpenAi { json!("") } else { json!(null) };
        let told = [&list["first_id"], &list["last_id"]].map(|id| if *id == none { json!(null) } else { id.clone() });
        assert_eq!(told, ids, "{list}");
        let names: Vec<&Value> = data.iter().map(|file| &file["filename"]).collect();
        json!([names, list["has_more"]])
    }

    /// What an error of this client says it is, and the field that it is about.
    fn error(self, body: &Value) -> (Value, Value) {
        match self {
            OpenAi => (body["error"]["code"].clone(), body["error"]["param"].clone()),
            Messages => {
                assert_eq!((&body["type"], body["request_id"].is_string()), (&json!("error"), true), "{body}");
                (body["error"]["type"].clone(), json!(null))
            }
        }
    }
}

fn id(file: &Value) -> &str {
    file["id"].as_str().unwrap()
}

#[tokio::test]
async fn a_file_is_kept_read_and_deleted_as_openai_has_it() {
    let app = TestApp::demo().await;
    let file: Part<'_> = ("file", "; filename=\"a %22b%22.png\"\r\nContent-Type: image/png", &pixel());
    let purpose: Part<'_> = field("purpose", b"vision");
    let (anchor, seconds): (Part<'_>, Part<'_>) =
        (field("expires_after[anchor]", b"created_at"), field("expires_after[seconds]", b"7200"));
    let mut kept = json!(null);
    for parts in [[purpose, anchor, seconds, file], [file, seconds, purpose, anchor], [purpose, anchor, file, seconds]]
    {
        let (status, told) = OpenAi.upload(&app, &parts).await;
        assert_eq!(status, 200, "{told}");
        let created = told["created_at"].as_i64().unwrap();
        let own = id(&told).strip_prefix("file-").unwrap();
        let expected = json!({"id": format!("file-{own}"), "object": "file", "bytes": pixel().len(), "created_at": created,
            "filename": "a \"b\".png", "purpose": "vision", "expires_at": created + 7200, "status": "processed"});
        assert_eq!(told, expected);
        kept = told;
    }
    let path = format!("/v1/files/{}", id(&kept));
    assert_eq!(OpenAi.get(&app, &path).await, (200, kept.clone()));
    let content = OpenAi.asks(&app, &app.token, Method::GET, &format!("{path}/content")).send().await.unwrap();
    assert_eq!(content.headers()["content-type"], "image/png");
    assert!(content.headers()["content-disposition"].to_str().unwrap().starts_with("attachment"));
    assert_eq!(content.bytes().await.unwrap(), pixel());
    let native = uploaded(&app, "c.png", pixel()).await;
    assert_eq!(format!("file-{}", native["id"].as_str().unwrap()), id(&kept), "one store");
    let (_, again) = OpenAi.get(&app, &path).await;
    let day = again["expires_at"].as_i64().unwrap() - again["created_at"].as_i64().unwrap();
    assert_eq!((day, &again["purpose"]), (86_400, &json!("vision")), "the terms that were said last");

    let delete = async || read(OpenAi.asks(&app, &app.token, Method::DELETE, &path).send().await.unwrap()).await;
    assert_eq!(delete().await, (200, json!({"id": kept["id"], "object": "file", "deleted": true})));
    for (status, body) in [delete().await, OpenAi.get(&app, &path).await, OpenAi.get(&app, "/v1/files/file-abc").await]
    {
        assert_eq!((status, OpenAi.error(&body).0), (404, json!("not_found")), "{body}");
    }
}

#[tokio::test]
async fn a_file_is_kept_read_and_deleted_as_messages_has_it() {
    let app = TestApp::demo().await;
    let file: Part<'_> = ("file", "; filename=\"docs/notes.md\"\r\nContent-Type: text/markdown", "# Größe".as_bytes());
    let seconds: Part<'_> = field("expires_in_seconds", b"7776000");
    let (status, kept) = Messages.upload(&app, &[file, seconds]).await;
    assert_eq!(status, 200, "{kept}");
    let at = |field: &str| switchboard::chat::day::ms_of(kept[field].as_str().unwrap()).unwrap();
    assert_eq!(at("expires_at") - at("created_at"), 7_776_000_000);
    let own = id(&kept).strip_prefix("file_").unwrap();
    let expected = json!({"type": "file", "id": format!("file_{own}"), "filename": "notes.md", "mime_type": "text/markdown",
        "size_bytes": 9, "created_at": kept["created_at"], "downloadable": true, "expires_at": kept["expires_at"]});
    assert_eq!(kept, expected);
    let path = format!("/v1/files/{}", id(&kept));
    assert_eq!(Messages.get(&app, &path).await, (200, kept.clone()));
    let content = Messages.asks(&app, &app.token, Method::GET, &format!("{path}/content")).send().await.unwrap();
    assert!(content.headers().contains_key("request-id"));
    assert_eq!(content.text().await.unwrap(), "# Größe");
    // Keys are tokens here too.
    let keyed = app.http.get(app.url(&path)).header("x-api-key", &app.token).header("anthropic-version", "x");
    assert_eq!(read(keyed.send().await.unwrap()).await, (200, kept.clone()));

    let delete = async || read(Messages.asks(&app, &app.token, Method::DELETE, &path).send().await.unwrap()).await;
    assert_eq!(delete().await, (200, json!({"type": "file_deleted", "id": kept["id"]})));
    for (status, body) in [delete().await, Messages.get(&app, &path).await] {
        assert_eq!((status, Messages.error(&body).0), (404, json!("not_found_error")), "{body}");
    }
}

#[tokio::test]
async fn each_client_lists_files_its_own_way() {
    let app = TestApp::demo().await;
    let a = OpenAi.text(&app, "a.txt", "one").await;
    let b = Messages.text(&app, "b.txt", "two").await;
    let seen: Part<'_> = ("file", "; filename=\"c.png\"", &pixel());
    let (_, c) = OpenAi.upload(&app, &[seen, field("purpose", b"vision")]).await;
    // In the order in which they came, however fast that was.
    for (at, name) in [(1, "a.txt"), (2, "b.txt"), (3, "c.png")] {
        app.beside(&format!("UPDATE files SET created_at = created_at + {at} * 100000 WHERE name = '{name}'")).await;
    }
    let own = |file: &Value| id(file)[5..].to_owned();
    let (a, b, c) = (own(&a), own(&b), own(&c));
    let gone = "11111111-1111-4111-8111-111111111111";
    let rows = [
        (OpenAi, String::new(), json!([["c.png", "b.txt", "a.txt"], false])),
        (OpenAi, "?limit=2&order=asc".to_owned(), json!([["a.txt", "b.txt"], true])),
        (OpenAi, format!("?limit=2&order=asc&after=file-{b}"), json!([["c.png"], false])),
        (OpenAi, format!("?limit=1&after=file-{c}"), json!([["b.txt"], true])),
        (OpenAi, format!("?after=file-{gone}"), json!([["c.png", "b.txt", "a.txt"], false])),
        (OpenAi, "?purpose=vision".to_owned(), json!([["c.png"], false])),
        (OpenAi, "?purpose=user_data&limit=10000".to_owned(), json!([["b.txt", "a.txt"], false])),
        (OpenAi, "?purpose=batch".to_owned(), json!([[], false])),
        (Messages, String::new(), json!([["c.png", "b.txt", "a.txt"], false])),
        (Messages, "?limit=2".to_owned(), json!([["c.png", "b.txt"], true])),
        (Messages, format!("?limit=2&after_id=file_{b}"), json!([["a.txt"], false])),
        (Messages, format!("?limit=1&before_id=file_{a}"), json!([["b.txt"], true])),
        (Messages, format!("?before_id=file_{a}"), json!([["c.png", "b.txt"], false])),
        (Messages, format!("?ids[]=file_{a}&ids[]=file_{c}&ids[]=file_x"), json!([["c.png", "a.txt"], false])),
        (Messages, "?scope_id=session".to_owned(), json!([[], false])),
    ];
    for (client, query, expected) in rows {
        assert_eq!(client.list(&app, &query).await, expected, "{client:?} {query}");
    }
    let (_, first) = Messages.get(&app, "/v1/files?limit=2").await;
    let next = format!("?limit=2&page={}", first["next_page"].as_str().unwrap());
    assert_eq!(Messages.list(&app, &next).await, json!([["a.txt"], false]));
    let (_, last) = Messages.get(&app, &format!("/v1/files{next}")).await;
    assert_eq!(last["next_page"], json!(null));
    let mistakes = [
        (OpenAi, "?limit=0".to_owned(), json!(null)),
        (OpenAi, "?limit=10001".to_owned(), json!(null)),
        (OpenAi, "?order=up".to_owned(), json!("order")),
        (OpenAi, "?after=file-x".to_owned(), json!("after")),
        (OpenAi, "?order=asc&order=asc".to_owned(), json!("order")),
        (Messages, "?limit=1001".to_owned(), json!(null)),
        (Messages, "?page=page_x".to_owned(), json!(null)),
        (Messages, format!("?after_id=file_{a}&before_id=file_{b}"), json!(null)),
        (Messages, format!("?ids[]=file_{a}&limit=1"), json!(null)),
    ];
    for (client, query, param) in mistakes {
        let (status, body) = client.get(&app, &format!("/v1/files{query}")).await;
        assert_eq!((status, client.error(&body).1), (400, param), "{client:?} {query}: {body}");
    }
}

#[tokio::test]
async fn what_a_form_says_wrongly_is_told_and_nothing_is_kept() {
    let app = TestApp::start(&[("FILES__MAX_BYTES", "100000"), ("FILES__USER_BYTES", "150000")]).await;
    let file: Part<'_> = ("file", "; filename=\"a.txt\"", b"a text");
    let purpose: Part<'_> = field("purpose", b"user_data");
    let (anchor, seconds): (Part<'_>, Part<'_>) =
        (field("expires_after[anchor]", b"created_at"), field("expires_after[seconds]", b"3600"));
    let long = vec![b'x'; 300];
    let rows: Vec<(Client, Vec<Part<'_>>, Value)> = vec![
        (OpenAi, vec![], json!("file")),
        (OpenAi, vec![purpose], json!("file")),
        (OpenAi, vec![file], json!("purpose")),
        (OpenAi, vec![field("purpose", b"fine-tune"), file], json!("purpose")),
        (OpenAi, vec![file, field("purpose", b"batch")], json!("purpose")),
        (OpenAi, vec![purpose, file, purpose], json!("purpose")),
        (OpenAi, vec![purpose, file, file], json!("file")),
        (OpenAi, vec![purpose, file, seconds], json!("expires_after[anchor]")),
        (OpenAi, vec![purpose, file, anchor], json!("expires_after[seconds]")),
        (OpenAi, vec![purpose, field("expires_after[anchor]", b"now"), file], json!("expires_after[anchor]")),
        (OpenAi, vec![purpose, anchor, file, field("expires_after[seconds]", b"10")], json!("expires_after[seconds]")),
        (OpenAi, vec![purpose, file, field("expires_in_seconds", b"3600")], json!(null)),
        (OpenAi, vec![field("purpose", &long), file], json!(null)),
        (Messages, vec![], json!(null)),
        (Messages, vec![purpose, file], json!(null)),
        (Messages, vec![file, field("expires_in_seconds", b"7776001")], json!(null)),
        (Messages, vec![file, field("expires_in_seconds", b"soon")], json!(null)),
    ];
    for (client, parts, param) in rows {
        let (status, body) = client.upload(&app, &parts).await;
        assert_eq!((status, client.error(&body).1), (400, param), "{client:?} {parts:?}: {body}");
    }
    // No form, one that is none, and one of which nothing comes but its fields.
    let plain = OpenAi.asks(&app, &app.token, Method::POST, "/v1/files").body("a text").send().await.unwrap();
    let endless = [form(&[purpose])[..40].to_vec(), vec![b'x'; 3 << 20]].concat();
    let (cut, none) = (form(&[purpose, file])[..150].to_vec(), b"a text".to_vec());
    for response in
        [plain, OpenAi.send(&app, cut).await, OpenAi.send(&app, none).await, OpenAi.send(&app, endless).await]
    {
        let (status, body) = read(response).await;
        assert_eq!((status, OpenAi.error(&body).0), (400, json!("invalid_request")), "{body}");
    }
    let of = |bytes: usize| vec![b'x'; bytes];
    let svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>".to_vec();
    let rows = [
        (
            "a.png",
            b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff\0\0\xb8".to_vec(),
            415,
            "file_unsupported",
            "invalid_request_error",
        ),
        ("a.svg", svg, 415, "file_unsupported", "invalid_request_error"),
        ("a.txt", Vec::new(), 400, "invalid_request", "invalid_request_error"),
        ("a.txt", of(100_001), 413, "field_too_large", "request_too_large"),
    ];
    for (name, bytes, expected, code, kind) in rows {
        let more = format!("; filename=\"{name}\"");
        for (client, told) in [(OpenAi, code), (Messages, kind)] {
            let parts: &[Part<'_>] = &[purpose, ("file", &more, &bytes)];
            let (status, body) = client.upload(&app, if client == OpenAi { parts } else { &parts[1..] }).await;
            assert_eq!((status, client.error(&body).0), (expected, json!(told)), "{client:?} {name}: {body}");
        }
    }
    for client in [OpenAi, Messages] {
        assert_eq!(client.list(&app, "").await, json!([[], false]), "nothing is listed");
    }
    OpenAi.text(&app, "a.txt", &"x".repeat(100_000)).await;
    let full = OpenAi.send(&app, form(&[purpose, field("file", &of(60_000))])).await;
    assert_eq!((full.status().as_u16(), full.headers()["x-should-retry"].to_str().unwrap()), (507, "false"));
    let packed = Messages.asks(&app, &app.token, Method::POST, "/v1/files").header("content-encoding", "gzip");
    let (status, body) = read(packed.header("content-type", FORM).body("x").send().await.unwrap()).await;
    assert_eq!((status, Messages.error(&body).0), (415, json!("invalid_request_error")), "{body}");
}

#[tokio::test]
async fn a_form_may_come_in_any_pieces() {
    let app = TestApp::demo().await;
    let text = "\r\n--edg\r\n--\r\nedge\r--edge\n--edge--";
    let body = form(&[("file", "; filename=\"a.txt\"", text.as_bytes()), field("purpose", b"assistants")]);
    for size in [1, 7, 64] {
        let pieces: Vec<_> = body.chunks(size).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
        let (status, file) = read(OpenAi.send(&app, reqwest::Body::wrap_stream(stream::iter(pieces))).await).await;
        assert_eq!((status, &file["bytes"]), (200, &json!(text.len())), "{size}: {file}");
        let content = get(&app, &app.token, &format!("/v1/files/{}/content", id(&file))).await;
        assert_eq!(content.text().await.unwrap(), text);
    }
    // A line that breaks within the file, and one that breaks behind it.
    let other: Part<'_> = ("file", "; filename=\"b.txt\"", &[b'y'; 70_000]);
    let body = form(&[other, field("purpose", b"user_data")]);
    for length in [1000, body.len() - 20] {
        let pieces = [Ok(body[..length].to_vec()), Err(std::io::Error::other("broke"))];
        let request = OpenAi.asks(&app, &app.token, Method::POST, "/v1/files").header("content-type", FORM);
        let sent = request.body(reqwest::Body::wrap_stream(stream::iter(pieces))).send().await;
        assert!(sent.is_err_and(|error| !error.is_timeout()));
    }
    assert_eq!(OpenAi.list(&app, "").await, json!([["a.txt"], false]));
}

/// The same picture by its id, in a message of each client.
fn naming(file: &Value) -> (&'static str, Value) {
    let id = id(file);
    if id.starts_with("file_") {
        let image = json!({"type": "image", "source": {"type": "file", "file_id": id}});
        let content = json!([{"type": "text", "text": "What?"}, image]);
        return (
            "/v1/messages",
            json!({"model": "workflow", "max_tokens": 100, "messages": [{"role": "user", "content": content}]}),
        );
    }
    let content = json!([{"type": "input_text", "text": "What?"}, {"type": "input_image", "file_id": id}]);
    ("/v1/responses", json!({"model": "workflow", "input": [{"role": "user", "content": content}]}))
}

async fn says_of(s: &Scripted, token: &str, file: &Value) -> u16 {
    let (path, body) = naming(file);
    s.app.http.post(s.app.url(path)).bearer_auth(token).json(&body).send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_message_names_a_file_by_the_id_that_its_client_was_given() {
    for client in [OpenAi, Messages] {
        let s = playing("gpt-4o", [says("A pixel.")]).await;
        let parts: &[Part<'_>] = &[field("purpose", b"vision"), ("file", "; filename=\"a.png\"", &pixel())];
        let (_, file) = client.upload(&s.app, if client == OpenAi { parts } else { &parts[1..] }).await;
        assert_eq!(says_of(&s, &s.app.token, &file).await, 200, "{client:?}");
        let asked = json!(s.last_asked());
        assert!(asked.to_string().contains(&format!("data:image/png;base64,{PIXEL}")), "{client:?}: {asked}");
        let (_, now) = client.get(&s.app, &format!("/v1/files/{}", id(&file))).await;
        assert!(now["expires_at"].is_null(), "a conversation needs it: {now}");
    }
}

#[tokio::test]
async fn a_file_is_its_users_alone_for_every_client() {
    let s = playing("gpt-4o", [says("Nothing.")]).await;
    let (app, bob) = (&s.app, s.app.token_of("bob", None, &["USER"]));
    for client in [OpenAi, Messages] {
        let file = client.text(app, "a.txt", "a secret").await;
        let path = format!("/v1/files/{}", id(&file));
        let content = format!("{path}/content");
        for (method, path) in [(Method::GET, &path), (Method::GET, &content), (Method::DELETE, &path)] {
            let (status, body) = read(client.asks(app, &bob, method, path).send().await.unwrap()).await;
            assert_eq!((status, body.to_string().contains("secret")), (404, false), "{client:?} {path}: {body}");
        }
        assert_eq!(says_of(&s, &bob, &file).await, 404, "{client:?}");
        let list = client.asks(app, &bob, Method::GET, "/v1/files").send().await.unwrap();
        assert_eq!(read(list).await.1["data"], json!([]));
        let native = get(app, &bob, &format!("/v1/agent/files/{}", &id(&file)[5..])).await;
        assert_eq!(problem(native).await, (404, "not_found".to_owned()));
        let theirs: Value = upload(app, &bob, "b.txt", "a secret").await.json().await.unwrap();
        assert_ne!(theirs["id"], id(&file)[5..], "the same bytes are kept apart");
        app.http
            .delete(app.url(&format!("/v1/agent/files/{}", theirs["id"].as_str().unwrap())))
            .bearer_auth(&bob)
            .send()
            .await
            .unwrap();
    }
    assert!(s.model.requests().is_empty());
}

#[tokio::test]
async fn a_file_whose_time_is_over_is_nowhere_but_in_a_sentence() {
    let s = playing("gpt-4o", [says("A pixel."), says("Gone.")]).await;
    let parts: &[Part<'_>] = &[("file", "; filename=\"a.png\"", &pixel()), field("expires_in_seconds", b"3600")];
    let (_, file) = Messages.upload(&s.app, parts).await;
    let own = &id(&file)[5..];
    let body =
        json!({"message": "What?", "context_type": "workflow", "conversation_id": "c", "attachments": [{"id": own}]});
    s.app.chat(&body).await;
    let (_, now) = Messages.get(&s.app, &format!("/v1/files/{}", id(&file))).await;
    assert_eq!(now["expires_at"], file["expires_at"], "whether a message needs it or not");
    s.app.beside("UPDATE files SET expires_at = 1").await;
    for path in [format!("/v1/files/{own}"), format!("/v1/files/{own}/content"), format!("/v1/agent/files/{own}")] {
        assert_eq!(get(&s.app, &s.app.token, &path).await.status(), 404, "{path}");
    }
    assert_eq!(OpenAi.list(&s.app, "").await, json!([[], false]));
    assert_eq!(says_of(&s, &s.app.token, &file).await, 404);
    s.app.say("c", "And now?").await;
    let history = json!(s.last_asked()).to_string();
    let sentence = format!("[image a.png, {} bytes: not shown, it is not kept any more]", pixel().len());
    assert!(history.contains(&sentence) && !history.contains("data:image"), "{history}");
}
