//! Lines of the audit record on their way to the collector: OTLP logs, over HTTP as protobuf. When a line is sent, and that it
//! is sent again, is decided by whoever keeps the record.

use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;

use super::collector::{Collector, SendError};
use super::{TelemetryError, about};
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
    collector: Collector,
    /// Who sends them.
    resource: Resource,
}

impl AuditLogs {
    /// The collector of `telemetry`. Nothing is sent yet.
    ///
    /// # Errors
    /// See [`TelemetryError`].
    pub fn new(telemetry: &Telemetry) -> Result<Self, TelemetryError> {
        let url = telemetry.logs_url().ok_or(TelemetryError::Address)?;
        let attributes = ResourceAttributesWithSchema::from(&about(telemetry)).attributes.0;
        let resource = Resource { attributes, ..Resource::default() };
        Ok(Self { collector: Collector::new(telemetry.headers_of_logs(), &url, PATIENCE)?, resource })
    }

    fn request(&self, lines: Vec<AuditLine>) -> ExportLogsServiceRequest {
        let scope = InstrumentationScope { name: "switchboard".to_owned(), ..InstrumentationScope::default() };
        let log_records = lines.into_iter().map(record).collect();
        let scope_logs = vec![ScopeLogs { scope: Some(scope), log_records, ..ScopeLogs::default() }];
        let logs = ResourceLogs { resource: Some(self.resource.clone()), scope_logs, ..ResourceLogs::default() };
        ExportLogsServiceRequest { resource_logs: vec![logs] }
    }
}

#[async_trait]
impl AuditSink for AuditLogs {
    async fn send(&self, lines: Vec<AuditLine>) -> Result<(), NotTaken> {
        let sent = self.collector.send::<ExportLogsServiceResponse>(&self.request(lines)).await;
        let refused = sent
            .map_err(|error| match error {
                // Loki answers so to lines that are old. A key or an address that is wrong can be set right.
                SendError::Refused(400 | 413 | 422) => NotTaken::Refused(error.into()),
                SendError::Refused(_) | SendError::Http(_) => NotTaken::Yet(error.into()),
            })?
            .partial_success
            .map_or(0, |partly| partly.rejected_log_records);
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
