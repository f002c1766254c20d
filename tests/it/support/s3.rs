//! A small S3: buckets in memory, uploads in parts that nobody sees before their end, and signatures that are checked. It can be
//! away, deny everything, or answer late.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::sigv4::{KEY_ID, SECRET, Signed};

/// A session token that refusals repeat, as Amazon's do.
pub const REPEATED: &str = "session-canary-0123456789";

/// The bucket that there is.
pub const BUCKET: &str = "files";

/// The least that a part may have which is not the last one.
const LEAST_PART: usize = 5 << 20;

/// What the server does with requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Good,
    /// 503 to everything.
    Away,
    /// 403 to everything.
    Denying,
    /// Nothing is done until it is in another mood.
    Silent,
    /// All is done, and told when it is in another mood.
    Late,
}

/// The running server; it stops when dropped, and fails the test when a request was not signed well.
pub struct S3 {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

/// Parts by their numbers.
type Parts = BTreeMap<u32, Bytes>;

struct Shared {
    mood: watch::Sender<Mood>,
    /// By their paths, with the bucket.
    objects: Mutex<BTreeMap<String, Bytes>>,
    /// Those that have not ended, by their ids: the path, and the parts.
    uploads: Mutex<BTreeMap<String, (String, Parts)>>,
    seen: Mutex<Vec<String>>,
    unsigned: Mutex<Vec<String>>,
}

impl S3 {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Arc::new(Shared {
            mood: watch::Sender::new(Mood::Good),
            objects: Mutex::default(),
            uploads: Mutex::default(),
            seen: Mutex::default(),
            unsigned: Mutex::default(),
        });
        let address = listener.local_addr().unwrap();
        let app = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, shared, serving }
    }

    /// Its origin.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The settings of a server that keeps its files here, below `prod`, and the variables with its key.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("FILES__URL", format!("s3://{BUCKET}/prod")),
            ("FILES__S3__ENDPOINT", self.url()),
            ("FILES__S3__TIMEOUT_S", "30".to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY_ID.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ]
    }

    /// From now on it does this.
    pub fn be(&self, mood: Mood) {
        self.shared.mood.send_replace(mood);
    }

    /// The paths of all objects, and their sizes.
    pub fn objects(&self) -> Vec<(String, usize)> {
        self.shared.objects.lock().unwrap().iter().map(|(path, bytes)| (path.clone(), bytes.len())).collect()
    }

    /// How many uploads have begun and not ended.
    pub fn uploads(&self) -> usize {
        self.shared.uploads.lock().unwrap().len()
    }

    /// The requests so far: the method, and the names in the query.
    pub fn seen(&self) -> Vec<String> {
        self.shared.seen.lock().unwrap().clone()
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.serving.abort();
        if !std::thread::panicking() {
            let unsigned = self.shared.unsigned.lock().unwrap().clone();
            assert!(unsigned.is_empty(), "{unsigned:?}");
        }
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().unwrap().as_str();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let query: BTreeMap<String, String> =
        url::form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let names: Vec<&str> = query.keys().map(String::as_str).collect();
    let name = format!("{} {}", head.method, names.join("&"));
    shared.seen.lock().unwrap().push(name.trim_end().to_owned());
    let mood = *shared.mood.borrow();
    match mood {
        Mood::Good | Mood::Late => {}
        Mood::Away => return refusal(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
        Mood::Denying => return refusal(StatusCode::FORBIDDEN, "AccessDenied"),
        Mood::Silent => shared.no_more(Mood::Silent).await,
    }
    let text = |value: &header::HeaderValue| value.to_str().unwrap().to_owned();
    let headers: Vec<_> = head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    let signed = Signed { method: head.method.as_str(), path, headers: &headers, body: &body };
    if let Err(reason) = signed.verify_now("s3", "us-east-1") {
        shared.unsigned.lock().unwrap().push(format!("{} {path}: {reason}", head.method));
        return refusal(StatusCode::FORBIDDEN, "SignatureDoesNotMatch");
    }
    let source = head.headers.get("x-amz-copy-source").map(text);
    let answer = shared.answer(&head.method, head.uri.path(), &query, source, body);
    shared.no_more(Mood::Late).await;
    answer
}

impl Shared {
    /// Waits until it is in another mood.
    async fn no_more(&self, mood: Mood) {
        self.mood.subscribe().wait_for(|now| *now != mood).await.unwrap();
    }

    fn answer(
        &self,
        method: &Method,
        path: &str,
        query: &BTreeMap<String, String>,
        source: Option<String>,
        body: Bytes,
    ) -> Response {
        if !path.starts_with(&format!("/{BUCKET}/")) {
            return refusal(StatusCode::NOT_FOUND, "NoSuchBucket");
        }
        let (mut objects, mut uploads) = (self.objects.lock().unwrap(), self.uploads.lock().unwrap());
        let upload = query.get("uploadId");
        match (method.as_str(), upload) {
            ("POST", None) if query.contains_key("uploads") => {
                let id = uuid::Uuid::new_v4().simple().to_string();
                uploads.insert(id.clone(), (path.to_owned(), BTreeMap::new()));
                let xml =
                    format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>");
                ok(xml)
            }
            ("PUT", Some(id)) => {
                let Some((_, parts)) = uploads.get_mut(id) else {
                    return refusal(StatusCode::NOT_FOUND, "NoSuchUpload");
                };
                parts.insert(query["partNumber"].parse().unwrap(), body);
                ok(String::new())
            }
            ("POST", Some(id)) => {
                let Some((path, parts)) = uploads.remove(id) else {
                    return refusal(StatusCode::NOT_FOUND, "NoSuchUpload");
                };
                let parts: Vec<Bytes> = parts.into_values().collect();
                let but_last = &parts[..parts.len().saturating_sub(1)];
                if but_last.iter().any(|part| part.len() < LEAST_PART) {
                    return refusal(StatusCode::BAD_REQUEST, "EntityTooSmall");
                }
                objects.insert(path, parts.concat().into());
                ok("<CompleteMultipartUploadResult><ETag>\"whole\"</ETag></CompleteMultipartUploadResult>".to_owned())
            }
            ("DELETE", Some(id)) => match uploads.remove(id) {
                Some(_) => empty(StatusCode::NO_CONTENT),
                None => refusal(StatusCode::NOT_FOUND, "NoSuchUpload"),
            },
            ("PUT", None) => {
                let copied = source.map(|source| objects.get(&format!("/{}", source.trim_start_matches('/'))).cloned());
                match copied {
                    Some(None) => return refusal(StatusCode::NOT_FOUND, "NoSuchKey"),
                    Some(Some(bytes)) => objects.insert(path.to_owned(), bytes),
                    None => objects.insert(path.to_owned(), body),
                };
                ok(String::new())
            }
            ("GET" | "HEAD", None) => match objects.get(path) {
                Some(bytes) => Response::new(Body::from(bytes.clone())),
                None => refusal(StatusCode::NOT_FOUND, "NoSuchKey"),
            },
            ("DELETE", None) => {
                objects.remove(path);
                empty(StatusCode::NO_CONTENT)
            }
            _ => refusal(StatusCode::NOT_IMPLEMENTED, "NotImplemented"),
        }
    }
}

fn ok(xml: String) -> Response {
    Response::builder().header(header::ETAG, "\"part\"").body(Body::from(xml)).unwrap()
}

fn empty(status: StatusCode) -> Response {
    Response::builder().status(status).body(Body::empty()).unwrap()
}

fn refusal(status: StatusCode, code: &str) -> Response {
    let xml =
        format!("<Error><Code>{code}</Code><Message>Said by a test.</Message><Token-0>{REPEATED}</Token-0></Error>");
    Response::builder().status(status).body(Body::from(xml)).unwrap()
}
