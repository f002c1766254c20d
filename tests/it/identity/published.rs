//! Keys that an issuer publishes: which verify what, which are left out, and what a token cannot make of them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::{Value, json};

use super::issuer::{TestIssuer, TestKey, accepted, refused};
use super::{base64url, key_file, token};
use crate::support::upstream::Upstream;

#[tokio::test]
async fn a_modulus_with_zeros_before_it_is_the_same_number() {
    let key = TestKey::rsa("padded", None);
    let modulus = URL_SAFE_NO_PAD.decode(key.published["n"].as_str().unwrap()).unwrap();
    let key = key.published_with(&json!({"n": base64url([&[0, 0], modulus.as_slice()].concat())}));
    let issuer = TestIssuer::publishing([&key]).await;
    let app = issuer.app(&[]).await;
    accepted(&app, &issuer.good(&key), "as some libraries write it").await;
}

#[tokio::test]
async fn each_key_verifies_its_own_algorithms_alone() {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    let all_rsa = [RS256, RS384, RS512, PS256, PS384, PS512];
    let rows: [(TestKey, &[Algorithm]); 6] = [
        (TestKey::es256("es256"), &[ES256]),
        (TestKey::es384("es384"), &[ES384]),
        (TestKey::ed25519("ed"), &[EdDSA]),
        (TestKey::rsa("rs256", Some(RS256)), &[RS256]),
        (TestKey::rsa("ps512", Some(PS512)), &[PS512]),
        (TestKey::rsa("any", None), &all_rsa),
    ];
    let issuer = TestIssuer::publishing(rows.iter().map(|(key, _)| key)).await;
    let app = issuer.app(&[]).await;
    let claims = issuer.claims(&json!({}));
    for (key, good) in &rows {
        for algorithm in all_rsa.into_iter().chain([ES256, ES384, EdDSA]) {
            let reason = format!("{algorithm:?} by {}", key.id());
            if algorithm.family() == key.algorithm.family() && (algorithm == key.algorithm || good.len() == 6) {
                accepted(&app, &key.token_by(algorithm, &json!({}), &claims), &reason).await;
            } else {
                // Signed well by its own algorithm, and called another.
                let header = json!({"alg": format!("{algorithm:?}")});
                refused(&app, &key.token_with(&header, &claims), &reason).await;
            }
        }
        if key.published["kty"] == "RSA" && good.len() == 1 {
            for other in all_rsa.into_iter().filter(|other| !good.contains(other)) {
                let reason = format!("really signed with {other:?}, published for {good:?}");
                refused(&app, &key.token_by(other, &json!({}), &claims), &reason).await;
            }
        }
    }
}

#[tokio::test]
async fn a_public_key_is_no_shared_secret_in_any_form() {
    let keys = [TestKey::rsa("rsa", None), TestKey::es256("ec"), TestKey::ed25519("ed")];
    let issuer = TestIssuer::publishing(&keys).await;
    let app = issuer.app(&[]).await;
    let claims = issuer.claims(&json!({}));
    let pem = String::from_utf8(key_file("rs256-public.pem")).unwrap();
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let mut secrets: Vec<(&str, Vec<u8>, &str)> = vec![
        ("rsa", pem.clone().into_bytes(), "PEM"),
        ("rsa", pem.trim().as_bytes().to_vec(), "PEM without its last line end"),
        ("rsa", body.clone().into_bytes(), "the letters of PEM"),
        ("rsa", unbase64(&body), "DER"),
    ];
    for key in &keys {
        let jwk = &key.published;
        secrets.push((key.id(), jwk.to_string().into_bytes(), "the published key's text"));
        for part in ["n", "x", "y"] {
            if let Some(text) = jwk[part].as_str() {
                secrets.push((key.id(), text.as_bytes().to_vec(), "a part of it"));
                secrets.push((key.id(), unbase64(text), "the bytes of a part"));
            }
        }
    }
    let point = [
        vec![4],
        unbase64(keys[1].published["x"].as_str().unwrap()),
        unbase64(keys[1].published["y"].as_str().unwrap()),
    ];
    secrets.push(("ec", point.concat(), "the point"));
    secrets.push(("ec", Vec::new(), "nothing"));
    for (id, secret, reason) in secrets {
        let secret = EncodingKey::from_secret(&secret);
        for (alg, by) in [
            ("HS256", Algorithm::HS256),
            ("HS512", Algorithm::HS512),
            ("ES256", Algorithm::HS256),
            ("RS256", Algorithm::HS256),
        ] {
            let confused = token(&json!({"alg": alg, "kid": id}), &claims, &secret, by);
            refused(&app, &confused, &format!("{by:?} with {reason} of {id}, called {alg}")).await;
        }
    }
}

