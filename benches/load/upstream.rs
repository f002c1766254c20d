//! A model that answers at once, on the OpenAI wire.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::net::TcpListener;

/// A model that answers at once: `chunks` pieces of text, each its own write; two for "short"; one and then silence for
/// "hold".
pub async fn serve(chunks: usize) -> String {
    serve_slowly(chunks, Duration::ZERO).await
}

/// The same, with a pause before each piece.
pub async fn serve_slowly(chunks: usize, pause: Duration) -> String {
    let answer = move |request: Request| async move {
        let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
        let body = String::from_utf8_lossy(&body).into_owned();
        let newest = ["@short@", "@warm-up@", "@long@", "@hold@"].into_iter().max_by_key(|kind| body.rfind(kind));
        let (count, hold) = match newest.unwrap() {
            "@short@" => (2, false),
            "@hold@" => (1, true),
            _ => (chunks, false),
        };
        let text = stream::iter(0..count).then(move |_| async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            piece(r#"{"content":"word "}"#, "null")
        });
        let end = stream::iter([piece("{}", r#""stop""#), Bytes::from_static(b"data: [DONE]\n\n")]);
        let end = if hold { stream::pending().right_stream() } else { end.left_stream() };
        let body = Body::from_stream(text.chain(end).map(Ok::<_, std::convert::Infallible>));
        ([("content-type", "text/event-stream")], body).into_response() as Response
    };
    let router = Router::new().route("/v1/chat/completions", post(answer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _guard = runtime.enter();
        let listener = listener.into_std().unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        runtime.block_on(async { axum::serve(listener, router).await.unwrap() });
    });
    format!("http://{address}/v1")
}

fn piece(delta: &str, finish: &str) -> Bytes {
    Bytes::from(format!(
        "data: {{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
         \"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    ))
}
