//! Redis is gone: what is said across replicas takes the way over the database.

use std::time::{Duration, Instant};

use crate::death::replicas::Pair;
use crate::death::{background, end_of, rest};
use crate::runs::{hanging, header, read_until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_the_other_replica_needs_no_redis() {
    let Some(mut pair) = Pair::start(&[], [hanging("Half")]).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let mut near = a.chat(&background("c", "Think")).await;
    let run = header(&near, "x-run-id");
    let seen = read_until(&mut near, "Half").await;
    pair.redis.kill();
    let asked = Instant::now();
    assert_eq!(b.cancel(&run).await.status(), 200);
    assert_eq!(end_of(&(seen + &rest(near).await)), "cancelled");
    println!("cancelled without redis after {:?}", asked.elapsed());
    pair.model.clients_gone(1).await;
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    b.run_in(&run, "cancelled").await;
}
