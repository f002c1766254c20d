//! Why a run ended early.

/// Why a run ended early, in words for its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Machine-readable and stable.
    pub code: FailureCode,
    /// For the user; never a vendor's own words, an address or a key.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

/// What stands before the words for a failure of the model's service.
pub const OF_PROVIDER: &str = "LLM provider error: ";

/// The code of a failed run. `docs/ERRORS.md` explains each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "docs/ERRORS.md has a row for each")]
pub enum FailureCode {
    Internal,
    StoreUnavailable,
    Interrupted,
    Resync,
    QuotaExceeded,
    RunTimeout,
    RunTooLong,
    DataDenied,
    DataUnavailable,
    WorkspaceUnavailable,
    MaxTurns,
    ToolCallLimit,
    ToolFailures,
    MaxTokens,
    EmptyAnswer,
    InvalidAnswer,
    ContentFiltered,
    ContextTooLong,
    ModelRefused,
    ModelNotFound,
    ModelFault,
    ModelPaused,
    ProviderUnauthorized,
    ProviderQuotaExceeded,
    ProviderRateLimited,
    ProviderUnavailable,
    ProviderRejected,
    ProviderTimeout,
    ProviderTruncated,
    ProviderMalformed,
}

impl FailureCode {
    /// All that this version has.
    pub const ALL: [Self; 30] = [
        Self::Internal,
        Self::StoreUnavailable,
        Self::Interrupted,
        Self::Resync,
        Self::QuotaExceeded,
        Self::RunTimeout,
        Self::RunTooLong,
        Self::DataDenied,
        Self::DataUnavailable,
        Self::WorkspaceUnavailable,
        Self::MaxTurns,
        Self::ToolCallLimit,
        Self::ToolFailures,
        Self::MaxTokens,
        Self::EmptyAnswer,
        Self::InvalidAnswer,
        Self::ContentFiltered,
        Self::ContextTooLong,
        Self::ModelRefused,
        Self::ModelNotFound,
        Self::ModelFault,
        Self::ModelPaused,
        Self::ProviderUnauthorized,
        Self::ProviderQuotaExceeded,
        Self::ProviderRateLimited,
        Self::ProviderUnavailable,
        Self::ProviderRejected,
        Self::ProviderTimeout,
        Self::ProviderTruncated,
        Self::ProviderMalformed,
    ];

    /// Its name in events, rows and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Internal => "internal",
            Self::StoreUnavailable => "store_unavailable",
            Self::Interrupted => "interrupted",
            Self::Resync => "resync",
            Self::QuotaExceeded => "quota_exceeded",
            Self::RunTimeout => "run_timeout",
            Self::RunTooLong => "run_too_long",
            Self::DataDenied => "data_denied",
            Self::DataUnavailable => "data_unavailable",
            Self::WorkspaceUnavailable => "workspace_unavailable",
            Self::MaxTurns => "max_turns",
            Self::ToolCallLimit => "tool_call_limit",
            Self::ToolFailures => "tool_failures",
            Self::MaxTokens => "max_tokens",
            Self::EmptyAnswer => "empty_answer",
            Self::InvalidAnswer => "invalid_answer",
            Self::ContentFiltered => "content_filtered",
            Self::ContextTooLong => "context_too_long",
            Self::ModelRefused => "model_refused",
            Self::ModelNotFound => "model_not_found",
            Self::ModelFault => "model_fault",
            Self::ModelPaused => "model_paused",
            Self::ProviderUnauthorized => "provider_unauthorized",
            Self::ProviderQuotaExceeded => "provider_quota_exceeded",
            Self::ProviderRateLimited => "provider_rate_limited",
            Self::ProviderUnavailable => "provider_unavailable",
            Self::ProviderRejected => "provider_rejected",
            Self::ProviderTimeout => "provider_timeout",
            Self::ProviderTruncated => "provider_truncated",
            Self::ProviderMalformed => "provider_malformed",
        }
    }

    /// Whether the run has used up its turns or its tool calls.
    pub fn is_of_turns(self) -> bool {
        matches!(self, Self::MaxTurns | Self::ToolCallLimit)
    }

    /// The code of that name. One that only another version of this server has is [`Self::Internal`] here.
    pub fn of_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|code| code.name() == name).unwrap_or(Self::Internal)
    }
}

impl Failure {
    /// The server's own fault, with nothing about why.
    pub fn internal() -> Self {
        Self {
            code: FailureCode::Internal,
            message: "The server failed while answering; please try again".to_owned(),
            retryable: true,
        }
    }
}
