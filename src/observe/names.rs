//! Every name of a span and of an attribute, in one file: the OpenTelemetry conventions for generative AI are still
//! under development and rename things. Ours follow the state of November 2026
//! (<https://github.com/open-telemetry/semantic-conventions-genai>).

/// A request, until its answer has ended and its run too.
pub const HTTP_REQUEST: &str = "http.request";
/// A run, from its first turn to its recorded end.
pub const AGENT_RUN: &str = "agent.run";
/// One model call of a run and the tool calls of its answer.
pub const AGENT_TURN: &str = "agent.turn";
/// A summary of what no longer fits, made after a run.
pub const AGENT_SUMMARY: &str = "agent.summary";
/// See [`super::spans::agent_labels`].
pub const AGENT_LABELS: &str = "agent.labels";
/// See [`super::spans::agent_message`].
pub const AGENT_MESSAGE: &str = "agent.message";
/// A model's answer, with all tries and fallbacks before its first token.
pub const LLM_CHAT: &str = "llm.chat";
/// A tool's call.
pub const TOOL_EXECUTE: &str = "tool.execute";

/// Which of the names above a span has: the conventions want names with the model's or the tool's in them.
pub const SPAN: &str = "switchboard.span";

/// The operation: one of [`CHAT`], [`INVOKE_AGENT`], [`EXECUTE_TOOL`].
pub const OPERATION_NAME: &str = "gen_ai.operation.name";
/// The operation of a model call.
pub const CHAT: &str = "chat";
/// The operation of a run.
pub const INVOKE_AGENT: &str = "invoke_agent";
/// The operation of a tool's call.
pub const EXECUTE_TOOL: &str = "execute_tool";
/// The provider, in the conventions' word for it, which a vendor's folder gives.
pub const PROVIDER_NAME: &str = "gen_ai.provider.name";
/// The model of the request.
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
/// The model that answered: with fallbacks, not the first of the list.
pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
/// The vendor's id of the answer.
pub const RESPONSE_ID: &str = "gen_ai.response.id";
/// Why the model stopped: a list with one word.
pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// Seconds from the call to the first piece of the answer.
pub const TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
/// Tokens of the prompt, cached ones included.
pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// Tokens of the answer, reasoning included.
pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Of the prompt, those from a cache.
pub const CACHED_INPUT_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
/// Of the answer, those spent on reasoning.
pub const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
/// The tool.
pub const TOOL_NAME: &str = "gen_ai.tool.name";
/// The call.
pub const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
/// `function`: all of them are.
pub const TOOL_TYPE: &str = "gen_ai.tool.type";
/// The profile.
pub const AGENT_NAME: &str = "gen_ai.agent.name";
/// The conversation.
pub const CONVERSATION_ID: &str = "gen_ai.conversation.id";
/// The error, as one of our codes; absent where there is none.
pub const ERROR_TYPE: &str = "error.type";
/// The request's id, ours or the client's.
pub const REQUEST_ID: &str = "request.id";
/// The request's method.
pub const HTTP_METHOD: &str = "http.request.method";

/// The method of a request with an unknown one, as the conventions have it.
pub const OTHER_METHOD: &str = "_OTHER";

/// The route's template.
pub const HTTP_ROUTE: &str = "http.route";
/// The answer's status.
pub const HTTP_STATUS: &str = "http.response.status_code";
/// The run.
pub const RUN_ID: &str = "run.id";
/// The profile, in our own word.
pub const PROFILE_ID: &str = "profile.id";
/// What a call or a run cost, in US dollars.
pub const COST_USD: &str = "switchboard.cost_usd";
/// How a run ended.
pub const OUTCOME: &str = "switchboard.outcome";
