//! What a well-signed token must say: when it is good, for whom, from whom.

use serde_json::{Value, json};

use super::{accepted_token, claims_with, good_claims, hs256, now, refused_token, signed};
use crate::support::frames;
use crate::support::model::{Scripted, calls, says};

#[tokio::test]
async fn a_token_is_good_until_the_leeway_after_its_end() {
    let app = hs256(&[("AUTH__LEEWAY_S", "30")]).await;
    // Three seconds on either side of the border, since time goes on during the test.
    accepted_token(&app, &signed(&claims_with(json!({"exp": now() - 27}))), "within the leeway").await;
    refused_token(&app, &signed(&claims_with(json!({"exp": now() - 33}))), "token_expired", "after the leeway").await;
    accepted_token(&app, &signed(&claims_with(json!({"nbf": now() + 27}))), "nearly begun").await;
    refused_token(&app, &signed(&claims_with(json!({"nbf": now() + 90}))), "invalid_token", "not begun").await;

    let strict = hs256(&[("AUTH__LEEWAY_S", "0")]).await;
    refused_token(&strict, &signed(&claims_with(json!({"exp": now() - 3}))), "token_expired", "no leeway").await;
}

#[tokio::test]
async fn times_are_numbers() {
    let app = hs256(&[]).await;
    let good = [
        (json!({"exp": now() as f64 + 60.5}), "a number with a fraction is allowed (RFC 7519, section 2)"),
        (json!({"exp": 1_u64 << 63}), "a time beyond all calendars is still a time"),
        (json!({"iat": null}), "when it was issued need not be said"),
        (json!({"iat": now() as f64 - 0.5}), "a fraction of a second ago"),
        (json!({"iat": now() + 20}), "a clock that goes a little fast"),
        (json!({"nbf": now() - 5}), "begun"),
    ];
    for (changes, reason) in good {
        accepted_token(&app, &signed(&claims_with(changes)), reason).await;
    }
    let bad = [
        (json!({"exp": null}), "invalid_token", "no end"),
        (json!({"exp": (now() + 60).to_string()}), "invalid_token", "a text"),
        (json!({"exp": -1}), "invalid_token", "before 1970"),
        (json!({"exp": 0}), "token_expired", "1970"),
        (json!({"exp": 1e300}), "invalid_token", "more than any integer"),
        (json!({"exp": [now() + 60]}), "invalid_token", "a list"),
        (json!({"exp": true}), "invalid_token", "true"),
        (json!({"nbf": "tomorrow"}), "invalid_token", "a begin that cannot be read is not ignored"),
        (json!({"nbf": [0]}), "invalid_token", "a list"),
        (json!({"exp": ""}), "invalid_token", "an empty text"),
        (json!({"exp": {"s": 1}}), "invalid_token", "an object"),
        (json!({"exp": 2e19}), "invalid_token", "beyond 64 bits"),
        (json!({"exp": 0.5}), "token_expired", "1970, and a half"),
        (json!({"iat": now() + 90}), "invalid_token", "issued in the future"),
        (json!({"iat": 1_u64 << 63}), "invalid_token", "in a far one"),
        (json!({"iat": "yesterday"}), "invalid_token", "a text"),
        (json!({"iat": -1}), "invalid_token", "before 1970"),
        (json!({"nbf": 1_u64 << 63}), "invalid_token", "a begin beyond all calendars"),
    ];
    for (changes, code, reason) in bad {
        refused_token(&app, &signed(&claims_with(changes)), code, reason).await;
    }
    let explicit_null = r#"{"sub":"a","exp":null}"#;
    let claims: Value = serde_json::from_str(explicit_null).unwrap();
    refused_token(&app, &signed(&claims), "invalid_token", "an end that is null").await;
}

#[tokio::test]
async fn the_user_and_the_tenant_are_short_texts() {
    let app = hs256(&[]).await;
    let good = [
        (json!({"sub": "u"}), "any text"),
        (json!({"sub": "é".repeat(128)}), "256 bytes"),
        (json!({"sub": "a\u{0}b\n'; DROP TABLE runs; --"}), "of any characters"),
        (json!({"tenant": ""}), "an empty tenant is none"),
        (json!({"tenant": "t".repeat(256)}), "256 bytes"),
        (json!({"sub": 274}), "a whole number"),
        (json!({"sub": u64::MAX, "tenant": i64::MIN}), "as large as they are"),
    ];
    for (changes, reason) in good {
        accepted_token(&app, &signed(&claims_with(changes)), reason).await;
    }
    let bad = [
        (json!({"sub": null}), "missing"),
        (json!({"sub": ""}), "empty"),
        (json!({"sub": " \t"}), "blank"),
        (json!({"sub": "s".repeat(300)}), "300 bytes"),
        (json!({"sub": "é".repeat(129)}), "258 bytes"),
        (json!({"sub": 7.5}), "a fraction"),
        (json!({"sub": 7e0}), "a whole number with an exponent"),
        (json!({"sub": 1e30}), "more than any integer"),
        (json!({"sub": true}), "no name at all"),
        (json!({"sub": ["u"]}), "a list"),
        (json!({"tenant": -0.0}), "no zero below zero"),
        (json!({"tenant": 7.25}), "a fraction for the tenant"),
        (json!({"tenant": ["acme"]}), "a list for the tenant"),
        (json!({"tenant": {"id": "acme"}}), "an object for the tenant"),
        (json!({"tenant": "t".repeat(257)}), "a tenant of 257 bytes"),
    ];
    for (changes, reason) in bad {
        refused_token(&app, &signed(&claims_with(changes)), "invalid_token", reason).await;
    }
}

