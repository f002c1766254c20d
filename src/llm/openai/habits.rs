//! What is different from server to server, decided once, from the address and the configuration.

use reqwest::Url;
use serde_json::{Map, Value};

use super::call_ids::Accepts;
use super::config::{Config, MaxTokensField, ResponseFormats, ToolCallIds, Wire};
use crate::chat::model::Effort;
use crate::llm::http::ConnectError;

/// The fields of a request for chat completions that `extra_body` may not set.
const CHAT_FIELDS: [&str; 11] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "response_format",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "reasoning_effort",
];

/// The same of a request for a response: those that it has anyway, and those that would have the server keep what is said.
const RESPONSES_FIELDS: [&str; 14] = [
    "model",
    "input",
    "tools",
    "tool_choice",
    "text",
    "reasoning",
    "include",
    "max_output_tokens",
    "temperature",
    "store",
    "stream",
    "previous_response_id",
    "conversation",
    "background",
];

/// How one server wants its requests.
#[derive(Debug)]
pub(super) struct Habits {
    /// Whether it is asked for responses, else for chat completions.
    pub(super) wants_responses: bool,
    pub(super) max_completion_tokens: bool,
    pub(super) stream_options: bool,
    pub(super) echo_reasoning: bool,
    /// Whether a message of the assistant without `reasoning_content` is refused, whoever wrote it.
    pub(super) wants_content: bool,
    /// Whether a message of the assistant must have text, empty if need be, beside its calls too.
    pub(super) wants_text: bool,
    /// Whether the first call of a turn has to have a signature in its `extra_content`, though another model made it.
    pub(super) wants_signatures: bool,
    pub(super) call_ids: Accepts,
    pub(super) forces_calls: bool,
    formats: ResponseFormats,
    pub(super) extra_body: Map<String, Value>,
    /// The server's word for as much thinking as there is.
    max_effort: &'static str,
}

impl Habits {
    /// The habits of `host`, as far as `config` leaves them to us.
    ///
    /// # Errors
    /// When `extra_body` has a field that requests have anyway.
    pub(super) fn new(section: &str, config: &Config, host: Host) -> Result<Self, ConnectError> {
        let wants_responses = match config.wire {
            Wire::Auto => host == Host::OpenAi,
            Wire::Responses => true,
            Wire::Chat => false,
        };
        let fields = if wants_responses { &RESPONSES_FIELDS[..] } else { &CHAT_FIELDS };
        if let Some(key) = config.extra_body.keys().find(|key| fields.contains(&key.as_str())) {
            let reason = "is a field that the request has already".into();
            return Err(ConnectError::Extra { section: section.to_owned(), key: format!("extra_body.{key}"), reason });
        }
        Ok(Self {
            wants_responses,
            max_completion_tokens: match config.max_tokens_field {
                MaxTokensField::Auto => matches!(host, Host::OpenAi | Host::Azure),
                MaxTokensField::MaxTokens => false,
                MaxTokensField::MaxCompletionTokens => true,
            },
            // Mistral refuses the field (avante.nvim#2347), and says the usage without it.
            stream_options: config.stream_options && host != Host::Mistral,
            echo_reasoning: config.echo_reasoning,
            wants_content: matches!(host, Host::DeepSeek | Host::Moonshot),
            // `content: null` is a bad input there (TencentDB-Agent-Memory#1313).
            wants_text: host == Host::Cloudflare,
            wants_signatures: host == Host::Google,
            call_ids: match (config.tool_call_ids, host) {
                (ToolCallIds::Mistral, _) | (ToolCallIds::Auto, Host::Mistral) => Accepts::Mistral,
                (ToolCallIds::Auto, Host::OpenAi | Host::Azure | Host::OpenRouter) => Accepts::Short,
                (ToolCallIds::Any, _)
                | (
                    ToolCallIds::Auto,
                    Host::DeepSeek | Host::Moonshot | Host::Google | Host::Cloudflare | Host::Other,
                ) => Accepts::Any,
            },
            forces_calls: config.forced_tool_choice,
            formats: match (config.response_format, host) {
                (ResponseFormats::Auto, Host::OpenAi | Host::Azure | Host::OpenRouter) => ResponseFormats::Full,
                (ResponseFormats::Auto, Host::DeepSeek) => ResponseFormats::JsonObject,
                (
                    ResponseFormats::Auto,
                    Host::Mistral | Host::Moonshot | Host::Google | Host::Cloudflare | Host::Other,
                ) => ResponseFormats::WithoutTools,
                (formats, _) => formats,
            },
            extra_body: config.extra_body.clone(),
            max_effort: match host {
                Host::OpenAi | Host::Azure | Host::OpenRouter => "xhigh",
                Host::Mistral | Host::DeepSeek | Host::Moonshot | Host::Google | Host::Cloudflare | Host::Other => {
                    "high"
                }
            },
        })
    }

