//! Declared tools as commands: what a directive is about, how an attempt is sent, and what its answer means.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::declared::{Declared, DirectiveSpec, SignalSpec};
use super::lookup::{Lists, Origin};
use crate::agent::ports::approvals::call_digest;
use crate::agent::ports::directive_queue::{Attempt, AttemptDone, Proof};
use crate::agent::ports::directives::{CommandRule, Commands, Prepared};
use crate::bounded::json::{NodeBudget, Wanted};
use crate::chat::caller::{Bearer, Caller};
use crate::chat::directive::{Directive, DirectiveErrorCode, RunsAs};
use crate::chat::signal::{SignalFact, SignalSource, Subject};
use crate::chat::template::{Template, TemplateError, Values};
use crate::tools::ToolError;
use crate::tools::backend::{Backend, BackendError, NoToken};
use crate::tools::rest::data::Loaders;

/// What is written otherwise in a header: all but visible ASCII, and the sign of that.
const IN_HEADER: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// The same in a list.
const IN_LIST: &AsciiSet = &IN_HEADER.add(b',');

/// A command with all that it needs.
pub struct Command {
    /// What the file says of it.
    pub spec: DirectiveSpec,
    /// Its tool.
    pub declared: Arc<Declared>,
    /// Its backend, with the caller's credentials or whatever the settings say.
    pub backend: Arc<Backend>,
    /// The same with a service's own credentials; `None` where it runs with its caller's token.
    pub service: Option<Arc<Backend>>,
}

/// All commands, by their names.
pub struct RestCommands {
    by_name: BTreeMap<String, Arc<Command>>,
    names: Vec<String>,
    lists: Arc<Lists>,
    loaders: Arc<Loaders>,
    /// The longest result that is kept.
    max_result_bytes: usize,
}

impl RestCommands {
    /// These commands. What one changes is dropped from `loaders`; a result of more than `max_result_bytes` is left out, 0
    /// keeps all.
    pub fn new(
        commands: impl IntoIterator<Item = Arc<Command>>,
        lists: Arc<Lists>,
        loaders: Arc<Loaders>,
        max_result_bytes: usize,
    ) -> Self {
        let named = |command: Arc<Command>| (command.spec.rule.name.as_str().to_owned(), command);
        let by_name: BTreeMap<_, _> = commands.into_iter().map(named).collect();
        let names = by_name.keys().cloned().collect();
        Self { by_name, names, lists, loaders, max_result_bytes }
    }
}

impl Command {
    /// The command for these completed arguments; `values` are those of whoever asks.
    ///
    /// # Errors
    /// When a template cannot be filled, and when the id of what it is about is too long; in words for whoever asks.
    pub fn prepared(&self, args: Map<String, Value>, mut values: Values<'_>) -> Result<Prepared, String> {
        values.insert("args", Value::Object(args.clone()));
        let filled = |template: &Template| template.render(&values).map_err(|error| error.to_string());
        let subject = subject(self.spec.subject.as_ref(), filled)?;
        if subject.as_ref().is_some_and(|subject| subject.id.len() > Subject::ID_BYTES) {
            return Err(format!("the id of what it is about may have {} bytes", Subject::ID_BYTES));
        }
        let intent = self.spec.intent.as_ref().map(filled).transpose()?;
        let intent = intent.map(|intent| intent.trim().to_owned()).filter(|intent| !intent.is_empty());
        let digest = self.digest(&args);
        Ok(Prepared { payload: args, subject, intent, digest })
    }

    /// SHA-256, in hex, of what these arguments have sent: a decision counts for this alone.
    fn digest(&self, args: &Map<String, Value>) -> String {
        call_digest(self.spec.rule.name.as_str(), &self.source(), args)
    }

    /// The command as it was written: two that send different things are written differently.
    pub fn source(&self) -> String {
        let written = self.declared.request.as_ref().map(super::request::RestRequest::written).unwrap_or_default();
        format!("directive {} as {} {written}", self.spec.rule.name, self.spec.rule.runs_as.name())
    }

    async fn sent(
        &self,
        directive: &Directive,
        caller: &Caller,
        max_result_bytes: usize,
    ) -> Result<AttemptDone, ToolError> {
        let Some(request) = &self.declared.request else {
            return Err(ToolError::Refused("the tool has no request".to_owned()));
        };
        let values = later_values(&directive.payload, caller);
        let filled = request.fill(&directive.payload, &values)?;
        let key = directive.id.to_string();
        let headers = self.headers(directive);
        let mut sent = filled.request(request, Some(&key)).header("x-request-id", &headers.request_id);
        for (name, value) in &headers.of_service {
            sent = sent.header(name, value);
        }
        let (declared, signals) = (self.declared.clone(), self.spec.signals.clone());
        let made = move |answer: Value, budget: &mut NodeBudget| {
            Ok(read(&declared, &signals, &answer, values, budget, max_result_bytes).unwrap_or_else(|error| {
                tracing::warn!(error = error.for_log(), "the answer to a directive is not of use");
                AttemptDone { result: Value::Null, text: None, signals: Vec::new() }
            }))
        };
        let backend = self.service.as_ref().unwrap_or(&self.backend);
        Ok(backend.read(caller, sent, Wanted::All, made).await?)
    }

