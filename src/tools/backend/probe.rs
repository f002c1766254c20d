//! `check-config --probe` of a backend: whether it answers, and whether it takes the credentials of the settings. One `GET` of
//! its root, which changes nothing.

use std::time::Duration;

use reqwest::StatusCode;
use tokio::time::timeout;

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
    answers: Option<bool>,
    /// Whether its issuer gives a token for it.
    token: Option<bool>,
    /// Whether it takes the credentials.
    accepts: Option<bool>,
    /// What went wrong, in words.
    trouble: Option<String>,
}

/// How a finding is told. What was not found out, or could not be, is none.
fn word(finding: Option<bool>) -> &'static str {
    match finding {
        Some(true) => "yes",
        Some(false) => "no",
        None => "?",
    }
}

impl BackendReport {
    /// Whether nothing was found that would keep it from working.
    pub fn is_good(&self) -> bool {
        self.answers == Some(true) && self.token != Some(false) && self.accepts != Some(false)
    }
}

/// The reports as a table: a line of titles, then one line per backend.
pub fn table(reports: &[BackendReport]) -> Vec<String> {
    let longest = reports.iter().map(|report| report.name.chars().count()).max();
    let width = longest.unwrap_or_default().max("backend".len());
    let titles = format!("{:width$}  {:18}  answers  token  accepted", "backend", "credentials");
    let rows = reports.iter().map(|report| {
        let BackendReport { name, credentials, answers, token, accepts, trouble } = report;
        let [answers, token, accepts] = [answers, token, accepts].map(|finding| word(*finding));
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
        let mut report = BackendReport { name, credentials, answers: None, token: None, accepts: None, trouble: None };
        let tried = timeout(limit, self.try_probe(&mut report)).await;
        report.trouble = match tried {
            Ok(tried) => tried.err(),
            Err(_) => Some("the probe's time is up".to_owned()),
        };
        report
    }

    async fn try_probe(&self, report: &mut BackendReport) -> Result<(), String> {
        let nobody = nobody();
        let (presented, without) = match report.credentials {
            Credentials::Caller | Credentials::None | Credentials::TokenExchange => (None, None),
            Credentials::Static | Credentials::ClientCredentials => match self.access.presented(&nobody).await {
                Ok(presented) => {
                    report.token = (report.credentials == Credentials::ClientCredentials).then_some(true);
                    (Some(presented), None)
                }
                Err(NoToken::NoTenant | NoToken::UnfitTenant) => {
                    (None, Some("a token is given for a tenant alone".to_owned()))
                }
                Err(error @ (NoToken::Away | NoToken::Refused(_) | NoToken::Unusable)) => {
                    report.token = Some(false);
                    (None, Some(error.to_string()))
                }
            },
        };
        let is_presented = presented.is_some();
        report.answers = Some(false);
        let sent = self.sent(&presented.unwrap_or_default(), &Request::get([]), "application/json").await;
        let status = sent.map_err(|error: BackendError| Causes(&error).to_string())?.status();
        report.answers = Some(true);
        report.accepts = match status {
            _ if !is_presented => None,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Some(false),
            // Its root may be nothing at all, which says nothing of the credentials.
            status => status.is_success().then_some(true),
        };
        let refused = (report.accepts == Some(false)).then(|| format!("HTTP {}", status.as_u16()));
        without.or(refused).map_or(Ok(()), Err)
    }
}

/// There is no caller at hand, and no tenant.
fn nobody() -> Caller {
    Caller {
        owner: Owner { tenant: String::new(), user: String::new() },
        known_as: None,
        expires_at_ms: None,
        roles: Vec::new(),
        bearer: Bearer::new(""),
        cookie: None,
    }
}