    /// What the server can be told of an answer's form, beside tools that may be called or without.
    pub(super) fn bind(&self, has_tools: bool) -> Bind {
        match self.formats {
            ResponseFormats::Full => Bind::Schema,
            ResponseFormats::WithoutTools if !has_tools => Bind::Schema,
            ResponseFormats::JsonObject if !has_tools => Bind::Object,
            ResponseFormats::WithoutTools
            | ResponseFormats::JsonObject
            | ResponseFormats::None
            | ResponseFormats::Auto => Bind::Nothing,
        }
    }

    /// The value of `reasoning_effort`. `xhigh` is the highest that OpenAI, Azure and OpenRouter document for current
    /// models, `high` what the others know. `none` is sent too, though older models refuse it: an error serves a
    /// request without thinking better than the model's own choice. Servers with a switch of their own get that from
    /// `extra_body`.
    pub(super) fn effort(&self, effort: Effort) -> &'static str {
        match effort {
            Effort::None => "none",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::Max => self.max_effort,
        }
    }
}

/// What a server holds its model to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bind {
    /// Nothing.
    Nothing,
    /// That its answer is a JSON object.
    Object,
    /// That it fits a schema.
    Schema,
}

/// The operator of a server, by its address, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    OpenAi,
    Azure,
    OpenRouter,
    Mistral,
    DeepSeek,
    Moonshot,
    /// Google's layer for this protocol over Gemini.
    Google,
    /// Workers AI.
    Cloudflare,
    Other,
}

