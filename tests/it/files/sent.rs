//! What models are sent of files: the picture itself, or a sentence about it, whatever wire the question came by.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{PIXEL, get, picture, pixel, playing, problem, uploaded};
use crate::openai;
use crate::support::app::TestApp;
use crate::support::converse;
use crate::support::frames::{data, text};
use crate::support::model::{Script, Scripted, says};
use crate::support::sigv4::{KEY_ID, SECRET, Signed};
use crate::support::upstream::{Answer, Upstream};

const SEES: &str = "gpt-4o";
const READS: &str = "gpt-3.5-turbo";

/// The content of the newest message of the user, as the model got it.
fn asked(s: &Scripted) -> Value {
    s.last_asked().iter().rev().find(|message| message["role"] == "user").unwrap()["content"].clone()
}

/// A question with one picture, by each wire that takes one, and where it is sent.
fn by_each_wire(id: &str) -> Vec<(&'static str, Value)> {
    let url = format!("data:image/png;base64,{PIXEL}");
    let chat = |part: Value| json!({"model": "workflow", "messages": [{"role": "user", "content": [{"type": "text", "text": "What?"}, part]}]});
    let responses = |part: Value| json!({"model": "workflow", "input": [{"role": "user", "content": [{"type": "input_text", "text": "What?"}, part]}]});
    let native = |file: Value| json!({"message": "What?", "context_type": "workflow", "attachments": [file]});
    let ag_ui = |part: Value| {
        json!({"threadId": "t", "runId": "r", "tools": [], "context": [], "state": {}, "forwardedProps": {},
            "messages": [{"id": "m", "role": "user", "content": [{"type": "text", "text": "What?"}, part]}]})
    };
    vec![
        ("/v1/agent/chat", native(json!({"id": id}))),
        ("/v1/agent/chat", native(json!({"data": PIXEL, "name": "a.png", "media_type": "image/png"}))),
        ("/v1/chat/completions", chat(json!({"type": "image_url", "image_url": {"url": url}}))),
        ("/v1/chat/completions", chat(json!({"type": "file", "file": {"file_id": format!("file-{id}")}}))),
        ("/v1/responses", responses(json!({"type": "input_image", "image_url": url}))),
        ("/v1/responses", responses(json!({"type": "input_file", "file_id": id}))),
        (
            "/v1/messages",
            json!({"model": "workflow", "max_tokens": 100, "messages": [{"role": "user", "content": [{"type": "text", "text": "What?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}]}]}),
        ),
        (
            "/v1/ai-sdk/chat?context_type=workflow",
            json!({"id": "c", "messages": [{"id": "m", "role": "user",
            "parts": [{"type": "file", "mediaType": "image/png", "filename": "a.png", "url": url}, {"type": "text", "text": "What?"}]}]}),
        ),
        (
            "/v1/ag-ui/workflow",
            ag_ui(json!({"type": "image", "source": {"type": "data", "value": PIXEL, "mimeType": "image/png"}})),
        ),
    ]
}

#[tokio::test]
async fn a_picture_reaches_the_model_by_every_wire() {
    for nth in 0..by_each_wire("").len() {
        let s = playing(SEES, [says("A pixel.")]).await;
        let kept = uploaded(&s.app, "a.png", pixel()).await;
        let (path, body) = by_each_wire(kept["id"].as_str().unwrap()).swap_remove(nth);
        let response = s.app.http.post(s.app.url(path)).bearer_auth(&s.app.token).json(&body).send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, 200, "{path}: {text}");
        assert!(text.contains("A pixel."), "{path}: {text}");
        assert!(!text.contains(&PIXEL[..40]), "no stream has the bytes: {path}");
        assert_eq!(asked(&s), json!([picture(), {"type": "text", "text": "What?"}]), "{path} {body}");
    }
}

#[tokio::test]
async fn a_model_that_cannot_see_reads_a_sentence_and_texts_are_read_by_all() {
    let s = playing(READS, [says("I cannot see it.")]).await;
    let (image, text) = (uploaded(&s.app, "a.png", pixel()).await, uploaded(&s.app, "t.csv", "a,b\n1,2").await);
    let body = json!({"message": "What?", "context_type": "workflow", "conversation_id": "c",
        "attachments": [{"id": image["id"]}, {"id": text["id"]}]});
    s.app.chat(&body).await;
    let sentence = format!("[image a.png, {} bytes: not shown, this model takes no images]", pixel().len());
    let expected = format!("{sentence}\n\n[file t.csv]\na,b\n1,2\n[end of file t.csv]\n\nWhat?");
    assert_eq!(asked(&s), json!(expected), "one text: servers of such models take no parts");
}

#[tokio::test]
async fn a_conversation_shows_its_files_and_a_deleted_one_is_said_to_be_gone() {
    let s = playing(SEES, [says("A pixel."), says("Gone.")]).await;
    let kept = uploaded(&s.app, "a.png", pixel()).await;
    let first =
        json!({"message": "", "context_type": "workflow", "conversation_id": "c", "attachments": [{"id": kept["id"]}]});
    let frames = s.app.chat(&first).await;
    assert!(data(&frames, "message_complete").is_object());
    assert_eq!(asked(&s), json!([picture()]), "a picture alone is a question");
    let view: Value = get(&s.app, &s.app.token, "/v1/agent/conversations/c").await.json().await.unwrap();
    let file = &view["messages"][0]["files"][0];
    assert_eq!(
        json!([file["id"], file["name"], file["media_type"], file["url"]]),
        json!([kept["id"], "a.png", "image/png", kept["url"]])
    );

    let path = format!("/v1/agent/files/{}", kept["id"].as_str().unwrap());
    s.app.http.delete(s.app.url(&path)).bearer_auth(&s.app.token).send().await.unwrap();
    s.app.say("c", "And now?").await;
    let history = json!(s.last_asked()).to_string();
    let sentence = format!("[image a.png, {} bytes: not shown, it is not kept any more]", pixel().len());
    assert!(history.contains(&sentence) && !history.contains("data:image"), "{history}");
}

#[tokio::test]
async fn only_the_newest_files_of_a_long_history_are_sent_again() {
    let turns = (0..3).map(|nth| says(&format!("{nth}.")));
    let s = playing(SEES, turns).await;
    let mut names = Vec::new();
    for nth in 0..24 {
        // Text behind the last block of a GIF: other bytes of the same picture.
        let gif = format!("GIF89a\u{1}\0\u{1}\0\0\0\0;{nth}").into_bytes();
        names.push(uploaded(&s.app, &format!("{nth}.gif"), gif).await["id"].clone());
    }
    for (at, ids) in names.chunks(12).enumerate() {
        let attachments: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        let body = json!({"message": format!("Look {at}"), "context_type": "workflow", "conversation_id": "c", "attachments": attachments});
        s.app.chat(&body).await;
    }
    let history = json!(s.last_asked()).to_string();
    assert_eq!(history.matches("data:image/gif").count(), 20);
    assert_eq!(history.matches("only the newest files are sent").count(), 4);
}

#[tokio::test]
async fn a_model_is_shown_no_more_at_once_than_it_takes() {
    let settings = "[models.gpt-4o]\nimages_max = 2\npdfs_max = 1\n";
    let answers = [says("A pixel."), says("Pixels."), says("Again.")].into_iter().map(Script::answer);
    let s = openai::with(&[("default.toml", settings)], &[("LLM__OPENAI__MODEL", SEES)], answers).await;
    let mut ids = Vec::new();
    for name in ["a.gif", "b.gif", "c.gif", "a.pdf", "b.pdf"] {
        let head = if name.ends_with("pdf") { "%PDF-1.4\n" } else { "GIF89a\u{1}\0\u{1}\0\0\0\0;" };
        ids.push(uploaded(&s.app, name, format!("{head}{name}").into_bytes()).await["id"].clone());
    }
    let say = |text: &str, ids: &[Value]| {
        let attachments: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        json!({"message": text, "context_type": "workflow", "conversation_id": "c", "attachments": attachments})
    };
    let first = s.app.chat(&say("Look", &ids[..4])).await;
    let notice = data(&first, "notice");
    assert_eq!(notice["message"], "Not shown to the model: a.gif (this model takes fewer images at once)");
    assert_eq!(json!(s.last_asked()).to_string().matches("data:image/gif").count(), 2);

    let second = s.app.chat(&say("And that", &ids[4..])).await;
    assert!(second.iter().all(|frame| frame.event != "notice"), "what was shown before is no news: {second:?}");
    let asked = json!(s.last_asked()).to_string();
    let sentence = |what: &str, size: usize, family: &str| {
        format!("[{what}, {size} bytes: not shown, this model takes fewer {family} at once]")
    };
    assert!(asked.contains(&sentence("image a.gif", 19, "images")), "{asked}");
    assert!(asked.contains(&sentence("file a.pdf", 14, "PDF documents")), "{asked}");
    assert_eq!((asked.matches("data:image/gif").count(), asked.matches("data:application/pdf").count()), (2, 1));

    s.app.chat(&say("The last picture again", &ids[2..3])).await;
    let asked = json!(s.last_asked()).to_string();
    assert_eq!(asked.matches("data:image/gif").count(), 2, "each time that one is named it is sent");
    assert!(asked.contains(&sentence("image b.gif", 19, "images")), "{asked}");
}

/// A picture that is larger than what is encoded at once.
fn large_gif() -> Vec<u8> {
    let mut gif = b"GIF89a\x01\0\x01\0\0\0\0;".to_vec();
    gif.extend((0..300_001_u32).flat_map(|nth| nth.to_le_bytes()));
    gif
}

/// The pictures of a request, decoded.
fn pictures(body: &[u8], mark: &str) -> Vec<Vec<u8>> {
    let text = std::str::from_utf8(body).unwrap();
    let data = text.split(mark).skip(1).map(|rest| rest.split_once('"').unwrap().0);
    data.map(|base64| STANDARD.decode(base64).unwrap()).collect()
}

#[tokio::test]
async fn a_large_picture_is_sent_whole_as_often_as_its_request_is() {
    let answers = [Answer::status(503, "application/json", "{}"), says("A pixel.").answer()];
    let s = openai::with(&[], &[("LLM__OPENAI__MODEL", SEES), ("LLM__RETRY__BASE_MS", "0")], answers).await;
    let kept = uploaded(&s.app, "a.gif", large_gif()).await;
    let body = json!({"message": "Look", "context_type": "workflow", "attachments": [{"id": kept["id"]}]});
    let frames = s.app.chat(&body).await;
    assert_eq!(text(&frames), "A pixel.");
    let requests = s.model.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!(request.header("content-length"), Some(request.body.len().to_string().as_str()));
        assert!(pictures(&request.body, "data:image/gif;base64,") == [large_gif()], "the same bytes");
    }
}

#[tokio::test]
async fn a_question_whose_files_its_vendor_refuses_is_asked_without_them() {
    let refused = || {
        let body = json!({"error": {"message": "Could not process image", "type": "invalid_request_error"}});
        Answer::status(400, "application/json", body.to_string())
    };
    let calls = crate::support::model::calls("c1", "discover_trigger_types", &json!({}));
    let answers = [
        refused(),
        calls.answer(),
        says("No picture.").answer(),
        refused(),
        says("Still none.").answer(),
        refused(),
        refused(),
    ];
    let s = openai::with(&[], &[("LLM__OPENAI__MODEL", SEES)], answers).await;
    let kept = uploaded(&s.app, "a.png", pixel()).await;
    let say = |message: &str, files: Value| json!({"message": message, "context_type": "workflow", "conversation_id": "c", "attachments": files});
    let frames = s.app.chat(&say("Look", json!([{"id": kept["id"]}]))).await;
    assert_eq!(text(&frames), "No picture.");
    let why = "the model service refused it, or another file";
    assert_eq!(data(&frames, "notice")["message"], format!("Not shown to the model: a.png ({why})"));
    let sentence = format!("[image a.png, {} bytes: not shown, {why}]", pixel().len());
    let sent: Vec<String> = s.model.requests().iter().map(|request| request.json().to_string()).collect();
    assert!(sent[0].contains("data:image") && !sent[0].contains(&sentence));
    assert!(sent[1..].iter().all(|sent| sent.contains(&sentence) && !sent.contains("data:image")), "{sent:?}");
    assert_eq!(sent.len(), 3, "the run remembers it");

    let again = s.app.chat(&say("And now?", json!([]))).await;
    assert_eq!(text(&again), "Still none.", "the conversation goes on");
    let last = s.app.chat(&say("And now?", json!([]))).await;
    assert_eq!(
        data(&last, "error")["code"],
        "provider_rejected",
        "what is refused without files too is an error: {last:?}"
    );
}

#[tokio::test]
async fn a_new_picture_is_seen_beside_an_older_one_that_is_refused() {
    let refused = Answer::status(400, "application/json", r#"{"error": {"message": "Could not process image"}}"#);
    let answers = [says("A pixel.").answer(), refused, says("Another.").answer()];
    let s = openai::with(&[], &[("LLM__OPENAI__MODEL", SEES)], answers).await;
    for (name, bytes, expected) in
        [("a.png", pixel(), "A pixel."), ("b.gif", b"GIF89a\x01\0\x01\0\0\0\0;".to_vec(), "Another.")]
    {
        let kept = uploaded(&s.app, name, bytes).await;
        let body = json!({"message": "Look", "context_type": "workflow", "conversation_id": "c", "attachments": [{"id": kept["id"]}]});
        let frames = s.app.chat(&body).await;
        assert_eq!(text(&frames), expected);
        assert!(frames.iter().all(|frame| frame.event != "notice"), "nothing of this message is left out: {frames:?}");
    }
    let sent: Vec<String> = s.model.requests().iter().map(|request| request.json().to_string()).collect();
    let pictures = |sent: &str| (sent.contains("data:image/png"), sent.contains("data:image/gif"));
    assert_eq!([pictures(&sent[1]), pictures(&sent[2])], [(true, true), (false, true)]);
}

#[tokio::test]
async fn a_request_with_a_large_picture_is_signed_as_it_is_sent() {
    let answer = [converse::text("A pixel."), converse::end()].concat();
    let upstream = Upstream::script([Answer::ok("application/vnd.amazon.eventstream", answer)]).await;
    let url = upstream.url();
    let app = TestApp::start(&[
        ("LLM__PROVIDER", "bedrock"),
        ("LLM__BEDROCK__BASE_URL", &url),
        ("LLM__BEDROCK__MODEL", "amazon.nova-pro-v1:0"),
        ("LLM__BEDROCK__AUTH", "aws"),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", KEY_ID),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
    ])
    .await;
    let kept = uploaded(&app, "a.gif", large_gif()).await;
    app.chat(&json!({"message": "Look", "context_type": "workflow", "attachments": [{"id": kept["id"]}]})).await;
    let requests = upstream.requests();
    let [request] = &requests[..] else { panic!("{} requests", requests.len()) };
    let signed =
        Signed { method: &request.method, path: &request.path, headers: &request.headers, body: &request.body };
    assert_eq!(signed.verify_now("bedrock", "eu-central-1"), Ok(()));
    assert!(pictures(&request.body, "\"bytes\":\"") == [large_gif()], "the same bytes");
}

#[tokio::test]
async fn what_is_not_kept_any_more_takes_no_place_of_what_is() {
    let settings = "[models.gpt-4o]\nimages_max = 2\n";
    let answers = [says("Pixels."), says("Again.")].into_iter().map(Script::answer);
    let s = openai::with(&[("default.toml", settings)], &[("LLM__OPENAI__MODEL", SEES)], answers).await;
    let mut ids = Vec::new();
    for name in ["a.gif", "b.gif", "c.gif"] {
        let gif = format!("GIF89a\u{1}\0\u{1}\0\0\0\0;{name}").into_bytes();
        ids.push(uploaded(&s.app, name, gif).await["id"].as_str().unwrap().to_owned());
    }
    let attachments: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
    let body =
        json!({"message": "Look", "context_type": "workflow", "conversation_id": "c", "attachments": attachments});
    s.app.chat(&body).await;
    let path = format!("/v1/agent/files/{}", ids[1]);
    s.app.http.delete(s.app.url(&path)).bearer_auth(&s.app.token).send().await.unwrap();

    s.app.say("c", "And now?").await;
    let asked = json!(s.last_asked()).to_string();
    assert!(asked.contains("[image b.gif, 19 bytes: not shown, it is not kept any more]"), "{asked}");
    assert_eq!(asked.matches("data:image/gif").count(), 2, "{asked}");
}

#[tokio::test]
async fn a_client_that_tells_its_history_tells_its_pictures_too() {
    let s = playing(SEES, [says("Yes.")]).await;
    let part = json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PIXEL}")}});
    let body = json!({"model": "workflow", "messages": [
        {"role": "user", "content": [{"type": "text", "text": "What?"}, part]},
        {"role": "assistant", "content": "A pixel."},
        {"role": "user", "content": "Sure?"},
    ]});
    let response = crate::openai::post(&s, &[], &body).await;
    assert_eq!(response.status(), 200);
    let asked = s.last_asked();
    let told = asked.iter().find(|message| message["role"] == "user").unwrap();
    assert_eq!(told["content"], json!([picture(), {"type": "text", "text": "What?"}]));
}

#[tokio::test]
async fn what_is_no_file_is_a_mistake_of_the_request_and_nothing_begins() {
    let s = playing(SEES, []).await;
    let chat = |part: Value| {
        let body = json!({"model": "workflow", "messages": [{"role": "user", "content": [part]}]});
        let request = s.app.http.post(s.app.url("/v1/chat/completions")).bearer_auth(&s.app.token).json(&body);
        async { request.send().await.unwrap() }
    };
    for url in [
        "http://169.254.169.254/latest/meta-data",
        "https://localhost/a.png",
        "data:image/png,abc",
        "data:image/png;base64,@",
    ] {
        let response = chat(json!({"type": "image_url", "image_url": {"url": url}})).await;
        let (status, body) = (response.status(), response.json::<Value>().await.unwrap());
        assert_eq!((status.as_u16(), &body["error"]["param"]), (400, &json!("messages")), "{url}: {body}");
    }
    let response =
        chat(json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,PHN2Zz48L3N2Zz4="}})).await;
    assert_eq!(response.status(), 415);
    let many: Vec<Value> = (0..21).map(|_| json!({"data": PIXEL})).collect();
    let body = json!({"message": "?", "context_type": "workflow", "attachments": many});
    assert_eq!(problem(s.app.post(&body).await).await, (400, "invalid_request".to_owned()));
    let wrong =
        [json!([{"id": "x"}]), json!([{"data": "@"}]), json!([{"id": "x", "data": PIXEL}]), json!({}), json!([7])];
    for attachments in wrong {
        let body = json!({"message": "?", "context_type": "workflow", "attachments": attachments});
        assert_eq!(problem(s.app.post(&body).await).await, (400, "invalid_request".to_owned()), "{body}");
    }
    let list: Value = get(&s.app, &s.app.token, "/v1/agent/conversations").await.json().await.unwrap();
    assert_eq!((list["items"].as_array().unwrap().len(), s.model.requests().len()), (0, 0));
}
