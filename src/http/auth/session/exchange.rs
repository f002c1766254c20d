//! The exchange itself: one question at a time about a session, whose good answer serves for a while.
//!
//! **Invariant:** what was answered about a request that only reads never serves one that may change something: the
//! application need not have looked at its CSRF token. **Invariant:** only good answers are kept, under a digest whose key
//! this process has made for itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use axum::http::{HeaderName, HeaderValue};
use futures::future::{FutureExt, Shared};
use reqwest::Client;
use reqwest::header::{ACCEPT, CONTENT_TYPE, COOKIE};
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use url::Url;
use uuid::Uuid;

use super::{Refused, Session};
use crate::agent::ports::clock::Clock;
use crate::agent::ports::identity::{AuthError, Authenticator};
use crate::bounded::json::parse_bytes;
use crate::chat::caller::Caller;
use crate::chat::causes::Causes;
use crate::http::auth::{MAX_TOKEN_BYTES, fetch};

const FORWARDED_METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");

const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// 16 KiB of an answer: a token and what stands around it.
const MAX_BYTES: usize = 16 * 1024;

/// Sessions that are known at once; beyond, the one that ends first is forgotten.
const MOST_KNOWN: usize = 4096;

/// Sessions that are asked about at once; who comes then is told to come again.
const MOST_ASKED: usize = 256;

/// What whoever waits is told; the log says why.
const FAILED: &str = "the application does not say whose session it is; please try again";

/// Has sessions exchanged, and knows what came of it.
pub(super) struct Exchange {
    /// Where, and with what.
    pub(super) client: Client,
    pub(super) url: Url,
    pub(super) csrf_header: HeaderName,
    /// How long a good answer serves.
    pub(super) serves: Duration,
    /// How long it may take.
    pub(super) patience: Duration,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) authenticator: Arc<dyn Authenticator>,
    pub(super) known: KnownSessions,
    pub(super) asking: TaskTracker,
    pub(super) stop: CancellationToken,
}

/// What this process knows of sessions.
pub(super) struct KnownSessions {
    key: Key,
    sessions: Mutex<HashMap<Digest, Known>>,
}

/// Stands for a cookie and a CSRF token.
type Digest = Vec<u8>;

type Outcome = Result<Caller, Refused>;

/// What is known of a session.
enum Known {
    /// The application is asked; whoever waits for that waits for this.
    Asked(Shared<oneshot::Receiver<Outcome>>),
    /// Its caller, until then.
    Caller(Box<Caller>, Instant),
}

/// What no token was given for.
#[derive(Debug, thiserror::Error)]
enum NotExchanged {
    #[error("auth.session.exchange_url gives none")]
    Failed(#[source] fetch::FetchError),
    #[error("auth.session.exchange_url takes too long")]
    TooLate,
    #[error("auth.session.exchange_url answers without a token")]
    NoToken,
}

impl KnownSessions {
    /// None, under a key that was never used before.
    pub(super) fn none() -> Self {
        // 244 random bits.
        let secret = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
        Self { key: Key::new(HMAC_SHA256, &secret), sessions: Mutex::default() }
    }

