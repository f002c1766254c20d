//! The audit record: who has written outside, decided, or read what belongs to another user, and the outcome. For
//! whoever has to answer for it later: it holds no content, never changes, and stays when its subject is deleted.

use super::ids::{ConversationId, RunId};

/// The act of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// A tool is about to write.
    WriteDispatched,
    /// Its outcome.
    WriteEnded,
    /// A user with the role let a call through.
    ApprovalGranted,
    /// Its own user had it made.
    ApprovalApproved,
    /// It was turned down.
    ApprovalRejected,
    /// It was not decided in time.
    ApprovalExpired,
    /// A change was previewed for its user, and waits.
    PreviewMade,
    /// Its user let it through, and it is about to be saved.
    PreviewAccepted,
    /// Its outcome.
    PreviewEnded,
    /// Its user turned it down.
    PreviewRejected,
    /// A user with a role has read what belongs to another one.
    Read,
    /// A user with a role had a directive carried out once more.
    DirectiveRerun,
    /// Its own user, or one with a role, had a directive not carried out.
    DirectiveCanceled,
    /// A user with a role had signals delivered once more.
    DeliveryRetried,
    /// A user with a role has deleted what is kept of another one.
    UserDeleted,
    /// A token was refused.
    TokenRefused,
}

impl Act {
    /// Its name on every wire and in every row.
    pub fn name(self) -> &'static str {
        match self {
            Self::WriteDispatched => "write.dispatched",
            Self::WriteEnded => "write.ended",
            Self::ApprovalGranted => "approval.granted",
            Self::ApprovalApproved => "approval.approved",
            Self::ApprovalRejected => "approval.rejected",
            Self::ApprovalExpired => "approval.expired",
            Self::PreviewMade => "preview.made",
            Self::PreviewAccepted => "preview.accepted",
            Self::PreviewEnded => "preview.ended",
            Self::PreviewRejected => "preview.rejected",
            Self::Read => "read",
            Self::DirectiveRerun => "directive.rerun",
            Self::DirectiveCanceled => "directive.canceled",
            Self::DeliveryRetried => "delivery.retried",
            Self::UserDeleted => "user.deleted",
            Self::TokenRefused => "token.refused",
        }
    }
}

/// A line that is about to be written.
#[derive(Debug, Clone)]
pub struct Fact<'a> {
    /// The act.
    pub act: Act,
    /// Who did it; empty where no user did.
    pub actor: &'a str,
    /// The owner of its subject.
    pub user: &'a str,
    /// In which conversation.
    pub conversation: Option<&'a str>,
    /// In which run.
    pub run: Option<RunId>,
    /// The call's id.
    pub call: Option<&'a str>,
    /// The tool.
    pub tool: Option<&'a str>,
    /// Its subject: an approval, a preview, a directive or a delivery by its id, or the path that was read.
    pub subject: Option<String>,
    /// A digest of what was sent, or would be.
    pub arguments: Option<String>,
    /// Its outcome: `done`, `failed`, `not_run` or `unknown`.
    pub outcome: Option<&'static str>,
    /// Why.
    pub reason: Option<String>,
    /// How many of them the line tells of.
    pub count: u64,
}

impl<'a> Fact<'a> {
    /// That `actor` did it, for `user`, and nothing more.
    pub fn new(act: Act, actor: &'a str, user: &'a str) -> Self {
        Self {
            act,
            actor,
            user,
            conversation: None,
            run: None,
            call: None,
            tool: None,
            subject: None,
            arguments: None,
            outcome: None,
            reason: None,
            count: 1,
        }
    }

    /// The same, in this conversation.
    pub fn within(self, conversation: &'a ConversationId) -> Self {
        Self { conversation: Some(conversation.as_str()), ..self }
    }
}

/// A line of the record, with its position in its chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLine {
    /// The chain: `tenant:` and a tenant, or [`TOKENS`].
    pub chain: String,
    /// 1, 2, 3 … in its chain.
    pub seq: u64,
    /// When, in milliseconds since the Unix epoch, by the database's clock.
    pub at_ms: i64,
    /// See [`Act::name`].
    pub act: String,
    /// See [`Fact::actor`].
    pub actor: String,
    /// See [`Fact::user`].
    pub user: String,
    /// See [`Fact::conversation`].
    pub conversation: Option<String>,
    /// See [`Fact::run`].
    pub run: Option<String>,
    /// See [`Fact::call`].
    pub call: Option<String>,
    /// See [`Fact::tool`].
    pub tool: Option<String>,
    /// See [`Fact::subject`].
    pub subject: Option<String>,
    /// See [`Fact::arguments`].
    pub arguments: Option<String>,
    /// See [`Fact::outcome`].
    pub outcome: Option<String>,
    /// See [`Fact::reason`].
    pub reason: Option<String>,
    /// See [`Fact::count`].
    pub count: u64,
    /// The digest of the line before it; empty in the first one.
    pub previous: String,
    /// SHA-256 of everything above, as lower-case hexadecimal digits.
    pub digest: String,
}

/// A part of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// A text, where there is one.
    Text(Option<&'a str>),
    /// A whole number.
    Number(i64),
}

impl AuditLine {
    /// Its parts with their names on every wire, in the order in which the digest is over them; the digest itself is none.
    pub fn parts(&self) -> [(&'static str, Part<'_>); 16] {
        let number = |number: u64| Part::Number(i64::try_from(number).unwrap_or(i64::MAX));
        let some = |text| Part::Text(Some(text));
        let any = |text| Part::Text(Option::as_deref(text));
        [
            ("chain", some(&self.chain)),
            ("seq", number(self.seq)),
            ("at_ms", Part::Number(self.at_ms)),
            ("act", some(&self.act)),
            ("actor", some(&self.actor)),
            ("user", some(&self.user)),
            ("conversation_id", any(&self.conversation)),
            ("run_id", any(&self.run)),
            ("call_id", any(&self.call)),
            ("tool", any(&self.tool)),
            ("subject", any(&self.subject)),
            ("arguments_digest", any(&self.arguments)),
            ("outcome", any(&self.outcome)),
            ("reason", any(&self.reason)),
            ("count", number(self.count)),
            ("previous", some(&self.previous)),
        ]
    }
}

/// The chain of refused tokens: whoever brings one has no tenant.
pub const TOKENS: &str = "tokens";

/// The chain of a tenant.
pub fn chain_of(tenant: &str) -> String {
    format!("tenant:{tenant}")
}
