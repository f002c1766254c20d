//! `web_fetch`: one page, over at most five redirects, within one span of time.

use std::time::Duration;

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, Response, Url};
use serde::Serialize;

use super::body::{self, BodyError};
use super::page::{self, Text};
use crate::bounded::address::{Exceptions, Refused, Way, vet};
use crate::bounded::client::{Lookup, NoConnection, Reach, builder_over};
use crate::bounded::intake::Intake;
use crate::bounded::memory::{Exhausted, Kind};

/// Redirects that are followed: the protocol's number.
const REDIRECTS: usize = 5;

/// An address of more bytes is none that a page has.
const URL_BYTES: usize = 8 * 1024;

/// The longest content type that is told.
const CONTENT_TYPE_BYTES: usize = 200;

/// What can be read here.
const ACCEPTED: &str = "text/html, application/xhtml+xml, application/json, application/xml, text/*;q=0.9, */*;q=0.1";

/// Memory for each byte of a page while it is read: as decoded text, which takes three at most, and what is made of it.
const TIMES: usize = 4;

/// HTML takes so many times as long to read as JSON of its size, by which work is put aside.
const SLOWER_THAN_JSON: usize = 4;

/// What `web_fetch` found; as JSON it is what the model reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "web_browse_result")]
pub struct WebPage {
    /// How it was fetched: always `http`.
    pub mode: &'static str,
    /// The address that was asked for.
    pub url: String,
    /// Where redirects led.
    pub final_url: String,
    /// The status of the answer.
    pub status: u16,
    /// As the server says it; empty where it does not.
    pub content_type: String,
    /// The charset of the text, in lower case; `None` without a text.
    pub encoding: Option<String>,
    /// The words of an HTML page, or a text, JSON or XML as it is; empty of anything else, and unless the status is 200.
    pub text: String,
}

