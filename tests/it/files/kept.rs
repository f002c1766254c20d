//! Files are kept for their users alone, and as what their bytes say.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{get, pixel, playing, problem, upload, uploaded};
use crate::support::app::TestApp;
use crate::support::model::says;

#[tokio::test]
async fn a_file_is_kept_read_listed_and_deleted() {
    let app = TestApp::demo().await;
    let kept = uploaded(&app, "chart%20%22a%22.png", pixel()).await;
    let id = kept["id"].as_str().unwrap();
    let expected = json!([r#"chart "a".png"#, "image/png", pixel().len(), format!("/v1/agent/files/{id}/content")]);
    assert_eq!(json!([kept["name"], kept["media_type"], kept["bytes"], kept["url"]]), expected);
    let content = get(&app, &app.token, kept["url"].as_str().unwrap()).await;
    let header = |name: &str| content.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "image/png");
    assert_eq!(header("content-disposition"), "attachment; filename*=UTF-8''chart%20%22a%22%2Epng");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(header("content-security-policy"), "sandbox; default-src 'none'");
    assert!(header("cache-control").starts_with("private"));
    assert_eq!(content.bytes().await.unwrap(), pixel());

    let again = uploaded(&app, "other.png", pixel()).await;
    assert_eq!((&again["id"], &again["name"]), (&kept["id"], &json!("other.png")), "the same bytes are kept once");
    let text = uploaded(&app, "notes.md", "# Größe").await;
    assert_eq!(text["media_type"], "text/markdown");
    let list: Value = get(&app, &app.token, "/v1/agent/files?limit=1").await.json().await.unwrap();
    assert_eq!(list["items"][0]["id"], text["id"]);
    let next = format!("/v1/agent/files?limit=1&after={}", list["next_cursor"].as_str().unwrap());
    let list: Value = get(&app, &app.token, &next).await.json().await.unwrap();
    assert_eq!((&list["items"][0]["id"], &list["next_cursor"]), (&kept["id"], &Value::Null), "that was the last part");

    let form = app.http.post(app.url("/v1/agent/files?name=a.txt")).bearer_auth(&app.token).body("--x\r\n\r\ntext");
    let form = form.header("content-type", "multipart/form-data; boundary=x").send().await.unwrap();
    assert_eq!(problem(form).await, (415, "file_unsupported".to_owned()), "a form is no file");

    let delete = async || {
        app.http.delete(app.url(&format!("/v1/agent/files/{id}"))).bearer_auth(&app.token).send().await.unwrap()
    };
    assert_eq!(delete().await.status(), 204);
    assert_eq!(problem(delete().await).await, (404, "not_found".to_owned()));
    let gone = get(&app, &app.token, kept["url"].as_str().unwrap()).await;
    assert_eq!(problem(gone).await, (404, "not_found".to_owned()));
}

#[tokio::test]
async fn a_file_is_its_users_alone() {
    let s = playing("gpt-4o", [says("Nothing.")]).await;
    let app = &s.app;
    let kept = uploaded(app, "a.png", pixel()).await;
    let (id, url) = (kept["id"].as_str().unwrap(), kept["url"].as_str().unwrap());
    for (user, tenant) in [("bob", None), (crate::support::app::ADA, Some("other"))] {
        let token = app.token_of(user, tenant, &["USER"]);
        for path in [format!("/v1/agent/files/{id}"), url.to_owned()] {
            assert_eq!(problem(get(app, &token, &path).await).await, (404, "not_found".to_owned()), "{user} {path}");
        }
        let delete = app.http.delete(app.url(&format!("/v1/agent/files/{id}"))).bearer_auth(&token).send();
        assert_eq!(problem(delete.await.unwrap()).await, (404, "not_found".to_owned()));
        let list: Value = get(app, &token, "/v1/agent/files").await.json().await.unwrap();
        assert_eq!(list["items"], json!([]));
        let body = json!({"message": "What is it?", "context_type": "workflow", "attachments": [{"id": id}]});
        assert_eq!(problem(app.post_as(&token, &body).await).await, (404, "not_found".to_owned()));
        let theirs: Value = upload(app, &token, "a.png", pixel()).await.json().await.unwrap();
        assert_ne!(theirs["id"], kept["id"], "the same bytes are kept apart");
    }
    assert!(s.model.requests().is_empty());
}

#[tokio::test]
async fn what_is_no_file_that_is_taken_is_refused() {
    let app = TestApp::start(&[("FILES__MAX_BYTES", "100000"), ("FILES__USER_BYTES", "150000")]).await;
    let text = |bytes: usize| "x".repeat(bytes).into_bytes();
    let unsupported = (415, "file_unsupported".to_owned());
    let rows: [(&str, Vec<u8>, (u16, String)); 8] = [
        ("a.png", b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff\0\0\xb8".to_vec(), unsupported.clone()),
        ("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>".to_vec(), unsupported.clone()),
        ("a.txt", b"\n <!DOCTYPE html><script>1</script>".to_vec(), unsupported.clone()),
        ("a.png", pixel()[..20].to_vec(), unsupported.clone()),
        ("a.txt", b"abc\xff\xfe".to_vec(), unsupported),
        ("a.txt", Vec::new(), (400, "invalid_request".to_owned())),
        ("a.txt", text(100_001), (413, "field_too_large".to_owned())),
        ("a.txt", text(100_000), (0, String::new())),
    ];
    for (name, bytes, expected) in rows {
        let response = upload(&app, &app.token, name, bytes).await;
        match expected {
            (0, _) => assert_eq!(response.status(), 201),
            expected => assert_eq!(problem(response).await, expected, "{name}"),
        }
    }
    let more = upload(&app, &app.token, "b.txt", text(60_000)).await;
    assert_eq!(problem(more).await, (507, "storage_quota_exceeded".to_owned()));
    let list: Value = get(&app, &app.token, "/v1/agent/files").await.json().await.unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "nothing else is listed: {list}");
}

#[tokio::test]
async fn an_upload_that_stops_half_way_leaves_nothing() {
    let app = TestApp::demo().await;
    let pieces = futures::stream::iter([Ok("x".repeat(70_000)), Err(std::io::Error::other("the line broke"))]);
    let body = reqwest::Body::wrap_stream(pieces);
    let sent = app.http.post(app.url("/v1/agent/files?name=a.txt")).bearer_auth(&app.token).body(body).send().await;
    assert!(sent.is_err_and(|error| !error.is_timeout()));
    let list: Value = get(&app, &app.token, "/v1/agent/files").await.json().await.unwrap();
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn without_a_place_for_them_files_are_refused_in_words() {
    let app = TestApp::start(&[("FILES__URL", "off")]).await;
    assert_eq!(problem(upload(&app, &app.token, "a.png", pixel()).await).await, (503, "files_off".to_owned()));
    let body = json!({"message": "?", "context_type": "workflow", "attachments": [{"data": super::PIXEL}]});
    assert_eq!(problem(app.post(&body).await).await, (503, "files_off".to_owned()));
}

mod removed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    use async_trait::async_trait;
    use bytes::Bytes;
    use futures::{StreamExt, stream};
    use sqlx::{Connection, SqliteConnection};
    use switchboard::agent::ports::clock::SystemClock;
    use switchboard::agent::ports::files::{
        FileError, FileRecord, FileRows, Files, Incoming, KeptFile, NewFileRow, Terms, Which,
    };
    use switchboard::agent::ports::store_error::StoreError;
    use switchboard::bounded::memory::Memory;
    use switchboard::chat::caller::Owner;
    use switchboard::chat::ids::FileId;
    use switchboard::chat::input::Ask;
    use switchboard::files::{FileStore, FilesConfig};
    use switchboard::store::{self, Store, StoreConfig};

    use crate::store::contract::{Room, complete};

    use super::*;

    fn files_below(folder: &std::path::Path) -> usize {
        let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
        let count = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
            true => files_below(&entry.path()),
            false => 1,
        };
        entries.map(|entry| count(entry.unwrap())).sum()
    }

    /// A store and its files in that folder.
    async fn opened(folder: &std::path::Path) -> (Arc<dyn Store>, Arc<FileStore>) {
        let url = format!("sqlite://{}", folder.join("s.db").display());
        let config = StoreConfig { url: url.clone(), ..StoreConfig::default() };
        let rows = store::open(&config, Arc::new(SystemClock), Arc::default()).await.unwrap();
        let files = FileStore::open(&FilesConfig::default(), &url, rows.clone(), Memory::new(0)).unwrap().unwrap();
        (rows, files)
    }

    #[tokio::test]
    async fn the_bytes_of_a_deleted_conversation_go_from_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let (rows, files) = opened(folder.path()).await;
        let room = Room::at("acme/ada/c1");
        let content = stream::iter([Ok(Bytes::from_static(b"one"))]).boxed();
        let incoming = Incoming { name: Some("a.txt"), media_type: None, terms: None, content };
        let file = files.keep(&room.owner, incoming).await.unwrap().file;
        let ask = Ask::Message { text: "Look".into(), note: None, files: vec![file.clone()] };
        let (run, _) = room.ask(&*rows, &ask, None).await.unwrap();
        complete(&*rows, run).await;
        let place = folder.path().join("files");
        assert_eq!((files.sweep(&[]).await, files_below(&place)), (Vec::new(), 1), "it is needed");
        rows.delete(&room.owner, &room.conversation).await.unwrap().unwrap();
        assert_eq!(files.read(&room.owner, file.id).await.unwrap(), None, "at once");
        assert_eq!((files.sweep(&[]).await, files_below(&place)), (vec![file.id], 0));
        rows.close().await;
    }

    #[tokio::test]
    async fn bytes_go_with_their_row_whoever_dies_in_between() {
        let folder = tempfile::tempdir().unwrap();
        let (rows, files) = opened(folder.path()).await;
        let owner = Owner { tenant: String::new(), user: "ada".to_owned() };
        let keep = async |text: &'static str| {
            let content = stream::iter([Ok(Bytes::from_static(text.as_bytes()))]).boxed();
            let incoming = Incoming { name: Some("a.txt"), media_type: None, terms: None, content };
            files.keep(&owner, incoming).await.unwrap().file.id
        };
        let (one, two) = (keep("one").await, keep("two").await);
        let place = folder.path().join("files");
        assert_eq!(files_below(&place), 2);
        // As a process leaves it that ends behind the row.
        assert!(rows.delete_file(&owner, one).await.unwrap());
        assert_eq!(files_below(&place), 2);
        let removed = files.sweep(&[]).await;
        assert_eq!((removed.as_slice(), files_below(&place)), (&[one][..], 1));
        assert_eq!(files.sweep(&removed).await, [], "it is forgotten then");
        assert_eq!(files.read(&owner, two).await.unwrap().unwrap(), "two");
        assert_eq!(files.read(&owner, one).await.unwrap(), None);
        rows.close().await;
    }

    fn ada() -> Owner {
        Owner { tenant: String::new(), user: "ada".to_owned() }
    }

    /// Keeps the same text each time.
    async fn keep(files: &FileStore) -> Result<FileId, FileError> {
        let content = stream::iter([Ok(Bytes::from_static(b"one"))]).boxed();
        let incoming = Incoming { name: Some("a.txt"), media_type: None, terms: None, content };
        Ok(files.keep(&ada(), incoming).await?.file.id)
    }

    /// As somebody's mistake leaves it who looks after the folder.
    fn lose(folder: &std::path::Path, id: FileId) {
        let id = id.to_string();
        std::fs::remove_file(folder.join("files").join(&id[..2]).join(id)).unwrap();
    }

    /// As if a day had gone since bytes were announced.
    async fn a_day_later(folder: &std::path::Path) {
        let url = format!("sqlite://{}", folder.join("s.db").display());
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        let later = sqlx::query("UPDATE file_removals SET at = 1 WHERE at > 0");
        assert!(later.execute(&mut connection).await.unwrap().rows_affected() > 0, "nothing is announced");
    }

    #[tokio::test]
    async fn bytes_that_are_put_back_stay_with_their_row_and_go_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let (rows, files) = opened(folder.path()).await;
        let id = keep(&files).await.unwrap();
        lose(folder.path(), id);
        assert_eq!(files.read(&ada(), id).await.unwrap(), None);
        assert_eq!(keep(&files).await.unwrap(), id, "the same file");
        assert_eq!(files.read(&ada(), id).await.unwrap().unwrap(), "one");
        a_day_later(folder.path()).await;
        assert!(!files.sweep(&[]).await.contains(&id), "its row is there");
        assert_eq!(files.read(&ada(), id).await.unwrap().unwrap(), "one");
        assert!(rows.delete_file(&ada(), id).await.unwrap());
        assert!(files.sweep(&[]).await.contains(&id));
        assert_eq!(files_below(&folder.path().join("files")), 0);
        rows.close().await;
    }

    /// When a row is deleted whose bytes are put back.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Deleted {
        /// Before they are announced.
        Before,
        /// Behind that.
        Behind,
        /// Before that, and the database is away when they are there.
        BeforeAnEnd,
    }

    /// Rows one of which is deleted in the middle of that, its bytes are removed, and their note is forgotten.
    struct Hasty {
        rows: Arc<dyn Store>,
        files: Arc<FileStore>,
        id: FileId,
        when: Deleted,
        is_deleted: AtomicBool,
    }

    impl Hasty {
        async fn delete(&self) {
            if !self.is_deleted.swap(true, Ordering::Relaxed) {
                assert!(self.rows.delete_file(&ada(), self.id).await.unwrap());
                let removed = self.files.sweep(&[]).await;
                assert_eq!((removed.as_slice(), self.files.sweep(&removed).await), (&[self.id][..], Vec::new()));
            }
        }
    }

    #[async_trait]
    impl FileRows for Hasty {
        async fn announce_file(&self, id: FileId) -> Result<(), StoreError> {
            self.rows.announce_file(id).await?;
            if id == self.id && self.when == Deleted::Behind {
                self.delete().await;
            }
            Ok(())
        }

        async fn keep_file(&self, owner: &Owner, row: NewFileRow<'_>) -> Result<KeptFile, StoreError> {
            let kept = self.rows.keep_file(owner, row).await?;
            assert!(matches!(&kept, KeptFile::Same(record) if record.file.id == self.id), "{kept:?}");
            if self.when != Deleted::Behind {
                self.delete().await;
            }
            Ok(kept)
        }

        async fn files(&self, owner: &Owner, which: Which<'_>) -> Result<Vec<FileRecord>, StoreError> {
            match self.when {
                Deleted::BeforeAnEnd => Err(StoreError::Unavailable("away".into())),
                Deleted::Before | Deleted::Behind => self.rows.files(owner, which).await,
            }
        }

        async fn delete_file(&self, owner: &Owner, id: FileId) -> Result<bool, StoreError> {
            self.rows.delete_file(owner, id).await
        }

        async fn sweep_files(&self, removed: &[FileId], most: u32) -> Result<Vec<FileId>, StoreError> {
            self.rows.sweep_files(removed, most).await
        }
    }

    #[tokio::test]
    async fn bytes_that_are_put_back_for_a_row_that_is_deleted_meanwhile_do_not_stay() {
        for when in [Deleted::Before, Deleted::Behind, Deleted::BeforeAnEnd] {
            let folder = tempfile::tempdir().unwrap();
            let (rows, files) = opened(folder.path()).await;
            let id = keep(&files).await.unwrap();
            lose(folder.path(), id);
            let is_deleted = AtomicBool::new(false);
            let hasty = Arc::new(Hasty { rows: rows.clone(), files: files.clone(), id, when, is_deleted });
            let url = format!("sqlite://{}", folder.path().join("s.db").display());
            let config = FilesConfig::default();
            let meanwhile = FileStore::open(&config, &url, hasty.clone(), Memory::new(0)).unwrap().unwrap();
            let kept = keep(&meanwhile).await;
            assert!(hasty.is_deleted.load(Ordering::Relaxed), "{when:?}");
            let place = folder.path().join("files");
            if when == Deleted::BeforeAnEnd {
                assert_eq!((kept.is_err(), files_below(&place)), (true, 1));
                a_day_later(folder.path()).await;
                assert!(files.sweep(&[]).await.contains(&id), "they were noted");
            }
            assert_eq!(files_below(&place), 0, "{when:?}");
            rows.close().await;
        }
    }

    #[tokio::test]
    async fn a_file_with_a_time_of_its_own_is_there_until_it_is_over_and_not_longer() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("s.db").display());
        let config = StoreConfig { url: url.clone(), ..StoreConfig::default() };
        let rows = store::open(&config, Arc::new(SystemClock), Arc::default()).await.unwrap();
        let files = FileStore::open(&FilesConfig::default(), &url, rows.clone(), Memory::new(0)).unwrap().unwrap();
        let owner = Owner { tenant: String::new(), user: "ada".to_owned() };
        let keep = async |text: &'static str, kept_ms: Option<i64>| {
            let content = stream::iter([Ok(Bytes::from_static(text.as_bytes()))]).boxed();
            let terms = OnceLock::from(Terms { purpose: None, kept_ms });
            let incoming = Incoming { name: Some("a.txt"), media_type: None, terms: Some(&terms), content };
            files.keep(&owner, incoming).await.unwrap()
        };
        let (long, over) = (keep("long", Some(90_000_000)).await, keep("over", Some(-5000)).await);
        assert_eq!(long.expires_ms, Some(long.created_ms + 90_000_000));
        let ids = [long.file.id, over.file.id];
        assert_eq!(rows.files(&owner, Which::These(&ids)).await.unwrap(), std::slice::from_ref(&long));
        assert_eq!(files.read(&owner, over.file.id).await.unwrap(), None);
        let place = folder.path().join("files");
        assert_eq!(files_below(&place), 2);
        let removed = files.sweep(&[]).await;
        assert_eq!(removed, [over.file.id]);
        assert_eq!(files_below(&place), 1);
        // The same bytes again, on other terms.
        let again = keep("long", Some(-5000)).await;
        assert_eq!((again.file.id, files.sweep(&removed).await), (long.file.id, vec![long.file.id]));
        assert_eq!(files_below(&place), 0);
        rows.close().await;
    }
}