    /// The headers of a request beside those of its file.
    fn headers(&self, directive: &Directive) -> Headers {
        let plain = |text: &str| utf8_percent_encode(text, IN_HEADER).to_string();
        let mut of_service = Vec::new();
        if self.service.is_some() {
            let roles = directive.roles.iter().map(|role| utf8_percent_encode(role, IN_LIST).to_string());
            let decided = directive.approval.as_ref().and_then(|approval| approval.decided.as_ref());
            of_service = vec![
                ("x-switchboard-tenant", plain(directive.owner.tenant_name().unwrap_or_default())),
                ("x-switchboard-actor", format!("user:{}", plain(&directive.owner.user))),
                ("x-switchboard-actor-roles", roles.collect::<Vec<_>>().join(",")),
                ("x-switchboard-directive", directive.id.to_string()),
            ];
            of_service.extend(directive.owner.issuer_name().map(|issuer| ("x-switchboard-issuer", plain(issuer))));
            of_service
                .extend(decided.map(|decided| ("x-switchboard-approver", format!("user:{}", plain(&decided.by)))));
        }
        Headers { request_id: plain(&directive.correlation), of_service }
    }
}

struct Headers {
    request_id: String,
    of_service: Vec<(&'static str, String)>,
}

#[async_trait]
impl Commands for RestCommands {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn rule(&self, name: &str) -> Option<&CommandRule> {
        self.by_name.get(name).map(|command| &command.spec.rule)
    }

    async fn prepare(&self, name: &str, payload: &Map<String, Value>, caller: &Caller) -> Result<Prepared, String> {
        let Some(command) = self.by_name.get(name) else { return Err("there is no such directive".to_owned()) };
        let declared = &command.declared;
        let mut values = later_values(&Map::new(), caller);
        for name in ["context", "place", "conversation_id"] {
            values.insert(name, Value::Null);
        }
        let completed = async {
            let mut args = declared.arguments.complete(declared.arguments.checked(payload)?, &values)?;
            let origin = Origin { backend: &command.backend, name: declared.backend() };
            for lookup in &declared.lookups {
                self.lists.resolve(lookup, origin, &mut args, caller).await?;
            }
            Ok::<_, ToolError>(args)
        };
        let args = completed.await.map_err(|error| error.to_string())?;
        command.prepared(args, values)
    }

