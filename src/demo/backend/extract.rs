//! What a request carries, read so that whatever is wrong with it is refused in the API's own form.

use std::collections::BTreeMap;
use std::str::FromStr;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::error::{ApiError, Code};

/// The variable segments of the path.
#[derive(Debug)]
pub struct PathOf<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathOf<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(value)| Self(value)).map_err(|rejection| ApiError::invalid(rejection.body_text()))
    }
}

/// The query, by key; an empty value counts as absent.
#[derive(Debug)]
pub struct Params(BTreeMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::from_request_parts(parts, state).await;
        query.map(|Query(map)| Self(map)).map_err(|rejection| ApiError::invalid(rejection.body_text()))
    }
}

impl Params {
    /// The value at `key`.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// The value at `key` as a `T`.
    ///
    /// # Errors
    /// `invalid_argument` when it is not one.
    pub fn parse<T: FromStr>(&self, key: &str) -> Result<Option<T>, ApiError> {
        self.text(key).map(|text| parse(key, text)).transpose()
    }

    /// The values at `key`, separated by commas; none means that the key is absent.
    ///
    /// # Errors
    /// `invalid_argument` when one of them is not a `T`.
    pub fn parse_list<T: FromStr>(&self, key: &str) -> Result<Vec<T>, ApiError> {
        let Some(text) = self.text(key) else {
            return Ok(Vec::new());
        };
        text.split(',').map(|part| parse(key, part.trim())).collect()
    }
}

fn parse<T: FromStr>(key: &str, text: &str) -> Result<T, ApiError> {
    text.parse().map_err(|_| ApiError::invalid(format!("{key}: {text:?} is not valid")))
}

/// The body as JSON of any content type; an empty one counts as `{}`.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            let code = match rejection.status() {
                StatusCode::PAYLOAD_TOO_LARGE => Code::ResourceExhausted,
                _ => Code::InvalidArgument,
            };
            ApiError::new(code, rejection.body_text())
        })?;
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        let json = &mut serde_json::Deserializer::from_slice(text);
        let value = serde_path_to_error::deserialize(&mut *json)
            .map_err(|error| ApiError::invalid(format!("decode: {}: {}", error.path(), error.inner())))?;
        json.end().map_err(|error| ApiError::invalid(format!("decode: {error}")))?;
        Ok(Self(value))
    }
}
