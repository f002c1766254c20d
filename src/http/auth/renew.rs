//! Tokens near their end: where the operator has set an address, a newer token is fetched from it, and the answer has
//! it in `X-New-Token`.
//!
//! **Invariant:** a token is sent to the configured address alone, and only after it has been verified; what comes back is
//! handed out when it is a good token of the same user. **Invariant:** no request fails because of this, and none waits
//! longer than [`PATIENCE`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use futures::future::{BoxFuture, FutureExt, Shared};
use reqwest::header::{ACCEPT, AUTHORIZATION};
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use url::Url;

use super::address::source;
use super::config::AuthConfig;
use super::{MAX_TOKEN_BYTES, fetch};
use crate::agent::ports::clock::Clock;
use crate::agent::ports::identity::Authenticator;
use crate::bounded::json::parse_bytes;
use crate::chat::caller::{Bearer, Caller, Owner};
use crate::chat::causes::Causes;

/// The header that these pages take a newer token from.
pub(in crate::http) const NEW_TOKEN: HeaderName = HeaderName::from_static("x-new-token");

/// 2 s at most: the answer waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// A minute for which the renewal of one token serves all requests with it.
const SERVES: Duration = Duration::from_secs(60);

/// Tokens that are remembered at once; beyond, none is renewed for a while.
const MOST: usize = 4096;

/// 16 KiB of an answer: a token and what stands around it.
const MAX_BYTES: usize = 16 * 1024;

/// Renews tokens.
pub struct Renewal {
    url: Url,
    before_ms: i64,
    clock: Arc<dyn Clock>,
    authenticator: Arc<dyn Authenticator>,
    /// By the token's digest.
    renewals: Mutex<HashMap<Vec<u8>, (Instant, PendingRenewal)>>,
}

/// One question about one token, whoever waits for its answer.
type PendingRenewal = Shared<BoxFuture<'static, Option<Bearer>>>;

/// Takes the renewal that a request begins, from where its token is verified to where its answer is written.
#[derive(Clone)]
pub(super) struct Slot(Arc<Mutex<Option<oneshot::Sender<PendingRenewal>>>>);

impl Slot {
    /// Begins to renew `caller`'s token, where that is near its end.
    pub(super) fn begin(&self, renewal: &Renewal, caller: &Caller) {
        let asking = renewal.asking(caller);
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some(asking), Some(sender)) = (asking, sender) {
            // The request may be gone: then no answer carries the token.
            let _ = sender.send(asking);
        }
    }
}

/// What has no newer token.
#[derive(Debug, thiserror::Error)]
enum NotRenewed {
    #[error("the address does not answer")]
    Unreachable(#[source] fetch::FetchError),
    #[error("the address answered with no token")]
    NoToken,
    #[error("what came back is no good token of the same user")]
    NotTheirs,
}

impl Renewal {
    /// What `config` asks for; `None` where it names no address.
    pub fn from_config(
        config: &AuthConfig,
        authenticator: Arc<dyn Authenticator>,
        clock: Arc<dyn Clock>,
    ) -> Option<Self> {
        let url = source(&config.renew_url).ok()?;
        let before_ms = i64::try_from(config.renew_before_s).unwrap_or(i64::MAX / 1000).saturating_mul(1000);
        Some(Self { url, before_ms, clock, authenticator, renewals: Mutex::default() })
    }

    fn asking(&self, caller: &Caller) -> Option<PendingRenewal> {
        let ends = caller.expires_at_ms?;
        if ends.saturating_sub(self.clock.now_ms()) > self.before_ms {
            return None;
        }
        let key = digest(&SHA256, caller.bearer.expose().as_bytes()).as_ref().to_vec();
        let mut renewals = self.renewals.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, asking)) = renewals.get(&key)
            && since.elapsed() < SERVES
        {
            return Some(asking.clone());
        }
        renewals.retain(|_, (since, _)| since.elapsed() < SERVES);
        if renewals.len() >= MOST {
            return None;
        }
        let (url, authenticator) = (self.url.clone(), self.authenticator.clone());
        let (old, owner) = (caller.bearer.clone(), caller.owner.clone());
        let asking = async move {
            let renewed = timeout(PATIENCE, renewed(url, old, &owner, &*authenticator)).await;
            match renewed {
                Ok(Ok(token)) => Some(token),
                Ok(Err(error)) => {
                    tracing::warn!(error = %Causes(&error), "a token was not renewed");
                    None
                }
                Err(_) => {
                    tracing::warn!("a token was not renewed: the address took too long");
                    None
                }
            }
        };
        let asking = asking.boxed().shared();
        renewals.insert(key, (Instant::now(), asking.clone()));
        Some(asking)
    }
}

async fn renewed(
    url: Url,
    old: Bearer,
    owner: &Owner,
    authenticator: &dyn Authenticator,
) -> Result<Bearer, NotRenewed> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(alias = "access_token")]
        token: String,
    }
    let client = fetch::client(&url).map_err(NotRenewed::Unreachable)?;
    let mut bearer = HeaderValue::from_str(&format!("Bearer {}", old.expose())).map_err(|_| NotRenewed::NoToken)?;
    bearer.set_sensitive(true);
    let request = client.post(url).header(ACCEPT, "application/json").header(AUTHORIZATION, bearer);
    let body = fetch::answer(request, MAX_BYTES).await.map_err(NotRenewed::Unreachable)?;
    let Answer { token } = parse_bytes(&body).map_err(|_| NotRenewed::NoToken)?;
    if token.len() > MAX_TOKEN_BYTES {
        return Err(NotRenewed::NoToken);
    }
    match authenticator.authenticate(&token).await {
        Ok(caller) if caller.owner == *owner => Ok(caller.bearer),
        Ok(_) | Err(_) => Err(NotRenewed::NotTheirs),
    }
}

/// Hands out what the request's renewal brings. Both go on at once.
pub(in crate::http) async fn layer(mut request: Request, next: Next) -> Response {
    let (sender, begun) = oneshot::channel();
    request.extensions_mut().insert(Slot(Arc::new(Mutex::new(Some(sender)))));
    let renewed = async { begun.await.ok()?.await };
    let (mut response, renewed) = tokio::join!(next.run(request), renewed);
    if let Some(token) = renewed
        && let Ok(mut value) = HeaderValue::from_str(token.expose())
    {
        value.set_sensitive(true);
        response.headers_mut().insert(NEW_TOKEN, value);
    }
    response
}
