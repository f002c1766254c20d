//! Public keys: each with the algorithms that it may verify, whatever a token says. Pure but for reading a file.
//!
//! **Invariant:** a key verifies signatures of the algorithm that its issuer has published for it; where none is
//! published, of its own kind. A published key that is symmetric, private, weak, of an unknown kind or for another use
//! is left out.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, Validation};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::AuthSetupError;
use crate::bounded::json;

/// 100 keys of an issuer: large ones publish fewer than ten.
const MAX_KEYS: usize = 100;

/// What RSA keys may have: below can be broken, above takes too long.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// How many keys of one id are tried for a token.
const MAX_TRIES: usize = 4;

/// A key that verifies signatures.
pub(super) struct Key {
    id: Option<String>,
    /// What the library needs to know.
    pub(super) verifying: DecodingKey,
    /// Holds the algorithms; claims are looked at elsewhere.
    pub(super) validation: Validation,
}

/// What an issuer has published.
pub(super) struct KeySet(Vec<Key>);

/// The keys that may have signed a token.
pub(super) enum Found<'a> {
    /// These, one after the other.
    Keys(Vec<&'a Key>),
    /// None; a newer set may have one.
    Unknown,
    /// None, and no newer set would.
    Refused(&'static str),
}

/// A JSON Web Key as published (RFC 7517), as far as it matters here.
#[derive(Deserialize)]
struct Published {
    kty: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    d: Option<IgnoredAny>,
}

impl Key {
    /// A key of `family` that verifies `algorithms` alone.
    fn new(id: Option<String>, verifying: DecodingKey, algorithms: Vec<Algorithm>) -> Self {
        let mut validation = Validation::new_for_family(verifying.family());
        validation.algorithms = algorithms;
        // Only our own code judges claims, by our own clock.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        Self { id, verifying, validation }
    }

    /// HS256 with a shared secret.
    pub(super) fn hs256(secret: &[u8]) -> Self {
        Self::new(None, DecodingKey::from_secret(secret), vec![Algorithm::HS256])
    }

    /// The key of a PEM file: RS256, ES256, ES384 or EdDSA by its kind.
    ///
    /// # Errors
    /// When the file cannot be read or holds no public key that is good enough.
    pub(super) fn from_file(path: &str) -> Result<Self, AuthSetupError> {
        let pem = std::fs::read(path).map_err(|error| AuthSetupError::File { path: path.to_owned(), error })?;
        let key = DecodingKey::from_rsa_pem(&pem)
            .or_else(|_| DecodingKey::from_ec_pem(&pem))
            .or_else(|_| DecodingKey::from_ed_pem(&pem))
            .map_err(|error| AuthSetupError::BadKey { path: path.to_owned(), error })?;
        let bad = |reason| AuthSetupError::UnusableKey { path: path.to_owned(), reason };
        let jwk = Jwk::from_decoding_key(&key, None)
            .map_err(|error| AuthSetupError::BadKey { path: path.to_owned(), error })?;
        let published = serde_json::to_value(jwk).and_then(serde_json::from_value::<Published>);
        let mut key =
            published.map_err(|_| bad("it is of an unknown kind")).and_then(|key| usable(key).map_err(bad))?;
        if key.verifying.family() == AlgorithmFamily::Rsa {
            key.validation.algorithms = vec![Algorithm::RS256];
        }
        Ok(key)
    }

    fn admits(&self, algorithm: Algorithm) -> bool {
        self.validation.algorithms.contains(&algorithm)
    }
}

/// The RSA key of a PEM file, for RS256 alone.
///
/// # Errors
/// See [`Key::from_file`]; keys of other kinds too.
pub(super) fn rs256_file(path: &str) -> Result<Key, AuthSetupError> {
    let key = Key::from_file(path)?;
    match key.verifying.family() {
        AlgorithmFamily::Rsa => Ok(key),
        AlgorithmFamily::Hmac | AlgorithmFamily::Ec | AlgorithmFamily::Ed => {
            Err(AuthSetupError::UnusableKey { path: path.to_owned(), reason: "it is no RSA key" })
        }
    }
}

impl KeySet {
    /// The usable keys of a published set, and why others were left out. `None` when the text is no such set.
    pub(super) fn read(text: &[u8]) -> Option<(Self, Vec<String>)> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<json::Tree>,
        }
        let Set { keys } = json::parse_bytes(text).ok()?;
        let (mut usable_keys, mut left_out) = (Vec::new(), Vec::new());
        if keys.len() > MAX_KEYS {
            left_out.push(format!("{} keys beyond {MAX_KEYS}", keys.len() - MAX_KEYS));
        }
        for (nth, json::Tree(key)) in keys.into_iter().take(MAX_KEYS).enumerate() {
            let key = serde_json::from_value::<Published>(key).map_err(|_| "it cannot be read");
            match key.and_then(usable) {
                Ok(key) => usable_keys.push(key),
                // By number: the name of a key is text of the issuer.
                Err(reason) => left_out.push(format!("key {}: {reason}", nth + 1)),
            }
        }
        Some((Self(usable_keys), left_out))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The keys that may have signed a token whose header names `id` and `algorithm`. Of several keys of one id each
    /// is tried (RFC 7517, section 4.5 allows them); without an id the algorithm has to fit exactly one key.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Found<'_> {
        let fitting = |key: &&Key| key.admits(algorithm);
        let Some(id) = id else {
            let found: Vec<&Key> = self.0.iter().filter(fitting).collect();
            return match found.len() {
                0 => Found::Unknown,
                1 => Found::Keys(found),
                _ => Found::Refused("it does not name its key"),
            };
        };
        let of_id: Vec<&Key> = self.0.iter().filter(|key| key.id.as_deref() == Some(id)).collect();
        if of_id.is_empty() {
            return Found::Unknown;
        }
        let found: Vec<&Key> = of_id.into_iter().filter(fitting).take(MAX_TRIES).collect();
        match found.is_empty() {
            true => Found::Refused("its algorithm is not accepted"),
            false => Found::Keys(found),
        }
    }
}

