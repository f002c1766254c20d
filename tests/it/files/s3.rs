//! Files in S3: whichever replica keeps them, all read them; in parts where they are large; and nothing half-kept whatever the
//! store does.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use serde_json::Value;
use switchboard::agent::ports::clock::SystemClock;
use switchboard::agent::ports::files::{FileError, Files, Incoming};
use switchboard::aws::Variables;
use switchboard::bounded::memory::Memory;
use switchboard::chat::caller::Owner;
use switchboard::config::Config;
use switchboard::files::{FileStore, FilesConfig, S3Config};
use switchboard::store::{self, Store, StoreConfig};
use tokio::sync::oneshot;

use super::{get, pixel, problem, upload, uploaded};
use crate::support::app::{self, TestApp};
use crate::support::postgres::TestPostgres;
use crate::support::process::Folder;
use crate::support::s3::{BUCKET, Mood, REPEATED, S3};
use crate::support::sigv4::{KEY_ID, SECRET};
use crate::support::wait::eventually;

/// 5 MiB and a little: two parts. What a server has not read when it answers is small enough to be thrown away.
const LARGE: usize = (5 << 20) + (64 << 10);

async fn started(s3: &S3, more: &[(&str, &str)]) -> TestApp {
    let own = s3.settings();
    let own = own.iter().map(|(key, value)| (*key, value.as_str()));
    TestApp::start(&own.chain(more.iter().copied()).collect::<Vec<_>>()).await
}

