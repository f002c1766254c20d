//! Every `code` of an error body before a stream: one closed list, explained in `docs/ERRORS.md`.
//!
//! Codes are part of the contract: clients act on them, so one never changes its meaning, and a new one needs a reason.

use serde::Serialize;
use utoipa::ToSchema;

use crate::observe::metrics::Rejection;

/// What went wrong, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The body is not usable JSON.
    MalformedJson,
    /// Fields or parameters are missing, of a wrong type, or say nothing usable.
    InvalidRequest,
    /// The body did not arrive whole.
    BodyUnreadable,
    /// A cursor that this list or stream has not given.
    CursorInvalid,
    /// No usable `Authorization: Bearer`.
    Unauthenticated,
    /// A token that is none of ours, or not for us.
    InvalidToken,
    /// A token whose time is over.
    TokenExpired,
    /// The caller is known and may not do this.
    Forbidden,
    /// A user with another role has to do this first.
    RoleRequired,
    /// The caller's own request: another user has to do this first, whatever the caller's roles.
    OwnRequest,
    /// The token names no tenant, and has to.
    TenantRequired,
    /// Another site may have sent the request with its visitor's session.
    CsrfFailed,
    /// No such thing, or not the caller's.
    NotFound,
    /// The path is there, its method is not.
    MethodNotAllowed,
    /// A decision is taken once.
    AlreadyDecided,
    /// The conversation has a run.
    ConversationBusy,
    /// An answer is being given in the workspace.
    WorkspaceBusy,
    /// The call that was decided is not the one that waits.
    DigestMismatch,
    /// Results of calls that wait for none.
    NoSuchCall,
    /// A run that is live, or has its answer.
    NotContinuable,
    /// No decision came in time.
    ApprovalExpired,
    /// An attempt of the directive is under way.
    DirectiveRunning,
    /// The directive cannot run again.
    NotRerunnable,
    /// The delivery is not given up.
    NotDead,
    /// What a preview would change has changed since.
    PreviewStale,
    /// A newer preview of the same thing replaces it.
    PreviewSuperseded,
    /// No decision on the preview came in time.
    PreviewExpired,
    /// What comes after the cursor is not kept any more.
    CursorEvicted,
    /// The body is larger than the limit.
    BodyTooLarge,
    /// A field is larger than its limit.
    FieldTooLarge,
    /// A compressed body.
    EncodedBody,
    /// A file of a kind that is not taken.
    FileUnsupported,
    /// The key was used for another request.
    IdempotencyMismatch,
    /// A name in what would be kept is that of a secret.
    SecretInPayload,
    /// The issuer gave no token for what the page has shown, or none that counts here.
    SignInRefused,
    /// The server failed.
    Internal,
    /// The database does not tell whether the run has begun.
    BeginUnconfirmed,
    /// The backend did not do it.
    BackendRefused,
    /// The backend's answer did not come.
    SaveUnconfirmed,
    /// The server is shutting down.
    Draining,
    /// The events of a run cannot be kept or read.
    EventsUnavailable,
    /// The issuer's keys cannot be had now.
    KeysUnavailable,
    /// The application does not say whose a session is.
    SessionUnavailable,
    /// The issuer at which users sign in does not answer.
    SignInUnavailable,
    /// The files of the workspace cannot be kept or changed now.
    WorkspaceUnavailable,
    /// The body did not come in its time.
    BodyTimeout,
    /// Method, path and headers are too long together.
    HeadTooLarge,
    /// The body's JSON is nested too deeply.
    JsonTooDeep,
    /// As many read this run as may.
    TooManyReaders,
    /// As many requests or bytes of the user are in work as may be.
    TooManyRequests,
    /// The user begins runs too fast.
    RateLimited,
    /// As many runs are live as the user or the tenant may have.
    TooManyRuns,
    /// As many directives are not over as the user or the tenant may have.
    TooManyDirectives,
    /// What the user or the tenant may spend is spent.
    QuotaExceeded,
    /// As many conversations are there as the user or the tenant may have.
    ConversationQuotaExceeded,
    /// As much is kept as may be for the user or the tenant.
    StorageQuotaExceeded,
    /// As many conversations were exported as may be on a day.
    ExportQuotaExceeded,
    /// As many runs are live as this server takes.
    AtCapacity,
    /// A job is for a helper that is switched off.
    HelperOff,
    /// Files are not kept here.
    FilesOff,
    /// Files cannot be written or read now.
    FilesUnavailable,
    /// The server has no memory left for this now.
    MemoryExhausted,
    /// The database does not answer.
    StoreUnavailable,
}

