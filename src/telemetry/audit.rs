//! Lines of the audit record on their way to the collector: OTLP logs, over HTTP as protobuf. When a line is sent, and that it
//! is sent again, is decided by whoever keeps the record.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::TelemetryError;
use crate::agent::ports::audit::{AuditSink, NotTaken};
use crate::chat::audit::{AuditLine, Part};
use crate::config::Telemetry;

/// What every line is, in OpenTelemetry's words: an event of this name.
const EVENT: &str = "switchboard.audit";

/// How long the collector may take for some hundred lines.
const PATIENCE: Duration = Duration::from_secs(10);

/// A collector that takes OTLP logs.
#[derive(Debug)]
pub struct AuditLogs {
    http: reqwest::Client,
    url: Url,
    service: String,
}

/// An answer that takes nothing.
#[derive(Debug, thiserror::Error)]
#[error("the collector answered with HTTP {0}")]
struct Refused(u16);

impl AuditLogs {
    /// The collector of `telemetry`. Nothing is sent yet.
    ///
    /// # Errors
    /// See [`TelemetryError`].
    pub fn new(telemetry: &Telemetry) -> Result<Self, TelemetryError> {
        let mut headers = HeaderMap::new();
        let unfit = TelemetryError::Headers("has characters that no http header can carry");
        for (name, value) in telemetry.headers().map_err(TelemetryError::Headers)? {
            let (Ok(name), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
                return Err(unfit);
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        // Redirects are not followed: they would take the headers along.
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE)
            .default_headers(headers)
            .build()?;
        let url = Url::parse(&telemetry.logs_url()).map_err(|_| TelemetryError::Address)?;
        Ok(Self { http, url, service: telemetry.service_name().to_owned() })
    }

    fn request(&self, lines: Vec<AuditLine>) -> ExportLogsServiceRequest {
        let about = [("service.name", self.service.clone()), ("service.version", env!("CARGO_PKG_VERSION").to_owned())];
        let resource = Resource {
            attributes: about.map(|(key, value)| pair(key, Value::StringValue(value))).into(),
            ..Resource::default()
        };
        let scope = InstrumentationScope { name: "switchboard".to_owned(), ..InstrumentationScope::default() };
        let log_records = lines.into_iter().map(record).collect();
        let scope_logs = vec![ScopeLogs { scope: Some(scope), log_records, ..ScopeLogs::default() }];
        let logs = ResourceLogs { resource: Some(resource), scope_logs, ..ResourceLogs::default() };
        ExportLogsServiceRequest { resource_logs: vec![logs] }
    }

    async fn post(&self, lines: Vec<AuditLine>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let body = self.request(lines).encode_to_vec();
        let request = self.http.post(self.url.clone()).header(CONTENT_TYPE, "application/x-protobuf").body(body);
        let answer = request.send().await?;
        if !answer.status().is_success() {
            return Err(Refused(answer.status().as_u16()).into());
        }
        // Some answer with nothing, or with JSON, that they have taken all.
        let accepted = ExportLogsServiceResponse::decode(answer.bytes().await?).unwrap_or_default();
        let refused = accepted.partial_success.map_or(0, |partly| partly.rejected_log_records);
        if refused > 0 {
            // It would refuse them again, so they are not sent again (OTLP, section "Partial success").
            tracing::error!(
                refused,
                "the collector has not taken some lines of the audit record; they are in the database"
            );
        }
        Ok(())
    }
}

#[async_trait]
impl AuditSink for AuditLogs {
    async fn send(&self, lines: Vec<AuditLine>) -> Result<(), NotTaken> {
        self.post(lines).await.map_err(NotTaken)
    }
}

/// A line as a log record: its act as the body, and all of it as attributes under the names of `docs/AUDIT.md`.
fn record(line: AuditLine) -> LogRecord {
    let parts = line.parts().into_iter().chain([("digest", Part::Text(Some(&line.digest)))]);
    let attributes = parts.filter_map(|(name, part)| {
        let value = match part {
            Part::Text(text) => Value::StringValue(text?.to_owned()),
            Part::Number(number) => Value::IntValue(number),
        };
        Some(pair(&format!("{EVENT}.{name}"), value))
    });
    let attributes = attributes.collect();
    let nanos = u64::try_from(line.at_ms).unwrap_or_default().saturating_mul(1_000_000);
    LogRecord {
        time_unix_nano: nanos,
        observed_time_unix_nano: nanos,
        severity_number: SeverityNumber::Info.into(),
        severity_text: "INFO".to_owned(),
        body: Some(AnyValue { value: Some(Value::StringValue(line.act)) }),
        attributes,
        event_name: EVENT.to_owned(),
        ..LogRecord::default()
    }
}

fn pair(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