async fn listed(app: &TestApp) -> usize {
    let list: Value = get(app, &app.token, "/v1/agent/files").await.json().await.unwrap();
    list["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_file_uploaded_at_one_replica_is_read_and_deleted_at_the_other() {
    let Some(postgres) = TestPostgres::shared() else { return };
    let (database, s3) = (postgres.new_database().await, S3::start().await);
    let shared = [
        ("STORE__URL", database.url.as_str()),
        ("AUTH__MODE", "hs256"),
        ("AUTH__HS256_SECRET", "0123456789abcdef0123456789abcdef"),
        ("LLM__PROVIDER", "demo"),
    ];
    let (ours, variables): (Vec<_>, Vec<_>) = s3.settings().into_iter().partition(|(key, _)| !key.starts_with("AWS_"));
    let settings: Vec<_> = shared.into_iter().chain(ours.iter().map(|(key, value)| (*key, value.as_str()))).collect();
    let folders = [Folder::new(), Folder::new()];
    let [a, b] = folders.each_ref().map(|folder| {
        folder.serve_as(&settings, |command| {
            command.envs(variables.iter().map(|(key, value)| (*key, value.as_str())));
        })
    });
    let token = folders[0].token_with(&["--user", "ada"], &settings);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();

    let kept = http.post(a.url("/v1/agent/files?name=a.png")).bearer_auth(&token).body(pixel()).send().await.unwrap();
    let (status, kept) = (kept.status(), kept.text().await.unwrap());
    assert_eq!(status, 201, "{kept} {}", folders[0].stderr());
    let kept: Value = serde_json::from_str(&kept).unwrap();
    let (id, url) = (kept["id"].as_str().unwrap(), kept["url"].as_str().unwrap());
    for replica in [&a, &b] {
        let read = http.get(replica.url(url)).bearer_auth(&token).send().await.unwrap();
        assert_eq!(read.status(), 200);
        assert_eq!(read.bytes().await.unwrap(), pixel());
    }
    assert_eq!(s3.objects(), [(format!("/{BUCKET}/prod/{}/{id}", &id[..2]), pixel().len())]);

    let path = format!("/v1/agent/files/{id}");
    let deleted = http.delete(b.url(&path)).bearer_auth(&token).send().await.unwrap();
    assert_eq!((deleted.status().as_u16(), s3.objects()), (204, Vec::new()));
    assert_eq!(http.get(a.url(url)).bearer_auth(&token).send().await.unwrap().status(), 404);
    for folder in &folders {
        let log = folder.stderr();
        assert!(!log.contains(SECRET), "{log}");
    }
}

#[tokio::test]
async fn a_small_file_is_put_at_once_and_a_large_one_in_parts() {
    let s3 = S3::start().await;
    let app = started(&s3, &[]).await;
    uploaded(&app, "a.png", pixel()).await;
    assert_eq!(s3.seen(), ["PUT"]);
    let text = "x".repeat(LARGE);
    let kept = uploaded(&app, "a.txt", text.clone()).await;
    let parts = ["POST uploads", "PUT partNumber&uploadId", "PUT partNumber&uploadId", "POST uploadId"];
    assert_eq!(s3.seen()[1..], parts);
    let read = get(&app, &app.token, kept["url"].as_str().unwrap()).await;
    assert!(read.bytes().await.unwrap() == text.as_bytes());
    // The same once more: it is written, found to be there, and taken back.
    let again = uploaded(&app, "b.txt", text).await;
    assert_eq!((&again["id"], s3.objects().len(), s3.uploads()), (&kept["id"], 2, 0));
}

#[tokio::test]
async fn an_upload_that_does_not_end_leaves_nothing() {
    let s3 = S3::start().await;
    let app = started(&s3, &[("FILES__MAX_BYTES", "7000000")]).await;
    let refused = upload(&app, &app.token, "a.txt", "x".repeat(7_050_000)).await;
    assert_eq!(problem(refused).await, (413, "field_too_large".to_owned()));
    let count = |name: &str| s3.seen().iter().filter(|seen| *seen == name).count();
    let (aborted, part) = ("DELETE uploadId", "PUT partNumber&uploadId");
    assert_eq!((count(aborted), s3.seen().last().unwrap().as_str()), (1, "DELETE"), "aborted, then removed");
    assert_eq!((s3.uploads(), s3.objects()), (0, Vec::new()));

    let (breaks, broken) = oneshot::channel::<()>();
    let first = stream::once(async { Ok("x".repeat(5_290_000)) });
    let second = stream::once(async {
        let _ = broken.await;
        Err(std::io::Error::other("the line broke"))
    });
    let body = reqwest::Body::wrap_stream(first.chain(second));
    let sending = app.http.post(app.url("/v1/agent/files?name=a.txt")).bearer_auth(&app.token).body(body).send();
    let before = count(part);
    let begun = async {
        eventually("a part is there", async || (count(part) > before).then_some(())).await;
        breaks.send(()).unwrap();
    };
    let (sent, ()) = tokio::join!(sending, begun);
    assert!(sent.is_err_and(|error| !error.is_timeout()));
    eventually("it is aborted too", async || (count(aborted) == 2 && s3.uploads() == 0).then_some(())).await;
    assert_eq!((s3.objects(), listed(&app).await), (Vec::new(), 0));
}

#[tokio::test]
async fn a_store_that_is_away_or_denies_keeps_nothing_and_says_so() {
    let s3 = S3::start().await;
    let app = started(&s3, &[]).await;
    let kept = uploaded(&app, "a.png", pixel()).await;
    let unavailable = || (503, "files_unavailable".to_owned());
    for mood in [Mood::Away, Mood::Denying] {
        s3.be(mood);
        for bytes in ["small".to_owned(), "x".repeat(LARGE)] {
            let refused = upload(&app, &app.token, "a.txt", bytes).await;
            assert_eq!(problem(refused).await, unavailable(), "{mood:?}");
        }
        let read = get(&app, &app.token, kept["url"].as_str().unwrap()).await;
        assert_eq!(problem(read).await, unavailable(), "{mood:?}");
        assert_eq!(listed(&app).await, 1, "{mood:?}");
    }
    s3.be(Mood::Good);
    assert_eq!((s3.objects().len(), s3.uploads()), (1, 0));
    uploaded(&app, "a.txt", "small").await;
}

#[tokio::test]
async fn a_silent_store_keeps_nothing_and_says_so() {
    let s3 = S3::start().await;
    let app = started(&s3, &[("FILES__S3__TIMEOUT_S", "1")]).await;
    s3.be(Mood::Silent);
    for bytes in ["small".to_owned(), "x".repeat(LARGE)] {
        let refused = upload(&app, &app.token, "a.txt", bytes).await;
        assert_eq!(problem(refused).await, (503, "files_unavailable".to_owned()));
    }
    assert_eq!((listed(&app).await, s3.objects(), s3.uploads()), (0, Vec::new(), 0));
}

#[tokio::test]
async fn a_refusal_is_told_in_the_log_without_the_session_token_that_it_repeats() {
    let s3 = S3::start().await;
    s3.be(Mood::Denying);
    let secret = [("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", "0123456789abcdef0123456789abcdef")];
    let (ours, variables): (Vec<_>, Vec<_>) = s3.settings().into_iter().partition(|(key, _)| !key.starts_with("AWS_"));
    let ours = ours.iter().map(|(key, value)| (*key, value.as_str()));
    let settings: Vec<_> = secret.into_iter().chain([("LLM__PROVIDER", "demo")]).chain(ours).collect();
    let folder = Folder::new();
    let server = folder.serve_as(&settings, |command| {
        command.envs(variables.iter().map(|(key, value)| (*key, value.as_str()))).env("AWS_SESSION_TOKEN", REPEATED);
    });
    let token = folder.token_with(&["--user", "ada"], &settings);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = server.url("/v1/agent/files?name=a.png");
    let refused = http.post(url).bearer_auth(&token).body(pixel()).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    let words = "AccessDenied: Said by a test.";
    eventually("the refusal is logged", async || folder.stderr().contains(words).then_some(())).await;
    let log = folder.stderr();
    assert!(!log.contains(REPEATED), "{log}");
}

/// A store whose files are there.
async fn opened(s3: &S3, folder: &Path) -> (Arc<dyn Store>, Arc<FileStore>) {
    let url = format!("sqlite://{}", folder.join("s.db").display());
    let config = StoreConfig { url: url.clone(), ..StoreConfig::default() };
    let rows = store::open(&config, Arc::new(SystemClock), Arc::default()).await.unwrap();
    let key = [("AWS_ACCESS_KEY_ID", KEY_ID), ("AWS_SECRET_ACCESS_KEY", SECRET)];
    let key = BTreeMap::from(key.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let config = FilesConfig {
        url: format!("s3://{BUCKET}"),
        s3: S3Config { endpoint: s3.url(), ..S3Config::default() },
        aws: Variables::of(&key),
        ..FilesConfig::default()
    };
    let files = FileStore::open(&config, &url, rows.clone(), Memory::new(0)).unwrap().unwrap();
    (rows, files)
}

fn ada() -> Owner {
    Owner { tenant: String::new(), user: "ada".to_owned() }
}

fn incoming<'a>(content: impl Stream<Item = Result<Bytes, FileError>> + Send + 'a) -> Incoming<'a> {
    Incoming { name: Some("a.txt"), media_type: None, terms: None, content: content.boxed() }
}

