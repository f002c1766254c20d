//! What an answer's head tells of where its time went.

use reqwest::Response;
use serde_json::json;

use crate::support::app::TestApp;

/// The names in `Server-Timing`, each of which has a duration.
fn timed(response: &Response) -> Vec<String> {
    let text = response.headers()["server-timing"].to_str().unwrap();
    let entries = text.split(", ").map(|entry| {
        let (name, ms) = entry.split_once(";dur=").unwrap();
        assert!(ms.parse::<f64>().unwrap() >= 0.0, "{text}");
        name.to_owned()
    });
    entries.collect()
}

#[tokio::test]
async fn server_timing_says_where_the_time_went_as_far_as_the_head_can_know() {
    let app = TestApp::demo().await;
    let body = json!({"message": "What does this workflow do?", "context_type": "workflow",
        "context": {"workflow_id": crate::support::app::LOW_STOCK}});
    assert_eq!(timed(&app.post(&body).await), ["db", "begin"], "a stream's head goes out before anything was said");
    let whole = app.http.post(app.url("/v1/agent/chat")).bearer_auth(&app.token).header("accept", "application/json");
    let whole = whole.json(&body).send().await.unwrap();
    assert_eq!(timed(&whole), ["db", "llm_first_token", "tools", "total"]);
    let length = whole.headers()["content-length"].to_str().unwrap().parse::<usize>().unwrap();
    assert_eq!(whole.text().await.unwrap().len(), length);
    let nothing = app.http.get(app.url("/nowhere")).send().await.unwrap();
    assert_eq!(timed(&nothing), ["db", "total"]);
}
