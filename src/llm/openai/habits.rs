//! What is different from server to server, decided once, from the address and the configuration.

use reqwest::Url;
use serde_json::{Map, Value};

use super::call_ids::Accepts;
use super::config::{Config, MaxTokensField, ToolCallIds};
use crate::chat::model::Effort;
use crate::llm::http::ConnectError;

/// The fields of a request that `extra_body` may not set.
const FIELDS: [&str; 9] = [
    "model",
    "messages",
    "tools",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "reasoning_effort",
];

/// How one server wants its requests.
#[derive(Debug)]
pub(super) struct Habits {
    pub(super) max_completion_tokens: bool,
    pub(super) stream_options: bool,
    pub(super) echo_reasoning: bool,
    pub(super) call_ids: Accepts,
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
        if let Some(key) = config.extra_body.keys().find(|key| FIELDS.contains(&key.as_str())) {
            let reason = "is a field that the request has already";
            return Err(ConnectError::Extra { section: section.to_owned(), key: format!("extra_body.{key}"), reason });
        }
        Ok(Self {
            max_completion_tokens: match config.max_tokens_field {
                MaxTokensField::Auto => matches!(host, Host::OpenAi | Host::Azure),
                MaxTokensField::MaxTokens => false,
                MaxTokensField::MaxCompletionTokens => true,
            },
            stream_options: config.stream_options,
            echo_reasoning: config.echo_reasoning,
            call_ids: match (config.tool_call_ids, host) {
                (ToolCallIds::Mistral, _) | (ToolCallIds::Auto, Host::Mistral) => Accepts::Mistral,
                (ToolCallIds::Auto, Host::OpenAi | Host::Azure | Host::OpenRouter) => Accepts::Short,
                (ToolCallIds::Any, _) | (ToolCallIds::Auto, Host::Other) => Accepts::Any,
            },
            extra_body: config.extra_body.clone(),
            max_effort: match host {
                Host::OpenAi | Host::Azure | Host::OpenRouter => "xhigh",
                Host::Mistral | Host::Other => "high",
            },
        })
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

/// The operator of a server, by its address, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    OpenAi,
    Azure,
    OpenRouter,
    Mistral,
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
            ("https://api.openai.com/v1", true, Accepts::Short, "xhigh"),
            ("https://r.openai.azure.com/openai/deployments/d", true, Accepts::Short, "xhigh"),
            ("https://openrouter.ai/api/v1", false, Accepts::Short, "xhigh"),
            ("https://api.mistral.ai/v1", false, Accepts::Mistral, "high"),
            ("https://api.openai.com.example.org/v1", false, Accepts::Any, "high"),
            ("http://127.0.0.1:8000/v1", false, Accepts::Any, "high"),
        ];
        for (url, max_completion_tokens, call_ids, max) in table {
            let habits = Habits::new("llm.x", &Config::default(), Host::from_url(&Url::parse(url).unwrap())).unwrap();
            let observed = (habits.max_completion_tokens, habits.call_ids, habits.effort(Effort::Max));
            assert_eq!(observed, (max_completion_tokens, call_ids, max), "{url}");
        }
    }
}
