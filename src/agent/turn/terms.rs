//! What a client says of its run's answer besides the question.

use crate::agent::offer::Offer;
use crate::agent::ports::llm::MustCall;
use crate::chat::answer_format::AnswerFormat;
use crate::chat::tool::ToolChoice;

/// The client's terms. A helper's answer has none.
#[derive(Clone, Copy, Default)]
pub(super) struct Terms<'a> {
    /// The form of an answer that is not free text.
    pub(super) format: Option<&'a AnswerFormat>,
    /// Whether one of the client's tools has to be called.
    pub(super) tool_choice: Option<&'a ToolChoice>,
    /// Instructions for the model.
    pub(super) instructions: Option<&'a str>,
}

impl<'a> Terms<'a> {
    /// Whether the answer is not free text.
    pub(super) fn are_bound(self) -> bool {
        self.format.is_some() || matches!(self.tool_choice, Some(ToolChoice::Required | ToolChoice::Named(_)))
    }

    /// Takes from `offer` what the client wants no calls of; whether anything may be called.
    pub(super) fn settle(self, offer: &mut Offer) -> bool {
        !matches!(self.tool_choice, Some(ToolChoice::None)) || offer.withdraw_client()
    }

    /// What has to be called. A tool that is not the client's here is not forced: whose it is decides who may call it, and
    /// when.
    pub(super) fn must_call(self, offer: &Offer) -> MustCall<'a> {
        match self.tool_choice {
            Some(ToolChoice::Required) if offer.has_of_client() => MustCall::Any,
            Some(ToolChoice::Named(name)) if offer.is_of_client(name) => MustCall::This(name),
            Some(ToolChoice::Required | ToolChoice::Named(_) | ToolChoice::Auto | ToolChoice::None) | None => {
                MustCall::No
            }
        }
    }
}