#[tokio::test]
async fn issuer_and_audience_are_compared_whole_when_they_are_set() {
    let (issuer, audience) = ("https://id.example.com", "switchboard");
    let app = hs256(&[("AUTH__ISSUER", issuer), ("AUTH__AUDIENCE", audience)]).await;
    let good = [
        (json!({"iss": issuer, "aud": audience}), "both as they are set"),
        (json!({"iss": issuer, "aud": ["other", audience]}), "one of several audiences"),
    ];
    for (changes, reason) in good {
        accepted_token(&app, &signed(&claims_with(changes)), reason).await;
    }
    let bad = [
        (json!({"aud": audience}), "no issuer"),
        (json!({"iss": "https://evil.example.com", "aud": audience}), "another issuer"),
        (json!({"iss": "https://id.example.com.evil.org", "aud": audience}), "an issuer that begins alike"),
        (json!({"iss": "https://id.example", "aud": audience}), "the beginning of the issuer"),
        (json!({"iss": "https://id.example.com/", "aud": audience}), "a slash more"),
        (json!({"iss": "HTTPS://ID.EXAMPLE.COM", "aud": audience}), "in capitals"),
        (json!({"iss": "", "aud": audience}), "an empty issuer"),
        (json!({"iss": 7, "aud": audience}), "a number"),
        (json!({"iss": ["https://evil.example.com", issuer], "aud": audience}), "an issuer is one (RFC 7519, 4.1.1)"),
        (json!({"iss": issuer}), "no audience"),
        (json!({"iss": issuer, "aud": "other"}), "another audience"),
        (json!({"iss": issuer, "aud": "switchboard2"}), "an audience that begins alike"),
        (json!({"iss": issuer, "aud": "switch"}), "the beginning of the audience"),
        (json!({"iss": issuer, "aud": []}), "an empty list"),
        (json!({"iss": issuer, "aud": ["other"]}), "a list without ours"),
        (json!({"iss": issuer, "aud": [7, audience]}), "a list with a number"),
        (json!({"iss": issuer, "aud": {"switchboard": true}}), "an object"),
    ];
    for (changes, reason) in bad {
        refused_token(&app, &signed(&claims_with(changes)), "invalid_token", reason).await;
    }
    let open = hs256(&[]).await;
    let any = json!({"iss": "https://anyone.example.com", "aud": ["x", "y"]});
    accepted_token(&open, &signed(&claims_with(any)), "nothing is set, so anything is accepted").await;
    // The product's own tokens carry what it demands.
    accepted_token(&app, &app.token, "made by `switchboard token`").await;
}

/// Amazon Cognito's access tokens have `client_id`, Clerk's `azp`.
#[tokio::test]
async fn the_audience_may_be_in_another_claim() {
    let app = hs256(&[("AUTH__AUDIENCE", "client-7"), ("AUTH__AUDIENCE_CLAIM", "client_id")]).await;
    accepted_token(&app, &signed(&claims_with(json!({"client_id": "client-7"}))), "the same").await;
    accepted_token(&app, &app.token, "made by `switchboard token`").await;
    for (claims, reason) in
        [(json!({"client_id": "client-8"}), "another client"), (json!({"aud": "client-7"}), "in the usual claim alone")]
    {
        refused_token(&app, &signed(&claims_with(claims)), "invalid_token", reason).await;
    }
}

#[tokio::test]
async fn roles_are_a_list_or_a_text_with_blanks_and_reach_the_backend() {
    let rows = [
        (Value::Null, Some(false), "none named: whatever every user may"),
        (json!([]), Some(false), "the same"),
        (json!(["USER"]), Some(false), "a list"),
        (json!("USER"), Some(false), "a text"),
        (json!("OTHER  USER"), Some(false), "a text with several"),
        (json!(["OTHER", "USER", 7]), Some(false), "what is no text is no role"),
        (json!(["OTHER"]), Some(true), "the backend refuses a role it does not know"),
        (json!("OTHER"), Some(true), "as a text too"),
        (json!(["USER OTHER"]), Some(true), "in a list a blank is part of the name"),
        (json!("USERS"), Some(true), "not the beginning of a name"),
        (json!(7), None, "a number"),
        (json!({"USER": true}), None, "an object"),
    ];
    let settings = [("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", super::SECRET)];
    for (roles, is_error, reason) in rows {
        let turns = is_error.map(|_| [calls("t1", "list_my_alerts", &json!({})), says("Done.")]);
        let turns = turns.into_iter().flatten().map(|turn| turn.answer());
        let s = Scripted::with(&settings, turns).await;
        let token = signed(&claims_with(json!({"roles": roles})));
        let Some(is_error) = is_error else {
            refused_token(&s.app, &token, "invalid_token", reason).await;
            continue;
        };
        let response = s.app.post_as(&token, &json!({"message": "Alerts", "context_type": "workflow"})).await;
        let frames = frames::parse(&response.text().await.unwrap());
        assert_eq!(frames::data(&frames, "tool_call_result")["is_error"], is_error, "{reason}");
    }
}