    async fn send(&self, directive: &Directive, caller: Option<&Caller>) -> Attempt {
        let Some(command) = self.by_name.get(directive.name.as_str()) else {
            return not_sendable("this server does not know this directive any more");
        };
        let of_service = Caller {
            owner: directive.owner.clone(),
            known_as: None,
            expires_at_ms: None,
            roles: directive.roles.clone(),
            bearer: Bearer::new(""),
            cookie: None,
        };
        let caller = match (directive.runs_as, caller, &command.service) {
            (RunsAs::Service, _, Some(_)) => &of_service,
            (RunsAs::Caller, Some(caller), None) if caller.owner == directive.owner => caller,
            (_, _, _) => return not_sendable("this server sends this directive with other credentials by now"),
        };
        let approved = directive.approval.as_ref().map(|approval| &approval.digest);
        if approved.is_some_and(|digest| *digest != command.digest(&directive.payload)) {
            return not_sendable(
                "its tool has changed since it was requested, and what was approved is not what would be sent",
            );
        }
        // Whoever loads while it is under way may still get what was there before it.
        let (owner, tags) = (&directive.owner, &command.declared.invalidates);
        self.loaders.stale(owner, tags).await;
        let sent = command.sent(directive, caller, self.max_result_bytes).await;
        self.loaders.stale_again(owner, tags);
        match sent {
            Ok(done) => Attempt::Done(done),
            Err(ToolError::Backend(error)) => failed(&error),
            Err(error) => not_sendable(&error.to_string()),
        }
    }
}

fn not_sendable(words: &str) -> Attempt {
    Attempt::failed(Proof::Refused, DirectiveErrorCode::NotSendable, words)
}

/// What a failed call proves.
fn failed(error: &BackendError) -> Attempt {
    let (proof, code) = match error {
        BackendError::NoToken(NoToken::NoTenant | NoToken::UnfitTenant) => {
            (Proof::Refused, DirectiveErrorCode::NotSendable)
        }
        BackendError::NoToken(_) => (Proof::NotNow, DirectiveErrorCode::BackendUnavailable),
        BackendError::BadSegment(_) => (Proof::Refused, DirectiveErrorCode::NotSendable),
        BackendError::Unreachable(error) if error.is_builder() => (Proof::Refused, DirectiveErrorCode::NotSendable),
        BackendError::Unreachable(error) | BackendError::TimedOut(error) if error.is_connect() => {
            (Proof::NotNow, DirectiveErrorCode::BackendUnavailable)
        }
        BackendError::Status { status, is_refusal, .. } => match status.as_u16() {
            425 | 429 => (Proof::NotNow, DirectiveErrorCode::BackendUnavailable),
            500 | 501 | 503 => (Proof::Broke, DirectiveErrorCode::BackendUnavailable),
            408 | 502 | 504 | 505.. if !is_refusal => (Proof::Doubt, DirectiveErrorCode::BackendUnavailable),
            505.. => (Proof::Broke, DirectiveErrorCode::BackendUnavailable),
            _ => (Proof::Refused, DirectiveErrorCode::BackendRefused),
        },
        BackendError::Failed(_) => (Proof::Refused, DirectiveErrorCode::BackendRefused),
        BackendError::Unreachable(_)
        | BackendError::TimedOut(_)
        | BackendError::BrokeOff(_)
        | BackendError::TooLarge { .. }
        | BackendError::NotJson(_)
        | BackendError::Page
        | BackendError::Compressed(_)
        | BackendError::Unreadable(_)
        | BackendError::Shape(_)
        | BackendError::Frames(_) => (Proof::Doubt, DirectiveErrorCode::BackendTimeout),
    };
    let retry_after = error.retry_after();
    match Attempt::failed(proof, code, error.to_string()) {
        Attempt::Failed { proof, error, .. } => Attempt::Failed { proof, error, retry_after },
        done @ Attempt::Done(_) => done,
    }
}

/// What an answer means.
fn read(
    declared: &Declared,
    signals: &[SignalSpec],
    answer: &Value,
    mut values: Values<'static>,
    budget: &mut NodeBudget,
    max_result_bytes: usize,
) -> Result<AttemptDone, BackendError> {
    let shape = |error: TemplateError| BackendError::Shape(error.to_string());
    let result = declared.reading.projection.apply(Cow::Borrowed(answer), budget)?;
    values.insert("result", answer.clone());
    let told = signals.iter().map(|spec| {
        let payload = match &spec.payload {
            None => Value::Null,
            Some(projection) => projection.apply(Cow::Borrowed(answer), budget)?,
        };
        let payload = match payload {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        Ok(SignalFact {
            name: spec.name.as_str().to_owned(),
            payload,
            metadata: Map::new(),
            occurred_at_ms: None,
            correlation: None,
            causation: None,
            actor: None,
            subject: subject(spec.subject.as_ref(), |id| id.render(&values).map_err(shape))?
                .filter(|subject| subject.id.len() <= Subject::ID_BYTES),
            source: SignalSource::Directives,
            dedupe_key: None,
        })
    });
    let signals = told.collect::<Result<_, BackendError>>()?;
    let text = match &declared.reading.text {
        None => None,
        Some(text) => {
            values.insert("projected", result.clone());
            Some(text.render(&values).map_err(shape)?)
        }
    };
    let bytes = result.to_string().len();
    let result = match max_result_bytes != 0 && bytes > max_result_bytes {
        true => json!({"left_out": format!("{bytes} bytes, and at most {max_result_bytes} are kept")}),
        false => result,
    };
    Ok(AttemptDone { result, text, signals })
}

/// The thing that is meant; none without an id.
fn subject<E>(
    spec: Option<&(String, Template)>,
    filled: impl FnOnce(&Template) -> Result<String, E>,
) -> Result<Option<Subject>, E> {
    let Some((kind, id)) = spec else { return Ok(None) };
    let id = filled(id)?.trim().to_owned();
    Ok((!id.is_empty()).then(|| Subject { kind: kind.clone(), id }))
}

/// The values of what is done later.
fn later_values(args: &Map<String, Value>, caller: &Caller) -> Values<'static> {
    let mut values = Values::default();
    values.insert("args", Value::Object(args.clone()));
    values.insert("user", json!(caller.owner.user));
    values.insert("tenant", json!(caller.owner.tenant_name()));
    values.insert("roles", json!(caller.roles));
    values
}
