//! What stands in `Authorization`, and what a token's own header may not choose.

use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::{Value, json};

use super::{
    accepted_token, base64url, good_claims, hs256, key_file, post, private_key, refused, refused_token, rs256, secret,
    signed, token,
};

#[tokio::test]
async fn a_request_needs_exactly_one_bearer_token() {
    let app = hs256(&[]).await;
    let good = signed(&good_claims());
    let bearer = format!("Bearer {good}");
    let twice = format!("Bearer {good} {good}");
    let listed = format!("Bearer {good}, Bearer {good}");
    let basic = format!("Basic {good}");
    let glued = format!("Bearer{good}");
    let tab = format!("Bearer\t{good}");
    let mut not_ascii = bearer.clone().into_bytes();
    not_ascii.push(0xe9);
    let rows: [(&[&[u8]], &str, &str); 13] = [
        (&[], "unauthenticated", "no header"),
        (&[b""], "unauthenticated", "an empty header"),
        (&[b"Bearer"], "unauthenticated", "no token"),
        (&[b"Bearer "], "unauthenticated", "an empty token"),
        (&[good.as_bytes()], "unauthenticated", "no scheme"),
        (&[basic.as_bytes()], "unauthenticated", "another scheme"),
        (&[glued.as_bytes()], "unauthenticated", "no blank"),
        (&[tab.as_bytes()], "unauthenticated", "a tab is no blank"),
        (&[twice.as_bytes()], "unauthenticated", "two tokens"),
        (&[listed.as_bytes()], "unauthenticated", "a list"),
        (&[bearer.as_bytes(), bearer.as_bytes()], "unauthenticated", "two headers, even if they are the same"),
        (&[&not_ascii], "unauthenticated", "not ASCII"),
        (&[b"Bearer garbage"], "invalid_token", "no token at all"),
    ];
    for (authorization, code, reason) in rows {
        refused(&app, authorization, code, reason).await;
    }
    for scheme in ["bearer", "BEARER", "Bearer "] {
        let response = post(&app, &[format!("{scheme} {good}").as_bytes()]).await;
        assert_eq!(response.status(), 200, "the scheme's case and more blanks do not matter: {scheme:?}");
    }
}

#[tokio::test]
async fn a_token_is_taken_from_the_header_only() {
    let app = hs256(&[]).await;
    let good = signed(&good_claims());
    for query in ["access_token", "token", "bearer", "authorization"] {
        let url = app.url(&format!("/v1/agent/chat?{query}={good}"));
        let body = json!({"message": "hi", "context_type": "workflow", "access_token": good});
        let response = app.http.post(url).header("cookie", format!("token={good}")).json(&body).send().await.unwrap();
        assert_eq!(response.status(), 401, "{query}");
        assert_eq!(response.json::<Value>().await.unwrap()["code"], "unauthenticated", "{query}");
    }
}

#[tokio::test]
async fn a_caller_without_a_token_learns_nothing_about_the_body() {
    let app = hs256(&[]).await;
    for body in ["", "{", r#"{"message":"","context_type":"nonsense"}"#] {
        let response = app.http.post(app.url("/v1/agent/chat")).body(body).send().await.unwrap();
        assert_eq!(response.status(), 401, "{body:?}");
    }
}

#[tokio::test]
async fn a_token_that_is_not_three_good_parts_is_refused() {
    let app = hs256(&[]).await;
    let good = signed(&good_claims());
    let parts: Vec<&str> = good.split('.').collect();
    let [header, claims, signature] = parts[..] else { panic!("{good}") };
    let other_claims = base64url(json!({"sub": "somebody-else", "exp": u32::MAX}).to_string());
    let cut = &signature[..signature.len() - 2];
    let huge = signed(&json!({"sub": "u", "exp": u32::MAX, "padding": "x".repeat(10_000)}));
    let rows = [
        (format!("{header}.{claims}"), "invalid_token", "two parts"),
        (format!("{good}.{claims}.{signature}"), "invalid_token", "five parts, as an encrypted token has"),
        (format!("{header}.{claims}."), "invalid_token", "no signature"),
        (format!(".{claims}.{signature}"), "invalid_token", "no header"),
        (format!("{header}..{signature}"), "invalid_token", "no claims"),
        ("..".to_owned(), "invalid_token", "nothing but dots"),
        (format!("{header}.{other_claims}.{signature}"), "invalid_token", "the signature of other claims"),
        (format!("{header}.{claims}.{cut}"), "invalid_token", "a signature that is cut"),
        (format!("{header}.{claims}.{signature}="), "invalid_token", "padding"),
        (format!("{header}.{claims}.!!!!"), "invalid_token", "a signature that is no base64"),
        (format!("{header}.{}.{signature}", base64url("not json")), "invalid_token", "claims that are no JSON"),
        (huge, "unauthenticated", "ten thousand bytes"),
    ];
    for (token, code, reason) in rows {
        refused_token(&app, &token, code, reason).await;
    }
}

