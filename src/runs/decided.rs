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
use crate::chat::ids::{ApprovalId, ConversationId, RunId};
use crate::chat::input::{Direct, RunOptions, Screen};
use crate::chat::model::ModelChoice;
use crate::chat::run::RunRecord;

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
        mut options: RunOptions,
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
        if let Some(run) = self.hand_over(&caller, &view, &decision, request.key.is_some()).await? {
            return self.joined(&caller, run).await.map(Decided::GoesOn);
        }
        let (profile, model, is_direct) = self.goes_on_with(&caller, &view, &options).await?;
        if is_direct {
            // Whoever decides it, and by whatever protocol: no model has asked for it.
            options.direct.get_or_insert_with(|| Box::new(Direct::Decided));
        }
        let conversation = view.approval.conversation.clone();
        let question = OwnedQuestion::Decided { approval: id, decision: decision.clone() };
        let (is_repeated, by) = (request.key.is_some(), caller.clone());
        let requested = RequestedRun { conversation, is_first: false, question, options, profile, model, request };
        match self.begin(caller, requested).await {
            // Another decision on the same turn has just begun that run.
            Err(busy @ StartError::Begin(BeginError::Busy { .. })) => {
                match self.hand_over(&by, &view, &decision, is_repeated).await? {
                    Some(run) => self.joined(&by, run).await.map(Decided::GoesOn),
                    None => Err(busy),
                }
            }
            begun => Ok(Decided::GoesOn(begun?)),
        }
    }

    /// The profile and model that go on with a call of the caller's own, once it may be gone on with: where it is approved,
    /// that was looked at. And whether its run asked no model.
    async fn goes_on_with(
        &self,
        caller: &Caller,
        view: &ApprovalView,
        options: &RunOptions,
    ) -> Result<(Arc<Profile>, ModelChoice, bool), StartError> {
        let found = self.store.find_run(&caller.owner, view.approval.run).await.map_err(BeginError::from)?;
        let RunRecord { context_type, direct, .. } = found.ok_or(BeginError::NoSuchApproval)?;
        let (profile, model) = self.answering(caller, &Screen::Type(context_type), options)?;
        Ok((profile, model, direct))
    }

    /// Takes a decision of the caller's on their own call for the run that goes on behind its turn and waits for more of them:
    /// that run, where there is one.
    ///
    /// # Errors
    /// When it cannot be taken.
    pub(super) async fn hand_over(
        &self,
        caller: &Caller,
        view: &ApprovalView,
        decision: &Decision,
        is_repeated: bool,
    ) -> Result<Option<RunId>, StartError> {
        // Roles count first, whether decisions on one turn are gathered or not.
        if decision.approve {
            let (profile, _, _) = self.goes_on_with(caller, view, &RunOptions::default()).await?;
            let maker = self.maker(caller, &view.approval).await.map_err(BeginError::from)?;
            self.may_go_on(&view.approval, view.standing.state, maker.as_ref().unwrap_or(&profile), caller)?;
        }
        if self.agent.limits.decisions.is_zero() {
            return Ok(None);
        }
        let of = (&caller.owner, &view.approval.conversation);
        Ok(self.agent.decisions.hand_over(of, view.approval.id, decision, is_repeated).await?)
    }

    /// Reads the run that a decision was taken for.
    async fn joined(&self, caller: &Caller, run: RunId) -> Result<Attached, StartError> {
        self.attach(&caller.owner, run, None).await.map_err(|why| StartError::Joined { run, why })
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