impl Host {
    /// The server at `url`.
    pub(super) fn from_url(url: &Url) -> Self {
        let azure = [
            ".openai.azure.com",
            ".services.ai.azure.com",
            ".cognitiveservices.azure.com",
            // The United States government's and China's clouds.
            ".openai.azure.us",
            ".openai.azure.cn",
        ];
        match url.host_str() {
            Some("api.openai.com") => Self::OpenAi,
            Some("openrouter.ai") => Self::OpenRouter,
            Some("api.mistral.ai") => Self::Mistral,
            Some("api.deepseek.com") => Self::DeepSeek,
            Some("api.moonshot.ai" | "api.moonshot.cn") => Self::Moonshot,
            Some("generativelanguage.googleapis.com") => Self::Google,
            Some("api.cloudflare.com") => Self::Cloudflare,
            Some("gateway.ai.cloudflare.com") if url.path().contains("/workers-ai/") => Self::Cloudflare,
            Some(host) if azure.iter().any(|suffix| host.ends_with(suffix)) => Self::Azure,
            Some(_) | None => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_says_what_the_configuration_leaves_open() {
        let table = [
            ("https://api.openai.com/v1", true, Accepts::Short, false, "xhigh"),
            ("https://r.openai.azure.com/openai/deployments/d", true, Accepts::Short, false, "xhigh"),
            ("https://openrouter.ai/api/v1", false, Accepts::Short, false, "xhigh"),
            ("https://api.mistral.ai/v1", false, Accepts::Mistral, false, "high"),
            ("https://api.deepseek.com/v1", false, Accepts::Any, true, "high"),
            ("https://api.moonshot.cn/v1", false, Accepts::Any, true, "high"),
            ("https://generativelanguage.googleapis.com/v1beta/openai", false, Accepts::Any, false, "high"),
            ("https://api.cloudflare.com/client/v4/accounts/A/ai/v1", false, Accepts::Any, false, "high"),
            ("https://api.openai.com.example.org/v1", false, Accepts::Any, false, "high"),
            ("http://127.0.0.1:8000/v1", false, Accepts::Any, false, "high"),
        ];
        for (url, max_completion_tokens, call_ids, wants_content, max) in table {
            let habits = Habits::new("llm.x", &Config::default(), Host::from_url(&Url::parse(url).unwrap())).unwrap();
            let observed =
                (habits.max_completion_tokens, habits.call_ids, habits.wants_content, habits.effort(Effort::Max));
            assert_eq!(observed, (max_completion_tokens, call_ids, wants_content, max), "{url}");
        }
    }

    #[test]
    fn two_hosts_are_spared_what_they_refuse() {
        for (url, stream_options, wants_text) in [
            ("https://api.mistral.ai/v1", false, false),
            ("https://api.cloudflare.com/client/v4/accounts/A/ai/v1", true, true),
            ("https://gateway.ai.cloudflare.com/v1/A/G/workers-ai/v1", true, true),
            ("https://gateway.ai.cloudflare.com/v1/A/G/openai", true, false),
            ("http://127.0.0.1:8000/v1", true, false),
        ] {
            let habits = Habits::new("llm.x", &Config::default(), Host::from_url(&Url::parse(url).unwrap())).unwrap();
            assert_eq!((habits.stream_options, habits.wants_text), (stream_options, wants_text), "{url}");
        }
    }

    #[test]
    fn responses_are_asked_of_openai_itself_and_of_whom_the_configuration_names() {
        let fails = |wire, url: &str, field: &str| {
            let extra_body = Map::from_iter([(field.to_owned(), Value::Bool(true))]);
            let config = Config { wire, extra_body, ..Config::default() };
            let habits = Habits::new("llm.x", &config, Host::from_url(&Url::parse(url).unwrap()));
            habits.map(|habits| habits.wants_responses).map_err(|error| error.to_string())
        };
        let taken = |field| Err(format!("llm.x.extra_body.{field} is a field that the request has already"));
        let (openai, azure) = ("https://api.openai.com/v1", "https://r.openai.azure.com/openai/v1");
        for (wire, url, field, expected) in [
            (Wire::Auto, openai, "verbosity", Ok(true)),
            (Wire::Auto, azure, "verbosity", Ok(false)),
            (Wire::Auto, "http://127.0.0.1:8000/v1", "verbosity", Ok(false)),
            (Wire::Auto, "https://api.openai.com.example.org/v1", "verbosity", Ok(false)),
            (Wire::Responses, azure, "messages", Ok(true)),
            (Wire::Responses, azure, "previous_response_id", taken("previous_response_id")),
            (Wire::Responses, azure, "store", taken("store")),
            (Wire::Chat, openai, "store", Ok(false)),
            (Wire::Chat, openai, "messages", taken("messages")),
        ] {
            assert_eq!(fails(wire, url, field), expected, "{wire:?} {url} {field}");
        }
    }

    #[test]
    fn a_form_is_bound_where_it_leaves_calls_alone() {
        use ResponseFormats::{Auto, Full, JsonObject, None, WithoutTools};
        let table = [
            ("https://api.openai.com/v1", Auto, [Bind::Schema, Bind::Schema]),
            ("https://api.deepseek.com/v1", Auto, [Bind::Nothing, Bind::Object]),
            ("http://127.0.0.1:8000/v1", Auto, [Bind::Nothing, Bind::Schema]),
            ("http://127.0.0.1:8000/v1", Full, [Bind::Schema, Bind::Schema]),
            ("https://api.openai.com/v1", WithoutTools, [Bind::Nothing, Bind::Schema]),
            ("https://api.openai.com/v1", JsonObject, [Bind::Nothing, Bind::Object]),
            ("https://api.openai.com/v1", None, [Bind::Nothing, Bind::Nothing]),
        ];
        for (url, response_format, expected) in table {
            let config = Config { response_format, ..Config::default() };
            let habits = Habits::new("llm.x", &config, Host::from_url(&Url::parse(url).unwrap())).unwrap();
            assert_eq!([true, false].map(|has_tools| habits.bind(has_tools)), expected, "{url} {response_format:?}");
        }
    }
}
