//! An issuer of the tests' own: keys of every kind, the tokens that they sign, and a server that publishes them, or says
//! whatever else it is told to.

use std::sync::{Arc, Mutex};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, KeyPair,
};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::{Value, json};

use super::{base64url, now, private_key, token};
use crate::support::app::{ADA, TestApp};
use crate::support::upstream::{Answer, Upstream};

/// What the tokens of these tests are for.
pub const AUDIENCE: &str = "switchboard";

/// A key pair and how it is published.
pub struct TestKey {
    pub algorithm: Algorithm,
    pub private: EncodingKey,
    pub published: Value,
}

impl TestKey {
    /// A new key for ES256.
    pub fn es256(id: &str) -> Self {
        Self::ec(id, &ECDSA_P256_SHA256_FIXED_SIGNING, "P-256", Algorithm::ES256)
    }

    /// A new key for ES384.
    pub fn es384(id: &str) -> Self {
        Self::ec(id, &ECDSA_P384_SHA384_FIXED_SIGNING, "P-384", Algorithm::ES384)
    }

    fn ec(id: &str, signing: &'static EcdsaSigningAlgorithm, curve: &str, algorithm: Algorithm) -> Self {
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(signing, &SystemRandom::new()).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(signing, pkcs8.as_ref()).unwrap();
        let point = &pair.public_key().as_ref()[1..];
        let (x, y) = point.split_at(point.len() / 2);
        let published =
            json!({"kty": "EC", "crv": curve, "use": "sig", "kid": id, "x": base64url(x), "y": base64url(y)});
        Self { algorithm, private: EncodingKey::from_ec_der(pkcs8.as_ref()), published }
    }

    /// A new key for EdDSA.
    pub fn ed25519(id: &str) -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        let x = base64url(pair.public_key().as_ref());
        let published = json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": x, "alg": "EdDSA"});
        Self { algorithm: Algorithm::EdDSA, private: EncodingKey::from_ed_der(pkcs8.as_ref()), published }
    }

    /// The RSA key of the fixtures, published for one algorithm, or for all that RSA keys have.
    pub fn rsa(id: &str, algorithm: Option<Algorithm>) -> Self {
        let private = private_key();
        let jwk = serde_json::to_value(Jwk::from_encoding_key(&private, Algorithm::RS256).unwrap()).unwrap();
        let mut published = json!({"kty": "RSA", "kid": id, "n": jwk["n"], "e": jwk["e"]});
        if let Some(algorithm) = algorithm {
            published["alg"] = json!(format!("{algorithm:?}"));
        }
        Self { algorithm: algorithm.unwrap_or(Algorithm::RS256), private, published }
    }

    pub fn id(&self) -> &str {
        self.published["kid"].as_str().unwrap()
    }

    /// The same, published with these parts; `null` removes one.
    pub fn published_with(mut self, changes: &Value) -> Self {
        merge(&mut self.published, changes);
        self
    }

    /// A token of these claims, signed with the key and naming it.
    pub fn token(&self, claims: &Value) -> String {
        self.token_with(&json!({}), claims)
    }

    /// The same with more in the header; `null` removes a field.
    pub fn token_with(&self, header: &Value, claims: &Value) -> String {
        self.token_by(self.algorithm, header, claims)
    }

    /// The same by another algorithm of its kind.
    pub fn token_by(&self, algorithm: Algorithm, header: &Value, claims: &Value) -> String {
        let mut whole = json!({"alg": format!("{algorithm:?}"), "kid": self.id()});
        merge(&mut whole, header);
        token(&whole, claims, &self.private, algorithm)
    }
}

fn merge(object: &mut Value, changes: &Value) {
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(object.as_object_mut().unwrap().remove(name)),
            value => object[name] = value.clone(),
        }
    }
}

/// A server that publishes keys.
pub struct TestIssuer {
    server: Upstream,
    keys: Arc<Mutex<Answer>>,
}