impl Code {
    /// All of them.
    pub const ALL: [Self; 63] = [
        Self::MalformedJson,
        Self::InvalidRequest,
        Self::BodyUnreadable,
        Self::CursorInvalid,
        Self::Unauthenticated,
        Self::InvalidToken,
        Self::TokenExpired,
        Self::Forbidden,
        Self::RoleRequired,
        Self::OwnRequest,
        Self::TenantRequired,
        Self::CsrfFailed,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::AlreadyDecided,
        Self::ConversationBusy,
        Self::WorkspaceBusy,
        Self::DigestMismatch,
        Self::NoSuchCall,
        Self::NotContinuable,
        Self::ApprovalExpired,
        Self::DirectiveRunning,
        Self::NotRerunnable,
        Self::NotDead,
        Self::PreviewStale,
        Self::PreviewSuperseded,
        Self::PreviewExpired,
        Self::CursorEvicted,
        Self::BodyTooLarge,
        Self::FieldTooLarge,
        Self::EncodedBody,
        Self::FileUnsupported,
        Self::IdempotencyMismatch,
        Self::SecretInPayload,
        Self::SignInRefused,
        Self::Internal,
        Self::BeginUnconfirmed,
        Self::BackendRefused,
        Self::SaveUnconfirmed,
        Self::Draining,
        Self::EventsUnavailable,
        Self::KeysUnavailable,
        Self::SessionUnavailable,
        Self::SignInUnavailable,
        Self::WorkspaceUnavailable,
        Self::BodyTimeout,
        Self::HeadTooLarge,
        Self::JsonTooDeep,
        Self::TooManyReaders,
        Self::TooManyRequests,
        Self::RateLimited,
        Self::TooManyRuns,
        Self::TooManyDirectives,
        Self::QuotaExceeded,
        Self::ConversationQuotaExceeded,
        Self::StorageQuotaExceeded,
        Self::ExportQuotaExceeded,
        Self::AtCapacity,
        Self::HelperOff,
        Self::FilesOff,
        Self::FilesUnavailable,
        Self::MemoryExhausted,
        Self::StoreUnavailable,
    ];