/// Why there is no page, in words for the model. No address that a name led to is ever told.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// What was given is no address, or too long.
    #[error("this is no address of a page: give it whole, with https:// ({0})")]
    BadUrl(&'static str),
    /// It may not be followed.
    #[error("{0}")]
    Refused(Refused),
    /// A redirect may not be followed.
    #[error("the page redirects to an address that was not followed: {0}")]
    RefusedRedirect(Refused),
    /// It redirects, and nobody can say where.
    #[error("the page redirects to something that is no address")]
    BadRedirect,
    /// It redirects in a circle, or too often.
    #[error("the page redirects more than {REDIRECTS} times")]
    TooManyRedirects,
    /// The time is over, wherever it was spent.
    #[error("the page did not come within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// Its name is not known.
    #[error("the name of the host is not known")]
    UnknownName(#[source] reqwest::Error),
    /// Nobody answers there, or not with a certificate that can be trusted.
    #[error("the server cannot be reached, or no secure connection can be made with it")]
    Unreachable(#[source] reqwest::Error),
    /// What answers is no HTTP, or the connection broke.
    #[error("the server gave no answer that can be read")]
    NoAnswer(#[source] reqwest::Error),
    /// The body could not be read.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// No memory is left for it.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

impl FetchError {
    /// The protocol's code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused(Refused::NotPublic | Refused::Metadata)
            | Self::RefusedRedirect(Refused::NotPublic | Refused::Metadata) => "forbidden_address",
            Self::BadUrl(_)
            | Self::Refused(Refused::Scheme | Refused::UserInfo)
            | Self::RefusedRedirect(Refused::Scheme | Refused::UserInfo)
            | Self::BadRedirect => "bad_url",
            Self::TooManyRedirects => "too_many_redirects",
            Self::Timeout(_) => "timeout",
            Self::UnknownName(_) | Self::Unreachable(_) | Self::NoAnswer(_) | Self::Body(_) | Self::Exhausted(_) => {
                "http_error"
            }
        }
    }
}

/// Fetches pages.
#[derive(Debug, Clone)]
pub struct Fetcher {
    /// Reaches public addresses alone.
    public: Client,
    /// Reaches the exceptions.
    excepted: Client,
    exceptions: Exceptions,
    timeout: Duration,
    intake: Intake,
}

impl Fetcher {
    /// A fetcher that reaches the public internet, and `exceptions` wherever they are. `timeout` bounds a whole page; names
    /// are looked up by `lookup`, and `intake` reads what comes.
    ///
    /// # Errors
    /// When the TLS setup fails.
    pub fn new(
        exceptions: Exceptions,
        timeout: Duration,
        lookup: &Lookup,
        intake: Intake,
    ) -> Result<Self, reqwest::Error> {
        let public = client(lookup.clone(), Reach::Public)?;
        let excepted = client(lookup.clone(), Reach::Anywhere)?;
        Ok(Self { public, excepted, exceptions, timeout, intake })
    }

    /// The page at `url`.
    ///
    /// # Errors
    /// See [`FetchError`]. A status that is no success is none.
    pub async fn fetch(&self, url: &str) -> Result<WebPage, FetchError> {
        let first = parse(url)?;
        let fetched = tokio::time::timeout(self.timeout, self.follow(first)).await;
        let (final_url, status, content_type, Text { encoding, text }) =
            fetched.map_err(|_| FetchError::Timeout(self.timeout))??;
        Ok(WebPage { mode: "http", url: url.to_owned(), final_url, status, content_type, encoding, text })
    }

    /// The page at the end of the redirects.
    async fn follow(&self, mut url: Url) -> Result<(String, u16, String, Text), FetchError> {
        let mut way = vet(&url, &self.exceptions).map_err(FetchError::Refused)?;
        for hop in 0..=REDIRECTS {
            let refused = if hop == 0 { FetchError::Refused } else { FetchError::RefusedRedirect };
            let client = match way {
                Way::Public => &self.public,
                Way::Excepted => &self.excepted,
            };
            let response = client.get(url.clone()).send().await.map_err(|error| failed(error, refused))?;
            let Some(next) = redirect(&response, &url)? else { return self.read(url, response).await };
            way = vet(&next, &self.exceptions).map_err(FetchError::RefusedRedirect)?;
            url = next;
        }
        Err(FetchError::TooManyRedirects)
    }

    async fn read(&self, url: Url, response: Response) -> Result<(String, u16, String, Text), FetchError> {
        let status = response.status().as_u16();
        let named = response.headers().get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
        let mut content_type = named.unwrap_or_default().into_owned();
        content_type.truncate(content_type.floor_char_boundary(CONTENT_TYPE_BYTES));
        if status != 200 || !page::is_text(&content_type) {
            return Ok((url.into(), status, content_type, Text::default()));
        }
        let mut held = self.intake.memory().reserve(Kind::Json, 0)?;
        let body = body::read(response, &mut held).await?;
        held.grow(body.bytes.len() * TIMES)?;
        let size = body.bytes.len() * SLOWER_THAN_JSON;
        let work = move || {
            let text = page::text_of(&body, &content_type);
            // Work aside goes on when its caller is gone, and its memory is held until then.
            drop(held);
            (content_type, text)
        };
        let (content_type, text) = self.intake.work(size, work).await;
        Ok((url.into(), status, content_type, text))
    }
}

/// A client that follows nothing by itself and keeps no connection, so that each request is vetted anew.
fn client(lookup: Lookup, reach: Reach) -> Result<Client, reqwest::Error> {
    let headers = [(ACCEPT, ACCEPTED), (ACCEPT_ENCODING, "gzip")];
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    builder_over(lookup, reach)
        .retry(reqwest::retry::never())
        // A proxy would resolve names again, and by itself.
        .no_proxy()
        .referer(false)
        .default_headers(HeaderMap::from_iter(headers))
        .pool_max_idle_per_host(0)
        .build()
}

fn parse(text: &str) -> Result<Url, FetchError> {
    if text.len() > URL_BYTES {
        return Err(FetchError::BadUrl("it is too long"));
    }
    Url::parse(text).map_err(|error| {
        FetchError::BadUrl(match error {
            url::ParseError::RelativeUrlWithoutBase => "it does not begin with a scheme",
            url::ParseError::EmptyHost => "it has no host",
            url::ParseError::InvalidPort => "its port is none",
            _ => "its host is none",
        })
    })
}

/// Where the answer sends us; `None` where it does not.
fn redirect(response: &Response, url: &Url) -> Result<Option<Url>, FetchError> {
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = std::str::from_utf8(location.as_bytes()).ok().filter(|location| location.len() <= URL_BYTES);
    let next = location.and_then(|location| url.join(location).ok()).filter(|next| next.as_str().len() <= URL_BYTES);
    next.map(Some).ok_or(FetchError::BadRedirect)
}

/// Why nothing was answered. The client's error is kept for the log, without the address.
fn failed(error: reqwest::Error, refused: fn(Refused) -> FetchError) -> FetchError {
    let error = error.without_url();
    match NoConnection::of(&error) {
        Some(NoConnection::Refused(reason)) => return refused(reason),
        Some(NoConnection::UnknownName) => return FetchError::UnknownName(error),
        Some(NoConnection::Certificate | NoConnection::Closed) | None => {}
    }
    match error {
        // The HTTP library reads addresses more strictly.
        error if error.is_builder() => FetchError::BadUrl("it has characters that may not stand in one"),
        error if error.is_connect() => FetchError::Unreachable(error),
        error => FetchError::NoAnswer(error),
    }
}