/// The key, unless it must not be used.
fn usable(key: Published) -> Result<Key, &'static str> {
    if key.d.is_some() {
        return Err("it is a private key, which everybody knows now");
    }
    if key.usage.is_some_and(|usage| usage != "sig") {
        return Err("it is not for signatures");
    }
    if key.key_ops.is_some_and(|ops| !ops.iter().any(|op| op == "verify")) {
        return Err("it is not for verifying");
    }
    let unreadable = |_| "it cannot be read";
    let part = |part: Option<String>| part.ok_or("a part of it is missing");
    let (verifying, of_kind): (DecodingKey, &[Algorithm]) = match (key.kty.as_str(), key.crv.as_deref()) {
        ("RSA", _) => {
            let (n, e) = (without_zeros(part(key.n)?), without_zeros(part(key.e)?));
            let verifying = DecodingKey::from_rsa_components(&n, &e).map_err(unreadable)?;
            check_rsa(&verifying)?;
            (
                verifying,
                &[
                    Algorithm::RS256,
                    Algorithm::RS384,
                    Algorithm::RS512,
                    Algorithm::PS256,
                    Algorithm::PS384,
                    Algorithm::PS512,
                ],
            )
        }
        ("EC", Some(curve @ ("P-256" | "P-384"))) => {
            let verifying = DecodingKey::from_ec_components(&part(key.x)?, &part(key.y)?).map_err(unreadable)?;
            let (bytes, algorithm): (_, &[Algorithm]) = match curve {
                "P-256" => (32, &[Algorithm::ES256]),
                _ => (48, &[Algorithm::ES384]),
            };
            check_length(&verifying, 1 + 2 * bytes)?;
            (verifying, algorithm)
        }
        ("OKP", Some("Ed25519")) => {
            let verifying = DecodingKey::from_ed_components(&part(key.x)?).map_err(unreadable)?;
            check_length(&verifying, 32)?;
            (verifying, &[Algorithm::EdDSA])
        }
        ("oct", _) => return Err("it is a shared secret"),
        _ => return Err("it is of an unknown kind"),
    };
    let algorithms = match key.alg.as_deref() {
        None => of_kind.to_vec(),
        Some("Ed25519") if of_kind == [Algorithm::EdDSA] => of_kind.to_vec(),
        Some(named) => {
            let named = named.parse().ok().filter(|algorithm| of_kind.contains(algorithm));
            vec![named.ok_or("its algorithm is not one of its kind")?]
        }
    };
    Ok(Key::new(key.kid, verifying, algorithms))
}

/// A number in base64url without the zeros that some libraries write before it; with them no signature is right.
fn without_zeros(number: String) -> String {
    match URL_SAFE_NO_PAD.decode(&number) {
        Ok(bytes) if bytes.first() == Some(&0) => {
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            URL_SAFE_NO_PAD.encode(&bytes[zeros..])
        }
        Ok(_) | Err(_) => number,
    }
}

fn check_rsa(key: &DecodingKey) -> Result<(), &'static str> {
    let DecodingKeyKind::RsaModulusExponent { n, e } = key.kind() else { return Err("it cannot be read") };
    if n.is_empty() || e.is_empty() {
        return Err("a part of it is empty");
    }
    let bits = n.len() * 8 - n.first().map_or(0, |byte| byte.leading_zeros() as usize);
    if !RSA_BITS.contains(&bits) {
        return Err("its modulus has not 2048 to 8192 bits");
    }
    // 1 would make every text its own signature, and an even one is none.
    match e.as_slice() {
        [1] => Err("its exponent is no exponent"),
        e if e.len() > 4 || e.last().is_none_or(|byte| byte % 2 == 0) => Err("its exponent is no exponent"),
        _ => Ok(()),
    }
}

fn check_length(key: &DecodingKey, bytes: usize) -> Result<(), &'static str> {
    match key.try_get_as_bytes() {
        Ok(key) if key.len() == bytes => Ok(()),
        Ok(_) | Err(_) => Err("it has not the length of its curve"),
    }
}
