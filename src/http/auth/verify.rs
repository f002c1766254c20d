//! Tokens become callers: the issuer is chosen by the token's `iss` where there are several, the key by its `kid` among
//! those of that issuer, and what it says is judged by that issuer's rules.
//!
//! **Invariant:** nothing that a token says leads to a file, an address or a foreign key: `jku`, `x5u`, `jwk`
//! and `x5c` are not read, `kid` is compared and `alg` has to be one of the key's own (RFC 8725, sections 3.1 and 3.10).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Header, decode, decode_header};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::claims::{Claims, Rules, Tenants};
use super::config::{AuthConfig, Issuer as IssuerConfig, Mode};
use super::fetch::Source;
use super::keys::{Found, Key, rs256_file};
use super::published::{Again, Published, Timing};
use super::sign::{self, Signer};
use super::{AuthSetupError, MIN_SECRET_BYTES, dev};
use crate::agent::ports::clock::Clock;
use crate::agent::ports::identity::{AuthError, Authenticator};
use crate::chat::caller::Caller;

/// Verifies tokens of all issuers, and makes them in the modes that can.
pub struct Tokens {
    issuers: Issuers,
    signer: Option<Signer>,
    clock: Arc<dyn Clock>,
    fetching: TaskTracker,
    stop: CancellationToken,
}

/// The issuers whose tokens are accepted.
enum Issuers {
    /// One, for all.
    One(Box<Issuer>),
    /// The one whose `iss` it has.
    By(HashMap<String, Issuer>),
}

struct Issuer {
    rules: Rules,
    keys: Keys,
}

enum Keys {
    /// From the settings.
    Fixed(Box<Key>),
    /// From the issuer.
    Published(Arc<Published>),
}