#[tokio::test]
async fn signed_claims_that_are_no_object_are_refused() {
    let app = hs256(&[]).await;
    for claims in [json!([]), json!("sub"), json!(7), Value::Null] {
        refused_token(&app, &signed(&claims), "invalid_token", &claims.to_string()).await;
    }
    let header = base64url(r#"{"alg":"HS256"}"#);
    let twice = base64url(r#"{"sub":"a","sub":"b","exp":4000000000}"#);
    let signature = jsonwebtoken::crypto::sign(format!("{header}.{twice}").as_bytes(), &secret(), Algorithm::HS256);
    let token = format!("{header}.{twice}.{}", signature.unwrap());
    refused_token(&app, &token, "invalid_token", "two subjects").await;
}

#[tokio::test]
async fn the_algorithm_is_ours_and_never_the_tokens() {
    let app = hs256(&[]).await;
    let claims = good_claims();
    for alg in ["none", "None", "NONE", "nOnE", "", "HS1", "hs256", "HS256 ", "dir"] {
        let unsigned = format!("{}.{}.", base64url(json!({"alg": alg}).to_string()), base64url(claims.to_string()));
        refused_token(&app, &unsigned, "invalid_token", &format!("alg {alg:?} without a signature")).await;
        let still_signed = token(&json!({"alg": alg}), &claims, &secret(), Algorithm::HS256);
        refused_token(&app, &still_signed, "invalid_token", &format!("alg {alg:?} with our signature")).await;
    }
    let rows = [
        (json!({"alg": "HS384"}), secret(), Algorithm::HS384, "HS384 with the right secret"),
        (json!({"alg": "HS512"}), secret(), Algorithm::HS512, "HS512 with the right secret"),
        (json!({"alg": "HS256"}), secret(), Algorithm::HS512, "HS512 that claims to be HS256"),
        (json!({"alg": "HS512"}), secret(), Algorithm::HS256, "HS256 that claims to be HS512"),
        (json!({"alg": "RS256"}), private_key(), Algorithm::RS256, "RS256 where a secret is shared"),
        (json!({"alg": ["HS256"]}), secret(), Algorithm::HS256, "a list of algorithms"),
        (json!({"alg": null}), secret(), Algorithm::HS256, "a null algorithm"),
        (json!({"typ": "JWT"}), secret(), Algorithm::HS256, "no algorithm"),
        (json!([]), secret(), Algorithm::HS256, "a header that is no object"),
    ];
    for (header, key, algorithm, reason) in rows {
        refused_token(&app, &token(&header, &claims, &key, algorithm), "invalid_token", reason).await;
    }
    let other = EncodingKey::from_secret(b"another secret, also long enough for HS256");
    let forged = token(&json!({"alg": "HS256"}), &claims, &other, Algorithm::HS256);
    refused_token(&app, &forged, "invalid_token", "another secret").await;
}

#[tokio::test]
async fn a_header_that_asks_for_more_than_is_done_is_refused() {
    let app = hs256(&[]).await;
    let claims = good_claims();
    let rows = [
        (json!({"crit": ["exp"]}), "a critical extension"),
        (json!({"crit": ["b64"], "b64": true}), "one that changes nothing"),
        (json!({"crit": []}), "no critical extensions, which is not allowed (RFC 7515, 4.1.11)"),
        (json!({"crit": "exp"}), "no list"),
        (json!({"b64": false}), "claims that are not encoded (RFC 7797)"),
        (json!({"b64": "false"}), "the same as a text"),
        (json!({"enc": "A256GCM"}), "encrypted"),
        (json!({"zip": "DEF"}), "compressed"),
        (json!({"typ": 7}), "a type that is no text"),
        (json!({"alg": "HS256", "kid": 7}), "a key's id that is no text"),
        (json!({"alg": "ES256K"}), "an algorithm that is not known"),
    ];
    for (extra, reason) in rows {
        let mut header = json!({"alg": "HS256", "typ": "JWT"});
        header.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        refused_token(&app, &token(&header, &claims, &secret(), Algorithm::HS256), "invalid_token", reason).await;
    }
    for extra in [json!({"b64": true}), json!({"cty": "JWT"}), json!({"crit": null}), json!({"anything": {"else": 1}})]
    {
        let mut header = json!({"alg": "HS256"});
        header.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        accepted_token(&app, &token(&header, &claims, &secret(), Algorithm::HS256), &extra.to_string()).await;
    }
    let twice = format!("{}.{}", base64url(r#"{"alg":"none","alg":"HS256"}"#), base64url(claims.to_string()));
    let signature = jsonwebtoken::crypto::sign(twice.as_bytes(), &secret(), Algorithm::HS256).unwrap();
    refused_token(&app, &format!("{twice}.{signature}"), "invalid_token", "two algorithms").await;
}

#[tokio::test]
async fn a_public_key_is_no_shared_secret() {
    let app = rs256().await;
    let claims = good_claims();
    let pem = key_file("rs256-public.pem");
    let trimmed = String::from_utf8(pem.clone()).unwrap().trim().as_bytes().to_vec();
    for secret in [pem, trimmed] {
        let key = EncodingKey::from_secret(&secret);
        for (alg, algorithm) in [("HS256", Algorithm::HS256), ("HS512", Algorithm::HS512), ("RS256", Algorithm::HS256)]
        {
            let confused = token(&json!({"alg": alg}), &claims, &key, algorithm);
            refused_token(&app, &confused, "invalid_token", "the public key used as a secret").await;
        }
    }
    let rows = [
        (json!({"alg": "RS384"}), private_key(), Algorithm::RS384, "RS384 with the right key"),
        (json!({"alg": "PS256"}), private_key(), Algorithm::PS256, "PS256 with the right key"),
        (json!({"alg": "HS256"}), secret(), Algorithm::HS256, "some secret"),
    ];
    for (header, key, algorithm, reason) in rows {
        refused_token(&app, &token(&header, &claims, &key, algorithm), "invalid_token", reason).await;
    }
    let good = token(&json!({"alg": "RS256"}), &claims, &private_key(), Algorithm::RS256);
    accepted_token(&app, &good, "RS256 with the issuer's key").await;
    let unsigned = good.rsplit_once('.').unwrap().0;
    refused_token(&app, &format!("{unsigned}."), "invalid_token", "no signature").await;
}

#[tokio::test]
async fn keys_that_a_token_brings_along_are_not_looked_at() {
    let app = rs256().await;
    let mine = json!({"kty": "oct", "k": base64url("attacker's own key of 32 bytes..")});
    let extras = [
        json!({"kid": "../../../../dev/null"}),
        json!({"kid": "x' UNION SELECT 'secret' --"}),
        json!({"jku": "http://127.0.0.1:1/keys"}),
        json!({"x5u": "http://127.0.0.1:1/certificate"}),
        json!({"jwk": {"kty": "oct", "k": "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75"}}),
    ];
    let attacker = EncodingKey::from_secret(b"attacker's own key of 32 bytes..");
    for extra in extras {
        let mut header = json!({"alg": "RS256"});
        header.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let good = token(&header, &good_claims(), &private_key(), Algorithm::RS256);
        accepted_token(&app, &good, &format!("signed by the issuer: {extra}")).await;
        header["jwk"] = mine.clone();
        header["alg"] = json!("HS256");
        let forged = token(&header, &good_claims(), &attacker, Algorithm::HS256);
        refused_token(&app, &forged, "invalid_token", &format!("signed by somebody else: {extra}")).await;
    }
}
