//! Which kind of failure an error is: by the marks and phrases that only mean one thing, then by its status, then by the
//! other marks. The status comes second because vendors disagree about it: a conversation that is too long is a 400, a
//! 413, a 429 or a 500.

use std::time::Duration;

use super::words::Words;
use crate::agent::ports::llm::ProviderErrorKind as Kind;

/// Marks (type, code, reason) that mean one thing whatever the status.
const MARKS: [(&str, Kind); 23] = [
    // OpenAI.
    ("insufficient_quota", Kind::QuotaExceeded),
    ("billing_not_active", Kind::QuotaExceeded),
    ("context_length_exceeded", Kind::ContextTooLong),
    ("invalid_api_key", Kind::Unauthorized),
    ("content_filter", Kind::ContentFiltered),
    // "Your prompt was flagged as potentially violating our usage policy."
    ("invalid_prompt", Kind::ContentFiltered),
    // Azure.
    ("responsibleaipolicyviolation", Kind::ContentFiltered),
    // Anthropic.
    ("enforced_spend_limit_reached", Kind::QuotaExceeded),
    ("billing_error", Kind::QuotaExceeded),
    ("request_too_large", Kind::ContextTooLong),
    // Moonshot (a 429).
    ("exceeded_current_quota_error", Kind::QuotaExceeded),
    // llama.cpp.
    ("exceed_context_size_error", Kind::ContextTooLong),
    // Google.
    ("api_key_invalid", Kind::Unauthorized),
    // Alibaba.
    ("invalidapikey", Kind::Unauthorized),
    ("data_inspection_failed", Kind::ContentFiltered),
    ("datainspectionfailed", Kind::ContentFiltered),
    ("arrearage", Kind::QuotaExceeded),
    // Groq.
    ("tool_use_failed", Kind::ModelFault),
    // LiteLLM.
    ("contextwindowexceedederror", Kind::ContextTooLong),
    // Amazon: a 400; then a 424, and the same inside a stream, where the model itself has failed.
    ("servicequotaexceededexception", Kind::QuotaExceeded),
    ("modelerrorexception", Kind::ModelFault),
    ("modelstreamerrorexception", Kind::ModelFault),
    ("unrecognizedclientexception", Kind::Unauthorized),
];

/// Marks of a model that does not exist, in a 4xx: some gateways give them to a 503 when all its servers are busy.
const NO_MODEL_MARKS: [&str; 2] = [
    // OpenAI (also with 400 and 403).
    "model_not_found",
    // Mistral (a 400).
    "invalid_model",
];

/// Words of a message, in lower case, that mean one thing whatever the status, where all of a row are there.
const PHRASES: [(&[&str], Kind); 35] = [
    // Anthropic.
    (&["credit balance is too low"], Kind::QuotaExceeded),
    (&["prompt is too long"], Kind::ContextTooLong),
    (&["exceed context limit"], Kind::ContextTooLong),
    (&["specified api usage limits"], Kind::QuotaExceeded),
    (&["blocked by content filtering policy"], Kind::ContentFiltered),
    // OpenAI: one request over the limit of a whole minute (a 429); then what it and many others say of the window.
    (&["request too large for", "tokens per min"], Kind::ContextTooLong),
    (&["maximum context length is", "tokens"], Kind::ContextTooLong),
    (&["exceeds the context window"], Kind::ContextTooLong),
    // Google.
    (&["exceeds the maximum number of tokens"], Kind::ContextTooLong),
    (&["input token count is", "only supports up to"], Kind::ContextTooLong),
    (&["request payload size exceeds the limit"], Kind::ContextTooLong),
    // xAI (cline#3120); its wrong key is a 400.
    (&["maximum prompt length is"], Kind::ContextTooLong),
    (&["incorrect api key provided"], Kind::Unauthorized),
    // Alibaba (qwen-code#98).
    (&["range of input length"], Kind::ContextTooLong),
    // llama.cpp (500, the second one inside a stream).
    (&["exceeds the available context size"], Kind::ContextTooLong),
    (&["context size has been exceeded"], Kind::ContextTooLong),
    // Ollama.
    (&["input length exceeds the context length"], Kind::ContextTooLong),
    (&["error parsing tool call"], Kind::ModelFault),
    // Ollama's cloud: for hours or days (a 429).
    (&["usage limit", "upgrade"], Kind::QuotaExceeded),
    // vLLM.
    (&["longer than the maximum model length"], Kind::ContextTooLong),
    // SGLang (sglang#4048).
    (&["input length (", "exceeds the maximum allowed length"], Kind::ContextTooLong),
    // Poolside (pi#4943).
    (&["exceeds the maximum allowed input length"], Kind::ContextTooLong),
    // OpenRouter: a 429 until tomorrow; a 403 of its moderation.
    (&["free-models-per-day"], Kind::QuotaExceeded),
    (&["requires moderation", "input was flagged"], Kind::ContentFiltered),
    // Moonshot and Z.ai (opencode#35918).
    (&["exceeded model token limit"], Kind::ContextTooLong),
    (&["tokens in request more than max tokens"], Kind::ContextTooLong),
    // DeepSeek.
    (&["model not exist"], Kind::ModelNotFound),
    (&["content exists risk"], Kind::ContentFiltered),
    // Z.ai and MiniMax (a 429).
    (&["insufficient balance"], Kind::QuotaExceeded),
    // LiteLLM.
    (&["invalid model name passed in"], Kind::ModelNotFound),
    // Amazon: all but the second are a 400, that is a 429 until tomorrow.
    (&["input is too long for requested model"], Kind::ContextTooLong),
    (&["too many tokens per day"], Kind::QuotaExceeded),
    (&["too many total text bytes"], Kind::ContextTooLong),
    (&["too many input tokens"], Kind::ContextTooLong),
    (&["provided model identifier is invalid"], Kind::ModelNotFound),
];