impl TestIssuer {
    /// One that publishes `keys`, and says so where it is asked where they are.
    pub async fn publishing<'a>(keys: impl IntoIterator<Item = &'a TestKey>) -> Self {
        Self::answering(set(keys)).await
    }

    /// One that answers in this way when it is asked for its keys.
    pub async fn answering(answer: Answer) -> Self {
        let keys = Arc::new(Mutex::new(answer));
        let answers = keys.clone();
        let server = Upstream::choosing(move |request| {
            let here = format!("http://{}", request.header("host").unwrap());
            Some(match request.path.as_str() {
                "/keys" => answers.lock().unwrap().clone(),
                "/.well-known/openid-configuration" => {
                    let document = json!({"issuer": here, "jwks_uri": format!("{here}/keys"), "other": []});
                    Answer::ok("application/json", document.to_string())
                }
                _ => Answer::status(404, "text/plain", "nothing is here"),
            })
        })
        .await;
        Self { server, keys }
    }

    /// Its `iss`.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// From now on it publishes these.
    pub fn publish<'a>(&self, keys: impl IntoIterator<Item = &'a TestKey>) {
        self.answer(set(keys));
    }

    /// From now on it answers in this way.
    pub fn answer(&self, answer: Answer) {
        *self.keys.lock().unwrap() = answer;
    }

    /// How often it was asked for its keys.
    pub fn fetches(&self) -> usize {
        self.server.requests().iter().filter(|request| request.path == "/keys").count()
    }

    /// Whether some header of some request says `text`.
    pub fn was_told(&self, text: &str) -> bool {
        self.server
            .requests()
            .iter()
            .any(|request| request.path.contains(text) || request.headers.iter().any(|(_, value)| value.contains(text)))
    }

    /// Ada's claims as this issuer has made them an hour ago, good for a minute more, with changes; `null` removes one.
    pub fn claims(&self, changes: &Value) -> Value {
        let mut claims =
            json!({"iss": self.url(), "aud": AUDIENCE, "sub": ADA, "iat": now() - 3600, "exp": now() + 60});
        merge(&mut claims, changes);
        claims
    }

    /// A good token of `key`.
    pub fn good(&self, key: &TestKey) -> String {
        key.token(&self.claims(&json!({})))
    }

    /// The product that believes this issuer, found by discovery, with settings on top.
    pub async fn app(&self, settings: &[(&str, &str)]) -> TestApp {
        let url = self.url();
        let mut all = vec![("AUTH__MODE", "jwks"), ("AUTH__ISSUER", url.as_str()), ("AUTH__AUDIENCE", AUDIENCE)];
        // However slow the machine is.
        all.push(("AUTH__JWKS_COOLDOWN_S", "3600"));
        all.extend(settings);
        TestApp::start(&all).await
    }
}

/// A set of keys as it is published.
pub fn set<'a>(keys: impl IntoIterator<Item = &'a TestKey>) -> Answer {
    let keys: Vec<&Value> = keys.into_iter().map(|key| &key.published).collect();
    Answer::ok("application/json", json!({"keys": keys}).to_string())
}

/// What a token gets: the status, and the code of a refusal.
pub async fn judged(app: &TestApp, token: &str) -> (u16, String) {
    let response = app.http.get(app.url("/v1/agent/profiles")).bearer_auth(token).send().await.unwrap();
    let status = response.status().as_u16();
    assert_eq!(status == 503, response.headers().contains_key("retry-after"), "503 says when to come again");
    assert_eq!(status == 401, response.headers().contains_key("www-authenticate"), "401 says what is wanted");
    let body: Value = response.json().await.unwrap();
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

pub async fn accepted(app: &TestApp, token: &str, reason: &str) {
    assert_eq!(judged(app, token).await, (200, String::new()), "{reason}");
}

pub async fn refused(app: &TestApp, token: &str, reason: &str) {
    assert_eq!(judged(app, token).await, (401, "invalid_token".to_owned()), "{reason}");
}

pub async fn unknown_now(app: &TestApp, token: &str, reason: &str) {
    assert_eq!(judged(app, token).await, (503, "keys_unavailable".to_owned()), "{reason}");
}