impl Tokens {
    /// The verifier that `config` asks for. Keys that are published are fetched from [`Self::start`] on.
    ///
    /// # Errors
    /// When a key of the settings is missing, unreadable or too weak.
    pub(super) fn new(
        config: &AuthConfig,
        known_as_claim: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AuthSetupError> {
        let timing = Timing {
            refresh: Duration::from_secs(config.jwks_refresh_s),
            cooldown: Duration::from_secs(config.jwks_cooldown_s),
            stale: Duration::from_secs(config.jwks_stale_s),
        };
        let published = |name: &str, issuer: &str, url: &str| {
            Keys::Published(Arc::new(Published::new(name, Source::new(issuer, url), timing)))
        };
        let secret = match config.mode {
            Mode::Dev => Some(dev::secret(&config.dev_secret_file)?),
            Mode::Hs256 => Some(config.hs256_secret.clone()),
            Mode::Rs256 | Mode::Jwks => None,
        };
        let signer = secret.as_ref().map(|secret| Signer::new(config, secret.expose_secret().as_bytes()));
        let keys = match (&secret, config.mode) {
            (Some(secret), _) if secret.expose_secret().len() < MIN_SECRET_BYTES => {
                return Err(AuthSetupError::WeakSecret);
            }
            (Some(secret), _) => Keys::Fixed(Box::new(Key::hs256(secret.expose_secret().as_bytes()))),
            (None, Mode::Rs256) => Keys::Fixed(Box::new(rs256_file(&config.rs256_public_key_file)?)),
            (None, Mode::Dev | Mode::Hs256 | Mode::Jwks) => published("auth", &config.issuer, &config.jwks_url),
        };
        let own = Issuer { rules: own_rules(config, known_as_claim), keys };
        let issuers = if config.issuers.is_empty() {
            Issuers::One(Box::new(own))
        } else {
            let mut by_issuer = HashMap::new();
            for (name, settings) in &config.issuers {
                let keys = match settings.public_key_file.as_str() {
                    "" => published(name, &settings.issuer, &settings.jwks_url),
                    path => Keys::Fixed(Box::new(Key::from_file(path)?)),
                };
                by_issuer.insert(
                    settings.issuer.clone(),
                    Issuer { rules: named_rules(name, settings, known_as_claim, config.require_tenant), keys },
                );
            }
            if config.speaks_for_itself() {
                by_issuer.insert(config.issuer.clone(), own);
            }
            Issuers::By(by_issuer)
        };
        Ok(Self { issuers, signer, clock, fetching: TaskTracker::new(), stop: CancellationToken::new() })
    }

    /// Begins to fetch the keys of issuers that publish them. Does not wait: requests that need one do.
    pub fn start(&self) {
        let issuers: Vec<&Issuer> = match &self.issuers {
            Issuers::One(issuer) => vec![issuer],
            Issuers::By(issuers) => issuers.values().collect(),
        };
        for issuer in issuers {
            match &issuer.keys {
                Keys::Fixed(_) => {}
                Keys::Published(published) => {
                    let (published, stop) = (published.clone(), self.stop.clone());
                    published.announce();
                    self.fetching.spawn(async move { published.keep(stop).await });
                }
            }
        }
    }

    /// Ends what [`Self::start`] began, and waits for it.
    pub async fn close(&self) {
        self.stop.cancel();
        self.fetching.close();
        self.fetching.wait().await;
    }

    /// A token that this verifier accepts.
    ///
    /// # Errors
    /// [`AuthSetupError::CannotSign`] in modes that hold no signing key.
    pub fn sign(&self, claims: &sign::Claims, now_s: u64) -> Result<String, AuthSetupError> {
        self.signer.as_ref().ok_or(AuthSetupError::CannotSign)?.sign(claims, now_s)
    }

    fn issuer_of(&self, token: &str) -> Result<&Issuer, AuthError> {
        let issuers = match &self.issuers {
            Issuers::One(issuer) => return Ok(issuer),
            Issuers::By(issuers) => issuers,
        };
        // Not believed: it only says whose keys and rules are to be tried, and those demand it too.
        let Claims(claimed) = insecure_decode_claims(token).map_err(|error| refused(&error))?;
        let issuer = claimed.get("iss").and_then(Value::as_str).and_then(|issuer| issuers.get(issuer));
        issuer.ok_or(AuthError::Invalid("its issuer is not accepted"))
    }
}

/// Why no key of several has signed a token.
pub(super) enum NotSigned {
    /// Its signature is another key's.
    ByThese,
    /// It says otherwise.
    Otherwise(AuthError),
}

impl From<NotSigned> for AuthError {
    fn from(reason: NotSigned) -> Self {
        match reason {
            NotSigned::ByThese => Self::Invalid("its signature is wrong"),
            NotSigned::Otherwise(error) => error,
        }
    }
}

#[async_trait]
impl Authenticator for Tokens {
    async fn authenticate(&self, token: &str) -> Result<Caller, AuthError> {
        let issuer = self.issuer_of(token)?;
        let header = decode_header(token).map_err(|error| refused(&error))?;
        issuer.rules.check_header(&header)?;
        let Claims(claims) = issuer.keys.verified(token, &header, || self.clock.now_ms()).await?;
        issuer.rules.caller(&claims, self.clock.now_ms(), token)
    }
}

impl Keys {
    /// The claims of a token that one of the keys has signed.
    async fn verified(&self, token: &str, header: &Header, now_ms: impl Fn() -> i64) -> Result<Claims, AuthError> {
        let published = match self {
            Self::Fixed(key) => return Ok(signed_by([&**key], token)?),
            Self::Published(published) => published,
        };
        // A new key may have the name of an old one, or none.
        let mut is_other = false;
        if let Some(known) = published.known().await {
            match known.keys.find(header.kid.as_deref(), header.alg) {
                Found::Keys(keys) => match signed_by(keys, token) {
                    Err(NotSigned::ByThese) => is_other = true,
                    verified => return Ok(verified?),
                },
                Found::Refused(reason) => return Err(AuthError::Invalid(reason)),
                Found::Unknown => {}
            }
        }
        match published.again().await {
            Again::Newer => {}
            Again::Recent(_) | Again::Away if is_other => return Err(NotSigned::ByThese.into()),
            // Its key may be newer than those that are known: with 401 a page would sign its user out.
            Again::Recent(age) if was_issued_since(token, now_ms(), age) => return Err(AuthError::KeysUnavailable),
            Again::Recent(_) => return Err(AuthError::Invalid("its key is not known")),
            Again::Away => return Err(AuthError::KeysUnavailable),
        }
        let known = published.known().await.ok_or(AuthError::KeysUnavailable)?;
        match known.keys.find(header.kid.as_deref(), header.alg) {
            Found::Keys(keys) => Ok(signed_by(keys, token)?),
            Found::Refused(reason) => Err(AuthError::Invalid(reason)),
            Found::Unknown => Err(AuthError::Invalid("its key is not known")),
        }
    }
}

/// 5 s may be between an issuer's clock and ours.
const CLOCKS_APART: Duration = Duration::from_secs(5);

/// Whether a token says that it was issued at most `age` ago, a few seconds aside. That is no proof of anything.
fn was_issued_since(token: &str, now_ms: i64, age: Duration) -> bool {
    #[derive(Deserialize)]
    struct Issued {
        iat: f64,
    }
    let began = Duration::from_millis(u64::try_from(now_ms).unwrap_or_default()).saturating_sub(age + CLOCKS_APART);
    insecure_decode_claims::<Issued>(token).is_ok_and(|Issued { iat }| iat > began.as_secs_f64())
}

/// The claims, when one of the keys has signed them.
pub(super) fn signed_by<'a>(keys: impl IntoIterator<Item = &'a Key>, token: &str) -> Result<Claims, NotSigned> {
    let mut last = NotSigned::Otherwise(AuthError::Invalid("its key is not known"));
    for key in keys {
        match decode::<Claims>(token, &key.verifying, &key.validation) {
            Ok(token) => return Ok(token.claims),
            Err(error) if *error.kind() == ErrorKind::InvalidSignature => last = NotSigned::ByThese,
            Err(error) => last = NotSigned::Otherwise(refused(&error)),
        }
    }
    Err(last)
}

