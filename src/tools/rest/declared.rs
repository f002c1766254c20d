//! What files declare of tools, beside their definitions for models.

use std::time::Duration;

use super::answer::Answer;
use super::arguments::Arguments;
use super::lookup::Lookup;
use super::naming::Naming;
use super::projection::Projection;
use super::reading::Reading;
use super::request::RestRequest;
use crate::agent::ports::directives::CommandRule;
use crate::chat::signal::FactName;
use crate::chat::template::Template;
use crate::chat::tool::Effect;

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
    /// How the answer is used.
    pub reading: Reading,
    /// Tags of loaded data that a call makes stale.
    pub invalidates: Vec<String>,
    /// What it is as a directive; `None`: it is sent by the run itself.
    pub directive: Option<DirectiveSpec>,
    /// What a call that waits is called.
    pub naming: Option<Naming>,
}

impl Declared {
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
