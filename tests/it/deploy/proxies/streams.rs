//! A stream passes each proxy as it is made: every piece before the next one is let go, comments in a silence, and the end
//! of a client that goes away.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{Front, Kind};
use crate::support::app::TestApp;
use crate::support::frames::{self, read_until};
use crate::support::model::{Scripted, says, turn};
use crate::support::upstream::Answer;

/// The pieces of one answer.
const PIECES: usize = 12;

/// How long a piece that is kept back is waited for.
const BUFFERED: Duration = Duration::from_secs(2);

/// What the model says as its nth piece.
fn piece(n: usize) -> String {
    format!("piece {n} of the answer. ")
}

/// An answer whose every piece waits until the gate is opened once more.
fn piece_by_piece(gate: &Arc<Notify>) -> Answer {
    let first = turn().text(&piece(0)).answer();
    let middle = (1..PIECES - 1).fold(first, |answer, n| answer.gated(gate, turn().text(&piece(n)).bytes()));
    middle.gated(gate, says(&piece(PIECES - 1)).bytes())
}

/// Begins a run through the proxy.
async fn chat(front: &Front, app: &TestApp) -> reqwest::Response {
    let body = json!({"message": "Tell me", "context_type": "workflow"});
    let request = app.http.post(front.url("/v1/agent/chat")).bearer_auth(&app.token).json(&body);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200, "{:?}", front.kind);
    response
}

#[tokio::test]
async fn each_piece_arrives_before_the_next_one_is_said() {
    let gate = Arc::new(Notify::new());
    let of_model = gate.clone();
    let product = Scripted::with(&[], (0..3).map(move |_| piece_by_piece(&of_model))).await;
    let address = product.app.address.to_string();
    for front in Front::all(&address, &address).await {
        let mut response = chat(&front, &product.app).await;
        let mut seen = String::new();
        for n in 0..PIECES {
            if n > 0 {
                assert!(!seen.contains(&format!("piece {n}")), "{:?}: before it was said", front.kind);
                gate.notify_one();
            }
            seen.push_str(&read_until(&mut response, &format!("piece {n}")).await);
        }
        seen.push_str(&response.text().await.unwrap());
        let frames = frames::parse(&seen);
        assert_eq!(frames::text(&frames), (0..PIECES).map(piece).collect::<String>(), "{:?}", front.kind);
        assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{:?}", front.kind);
    }
}

/// The control of the test above: its gate and its pieces do see a proxy that keeps them back. nginx does where it buffers an
/// answer without chunks; those it passes on in any case.
#[tokio::test]
async fn a_proxy_that_keeps_pieces_back_is_seen_and_needs_to_be_told_so_twice() {
    let gate = Arc::new(Notify::new());
    let of_model = gate.clone();
    let product = Scripted::with(&[], (0..2).map(move |_| piece_by_piece(&of_model))).await;
    let address = product.app.address.to_string();
    let rows = [
        ("proxy_buffering on;", true, "the answer's own header forbids it"),
        ("proxy_buffering on; proxy_ignore_headers X-Accel-Buffering;", false, "nothing does"),
    ];
    for (setting, passes, why) in rows {
        let change = |shipped: String| {
            assert!(shipped.contains("proxy_buffering off;") && shipped.contains("proxy_http_version 1.1;"));
            shipped.replace("proxy_buffering off;", setting).replace("proxy_http_version 1.1;", "")
        };
        let Some(front) = Front::changed(Kind::Nginx, &address, &address, change).await else { return };
        let first = async {
            let mut response = chat(&front, &product.app).await;
            read_until(&mut response, "piece 0").await
        };
        match passes {
            true => drop(first.await),
            false => assert!(timeout(BUFFERED, first).await.is_err(), "{why}"),
        }
    }
}

#[tokio::test]
async fn the_comments_of_a_silence_pass_and_a_client_that_goes_away_is_noticed() {
    let answers = (0..3).map(|_| turn().text("Well, ").hangs().answer());
    let product = Scripted::with(&[("SERVER__KEEP_ALIVE_S", "1")], answers).await;
    let address = product.app.address.to_string();
    for (n, front) in Front::all(&address, &address).await.into_iter().enumerate() {
        let mut response = chat(&front, &product.app).await;
        read_until(&mut response, "Well").await;
        read_until(&mut response, "\n:").await;
        drop(response);
        product.model.clients_gone(n + 1).await;
    }
}