fn unbase64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'-' | b'+' => 62,
        _ => 63,
    };
    let bits =
        text.bytes().filter(|byte| *byte != b'=').flat_map(|byte| (0..6).rev().map(move |n| digit(byte) >> n & 1));
    let bits: Vec<u8> = bits.collect();
    bits.chunks_exact(8).map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | bit)).collect()
}

#[tokio::test]
async fn keys_that_are_not_good_enough_are_left_out() {
    let rsa = |id: &str| TestKey::rsa(id, None);
    let small = base64url([0xc1; 128]);
    let rows = [
        (TestKey::es256("enc").published_with(&json!({"use": "enc"})), "for encryption"),
        (TestKey::es256("use").published_with(&json!({"use": "SIG"})), "for something unknown"),
        (TestKey::es256("ops").published_with(&json!({"key_ops": ["sign"]})), "for signing"),
        (TestKey::es256("ops0").published_with(&json!({"key_ops": []})), "for nothing"),
        (TestKey::es256("alg").published_with(&json!({"alg": "HS256"})), "for a shared secret's algorithm"),
        (TestKey::es256("alg2").published_with(&json!({"alg": "ES384"})), "for another curve's algorithm"),
        (TestKey::es256("alg3").published_with(&json!({"alg": "none"})), "for none"),
        (TestKey::es256("alg4").published_with(&json!({"alg": "ES256K"})), "for an algorithm that is not known"),
        (TestKey::es256("private").published_with(&json!({"d": base64url([7; 32])})), "with its private part"),
        (TestKey::es256("crv").published_with(&json!({"crv": "secp256k1"})), "of another curve"),
        (TestKey::es256("crv2").published_with(&json!({"crv": "P-384"})), "shorter than its curve"),
        (TestKey::es256("crv3").published_with(&json!({"crv": null})), "of no curve"),
        (TestKey::es256("x").published_with(&json!({"x": "AA"})), "with a part too short"),
        (TestKey::es256("x2").published_with(&json!({"x": "!!!"})), "with a part that is no base64"),
        (TestKey::es256("x3").published_with(&json!({"x": 7})), "with a part that is no text"),
        (TestKey::es256("y").published_with(&json!({"y": null})), "without a part"),
        (TestKey::es256("point").published_with(&json!({"x": base64url([1; 32])})), "of a point beside its curve"),
        (TestKey::es256("kty").published_with(&json!({"kty": "ec"})), "of an unknown kind"),
        (TestKey::es256("kty2").published_with(&json!({"kty": null})), "of no kind"),
        (TestKey::ed25519("ed").published_with(&json!({"x": base64url([7; 31])})), "of 31 bytes"),
        (TestKey::ed25519("ed2").published_with(&json!({"crv": "X25519"})), "for agreeing on keys"),
        (rsa("small").published_with(&json!({"n": small})), "of 1024 bits"),
        (
            rsa("padded").published_with(&json!({"n": base64url([vec![0; 200], vec![0xc1; 128]].concat())})),
            "of 1024 bits behind zeros",
        ),
        (rsa("huge").published_with(&json!({"n": base64url([0xc1; 2048])})), "of 16384 bits"),
        (rsa("e1").published_with(&json!({"e": base64url([1])})), "with the exponent 1"),
        (rsa("e2").published_with(&json!({"e": base64url([2])})), "with an even exponent"),
        (rsa("e0").published_with(&json!({"e": ""})), "without an exponent"),
    ];
    let secret = EncodingKey::from_secret(b"a published secret, which everybody knows");
    let shared = json!({"kty": "oct", "kid": "oct", "alg": "HS256", "k": base64url("a published secret, which everybody knows")});
    let good = TestKey::es256("good");
    let mut published: Vec<Value> = rows.iter().map(|(key, _)| key.published.clone()).collect();
    published.extend([shared, json!("no key"), json!(null), json!([]), good.published.clone()]);
    let answer = crate::support::upstream::Answer::ok("application/json", json!({"keys": published}).to_string());
    let issuer = TestIssuer::answering(answer).await;
    let app = issuer.app(&[]).await;
    for (key, reason) in &rows {
        refused(&app, &issuer.good(key), reason).await;
    }
    let by_secret =
        token(&json!({"alg": "HS256", "kid": "oct"}), &issuer.claims(&json!({})), &secret, Algorithm::HS256);
    refused(&app, &by_secret, "a shared secret that is published").await;
    accepted(&app, &issuer.good(&good), "the one that is good, among all others").await;
}