#[tokio::test]
async fn a_file_goes_with_the_last_conversation_that_needs_it() {
    let data = tempfile::tempdir().unwrap();
    let place = data.path().join("place");
    let url = format!("file:{}", place.display());
    let app = TestApp::start_in(data, &[("FILES__URL", &url)]).await;
    let kept = uploaded(&app, "a.png", pixel()).await;
    for conversation in ["a", "b"] {
        let body = json!({"message": "Hello", "context_type": "workflow", "conversation_id": conversation,
            "attachments": [{"id": kept["id"]}]});
        app.chat(&body).await;
    }
    let delete = async |id: &str| {
        let path = format!("/v1/agent/conversations/{id}");
        assert_eq!(app.http.delete(app.url(&path)).bearer_auth(&app.token).send().await.unwrap().status(), 204);
    };
    delete("a").await;
    let url = kept["url"].as_str().unwrap();
    assert_eq!(get(&app, &app.token, url).await.status(), 200, "another one needs it");
    delete("b").await;
    assert_eq!(problem(get(&app, &app.token, url).await).await, (404, "not_found".to_owned()), "at once");
}

#[tokio::test]
async fn a_file_that_is_larger_than_a_users_share_is_read_alone() {
    let app = TestApp::start(&[("SERVER__BYTES_PER_USER", "1000")]).await;
    let kept = uploaded(&app, "long.txt", "word ".repeat(1000)).await;
    let content = get(&app, &app.token, kept["url"].as_str().unwrap()).await;
    assert_eq!((content.status().as_u16(), content.text().await.unwrap().len()), (200, 5000));
}

#[tokio::test]
async fn a_photograph_is_kept_however_much_its_camera_says_of_it() {
    let app = TestApp::demo().await;
    let said = [&b"\xff\xe1\xff\xff"[..], &[b'x'; 65_533]].concat().repeat(32);
    let frame = b"\xff\xff\xc0\0\x11\x08\x0b\xb8\x0f\xa0\x03\x01\x22\0\x02\x11\x01\x03\x11\x01\xff\xd9";
    let kept = uploaded(&app, "a.jpg", [&b"\xff\xd8"[..], &said, frame].concat()).await;
    assert_eq!(kept["media_type"], "image/jpeg");
}
