//! `[tool.directive]`: a tool whose calls are durable commands.

use std::time::Duration;

use super::request;
use crate::agent::ports::directives::CommandRule;
use crate::chat::approval::Consent;
use crate::chat::directive::RunsAs;
use crate::chat::signal::FactName;
use crate::chat::template::Template;
use crate::chat::tool::Effect;
use crate::config::document::{Entry, Location, Table};
use crate::tools::rest::declared::{DirectiveSpec, LATER, SignalSpec};
use crate::tools::rest::reading::Reading;
use crate::tools::rest::request::{Body, RestRequest};

/// How long a model's call may wait for an outcome, in seconds.
const MOST_WAIT_S: u64 = 60;

/// Attempts of a directive at most.
const MOST_ATTEMPTS: u64 = 20;

/// Seconds that a directive may be put off: 30 days.
const MOST_DELAY_S: u64 = 30 * 24 * 3600;

/// A directive as its file says it, before its tool is known.
pub(super) struct Read<'a> {
    /// Where it stands.
    pub(super) at: Location<'a>,
    /// Where its name stands.
    pub(super) name_at: Location<'a>,
    name: FactName,
    pub(super) runs_as: RunsAs,
    idempotent: bool,
    max_attempts: u32,
    delay: Duration,
    wait: Duration,
    subject: Option<(String, Template)>,
    intent: Option<Template>,
    signals: Vec<SignalSpec>,
}

/// The directive that `table` describes; what is wrong is noted.
pub(super) fn read(mut table: Table<'_>) -> Option<Read<'_>> {
    let at = table.location();
    let now: Vec<&str> = LATER.into_iter().chain(["context"]).collect();
    let name = table.required("name").and_then(name);
    let runs_as = table.one_of("runs_as", &[RunsAs::Caller, RunsAs::Service].map(|runs_as| (runs_as.name(), runs_as)));
    let runs_as = runs_as.unwrap_or(RunsAs::Caller);
    let subject = table.take("subject").and_then(|entry| subject(entry, &now));
    let intent = table.take("key").and_then(|entry| {
        let location = entry.location();
        request::template(&location, &entry.text()?, &now)
    });
    let mut count = |key: &str, default: u64, most: u64| {
        let Some(entry) = table.take(key) else { return default };
        let location = entry.location();
        match entry.count() {
            Some(count) if count <= most => count,
            Some(_) => {
                location.wrong(format_args!("must be at most {most}"));
                default
            }
            None => default,
        }
    };
    let (wait_s, attempts, delay_s) =
        (count("wait_s", 5, MOST_WAIT_S), count("max_attempts", 1, MOST_ATTEMPTS), count("delay_s", 0, MOST_DELAY_S));
    if attempts == 0 {
        table.wrong("has max_attempts = 0, and one has to be made");
    }
    if runs_as == RunsAs::Caller && (attempts > 1 || delay_s > 0) {
        table
            .wrong("runs with its caller's token, and so is neither put off nor tried again: runs_as = \"service\" is");
    }
    let idempotent = table.flag("idempotent").unwrap_or_default();
    let signals = table.tables("signal").into_iter().filter_map(signal).collect();
    table.finish();
    let (name_at, name) = name?;
    Some(Read {
        at,
        name_at,
        name,
        runs_as,
        idempotent,
        max_attempts: u32::try_from(attempts).unwrap_or(1).max(1),
        delay: Duration::from_secs(delay_s),
        wait: Duration::from_secs(wait_s),
        subject,
        intent,
        signals,
    })
}

impl Read<'_> {
    /// The directive of the tool of this name.
    pub(super) fn of_tool(self, tool: &str, roles: &[String], consent: &Consent) -> DirectiveSpec {
        let Self { name, runs_as, idempotent, max_attempts, delay, wait, subject, intent, signals, .. } = self;
        let (tool, roles, consent) = (tool.to_owned(), roles.to_vec(), consent.clone());
        let rule = CommandRule { name, tool, roles, runs_as, consent, idempotent, max_attempts, delay };
        DirectiveSpec { rule, subject, intent, wait, signals }
    }

    /// The name of the command.
    pub(super) fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Notes what does not fit: what is done later has no screen, and nothing but a result. `has_more` says whether its tool
    /// answers without a call, makes further ones, keeps a payload or moves.
    pub(super) fn check(&self, reading: &Reading, has_more: bool, request: Option<&RestRequest>) {
        let Some(request) = request else { return self.at.wrong("is only for tools with a request") };
        if request.effect == Effect::Read {
            self.at.wrong("is only for tools that write");
        }
        let headers = request.headers.iter().flat_map(|(_, template)| template.names());
        let query = request.query.iter().flatten().flat_map(|(_, template)| template.names());
        let body = match &request.body {
            Body::Made(template) => template.names(),
            Body::Nothing | Body::Arguments => Default::default(),
        };
        let in_text = reading.text.iter().flat_map(Template::names);
        for name in headers.chain(query).chain(body).chain(in_text) {
            if !LATER.contains(&name) && name != "result" && name != "projected" {
                let words = "what is sent later has no screen: take it into an argument with [tool.inject]";
                self.at.wrong(format_args!("stands beside a template that takes {name:?}; {words}"));
            }
        }
        if has_more {
            self.at.wrong("does not go with answers, further calls, a payload or a move");
        }
        if request.progress.is_some() {
            self.at.wrong("does not go with an answer in frames");
        }
    }
}

fn name(entry: Entry<'_>) -> Option<(Location<'_>, FactName)> {
    let location = entry.location();
    match FactName::parse(&entry.text()?) {
        Ok(name) => Some((location, name)),
        Err(error) => {
            location.wrong(error);
            None
        }
    }
}

fn subject(entry: Entry<'_>, known: &[&str]) -> Option<(String, Template)> {
    let mut table = entry.table()?;
    let kind = table.required_text("type");
    let id = table.required("id").and_then(|entry| {
        let location = entry.location();
        request::template(&location, &entry.text()?, known)
    });
    table.finish();
    kind.zip(id)
}

fn signal(mut table: Table<'_>) -> Option<SignalSpec> {
    let known: Vec<&str> = LATER.into_iter().chain(["result"]).collect();
    let name = table.required("name").and_then(name);
    let subject = table.take("subject").and_then(|entry| subject(entry, &known));
    let payload = request::projection(&mut table, "payload");
    table.finish();
    let (_, name) = name?;
    Some(SignalSpec { name, subject, payload })
}
