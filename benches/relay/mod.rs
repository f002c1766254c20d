//! The least that a server in between can cost that understands what it passes on: hyper in, hyper out, each event read by
//! serde into types and written anew. No token is verified, nothing is stored, nothing is logged.
//! What the product costs beyond this is the price of what it does.

use std::borrow::Cow;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::rt::{Read, Write};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// An event of the model.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
}

/// An event for the client.
#[derive(Serialize)]
struct Chunk<'a> {
    chunk: &'a str,
}

/// A request's body, whole.
struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    // By which hyper tells the length instead of sending chunks.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// What a connection goes over: TCP, or TLS on it.
trait Stream: Read + Write + Unpin + Send {}

impl<S: Read + Write + Unpin + Send> Stream for S {}

/// A connection to the upstream, with what moves its bytes. No other task drives it: while the two took turns as tasks,
/// each chunk cost more than all the rest.
struct Connection {
    sender: SendRequest<Whole>,
    driver: http1::Connection<Box<dyn Stream>, Whole>,
}

impl Connection {
    /// Moves bytes. An error or the end is found by whoever reads the answer.
    fn drive(&mut self, cx: &mut Context<'_>) {
        let _ = Pin::new(&mut self.driver).poll(cx);
    }
}

/// Connections to the upstream that wait for their next request.
type Pool = Arc<Mutex<Vec<Connection>>>;

/// An answer of the upstream in our frames. Its connection goes back to the pool at its end.
struct Reframed {
    upstream: Incoming,
    /// The beginning of a line whose end has not come yet.
    line: BytesMut,
    out: BytesMut,
    connection: Option<Connection>,
    pool: Pool,
    opened: bool,
}

impl Reframed {
    fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            match self.line.is_empty() {
                true => reframe(&bytes[..end], &mut self.out),
                false => {
                    self.line.extend_from_slice(&bytes[..end]);
                    let line = self.line.split();
                    reframe(&line, &mut self.out);
                }
            }
            bytes = &bytes[end + 1..];
        }
        self.line.extend_from_slice(bytes);
    }
}

fn reframe(line: &[u8], out: &mut BytesMut) {
    let Some(data) = line.strip_prefix(b"data: ") else { return };
    if data == b"[DONE]" {
        return out.extend_from_slice(b"event: message_complete\ndata: {}\n\n");
    }
    let event: Event<'_> = serde_json::from_slice(data).unwrap();
    for text in event.choices.iter().filter_map(|choice| choice.delta.content.as_deref()) {
        out.extend_from_slice(b"event: content_chunk\ndata: ");
        serde_json::to_writer((&mut *out).writer(), &Chunk { chunk: text }).unwrap();
        out.extend_from_slice(b"\n\n");
    }
}

impl Body for Reframed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        if !this.opened {
            this.opened = true;
            this.out.extend_from_slice(b"event: message_start\ndata: {\"turn\":0}\n\n");
        }
        loop {
            // Whatever is there goes out in one piece. The channel of a body holds one frame, so the driver is polled
            // for the next one.
            let mut next = Pin::new(&mut this.upstream).poll_frame(cx);
            if next.is_pending()
                && let Some(connection) = &mut this.connection
            {
                connection.drive(cx);
                next = Pin::new(&mut this.upstream).poll_frame(cx);
            }
            match next {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Some(data) = frame.data_ref() {
                        this.push(data.chunk());
                    }
                    if this.out.len() < 16 * 1024 {
                        continue;
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => {
                    if let Some(connection) = this.connection.take() {
                        this.pool.lock().unwrap().push(connection);
                    }
                }
                Poll::Pending => {
                    if this.out.is_empty() {
                        return Poll::Pending;
                    }
                }
            }
            return Poll::Ready((!this.out.is_empty()).then(|| Ok(Frame::data(this.out.split().freeze()))));
        }
    }
}

/// Where the model is.
struct Upstream {
    /// Name and port.
    authority: String,
    tls: Option<TlsConnector>,
}

impl Upstream {
    /// What stands at `url`, with trust in the certificates that `SSL_CERT_FILE` names.
    fn at(url: &str) -> Self {
        let (scheme, authority) = url.split_once("://").unwrap();
        let tls = (scheme == "https").then(|| {
            let mut roots = RootCertStore::empty();
            let pem = std::env::var_os("SSL_CERT_FILE").unwrap();
            roots.add(CertificateDer::from_pem_file(pem).unwrap()).unwrap();
            let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
            Arc::new(config).into()
        });
        Self { authority: authority.to_owned(), tls }
    }
}

/// Serves on a free port of this machine, in front of the model at `url` (`http://127.0.0.1:1234`).
pub async fn serve(url: String, announce: impl FnOnce(std::net::SocketAddr)) {
    let pool: Pool = Arc::default();
    let upstream = Arc::new(Upstream::at(&url));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    announce(listener.local_addr().unwrap());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (pool, upstream) = (pool.clone(), upstream.clone());
        tokio::spawn(async move {
            let service = service_fn(|request| relay(request, pool.clone(), upstream.clone()));
            // A client that goes away is no error of ours.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn relay(request: Request<Incoming>, pool: Pool, upstream: Arc<Upstream>) -> hyper::Result<Response<Reframed>> {
    let mut body = request.into_body();
    let mut received = BytesMut::new();
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Ok(data) = frame?.into_data() {
            received.extend_from_slice(&data);
        }
    }
    let kept = pool.lock().unwrap().pop();
    let mut connection = match kept {
        Some(connection) => connection,
        None => connect(&upstream).await?,
    };
    let request = Request::post("/v1/chat/completions")
        .header("host", &upstream.authority)
        .header("content-type", "application/json")
        .body(Whole(Some(received.freeze())))
        .unwrap();
    let mut sent = std::pin::pin!(connection.sender.send_request(request));
    let answer = std::future::poll_fn(|cx| {
        let _ = Pin::new(&mut connection.driver).poll(cx);
        sent.as_mut().poll(cx)
    });
    let answer = answer.await?;
    let reframed = Reframed {
        upstream: answer.into_body(),
        line: BytesMut::new(),
        out: BytesMut::new(),
        connection: Some(connection),
        pool,
        opened: false,
    };
    Ok(Response::builder().header("content-type", "text/event-stream").body(reframed).unwrap())
}

async fn connect(upstream: &Upstream) -> hyper::Result<Connection> {
    let stream = TcpStream::connect(&upstream.authority).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let stream: Box<dyn Stream> = match &upstream.tls {
        None => Box::new(TokioIo::new(stream)),
        Some(tls) => {
            let name = upstream.authority.split(':').next().unwrap().to_owned();
            Box::new(TokioIo::new(tls.connect(name.try_into().unwrap(), stream).await.unwrap()))
        }
    };
    let (sender, driver) = http1::handshake(stream).await?;
    Ok(Connection { sender, driver })
}
