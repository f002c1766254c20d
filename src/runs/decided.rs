//! Deciding a call that waits: its user goes on with it in a new run, and another user with the role lets it through or
//! turns it down.

use std::sync::Arc;

use super::reading::Attached;
use super::request::Request;
use super::task::{OwnedQuestion, RequestedRun};
use super::{Runs, StartError};
use crate::agent::offer::of_profile;
use crate::agent::offer::profile::Profile;
use crate::agent::ports::approvals::{ApprovalView, GrantError};
use crate::agent::ports::store::BeginError;
use crate::agent::ports::store_error::StoreError;
use crate::chat::approval::{Approval, ApprovalState, Consent, Decision};
use crate::chat::caller::{Caller, Owner};
use crate::chat::ids::{ApprovalId, ConversationId};
use crate::chat::input::{RunOptions, Screen};

/// The result of a decision.
pub enum Decided {
    /// A run goes on with it.
    GoesOn(Attached),
    /// It is kept for the run's own user, or has ended the matter.
    Kept(Box<ApprovalView>),
}

impl Runs {
    /// The calls that wait for `caller`: their own, and those of their tenant that ask for one of their roles.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn approvals(&self, caller: &Caller) -> Result<Vec<ApprovalView>, StoreError> {
        self.approvals.waiting(caller).await
    }

    /// The owner's own calls in that conversation that wait, in the order in which they were requested.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn approvals_in(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
    ) -> Result<Vec<ApprovalView>, StoreError> {
        self.approvals.waiting_in(owner, conversation).await
    }

    /// The approval of that id, whatever its state, if `caller` may decide it.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn approval(&self, caller: &Caller, id: ApprovalId) -> Result<Option<ApprovalView>, StoreError> {
        self.approvals.approval(caller, id).await
    }

    /// Decides a call that waits. Its user goes on with it in a new run, which makes the call, once and exactly as its
    /// user saw it, or tells the model that it was turned down. The decision of another user with the role is kept.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn decide(
        &self,
        caller: Caller,
        id: ApprovalId,
        decision: Decision,
        options: RunOptions,
        request: Request,
    ) -> Result<Decided, StartError> {
        let found = self.approvals.approval(&caller, id).await.map_err(BeginError::from)?;
        let view = found.ok_or(BeginError::NoSuchApproval)?;
        if view.owner != caller.owner {
            if self.draining.is_cancelled() {
                return Err(StartError::Draining);
            }
            let kept = self.approvals.grant(&caller, id, &decision).await.map_err(refused)?;
            return Ok(Decided::Kept(Box::new(kept)));
        }
        let approval = view.approval;
        let found = self.store.find_run(&caller.owner, approval.run).await.map_err(BeginError::from)?;
        let context_type = found.ok_or(BeginError::NoSuchApproval)?.context_type;
        let (profile, model) = self.answering(&caller, &Screen::Type(context_type), &options)?;
        if decision.approve {
            let maker = self.maker(&caller, &approval).await.map_err(BeginError::from)?;
            self.may_go_on(&approval, view.state, maker.as_ref().unwrap_or(&profile), &caller)?;
        }
        let conversation = approval.conversation;
        let question = OwnedQuestion::Decided { approval: id, decision };
        let attached = self
            .begin(caller, RequestedRun { conversation, is_first: false, question, options, profile, model, request })
            .await?;
        Ok(Decided::GoesOn(attached))
    }

    /// Who makes the plan of a call, wherever it has moved its conversation.
    async fn maker(&self, caller: &Caller, approval: &Approval) -> Result<Option<Arc<Profile>>, StoreError> {
        let Some(plan) = approval.origin.and_then(|origin| origin.plan) else { return Ok(None) };
        let made_at = self.plans.made_at(&caller.owner, plan).await?;
        Ok(made_at.and_then(|context_type| self.agent.profiles.of_type(&context_type)))
    }

    /// Whether `caller` may go on with a call of their own, or another user has to let it through before. Where the
    /// tool asks for another role today than when the call was held, the approval of then does not count.
    ///
    /// # Errors
    /// [`StartError::RoleRequired`], and [`BeginError::OwnRequest`] where it has to be another user whatever their
    /// roles.
    fn may_go_on(
        &self,
        approval: &Approval,
        state: ApprovalState,
        profile: &Profile,
        caller: &Caller,
    ) -> Result<(), StartError> {
        let was_granted = match state {
            ApprovalState::Pending => false,
            ApprovalState::Granted => true,
            // Its decision is found again, or refused as late, where it is taken.
            ApprovalState::Approved | ApprovalState::Rejected => return Ok(()),
        };
        let then = Some(&approval.consent).filter(|_| !was_granted);
        let tool = of_profile(profile, &*self.agent.tools).find(|tool| tool.def.name == approval.tool);
        let today = tool.map(|tool| tool.policy.consent).filter(|today| match (today, &approval.consent) {
            // Whoever granted it has that role, and was another user.
            (Consent::Role { role, .. }, Consent::Role { role: granted, .. }) if was_granted => role != granted,
            (today, then) => today != then,
        });
        for consent in [then, today.as_ref()].into_iter().flatten() {
            match consent {
                Consent::Role { role, not_requester: true } => return Err(BeginError::OwnRequest(role.clone()).into()),
                Consent::Role { role, not_requester: false } if !caller.has_role(role) => {
                    return Err(StartError::RoleRequired(role.clone()));
                }
                Consent::Auto | Consent::User | Consent::Role { .. } => {}
            }
        }
        Ok(())
    }
}

fn refused(error: GrantError) -> StartError {
    StartError::Begin(match error {
        GrantError::NotFound => BeginError::NoSuchApproval,
        GrantError::AlreadyDecided => BeginError::AlreadyDecided,
        GrantError::Expired => BeginError::ApprovalExpired,
        GrantError::Store(cause) => BeginError::Store(cause),
    })
}