    /// What stands for a session, as it was shown by a request that may change something or by one that only reads.
    fn digest(&self, session: &Session, is_write: bool) -> Digest {
        let csrf = session.csrf.as_ref().map(HeaderValue::as_bytes);
        let cookie = session.cookie.as_bytes();
        let mut text = vec![u8::from(is_write), u8::from(csrf.is_some())];
        text.extend(cookie.len().to_be_bytes());
        text.extend(cookie);
        text.extend(csrf.unwrap_or_default());
        sign(&self.key, &text).as_ref().to_vec()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Known>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets what is over, and one more where there is no room.
///
/// # Errors
/// When as many are asked about as may be.
fn make_room(sessions: &mut HashMap<Digest, Known>, now: Instant) -> Result<(), Refused> {
    let mut asked = 0;
    sessions.retain(|_, known| match known {
        Known::Asked(_) => {
            asked += 1;
            true
        }
        Known::Caller(_, until) => *until > now,
    });
    if asked >= MOST_ASKED {
        return Err(Refused::Unavailable("as many sessions are being looked up as may be; please try again"));
    }
    if sessions.len() >= MOST_KNOWN {
        let ends = |known: &Known| match known {
            Known::Asked(_) => None,
            Known::Caller(_, until) => Some(*until),
        };
        let first =
            sessions.iter().filter_map(|(key, known)| Some((ends(known)?, key))).min().map(|(_, key)| key.clone());
        first.map(|key| sessions.remove(&key));
    }
    Ok(())
}

impl Exchange {
    /// The caller of `session`.
    ///
    /// # Errors
    /// See [`Refused`].
    pub(super) async fn caller(self: &Arc<Self>, session: Session) -> Outcome {
        let own = self.known.digest(&session, session.is_write);
        // An application that has looked at the CSRF token has said more than is needed to read.
        let better = (!session.is_write && session.csrf.is_some()).then(|| self.known.digest(&session, true));
        let asked = {
            let mut sessions = self.known.lock();
            let now = Instant::now();
            let found = better.iter().chain([&own]).find_map(|key| match sessions.get(key)? {
                Known::Asked(asked) => Some(Err(asked.clone())),
                Known::Caller(caller, until) => (*until > now).then(|| Ok(caller.clone())),
            });
            match found {
                Some(Ok(caller)) => return Ok(*caller),
                Some(Err(asked)) => asked,
                None => {
                    make_room(&mut sessions, now)?;
                    let (tell, asked) = oneshot::channel();
                    let asked = asked.shared();
                    sessions.insert(own.clone(), Known::Asked(asked.clone()));
                    self.asking.spawn(self.clone().ask(session, own.clone(), tell).in_current_span());
                    asked
                }
            }
        };
        asked.await.unwrap_or_else(|_| {
            // Whoever asked has ended without a word.
            let mut sessions = self.known.lock();
            for key in better.iter().chain([&own]) {
                sessions.remove(key);
            }
            Err(Refused::Unavailable(FAILED))
        })
    }

    /// Asks, whoever has gone meanwhile: others may wait for the same.
    async fn ask(self: Arc<Self>, session: Session, key: Digest, tell: oneshot::Sender<Outcome>) {
        let begun = Instant::now();
        let outcome = self.stop.run_until_cancelled(self.outcome(session)).await;
        let outcome = outcome.unwrap_or(Err(Refused::Unavailable(FAILED)));
        let serves = outcome.as_ref().ok().and_then(|caller| self.serves(caller));
        {
            let mut sessions = self.known.lock();
            match (&outcome, serves) {
                (Ok(caller), Some(serves)) => {
                    drop(sessions.insert(key, Known::Caller(Box::new(caller.clone()), begun + serves)));
                }
                _ => drop(sessions.remove(&key)),
            }
        }
        // All who waited may be gone.
        let _ = tell.send(outcome);
    }

    /// Ends all questions, and waits for that.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        self.asking.close();
        self.asking.wait().await;
    }

    /// How long a caller serves; never longer than their token.
    fn serves(&self, caller: &Caller) -> Option<Duration> {
        let left_ms = caller.expires_at_ms?.saturating_sub(self.clock.now_ms());
        let left = Duration::from_millis(u64::try_from(left_ms).ok()?);
        Some(left.min(self.serves)).filter(|serves| !serves.is_zero())
    }

    async fn outcome(&self, session: Session) -> Outcome {
        let answer = timeout(self.patience, self.token(session)).await.unwrap_or(Err(NotExchanged::TooLate));
        let token = answer.map_err(|error| match error {
            NotExchanged::Failed(fetch::FetchError::Status(401)) => {
                Refused::NoSession("there is no such session, or it is over")
            }
            NotExchanged::Failed(fetch::FetchError::Status(403)) => {
                Refused::Csrf("the CSRF token is not the session's")
            }
            error => {
                tracing::warn!(error = %Causes(&error), "a session was not exchanged for a token");
                Refused::Unavailable(FAILED)
            }
        })?;
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Refused::Token(AuthError::Invalid("it is too long")));
        }
        self.authenticator.authenticate(&token).await.map_err(Refused::Token)
    }

    async fn token(&self, session: Session) -> Result<String, NotExchanged> {
        #[derive(Deserialize)]
        struct Answer {
            access_token: String,
        }
        let Session { cookie, csrf, is_write: _, method, uri } = session;
        let mut request = self
            .client
            .post(self.url.clone())
            .timeout(self.patience)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json")
            .header(COOKIE, cookie)
            .header(FORWARDED_METHOD, method.as_str());
        for (name, value) in [(&self.csrf_header, csrf), (&FORWARDED_URI, uri)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let body = fetch::answer(request.body("{}"), MAX_BYTES).await.map_err(NotExchanged::Failed)?;
        let Answer { access_token } = parse_bytes(&body).map_err(|_| NotExchanged::NoToken)?;
        Some(access_token).filter(|token| !token.is_empty()).ok_or(NotExchanged::NoToken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::caller::{Bearer, Owner};

    #[tokio::test]
    async fn where_there_is_no_room_what_ends_first_goes() {
        let now = Instant::now();
        let owner = Owner { tenant: String::new(), user: "ada".to_owned() };
        let bearer = Bearer::new("t");
        let caller = Caller { owner, known_as: None, expires_at_ms: None, roles: Vec::new(), bearer, cookie: None };
        let known = |seconds: u64| Known::Caller(Box::new(caller.clone()), now + Duration::from_secs(seconds));
        let key = |seconds: u64| seconds.to_be_bytes().to_vec();
        let mut sessions: HashMap<Digest, Known> = (1..=4096).map(|seconds| (key(seconds), known(seconds))).collect();
        make_room(&mut sessions, now).unwrap();
        assert_eq!((sessions.len(), sessions.contains_key(&key(1))), (4095, false));
        make_room(&mut sessions, now + Duration::from_secs(100)).unwrap();
        assert_eq!((sessions.len(), sessions.contains_key(&key(100))), (3996, false), "what is over goes, and no more");
    }
}
