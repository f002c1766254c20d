//! What files declare of tools, beside their definitions for models.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::answer::{self, Answer};
use super::arguments::Arguments;
use super::lookup::Lookup;
use super::naming::Naming;
use super::projection::Projection;
use super::reading::Reading;
use super::request::RestRequest;
use super::values;
use crate::agent::ports::directives::CommandRule;
use crate::chat::signal::FactName;
use crate::chat::template::{Template, ValueTemplate, Values};
use crate::chat::tool::Effect;
use crate::tools::ToolError;

/// The names that what is done later takes values from: there is no screen then.
pub const LATER: [&str; 4] = ["args", "user", "tenant", "roles"];

/// What a file declares of a tool, beside its definition for the model.
#[derive(Debug, Clone)]
pub struct Declared {
    /// The arguments.
    pub arguments: Arguments,
    /// The arguments that may be names.
    pub lookups: Vec<Lookup>,
    /// Answers without a call, in order of preference.
    pub answers: Vec<Answer>,
    /// The call; `None` where some answer is always given.
    pub request: Option<RestRequest>,
    /// The calls that are made instead of it, in order of preference. They do the same: all read, or all write.
    pub instead: Vec<Conditional>,
    /// The reading that comes before the call.
    pub before: Option<Conditional>,
    /// How the answer is used.
    pub reading: Reading,
    /// Tags of loaded data that a call makes stale.
    pub invalidates: Vec<String>,
    /// What it is as a directive; `None`: it is sent by the run itself.
    pub directive: Option<DirectiveSpec>,
    /// What a call that waits is called.
    pub naming: Option<Naming>,
}

/// A call that is made where something is true.
#[derive(Debug, Clone)]
pub struct Conditional {
    /// What has to be true.
    pub when: ValueTemplate,
    /// The call.
    pub request: RestRequest,
}

impl Conditional {
    /// Whether it is made for `values`.
    ///
    /// # Errors
    /// When that cannot be told.
    pub(super) fn holds(&self, values: &Values<'_>) -> Result<bool, ToolError> {
        values::holds(&self.when, values)
            .map_err(|error| ToolError::BadParams(format!("no call can be made of them: {error}")))
    }

    /// As it was written.
    fn written(&self) -> Value {
        json!([self.when.written(), self.request.written()])
    }
}

impl Declared {
    /// The call for `values`, if there is one.
    ///
    /// # Errors
    /// When it cannot be told which.
    pub(super) fn request_for(&self, values: &Values<'_>) -> Result<Option<&RestRequest>, ToolError> {
        for other in &self.instead {
            if other.holds(values)? {
                return Ok(Some(&other.request));
            }
        }
        Ok(self.request.as_ref())
    }

    /// The names that the templates of its call, its answers and its directive take values from.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        let Self { arguments, answers, request, instead, before, reading, directive, .. } = self;
        let mut names: BTreeSet<&str> = arguments.names().chain(reading.names()).collect();
        names.extend(answers.iter().flat_map(Answer::names));
        names.extend(request.iter().flat_map(RestRequest::names));
        for Conditional { when, request } in instead.iter().chain(before) {
            names.extend(when.names().into_iter().chain(request.names()));
        }
        if let Some(DirectiveSpec { subject, intent, .. }) = directive {
            let subject = subject.iter().map(|(_, template)| template);
            names.extend(subject.chain(intent).flat_map(Template::names));
        }
        names
    }

    /// What is called, as it was written.
    pub(super) fn written(&self) -> String {
        let Self { answers, request, instead, before, .. } = self;
        // What waits since before there were answers without a call, or further calls, is still the same call.
        let mut written = match (request, answers.is_empty()) {
            (Some(request), true) => format!("rest {}", request.written()),
            (Some(request), false) => format!("rest {} unless {}", request.written(), answer::written(answers)),
            (None, _) => format!("answers {}", answer::written(answers)),
        };
        if !instead.is_empty() {
            written += &format!(" or {}", instead.iter().map(Conditional::written).collect::<Value>());
        }
        if let Some(before) = before {
            written += &format!(" after {}", before.written());
        }
        written
    }

    /// What a second call could do.
    pub(super) fn effect(&self) -> Effect {
        self.request.as_ref().map_or(Effect::Read, |request| request.effect)
    }

    /// The name of the backend; `None`: `[backend]`.
    pub(super) fn backend(&self) -> Option<&str> {
        self.request.as_ref()?.backend.as_deref()
    }
}

/// What a file says of a tool that is a directive.
#[derive(Debug, Clone)]
pub struct DirectiveSpec {
    /// The command.
    pub rule: CommandRule,
    /// What it is about: a kind, and an id.
    pub subject: Option<(String, Template)>,
    /// Its intent key.
    pub intent: Option<Template>,
    /// How long a model's call waits for its outcome.
    pub wait: Duration,
    /// What is told when it has succeeded.
    pub signals: Vec<SignalSpec>,
}

/// A signal of the domain.
#[derive(Debug, Clone)]
pub struct SignalSpec {
    /// Its name.
    pub name: FactName,
    /// What it is about; `None`: what the directive is about.
    pub subject: Option<(String, Template)>,
    /// What of the answer belongs to it.
    pub payload: Option<Projection>,
}
