//! The log that replicas share.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use switchboard::runs::log::EventLog;
use switchboard::runs::log::redis::{MirrorBounds, RedisLog};

use super::contract::{LONG, Logs, contract};
use crate::support::redis::TestRedis;

contract!(Replicas);

/// Two replicas on a Redis of their own.
pub struct Replicas {
    pub owner: Arc<RedisLog>,
    pub other: Arc<RedisLog>,
    pub redis: TestRedis,
}

#[async_trait]
impl Logs for Replicas {
    async fn start(run_bytes: usize, retention: Duration) -> Option<Self> {
        let redis = TestRedis::start()?;
        let [owner, other] = [(); 2].map(|()| replica(&redis, run_bytes, retention));
        Some(Self { owner, other, redis })
    }

    fn owner(&self) -> Arc<dyn EventLog> {
        self.owner.clone()
    }

    fn other(&self) -> Arc<dyn EventLog> {
        self.other.clone()
    }
}

/// One more replica on `redis`.
pub fn replica(redis: &TestRedis, run_bytes: usize, retention: Duration) -> Arc<RedisLog> {
    let bounds = MirrorBounds { run_bytes, total_bytes: 0, retention, life: LONG };
    RedisLog::connect(&redis.url(), "test", &bounds).unwrap()
}
