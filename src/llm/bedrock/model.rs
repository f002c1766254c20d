//! What a model on Bedrock can do beside text, which its name tells: `us.anthropic.claude-haiku-4-5-20251001-v1:0`, or the end
//! of an ARN. A name that tells nothing, as of a profile of one's own, is asked for nothing that it may refuse.
//! <https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-supported-models-features.html>,
//! caches: <https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html>.

use serde::Serialize;

use crate::chat::model::Effort;

/// 1024 tokens: a smaller budget of thoughts is refused.
const MIN_BUDGET: u32 = 1024;

/// The makers whose models differ in what a request may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Model {
    /// Anthropic's, of that version; the newest have none in their names.
    Anthropic { version: (u32, u32), is_small: bool, is_early_opus: bool },
    /// Amazon's own.
    Nova,
    /// OpenAI's open ones.
    OpenWeights,
    /// All others.
    Other,
}

/// The fields that only its maker's models have: `additionalModelRequestFields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum OwnFields {
    Thinking {
        thinking: Thinking,
        #[serde(skip_serializing_if = "Option::is_none")]
        output_config: Option<OutputConfig>,
    },
    Reasoning {
        reasoning_effort: &'static str,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thinking {
    /// The model decides; the effort guides it.
    Adaptive { display: &'static str },
    /// As many tokens at most, counted into the answer's limit.
    Enabled { budget_tokens: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct OutputConfig {
    effort: &'static str,
}

impl Model {
    /// The model called `name`.
    pub(super) fn named(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        if let Some((_, rest)) = name.split_once("anthropic.claude") {
            return Self::Anthropic {
                version: if rest.contains("instant") { (1, 0) } else { version(rest) },
                is_small: rest.contains("haiku"),
                is_early_opus: rest.contains("opus") && version(rest) < (4, 2),
            };
        }
        if name.contains("amazon.nova") {
            Self::Nova
        } else if name.contains("openai.gpt-oss") {
            Self::OpenWeights
        } else {
            Self::Other
        }
    }

    /// Whether the instructions and messages may end with a cache point, and then the tools too.
    pub(super) fn caches(self) -> (bool, bool) {
        match self {
            Self::Anthropic { version, .. } => (version >= (3, 7), version >= (3, 7)),
            Self::Nova => (true, false),
            Self::OpenWeights | Self::Other => (false, false),
        }
    }

    /// Whether it can be told that a tool has to be called.
    pub(super) fn forces_calls(self) -> bool {
        match self {
            Self::Anthropic { version, is_small, .. } => version >= (3, 0) && (version < (5, 1) || is_small),
            Self::Nova => true,
            Self::OpenWeights | Self::Other => false,
        }
    }

    /// Whether the result of a tool may have pictures and documents.
    pub(super) fn sees_results(self) -> bool {
        match self {
            Self::Anthropic { .. } | Self::Nova => true,
            Self::OpenWeights | Self::Other => false,
        }
    }

    /// Whether a message may have other things beside results of tools, or beside calls. The others refuse that.
    pub(super) fn mixes(self) -> bool {
        match self {
            Self::Anthropic { .. } | Self::Nova => true,
            Self::OpenWeights | Self::Other => false,
        }
    }

    /// Whether it takes a temperature while it does not think.
    pub(super) fn takes_temperature(self) -> bool {
        match self {
            Self::Anthropic { version, .. } => version < (4, 7),
            Self::Nova | Self::OpenWeights | Self::Other => true,
        }
    }

    /// The fields for `effort` before an answer of `max_tokens`; `None` leaves it to the model.
    pub(super) fn thinking(self, effort: Option<Effort>, max_tokens: u32) -> Option<OwnFields> {
        let (budget_tokens, word) = match effort? {
            Effort::None => return None,
            Effort::Low => (2048, "low"),
            Effort::Medium => (8192, "medium"),
            Effort::High => (16_384, "high"),
            Effort::Max => (24_576, "max"),
        };
        match self {
            Self::Anthropic { version, .. } if version < (3, 7) => None,
            Self::Anthropic { version, .. } if version < (4, 6) => {
                let budget_tokens = budget_tokens.min(self.most_tokens().saturating_sub(max_tokens));
                let thinking = Thinking::Enabled { budget_tokens };
                (budget_tokens >= MIN_BUDGET).then_some(OwnFields::Thinking { thinking, output_config: None })
            }
            Self::Anthropic { .. } => Some(OwnFields::Thinking {
                // Without it the thoughts are not sent, and the model is silent for minutes.
                thinking: Thinking::Adaptive { display: "summarized" },
                output_config: Some(OutputConfig { effort: word }),
            }),
            Self::Nova | Self::Other => None,
            Self::OpenWeights => {
                let reasoning_effort = if word == "max" { "high" } else { word };
                Some(OwnFields::Reasoning { reasoning_effort })
            }
        }
    }

    /// What an answer may be long, thoughts included: where a budget needs a limit and none is set.
    pub(super) fn most_tokens(self) -> u32 {
        match self {
            Self::Anthropic { is_early_opus: true, .. } => 32_000,
            Self::Anthropic { .. } | Self::Nova | Self::OpenWeights | Self::Other => 64_000,
        }
    }
}

/// The version in what stands behind the family's name. Not a date, and not the `v2` of the cloud's own numbers. Who has none
/// is newer than all.
fn version(rest: &str) -> (u32, u32) {
    // The number of the cloud's own: `-v1:0`.
    let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let family = rest.rsplit_once("-v").filter(|(_, number)| is_number(number)).map_or(rest, |(family, _)| family);
    if family.is_empty() {
        // `claude-v2:1`, before there were families.
        return (2, 0);
    }
    let is_version = |word: &&str| (1..=2).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit());
    let words = family.split(|c: char| !c.is_ascii_alphanumeric());
    let mut numbers = words.skip_while(|word| !is_version(word)).take_while(is_version);
    let mut next = || numbers.next().and_then(|word| word.parse().ok());
    next().map_or((u32::MAX, 0), |major| (major, next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_tells_what_it_can_do() {
        // A cache for instructions and tools, forced calls, pictures in results, a temperature.
        for (name, expected, reason) in [
            ("anthropic.claude-v2:1", "- - - see temperature", "before families"),
            ("anthropic.claude-instant-v1", "- - - see temperature", "the small one of those"),
            ("anthropic.claude-3-haiku-20240307-v1:0", "- - force see temperature", "before caches"),
            (
                "us.anthropic.claude-haiku-4-5-20251001-v1:0",
                "system tools force see temperature",
                "an inference profile",
            ),
            (
                "arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-sonnet-4-6",
                "system tools force see temperature",
                "its ARN",
            ),
            ("anthropic.claude-opus-4-7", "system tools force see -", "the first without a temperature"),
            ("global.anthropic.claude-sonnet-5-5", "system tools - see -", "no call is forced"),
            ("anthropic.claude-mythos", "system tools - see -", "no version"),
            ("anthropic.claude-mythos-preview-v1:0", "system tools - see -", "none but the cloud's"),
            ("eu.amazon.nova-pro-v1:0", "system - force see temperature", "Amazon's own"),
            ("openai.gpt-oss-120b-1:0", "- - - - temperature", "OpenAI's"),
            ("meta.llama3-3-70b-instruct-v1:0", "- - - - temperature", "another"),
            ("arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc", "- - - - temperature", "says nothing"),
        ] {
            let model = Model::named(name);
            let (system, tools) = model.caches();
            let word = |is: bool, word| if is { word } else { "-" };
            let words = [
                word(system, "system"),
                word(tools, "tools"),
                word(model.forces_calls(), "force"),
                word(model.sees_results(), "see"),
                word(model.takes_temperature(), "temperature"),
            ];
            assert_eq!(words.join(" "), expected, "{name}: {reason}");
        }
    }

    #[test]
    fn effort_is_a_budget_or_a_word_or_nothing() {
        let json = |name, effort, max_tokens| {
            serde_json::to_string(&Model::named(name).thinking(Some(effort), max_tokens)).unwrap()
        };
        for (name, effort, max_tokens, expected) in [
            ("anthropic.claude-3-5-sonnet-20241022-v2:0", Effort::Max, 1, "null"),
            (
                "anthropic.claude-sonnet-4-5-20250929-v1:0",
                Effort::Low,
                1000,
                r#"{"thinking":{"type":"enabled","budget_tokens":2048}}"#,
            ),
            (
                "anthropic.claude-opus-4-1-20250805-v1:0",
                Effort::Max,
                16_384,
                r#"{"thinking":{"type":"enabled","budget_tokens":15616}}"#,
            ),
            ("anthropic.claude-opus-4-1-20250805-v1:0", Effort::Max, 31_000, "null"),
            (
                "anthropic.claude-sonnet-5-5",
                Effort::Max,
                1000,
                r#"{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"max"}}"#,
            ),
            ("anthropic.claude-sonnet-5-5", Effort::None, 1000, "null"),
            ("openai.gpt-oss-20b-1:0", Effort::Max, 1000, r#"{"reasoning_effort":"high"}"#),
            ("amazon.nova-pro-v1:0", Effort::High, 1000, "null"),
        ] {
            assert_eq!(json(name, effort, max_tokens), expected, "{name}");
        }
    }
}
