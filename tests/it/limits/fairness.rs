//! One tenant at many times its limit, and another one beside it.

use std::time::{Duration, Instant};

use futures::future::join_all;

use super::{message, model, token, with_model};
use crate::support::app::TestApp;
use crate::support::environment::is_long;
use crate::support::frames::read_until;

/// Two runs of a tenant at once; its users may begin as many as they like.
const TWO_AT_ONCE: [(&str, &str); 1] = [("LIMITS__ACTIVE_RUNS_PER_TENANT", "2")];

#[tokio::test]
async fn a_tenant_is_served_while_another_one_is_refused() {
    let model = model().await;
    let app = with_model(&model, &TWO_AT_ONCE).await;
    let greedy = token(&app, "greedy/ann");
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(app.post_as(&greedy, &message("wait")).await);
    }
    let refused = join_all((0..20).map(async |_| app.post_as(&greedy, &message("hello")).await));
    let modest = token(&app, "modest/bob");
    let served = async {
        for _ in 0..5 {
            let mut response = app.post_as(&modest, &message("hello")).await;
            assert_eq!(response.status(), 200);
            read_until(&mut response, "message_complete").await;
        }
    };
    let (refused, ()) = tokio::join!(refused, served);
    for response in refused {
        assert_eq!(response.status(), 429);
    }
}

/// The 99th of a hundred times to the first event of a modest tenant, which asks ten times a second.
async fn p99(app: &TestApp, requests: u32) -> Duration {
    let modest = token(app, "modest/bob");
    let mut pace = tokio::time::interval(Duration::from_millis(100));
    let mut times = Vec::new();
    for _ in 0..requests {
        pace.tick().await;
        let since = Instant::now();
        let mut response = app.post_as(&modest, &message("hello")).await;
        read_until(&mut response, "message_start").await;
        times.push(since.elapsed());
        read_until(&mut response, "message_complete").await;
    }
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// The long form: nobody else may use the machine meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_times_its_limit_does_not_slow_down_another_tenant() {
    if !is_long() {
        return;
    }
    let model = model().await;
    let app = with_model(&model, &TWO_AT_ONCE).await;
    let greedy = token(&app, "greedy/ann");
    p99(&app, 50).await;
    let alone = p99(&app, 300).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(app.post_as(&greedy, &message("wait")).await);
    }
    let pressing = async {
        let mut pace = tokio::time::interval(Duration::from_millis(1000));
        for _ in 0_u64.. {
            pace.tick().await;
            for response in join_all((0..18).map(async |_| app.post_as(&greedy, &message("hello")).await)).await {
                assert_eq!(response.status(), 429);
            }
        }
    };
    let beside = tokio::select! {
        beside = p99(&app, 300) => beside,
        () = pressing => unreachable!("it never ends"),
    };
    let ratio = beside.as_secs_f64() / alone.as_secs_f64();
    assert!(ratio < 1.5, "alone {alone:?}, beside the other {beside:?}");
}
