//! The docs page: what a browser makes of it, and that the code of others is as it came.

use std::io::Read;
use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::json;

use super::{document, operations};
use crate::support::app::TestApp;
use crate::support::{environment, node};

#[tokio::test]
async fn the_page_shows_every_operation_asks_nobody_else_and_breaks_no_rule() {
    let app = TestApp::demo().await;
    let Some(seen) = node::run("page/docs.mjs", &[], &app).await else { return };
    if let Some(reason) = seen["skipped"].as_str() {
        return environment::skip(reason);
    }
    let expected = json!({
        "title": "Switchboard", "operations": operations(&document()).len(), "opened": true, "answer": 200,
        "requests": [], "violations": [], "errors": [],
        "control": ["img-src http://elsewhere.test/x.png"],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn its_files_are_sent_compressed_or_not_with_the_policy() {
    let app = TestApp::demo().await;
    let plain = app.http.get(app.url("/docs/vendor/swagger-ui/swagger-ui.css")).send().await.unwrap();
    let policy = plain.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
    let plain = plain.bytes().await.unwrap();
    let packed = app.http.get(app.url("/docs/vendor/swagger-ui/swagger-ui.css")).header("accept-encoding", "gzip");
    let packed = packed.send().await.unwrap();
    assert_eq!(packed.headers()["content-encoding"], "gzip");
    assert_eq!(unpacked(&packed.bytes().await.unwrap()), plain);
    assert_eq!(app.http.get(app.url("/docs/nothing.js")).send().await.unwrap().status(), 404);
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    plain
}

#[test]
fn the_code_of_others_is_as_it_came() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api_page/vendor");
    let table = std::fs::read_to_string(home.join("README.md")).unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let quoted: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let [_, file, _, sum] = quoted[..] else { panic!("{row}") };
        let packed = std::fs::read(home.join(file)).unwrap();
        let found: String =
            digest(&SHA256, &unpacked(&packed)).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, sum, "{file}");
    }
}