#[tokio::test]
async fn an_upload_that_is_given_up_while_it_begins_is_taken_back() {
    let (s3, folder) = (S3::start().await, tempfile::tempdir().unwrap());
    let (rows, files) = opened(&s3, folder.path()).await;
    s3.be(Mood::Late);
    let (owner, large) = (ada(), Bytes::from("x".repeat(LARGE)));
    tokio::select! {
        kept = files.keep(&owner, incoming(stream::iter([Ok(large)]))) => panic!("{kept:?}"),
        () = eventually("it has begun", async || (s3.uploads() == 1).then_some(())) => {}
    }
    s3.be(Mood::Good);
    eventually("it is taken back", async || (s3.uploads() == 0).then_some(())).await;
    assert_eq!(s3.objects(), []);
    rows.close().await;
}

#[tokio::test]
async fn an_upload_that_is_given_up_while_it_is_taken_back_is_taken_back_all_the_same() {
    let (s3, folder) = (S3::start().await, tempfile::tempdir().unwrap());
    let (rows, files) = opened(&s3, folder.path()).await;
    let (owner, large) = (ada(), Bytes::from("x".repeat(LARGE)));
    let breaks = stream::once(async {
        s3.be(Mood::Silent);
        Err(FileError::Broken("the line broke".into()))
    });
    let aborted = async || s3.seen().iter().any(|seen| seen == "DELETE uploadId").then_some(());
    tokio::select! {
        kept = files.keep(&owner, incoming(stream::iter([Ok(large)]).chain(breaks))) => panic!("{kept:?}"),
        () = eventually("it is aborted", aborted) => {}
    }
    assert_eq!(s3.uploads(), 1, "the store has not done it");
    s3.be(Mood::Good);
    eventually("it is taken back", async || (s3.uploads() == 0).then_some(())).await;
    assert_eq!(s3.objects(), []);
    rows.close().await;
}

