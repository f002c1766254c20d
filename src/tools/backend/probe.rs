//! `check-config --probe` of a backend: whether it answers, and whether it takes the credentials of the settings. One `GET` of
//! its root, which changes nothing.

use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;
use tokio::time::timeout;

use super::access::Presented;
use super::{Backend, BackendError, Credentials, NoToken, Request};
use crate::chat::caller::{Bearer, Caller, Owner};
use crate::chat::causes::Causes;

/// The results for one backend.
#[derive(Debug, Clone)]
pub struct BackendReport {
    /// Its section of the settings.
    name: String,
    credentials: Credentials,
    /// Whether it answers at all.
    answers: Finding,
    /// Whether its issuer gives a token for it.
    token: Finding,
    /// Whether it takes the credentials.
    accepts: Finding,
    /// What went wrong, in words.
    trouble: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finding {
    Yes,
    No,
    /// Not found out, or nothing to find out.
    Unknown,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "?",
        })
    }
}

impl BackendReport {
    /// Whether nothing was found that would keep it from working.
    pub fn is_good(&self) -> bool {
        self.answers == Finding::Yes && self.token != Finding::No && self.accepts != Finding::No
    }
}

/// The reports as a table: a line of titles, then one line per backend.
pub fn table(reports: &[BackendReport]) -> Vec<String> {
    let longest = reports.iter().map(|report| report.name.chars().count()).max();
    let width = longest.unwrap_or_default().max("backend".len());
    let titles = format!("{:width$}  {:18}  answers  token  accepted", "backend", "credentials");
    let rows = reports.iter().map(|report| {
        let BackendReport { name, credentials, answers, token, accepts, trouble } = report;
        let row = format!("{name:width$}  {:18}  {answers:7}  {token:5}  {accepts:8}", credentials.name());
        format!("{row}  {}", trouble.as_deref().unwrap_or_default()).trim_end().to_owned()
    });
    std::iter::once(titles).chain(rows).collect()
}

impl Backend {
    /// What this backend, which the settings call `name`, answers within `limit`. There is no caller whose token could be
    /// presented or exchanged, and no tenant.
    pub async fn probe(&self, name: String, limit: Duration) -> BackendReport {
        let credentials = self.access.credentials();
        let mut report = BackendReport {
            name,
            credentials,
            answers: Finding::Unknown,
            token: Finding::Unknown,
            accepts: Finding::Unknown,
            trouble: None,
        };
        let tried = timeout(limit, self.try_probe(&mut report)).await;
        report.trouble = match tried {
            Ok(tried) => tried.err(),
            Err(_) => Some("the probe's time is up".to_owned()),
        };
        report
    }

    async fn try_probe(&self, report: &mut BackendReport) -> Result<(), String> {
        let nobody = Caller {
            owner: Owner { tenant: String::new(), user: String::new() },
            known_as: None,
            expires_at_ms: None,
            roles: Vec::new(),
            bearer: Bearer::new(""),
            cookie: None,
        };
        let is_own = matches!(report.credentials, Credentials::Static | Credentials::ClientCredentials);
        let mut without = None;
        let presented = match self.access.presented(&nobody).await {
            _ if !is_own => Presented::default(),
            Ok(presented) => presented,
            Err(error) => {
                report.token = match error {
                    NoToken::NoTenant | NoToken::UnfitTenant => Finding::Unknown,
                    NoToken::Away | NoToken::Refused(_) | NoToken::Unusable => Finding::No,
                };
                without = Some(match error {
                    NoToken::NoTenant | NoToken::UnfitTenant => "a token is given for a tenant alone".to_owned(),
                    error => error.to_string(),
                });
                Presented::default()
            }
        };
        if report.credentials == Credentials::ClientCredentials && without.is_none() {
            report.token = Finding::Yes;
        }
        report.answers = Finding::No;
        let answer = self.sent(&presented, &Request::get([]), "application/json").await;
        let status = answer.map_err(|error: BackendError| Causes(&error).to_string())?.status();
        report.answers = Finding::Yes;
        if is_own && without.is_none() {
            report.accepts = match status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Finding::No,
                status if status.is_success() => Finding::Yes,
                // Its root may be nothing at all, which says nothing of the credentials.
                _ => Finding::Unknown,
            };
        }
        match (without, report.accepts) {
            (Some(words), _) => Err(words),
            (None, Finding::No) => Err(format!("HTTP {}", status.as_u16())),
            (None, Finding::Yes | Finding::Unknown) => Ok(()),
        }
    }
}