fn own_rules(config: &AuthConfig, known_as_claim: &str) -> Rules {
    Rules {
        issuer: config.issuer.clone(),
        audiences: Some(config.audience.clone()).filter(|audience| !audience.is_empty()).into_iter().collect(),
        audience_claim: config.audience_claim.clone(),
        typ: config.typ.clone(),
        leeway_s: config.leeway_s,
        tenants: Tenants::Claimed,
        tenant_claim: config.tenant_claim.clone(),
        roles_claim: config.roles_claim.clone(),
        known_as_claim: known_as_claim.to_owned(),
        roles: Vec::new(),
        requires_tenant: config.require_tenant,
    }
}

fn named_rules(name: &str, settings: &IssuerConfig, known_as_claim: &str, requires_tenant: bool) -> Rules {
    let fixed = Some(settings.tenant.clone()).filter(|tenant| !tenant.is_empty());
    Rules {
        issuer: settings.issuer.clone(),
        audiences: settings.audience.clone(),
        audience_claim: settings.audience_claim.clone(),
        typ: settings.typ.clone(),
        leeway_s: settings.leeway_s,
        tenants: Tenants::Of { name: name.to_owned(), fixed },
        tenant_claim: settings.tenant_claim.clone(),
        roles_claim: settings.roles_claim.clone(),
        known_as_claim: known_as_claim.to_owned(),
        roles: settings.roles.clone(),
        requires_tenant,
    }
}

pub(super) fn refused(error: &jsonwebtoken::errors::Error) -> AuthError {
    match error.kind() {
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName | ErrorKind::MissingAlgorithm => {
            AuthError::Invalid("its algorithm is not accepted")
        }
        // The kinds are the library's and may grow; whatever else it is, the token cannot be read.
        _ => AuthError::Invalid("it cannot be read"),
    }
}
