//! The values of a run's prompt, before its first turn: loaded from the backend where the profile says so.

use serde_json::{Value, json};

use super::context::{Agent, Ended, Turns, failed};
use super::names::Names;
use crate::agent::offer::Offer;
use crate::agent::offer::profile::Profile;
use crate::agent::ports::data::{Loaded, NotLoaded};
use crate::agent::ports::llm::SystemPrompt;
use crate::agent::ports::tools::ToolContext;
use crate::agent::prompt::{Prompt, client};
use crate::chat::causes::Causes;
use crate::chat::failure::FailureCode;
use crate::chat::payload::PayloadHead;
use crate::chat::place::Place;
use crate::chat::template::{FENCE, Values};

/// 100 payloads are listed in a prompt: the newest.
const PAYLOADS_LISTED: u32 = 100;

/// 10 plans that wait are listed in a prompt: the newest.
const PLANS_LISTED: u32 = 10;

impl Agent {
    /// What every prompt may show of its caller and place.
    pub(super) fn values_of(&self, cx: &ToolContext<'_>) -> Values<'static> {
        let mut values = Values::default();
        match cx.context {
            Some(context) => values.screen("context", context.clone()),
            None => values.insert("context", Value::Null),
        }
        let mut set = |name: &'static str, value: Value| values.insert(name, value);
        set("place", cx.place.map_or(Value::Null, Place::value));
        set(FENCE, json!(self.fences.mark(&cx.caller.owner, cx.conversation)));
        set("user", json!(cx.caller.owner.user));
        set("tenant", json!(cx.caller.owner.tenant_name()));
        set("roles", json!(cx.caller.roles));
        set("conversation_id", cx.conversation_id());
        set("now", json!(timestamp(self.clock.now_ms())));
        values
    }

    /// The prompt over `values`, off the threads that serve others where the screen state is large: it is read into values, and
    /// written again where a prompt shows it.
    pub(super) async fn rendered(
        &self,
        prompt: &Prompt,
        values: Values<'static>,
        cx: &ToolContext<'_>,
    ) -> SystemPrompt {
        let (prompt, bytes) = (prompt.clone(), cx.context.map_or(0, |context| context.as_str().len()));
        self.intake.work(bytes, move || prompt.render(&values)).await
    }

    /// The data slots of `profile`, loaded at once.
    ///
    /// # Errors
    /// When data without which the profile cannot answer were not loaded.
    pub(super) async fn data_of(&self, profile: &Profile, cx: &ToolContext<'_>) -> Result<Value, NotLoaded> {
        let slots = profile.data.iter().map(|slot| async {
            let value = match self.data.load(&slot.loader, cx).await {
                Loaded::Value(value) => Some(value),
                Loaded::Failed { why, .. } if slot.is_required => return Err(why),
                Loaded::Failed { words, .. } => Some(json!({ "error": words })),
                Loaded::Nothing => None,
            };
            Ok(value.map(|value| (slot.slot.clone(), value)))
        });
        let loaded = futures::future::try_join_all(slots).await?;
        Ok(Value::Object(loaded.into_iter().flatten().collect()))
    }
}

impl Turns<'_> {
    /// The system prompt of this run.
    ///
    /// # Errors
    /// When data without which the profile cannot answer were not loaded.
    pub(super) async fn system_prompt(&self, offer: &Offer, names: &Names) -> Result<SystemPrompt, Ended> {
        let prompt = &self.profile.prompt;
        let mut values = self.agent.values_of(&self.cx);
        let mut set = |name: &'static str, value: Value| values.insert(name, value);
        if prompt.takes("tools") {
            let tools = offer.defs().iter().map(|def| json!({"name": def.name, "description": def.description}));
            set("tools", tools.collect());
        }
        if prompt.takes("payload_types") {
            let of_model = self.profile.payload_types.iter().filter(|kind| kind.marker.is_some());
            let kinds = of_model.map(|kind| {
                json!({
                    "name": kind.name,
                    "description": kind.description,
                    "marker": kind.marker,
                    "instructions": kind.instructions,
                })
            });
            set("payload_types", kinds.collect());
        }
        let actions = self.profile.client_actions.iter();
        set(
            "client_actions",
            actions.map(|action| json!({"name": action.name, "description": action.description})).collect(),
        );
        set("suggestions", json!(self.profile.suggestions));
        if prompt.takes("payloads") {
            set("payloads", self.payload_list().await);
        }
        if prompt.takes("recap") {
            set("recap", serde_json::to_value(self.recap).unwrap_or_default());
        }
        if prompt.takes("plans") {
            set("plans", self.waiting_plans().await);
        }
        if prompt.takes("data") || self.profile.data.iter().any(|slot| slot.is_required) {
            let data = self.agent.data_of(self.profile, &self.cx).await.map_err(|why| match why {
                NotLoaded::Denied | NotLoaded::NotThere => {
                    failed(FailureCode::DataDenied, "You do not have access to this context", false)
                }
                NotLoaded::Failed => {
                    let words = "What this place is about could not be loaded; please try again";
                    failed(FailureCode::DataUnavailable, words, true)
                }
            })?;
            names.note(&data);
            set("data", data);
        }
        let client = self.terms.instructions.filter(|_| self.profile.takes_instructions);
        let client = client.map(|text| client::fenced(text, &self.agent.fences.mark_of_user(&self.cx.caller.owner)));
        let rendered = self.agent.rendered(prompt, values, &self.cx).await;
        Ok(SystemPrompt { client: client.unwrap_or_default(), ..rendered })
    }

    async fn waiting_plans(&self) -> Value {
        let (owner, conversation) = (&self.cx.caller.owner, self.cx.conversation);
        match self.agent.plans.waiting_plans(owner, conversation, PLANS_LISTED).await {
            Ok(plans) => {
                plans.into_iter().map(|plan| json!({"id": plan.id.to_string(), "objective": plan.objective})).collect()
            }
            Err(error) => {
                tracing::warn!(error = %Causes(&error), "plans not listed in the prompt");
                Value::Null
            }
        }
    }

    async fn payload_list(&self) -> Value {
        let (owner, conversation) = (&self.cx.caller.owner, self.cx.conversation);
        match self.agent.payloads.payloads(owner, conversation, PAYLOADS_LISTED).await {
            Ok(payloads) => payloads.into_iter().map(listed).collect(),
            Err(error) => {
                tracing::warn!(error = %Causes(&error), "payloads not listed in the prompt");
                Value::Null
            }
        }
    }
}

fn listed(PayloadHead { id, kind, summary }: PayloadHead) -> Value {
    json!({"id": id.as_str(), "type": kind, "summary": summary})
}

/// The time as RFC 3339 text in UTC, to the second.
fn timestamp(ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    format!("{at:.0}")
}
