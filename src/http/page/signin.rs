//! How the page's user signs in: `GET /page/session` says it, `POST /page/token` has the issuer's code made into a token.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, header};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::bounded::json::parse_bytes;
use crate::chat::causes::Causes;
use crate::http::Services;
use crate::http::auth::{DevToken, Grant, SignedIn, is_from_this_machine};
use crate::http::body::{of_stranger, plain};
use crate::http::problem::Problem;

/// 32 KiB for all that a token is got by: four parts of 8 KiB.
const MAX_GRANT_BYTES: usize = 32 << 10;

/// What no cache keeps.
type Private<T> = ([(HeaderName, HeaderValue); 1], Json<T>);

/// How the page's user signs in.
#[derive(Serialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub(super) enum SessionBody {
    /// They are signed in already.
    Dev { token: String, expires_in_s: u64, user: String },
    /// They paste a token.
    Token,
    /// They sign in at an issuer, or paste a token.
    Oidc {
        issuer: String,
        client_id: String,
        scope: String,
        authorization_endpoint: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        end_session_endpoint: Option<String>,
    },
}

/// What the page has for a token.
#[derive(Deserialize)]
#[serde(tag = "grant_type", rename_all = "snake_case")]
enum TokenRequest {
    AuthorizationCode { code: String, code_verifier: String, redirect_uri: String, nonce: String },
    RefreshToken { refresh_token: String },
}

/// A token for the page.
#[derive(Serialize)]
pub(super) struct TokenBody {
    token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    /// By which the page's user signs out at the issuer.
    #[serde(skip_serializing_if = "Option::is_none")]
    id_token: Option<String>,
}

/// 200: a token of the development user in `dev` mode, for a page that this server itself has sent to a browser on this
/// machine; for all others how they sign in. 503 `sign_in_unavailable`: the issuer does not say where.
pub(super) async fn session(
    State(services): State<Services>,
    headers: HeaderMap,
    extensions: Extensions,
) -> Result<Private<SessionBody>, Problem> {
    let dev = services.dev_tokens.as_ref().filter(|_| is_from_this_machine(&headers, &extensions));
    let body = match (dev, &services.sign_in) {
        (None, None) => SessionBody::Token,
        (None, Some(sign_in)) => {
            let (endpoints, config) = (sign_in.endpoints().await?, sign_in.config());
            let mut authorization = endpoints.authorization.clone();
            if !config.audience.is_empty() {
                authorization.query_pairs_mut().append_pair("audience", &config.audience);
            }
            SessionBody::Oidc {
                issuer: config.issuer.clone(),
                client_id: config.client_id.clone(),
                scope: config.scope.clone(),
                authorization_endpoint: authorization.into(),
                end_session_endpoint: endpoints.end_session.as_ref().map(ToString::to_string),
            }
        }
        (Some(tokens), _) => {
            let DevToken { token, user, ttl } = tokens.token().map_err(|error| {
                tracing::error!(error = %Causes(&error), "no development token made");
                Problem::internal()
            })?;
            SessionBody::Dev { token, expires_in_s: ttl.as_secs(), user }
        }
    };
    Ok(private(body))
}

/// 200: a token for a code or a refresh token of the issuer. 400 `sign_in_refused`: the issuer gives none, or none that counts
/// here. 403 `csrf_failed`: a page of another site asks. 404: users sign in otherwise. 503 `sign_in_unavailable`: the issuer
/// is away.
pub(super) async fn token(
    State(services): State<Services>,
    headers: HeaderMap,
    body: Body,
) -> Result<Private<TokenBody>, Problem> {
    let sign_in =
        services.sign_in.as_ref().ok_or_else(|| Problem::not_found("users of this page do not sign in so"))?;
    plain(&headers)?;
    let body = of_stranger(body, MAX_GRANT_BYTES).await?;
    let request = parse_bytes(&body).map_err(|error| Problem::bad_request(error.to_string()))?;
    let grant = match request {
        TokenRequest::AuthorizationCode { code, code_verifier: verifier, redirect_uri, nonce } => {
            Grant::Code { code, verifier, redirect_uri, nonce }
        }
        TokenRequest::RefreshToken { refresh_token } => {
            Grant::Refresh { refresh_token: SecretString::from(refresh_token) }
        }
    };
    let SignedIn { token, expires_in_s, refresh_token, id_token } = sign_in.redeem(grant, &headers).await?;
    Ok(private(TokenBody { token, expires_in_s, refresh_token, id_token }))
}

fn private<T>(body: T) -> Private<T> {
    ([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(body))
}