#[tokio::test]
async fn a_key_is_found_by_its_id_in_what_is_published_and_nowhere_else() {
    let (one, two) = (TestKey::es256("one"), TestKey::es256("two"));
    let issuer = TestIssuer::publishing([&one, &two]).await;
    let app = issuer.app(&[]).await;
    let claims = issuer.claims(&json!({}));
    accepted(&app, &issuer.good(&one), "its own id").await;
    let long = "k".repeat(5_000);
    let rows = [
        (json!("two"), "the id of another key"),
        (json!("three"), "an id that is not known"),
        (json!("ONE"), "another case"),
        (json!(" one"), "a blank"),
        (json!("one\u{0}"), "a NUL"),
        (json!(""), "an empty id"),
        (json!("../../../../dev/null"), "a path"),
        (json!("/etc/passwd"), "a file"),
        (json!("one' OR '1'='1"), "SQL"),
        (json!("x' UNION SELECT 'secret' --"), "more SQL"),
        (json!("http://127.0.0.1:1/keys"), "an address"),
        (json!("one|cat /etc/passwd"), "a command"),
        (json!(long), "five thousand bytes"),
        (json!(7), "a number"),
        (json!(["one"]), "a list"),
        (json!({"one": 1}), "an object"),
    ];
    for (id, reason) in rows {
        let forged = one.token_with(&json!({"kid": id}), &claims);
        refused(&app, &forged, reason).await;
    }
    refused(&app, &one.token_with(&json!({"kid": null}), &claims), "two keys fit, and it names none").await;
    let ten_thousand = one.token_with(&json!({"kid": "k".repeat(10_000)}), &claims);
    super::refused_token(&app, &ten_thousand, "unauthenticated", "ten thousand bytes are not read at all").await;
    assert_eq!(issuer.fetches(), 1, "none of them made it ask again");
}

#[tokio::test]
async fn without_an_id_a_token_is_taken_when_one_key_fits_and_of_one_id_all_are_tried() {
    let (ec, ed) = (TestKey::es256("ec"), TestKey::ed25519("ed"));
    let (first, second) = (TestKey::es256("twin"), TestKey::es256("twin"));
    let nameless = TestKey::es384("").published_with(&json!({"kid": null}));
    let issuer = TestIssuer::publishing([&ed, &first, &second, &nameless]).await;
    let app = issuer.app(&[]).await;
    let claims = issuer.claims(&json!({}));
    let no_id = json!({"kid": null});
    accepted(&app, &ed.token_with(&no_id, &claims), "one key is for EdDSA").await;
    let of_nameless = token(&json!({"alg": "ES384"}), &claims, &nameless.private, Algorithm::ES384);
    accepted(&app, &of_nameless, "one key is for ES384, and has no id either").await;
    let named = token(&json!({"alg": "ES384", "kid": "some"}), &claims, &nameless.private, Algorithm::ES384);
    refused(&app, &named, "a key without an id is none of that id").await;
    refused(&app, &first.token_with(&no_id, &claims), "two keys are for ES256").await;
    accepted(&app, &issuer.good(&first), "the first of two of one id").await;
    accepted(&app, &issuer.good(&second), "the second").await;
    refused(&app, &ec.token_with(&json!({"kid": "twin"}), &claims), "neither of them").await;
}