/// Words that a refused request uses of its length. Too vague for a 500, which may be out of memory for its context.
const LENGTH_WORDS: [&str; 4] = ["context length", "context window", "context size", "maximum number of tokens"];

impl Words {
    /// The kind of an error with `status`; it is to be repeated after `retry_after`, if that helps.
    pub(super) fn kind(&self, status: Option<u16>, retry_after: Option<Duration>) -> Kind {
        let message = self.message.to_lowercase();
        let is_about_length = || LENGTH_WORDS.iter().any(|words| message.contains(words));
        if let Some(kind) = self.marks.iter().find_map(|mark| of_mark(mark)).or_else(|| of_phrases(&message)) {
            return kind;
        }
        match status {
            Some(400..=428) if self.has_mark(&NO_MODEL_MARKS) => Kind::ModelNotFound,
            Some(401 | 403) => Kind::Unauthorized,
            Some(402) => Kind::QuotaExceeded,
            Some(404) => Kind::ModelNotFound,
            Some(413) => Kind::ContextTooLong,
            Some(429) => Kind::RateLimited { retry_after },
            // 499: Google's servers gave up on their own (gemini-cli#20309).
            Some(408 | 409 | 499 | 500..) => Kind::Unavailable { retry_after },
            Some(400 | 422) if is_about_length() => Kind::ContextTooLong,
            Some(_) => Kind::Rejected,
            None => match self.marks.iter().find_map(|mark| of_mark_in_stream(mark, retry_after)) {
                // LM Studio says so inside a stream, in mere words.
                Some(Kind::Rejected) | None if is_about_length() => Kind::ContextTooLong,
                Some(kind) => kind,
                // Overload and internal errors are what vendors report in the middle of an answer.
                None => Kind::Unavailable { retry_after },
            },
        }
    }

    fn has_mark(&self, marks: &[&str]) -> bool {
        self.marks.iter().any(|mark| marks.contains(&mark.as_str()))
    }
}

fn of_mark(mark: &str) -> Option<Kind> {
    // Google names a quota by its period; a day's is not worth waiting for.
    if mark.contains("perday") {
        return Some(Kind::QuotaExceeded);
    }
    MARKS.iter().find(|(known, _)| *known == mark).map(|(_, kind)| *kind)
}

fn of_phrases(message: &str) -> Option<Kind> {
    PHRASES.iter().find(|(words, _)| words.iter().all(|words| message.contains(words))).map(|(_, kind)| *kind)
}

/// What a mark means where there is no status.
fn of_mark_in_stream(mark: &str, retry_after: Option<Duration>) -> Option<Kind> {
    match mark {
        "authentication_error"
        | "permission_error"
        | "unauthenticated"
        | "permission_denied"
        | "accessdeniedexception" => Some(Kind::Unauthorized),
        "not_found_error" | "not_found" | "resourcenotfoundexception" => Some(Kind::ModelNotFound),
        model if NO_MODEL_MARKS.contains(&model) => Some(Kind::ModelNotFound),
        "rate_limit_error" | "rate_limit_exceeded" | "resource_exhausted" | "throttlingexception" => {
            Some(Kind::RateLimited { retry_after })
        }
        "invalid_request_error"
        | "invalid_argument"
        | "badrequesterror"
        | "invalid_encrypted_content"
        | "validationexception" => Some(Kind::Rejected),
        _ => None,
    }
}