#[tokio::test]
async fn a_claim_may_stand_in_an_object() {
    let app = hs256(&[("AUTH__TENANT_CLAIM", "org.id"), ("AUTH__ROLES_CLAIM", "https://example.com/app.roles")]).await;
    accepted_token(&app, &signed(&claims_with(json!({"org": {"id": "acme"}}))), "in an object").await;
    accepted_token(&app, &signed(&claims_with(json!({"org.id": "acme", "org": {"id": 7}}))), "the very name first")
        .await;
    accepted_token(&app, &signed(&claims_with(json!({"org": 7}))), "no object, so no tenant").await;
    refused_token(&app, &signed(&claims_with(json!({"org": {"id": 7.5}}))), "invalid_token", "it is looked at").await;
    let namespaced = |roles: Value| signed(&claims_with(json!({"https://example.com/app": {"roles": roles}})));
    refused_token(&app, &namespaced(json!(7)), "invalid_token", "behind a name that has dots itself").await;
    accepted_token(&app, &namespaced(json!(["USER"])), "the same").await;
    let twice = r#"{"alg":"HS256"}"#;
    let claims = format!(r#"{{"sub":"u","exp":{},"org":{{"id":"a","id":"b"}}}}"#, now() + 60);
    let text = format!("{}.{}", super::base64url(twice), super::base64url(claims));
    let signature = jsonwebtoken::crypto::sign(text.as_bytes(), &super::secret(), jsonwebtoken::Algorithm::HS256);
    refused_token(&app, &format!("{text}.{}", signature.unwrap()), "invalid_token", "two tenants").await;
    // What is made here is understood here.
    accepted_token(&app, &app.token_of("u", Some("acme"), &["USER"]), "made by `switchboard token`").await;
}

#[tokio::test]
async fn the_type_is_compared_when_it_is_set() {
    let app = hs256(&[("AUTH__TYP", "at+jwt")]).await;
    accepted_token(&app, &app.token, "made by `switchboard token`").await;
    refused_token(&app, &signed(&good_claims()), "invalid_token", "an id token, for instance").await;
}

#[tokio::test]
async fn the_names_of_the_claims_are_settings() {
    let app = hs256(&[("AUTH__TENANT_CLAIM", "https://example.com/tenant"), ("AUTH__ROLES_CLAIM", "scope")]).await;
    let odd = claims_with(json!({"tenant": 7, "roles": 7}));
    accepted_token(&app, &signed(&odd), "claims of the default names mean nothing now").await;
    refused_token(&app, &signed(&claims_with(json!({"scope": 7}))), "invalid_token", "the roles' own claim").await;
    let tenant = claims_with(json!({"https://example.com/tenant": 7.5}));
    refused_token(&app, &signed(&tenant), "invalid_token", "the tenant's own claim").await;
}

#[tokio::test]
async fn a_whole_number_is_its_decimal_text() {
    let app = hs256(&[("AUTH__TENANT_CLAIM", "org_id")]).await;
    let ask = async |claims: Value, chat: &str| {
        let body = json!({"message": "hi", "context_type": "workflow", "conversation_id": chat});
        let token = signed(&claims_with(claims));
        app.http
            .post(app.url("/v1/agent/chat"))
            .bearer_auth(token)
            .json(&body)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
    };
    let list = async |claims: Value| {
        let request = app.http.get(app.url("/v1/agent/conversations")).bearer_auth(signed(&claims_with(claims)));
        let list: Value = request.send().await.unwrap().json().await.unwrap();
        let heads = list["items"].as_array().unwrap_or_else(|| panic!("{list}"));
        heads.iter().map(|head| head["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    ask(json!({"sub": 274, "org_id": 9}), "mine").await;
    ask(json!({"sub": 274, "org_id": 90}), "of-another-tenant").await;
    for (claims, expected, reason) in [
        (json!({"sub": 274, "org_id": 9}), vec!["mine"], "the same numbers"),
        (json!({"sub": "274", "org_id": "9"}), vec!["mine"], "their texts are the same names"),
        (json!({"sub": 2740, "org_id": 9}), vec![], "another user"),
        (json!({"sub": 274}), vec![], "no tenant"),
    ] {
        assert_eq!(list(claims).await, expected, "{reason}");
    }
}