#[tokio::test]
async fn nothing_that_a_token_names_is_asked_for() {
    let (ours, theirs) = (TestKey::es256("ours"), TestKey::es256("theirs"));
    let issuer = TestIssuer::publishing([&ours]).await;
    let app = issuer.app(&[]).await;
    // It fails the test when anybody asks.
    let elsewhere = Upstream::script([]).await;
    let url = format!("{}/keys", elsewhere.url());
    let claims = issuer.claims(&json!({}));
    for extra in [
        json!({"jku": url}),
        json!({"x5u": url}),
        json!({"jwk": theirs.published}),
        json!({"x5c": [base64url("a certificate")]}),
        json!({"kid": url}),
        json!({"kid": "theirs", "jku": url, "jwk": theirs.published}),
        json!({"iss": url}),
    ] {
        let mut header = json!({"kid": "ours"});
        header.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        refused(&app, &theirs.token_with(&header, &claims), &format!("somebody else's key, with {extra}")).await;
        if extra.get("kid").is_none() {
            accepted(&app, &ours.token_with(&extra, &claims), &format!("ours, and {extra} means nothing")).await;
        }
    }
    let elsewhere_claims = issuer.claims(&json!({"iss": elsewhere.url()}));
    refused(&app, &theirs.token(&elsewhere_claims), "another issuer").await;
    assert_eq!(elsewhere.connections(), 0);
    assert_eq!(issuer.fetches(), 1);
}

/// A small set of our own, after those that test vectors for ECDSA hold; the arithmetic itself is the library's.
#[tokio::test]
async fn signatures_that_are_none_are_refused() {
    let (p256, p384) = (TestKey::es256("p256"), TestKey::es384("p384"));
    let ed = TestKey::ed25519("ed");
    let issuer = TestIssuer::publishing([&p256, &p384, &ed]).await;
    let app = issuer.app(&[]).await;
    let good = issuer.good(&p256);
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (r, s) = {
        let bytes = unbase64(signature);
        (bytes[..32].to_vec(), bytes[32..].to_vec())
    };
    let order = unbase64("_____wAAAAD__________7zm-q2nF56E87nKwvxjJVE");
    let (zero, one) = (vec![0; 32], [vec![0; 31], vec![1]].concat());
    let der = |r: &[u8], s: &[u8]| {
        let int = |n: &[u8]| [vec![2, 33, 0], n.to_vec()].concat();
        let both = [int(r), int(s)].concat();
        [vec![0x30, u8::try_from(both.len()).unwrap()], both].concat()
    };
    let rows: [(Vec<u8>, &str); 13] = [
        ([zero.clone(), zero.clone()].concat(), "r = s = 0"),
        ([zero.clone(), s.clone()].concat(), "r = 0"),
        ([r.clone(), zero.clone()].concat(), "s = 0"),
        ([one.clone(), one.clone()].concat(), "r = s = 1"),
        ([order.clone(), s.clone()].concat(), "r is the order"),
        ([r.clone(), order.clone()].concat(), "s is the order"),
        ([order.clone(), order].concat(), "both are"),
        ([s.clone(), r.clone()].concat(), "changed places"),
        (r.clone(), "half of it"),
        ([r.clone(), s.clone(), vec![0]].concat(), "a byte more"),
        ([vec![0], r.clone(), s.clone()].concat(), "a byte before"),
        (der(&r, &s), "as DER"),
        (Vec::new(), "nothing"),
    ];
    for (signature, reason) in rows {
        refused(&app, &format!("{signed}.{}", base64url(signature)), reason).await;
    }
    for bit in [0, 7, 255, 256, 511] {
        let mut flipped = [r.clone(), s.clone()].concat();
        flipped[bit / 8] ^= 1 << (bit % 8);
        refused(&app, &format!("{signed}.{}", base64url(flipped)), &format!("bit {bit} turned")).await;
    }
    let claims = issuer.claims(&json!({}));
    let header = json!({"alg": "ES256", "kid": "p256"});
    refused(&app, &p384.token_with(&header, &claims), "of another curve").await;
    let header = json!({"alg": "EdDSA", "kid": "ed"});
    refused(&app, &p256.token_with(&header, &claims), "of another kind").await;
    let (signed, _) =
        issuer.good(&ed).rsplit_once('.').map(|(signed, rest)| (signed.to_owned(), rest.to_owned())).unwrap();
    refused(&app, &format!("{signed}.{}", base64url([0; 64])), "zeros for EdDSA").await;
    accepted(&app, &good, "and the good one is still good").await;
}