    /// As clients read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MalformedJson => "malformed_json",
            Self::InvalidRequest => "invalid_request",
            Self::BodyUnreadable => "body_unreadable",
            Self::CursorInvalid => "cursor_invalid",
            Self::Unauthenticated => "unauthenticated",
            Self::InvalidToken => "invalid_token",
            Self::TokenExpired => "token_expired",
            Self::Forbidden => "forbidden",
            Self::RoleRequired => "role_required",
            Self::OwnRequest => "own_request",
            Self::TenantRequired => "tenant_required",
            Self::CsrfFailed => "csrf_failed",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::AlreadyDecided => "already_decided",
            Self::ConversationBusy => "conversation_busy",
            Self::WorkspaceBusy => "workspace_busy",
            Self::DigestMismatch => "digest_mismatch",
            Self::NoSuchCall => "no_such_call",
            Self::NotContinuable => "not_continuable",
            Self::ApprovalExpired => "approval_expired",
            Self::DirectiveRunning => "directive_running",
            Self::NotRerunnable => "not_rerunnable",
            Self::NotDead => "not_dead",
            Self::PreviewStale => "preview_stale",
            Self::PreviewSuperseded => "preview_superseded",
            Self::PreviewExpired => "preview_expired",
            Self::CursorEvicted => "cursor_evicted",
            Self::BodyTooLarge => "body_too_large",
            Self::FieldTooLarge => "field_too_large",
            Self::EncodedBody => "encoded_body",
            Self::FileUnsupported => "file_unsupported",
            Self::IdempotencyMismatch => "idempotency_mismatch",
            Self::SecretInPayload => "secret_in_payload",
            Self::SignInRefused => "sign_in_refused",
            Self::Internal => "internal",
            Self::BeginUnconfirmed => "begin_unconfirmed",
            Self::BackendRefused => "backend_refused",
            Self::SaveUnconfirmed => "save_unconfirmed",
            Self::Draining => "draining",
            Self::EventsUnavailable => "events_unavailable",
            Self::KeysUnavailable => "keys_unavailable",
            Self::SessionUnavailable => "session_unavailable",
            Self::SignInUnavailable => "sign_in_unavailable",
            Self::WorkspaceUnavailable => "workspace_unavailable",
            Self::BodyTimeout => "body_timeout",
            Self::HeadTooLarge => "head_too_large",
            Self::JsonTooDeep => "json_too_deep",
            Self::TooManyReaders => "too_many_readers",
            Self::TooManyRequests => "too_many_requests",
            Self::RateLimited => "rate_limited",
            Self::TooManyRuns => "too_many_runs",
            Self::TooManyDirectives => "too_many_directives",
            Self::QuotaExceeded => "quota_exceeded",
            Self::ConversationQuotaExceeded => "conversation_quota_exceeded",
            Self::StorageQuotaExceeded => "storage_quota_exceeded",
            Self::ExportQuotaExceeded => "export_quota_exceeded",
            Self::AtCapacity => "at_capacity",
            Self::HelperOff => "helper_off",
            Self::FilesOff => "files_off",
            Self::FilesUnavailable => "files_unavailable",
            Self::MemoryExhausted => "memory_exhausted",
            Self::StoreUnavailable => "store_unavailable",
        }
    }

    /// The limit that it tells of, if it does.
    pub(super) const fn rejection(self) -> Option<Rejection> {
        match self {
            Self::HeadTooLarge => Some(Rejection::Head),
            Self::BodyTooLarge | Self::FieldTooLarge | Self::BodyTimeout | Self::JsonTooDeep => Some(Rejection::Body),
            Self::TooManyRequests => Some(Rejection::Requests),
            Self::MemoryExhausted => Some(Rejection::Memory),
            Self::RateLimited => Some(Rejection::Rate),
            Self::TooManyRuns => Some(Rejection::Runs),
            Self::AtCapacity => Some(Rejection::ReplicaRuns),
            Self::TooManyReaders => Some(Rejection::Readers),
            Self::TooManyDirectives
            | Self::QuotaExceeded
            | Self::ConversationQuotaExceeded
            | Self::StorageQuotaExceeded
            | Self::ExportQuotaExceeded => Some(Rejection::Quota),
            Self::Draining => Some(Rejection::Draining),
            Self::MalformedJson
            | Self::InvalidRequest
            | Self::BodyUnreadable
            | Self::CursorInvalid
            | Self::Unauthenticated
            | Self::InvalidToken
            | Self::TokenExpired
            | Self::Forbidden
            | Self::RoleRequired
            | Self::OwnRequest
            | Self::TenantRequired
            | Self::CsrfFailed
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::AlreadyDecided
            | Self::ConversationBusy
            | Self::WorkspaceBusy
            | Self::DigestMismatch
            | Self::NoSuchCall
            | Self::NotContinuable
            | Self::ApprovalExpired
            | Self::DirectiveRunning
            | Self::NotRerunnable
            | Self::NotDead
            | Self::SecretInPayload
            | Self::SignInRefused
            | Self::PreviewStale
            | Self::PreviewSuperseded
            | Self::PreviewExpired
            | Self::CursorEvicted
            | Self::EncodedBody
            | Self::FileUnsupported
            | Self::FilesOff
            | Self::FilesUnavailable
            | Self::IdempotencyMismatch
            | Self::Internal
            | Self::BeginUnconfirmed
            | Self::BackendRefused
            | Self::SaveUnconfirmed
            | Self::EventsUnavailable
            | Self::KeysUnavailable
            | Self::SessionUnavailable
            | Self::SignInUnavailable
            | Self::WorkspaceUnavailable
            | Self::HelperOff
            | Self::StoreUnavailable => None,
        }
    }

    /// Whether the same request, sent again later, may succeed without a change to it.
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::BodyUnreadable
            | Self::ConversationBusy
            | Self::WorkspaceBusy
            | Self::Internal
            | Self::BackendRefused
            | Self::Draining
            | Self::EventsUnavailable
            | Self::KeysUnavailable
            | Self::SessionUnavailable
            | Self::SignInUnavailable
            | Self::WorkspaceUnavailable
            | Self::FilesUnavailable
            | Self::BodyTimeout
            | Self::TooManyReaders
            | Self::TooManyRequests
            | Self::RateLimited
            | Self::TooManyRuns
            | Self::TooManyDirectives
            | Self::DirectiveRunning
            | Self::QuotaExceeded
            | Self::ExportQuotaExceeded
            | Self::AtCapacity
            | Self::MemoryExhausted
            | Self::StoreUnavailable => true,
            // The save may have been done: it is not sent again unseen.
            Self::SaveUnconfirmed
            | Self::BeginUnconfirmed
            | Self::HelperOff
            | Self::FilesOff
            | Self::FileUnsupported
            | Self::ConversationQuotaExceeded
            | Self::StorageQuotaExceeded
            | Self::MalformedJson
            | Self::InvalidRequest
            | Self::CursorInvalid
            | Self::Unauthenticated
            | Self::InvalidToken
            | Self::TokenExpired
            | Self::Forbidden
            | Self::RoleRequired
            | Self::OwnRequest
            | Self::TenantRequired
            | Self::CsrfFailed
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::AlreadyDecided
            | Self::DigestMismatch
            | Self::NoSuchCall
            | Self::NotContinuable
            | Self::ApprovalExpired
            | Self::NotRerunnable
            | Self::NotDead
            | Self::SecretInPayload
            | Self::SignInRefused
            | Self::PreviewStale
            | Self::PreviewSuperseded
            | Self::PreviewExpired
            | Self::CursorEvicted
            | Self::BodyTooLarge
            | Self::FieldTooLarge
            | Self::EncodedBody
            | Self::HeadTooLarge
            | Self::JsonTooDeep
            | Self::IdempotencyMismatch => false,
        }
    }
}
