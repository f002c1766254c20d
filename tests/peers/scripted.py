"""A model whose answers the last user message asks for by name: `text`, `thinking`, `tool`, `parallel`, `thinking-calls`,
`slow`, `fails-first`, `fails-later`. Behind tool results it says what it got."""

import asyncio
import os

import litellm
from litellm import CustomLLM
from litellm.llms.custom_llm import CustomLLMError
from litellm.proxy._types import ProxyException, UserAPIKeyAuth
from litellm.types.utils import ChatCompletionDeltaToolCall, Delta, Function, ModelResponseStream, StreamingChoices, Usage


def chunk(finish_reason=None, usage=None, **delta):
    choice = StreamingChoices(index=0, delta=Delta(**delta), finish_reason=finish_reason)
    made = ModelResponseStream(choices=[choice], model="scripted")
    if usage is not None:
        made.usage = usage
    return made


def call(index, arguments, id=None, name=None):
    function = Function(name=name, arguments=arguments)
    return chunk(tool_calls=[ChatCompletionDeltaToolCall(id=id, function=function, type="function", index=index)])


def words(content):
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content or [])


def finished(reason):
    return chunk(finish_reason=reason, usage=Usage(prompt_tokens=11, completion_tokens=7, total_tokens=18))


async def answer(messages):
    last = messages[-1]
    if last["role"] == "tool":
        since = max(at for at, message in enumerate(messages) if message["role"] == "assistant")
        for message in messages[since + 1 :]:
            yield chunk(content=f"[{message['tool_call_id']}: {words(message['content'])}]")
        yield finished("stop")
        return
    asked = words(next(m["content"] for m in reversed(messages) if m["role"] == "user"))
    script = next((word for word in asked.split() if word in SCRIPTS), "text")
    async for piece in SCRIPTS[script]():
        yield piece


async def text():
    for piece in ["Grüße", " aus ", "der Werkstatt", " — 世界."]:
        yield chunk(content=piece)
    yield finished("stop")


async def thinking():
    yield chunk(reasoning_content="First I think, ")
    yield chunk(reasoning_content="then I speak.")
    yield chunk(content="Spoken.")
    yield finished("stop")


async def tool():
    yield chunk(content="Let me look.")
    yield call(0, '{"city": ', id="call_one", name="get_weather")
    yield call(0, '"Paris"}')
    yield finished("tool_calls")


async def parallel():
    yield call(0, '{"city": ', id="call_one", name="get_weather")
    yield call(0, '"Paris"}')
    yield call(1, '{"city": ', id="call_two", name="get_weather")
    yield call(1, '"Oslo"}')
    yield finished("tool_calls")


async def thinking_calls():
    yield chunk(reasoning_content="I need both.")
    async for piece in parallel():
        yield piece


async def slow():
    for piece in ["one ", "two ", "three"]:
        await asyncio.sleep(0.3)
        yield chunk(content=piece)
    yield finished("stop")


async def fails_first():
    raise CustomLLMError(status_code=503, message="the script fails before its first word")
    yield


async def fails_later():
    yield chunk(content="Half a sen")
    yield chunk(content="tence, and")
    raise CustomLLMError(status_code=503, message="the script fails after its first words")


SCRIPTS = {
    "text": text,
    "thinking": thinking,
    "tool": tool,
    "parallel": parallel,
    "thinking-calls": thinking_calls,
    "slow": slow,
    "fails-first": fails_first,
    "fails-later": fails_later,
}


class Scripted(CustomLLM):
    async def astreaming(self, model, messages, *args, **kwargs):
        async for piece in answer(messages):
            yield piece

    async def acompletion(self, model, messages, *args, **kwargs):
        pieces = [piece async for piece in answer(messages)]
        return litellm.stream_chunk_builder(pieces, messages=messages)


handler = Scripted()


async def authorize(request, api_key):
    """Without a database the proxy answers a wrong key with 400; every real installation answers with 401."""
    if api_key != os.environ["LITELLM_MASTER_KEY"]:
        raise ProxyException(message="Authentication Error, Invalid proxy server token passed", type="auth_error", param="key", code=401)
    return UserAPIKeyAuth(api_key=api_key)