#[tokio::test]
async fn bytes_that_could_not_be_removed_are_removed_later() {
    let (s3, folder) = (S3::start().await, tempfile::tempdir().unwrap());
    let (rows, files) = opened(&s3, folder.path()).await;
    let owner = ada();
    let one = stream::iter([Ok(Bytes::from_static(b"one"))]);
    let id = files.keep(&owner, incoming(one)).await.unwrap().file.id;

    s3.be(Mood::Denying);
    assert!(files.delete(&owner, id).await.unwrap(), "for its user it is gone");
    assert_eq!((files.sweep(&[]).await, s3.objects().len()), (Vec::new(), 1));
    s3.be(Mood::Good);
    let removed = files.sweep(&[]).await;
    assert_eq!((removed.as_slice(), s3.objects().len()), (&[id][..], 0));
    assert_eq!(files.sweep(&removed).await, [], "it is forgotten then");
    rows.close().await;
}

#[test]
fn mistakes_are_told_by_their_keys() {
    let data = tempfile::tempdir().unwrap();
    let rows: [(&[(&str, &str)], &str); 8] = [
        (&[("FILES__URL", "s3://")], "files.url: must be auto"),
        (&[("FILES__URL", "s3://key:secret@files")], "files.url: must be auto"),
        (&[("FILES__URL", "s3://files"), ("FILES__S3__REGION", "EU")], "files.s3.region: "),
        (&[("FILES__URL", "s3://files"), ("FILES__S3__ENDPOINT", "ftp://minio")], "files.s3.endpoint: "),
        (
            &[
                ("FILES__URL", "s3://files"),
                ("FILES__S3__ENDPOINT", "http://10.0.0.1:9000"),
                ("FILES__S3__PATH_STYLE", "false"),
            ],
            "files.s3.path_style: ",
        ),
        (&[("FILES__URL", "s3://files"), ("FILES__S3__TIMEOUT_S", "0")], "files.s3.timeout_s: "),
        (&[("FILES__URL", "s3://files"), ("AWS_ACCESS_KEY_ID", KEY_ID)], "AWS_SECRET_ACCESS_KEY: "),
        (&[("FILES__URL", "s3://files"), ("AWS_REGION", "eu central")], "AWS_REGION: "),
    ];
    for (settings, expected) in rows {
        let problems = Config::load(&app::sources(&data, settings)).unwrap_err();
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(told.len() == 1 && told[0].starts_with(expected), "{settings:?}: {told:?}");
    }
    let settings = [("FILES__URL", "s3://files"), ("AWS_ACCESS_KEY_ID", KEY_ID), ("AWS_SECRET_ACCESS_KEY", SECRET)];
    let config = Config::load(&app::sources(&data, &settings)).unwrap();
    assert!(!format!("{config:?}").contains(SECRET));
}
