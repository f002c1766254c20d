"""Programs that want an answer as a value of a type, and LangChain as others use it. Each step asks the profile `workflow`; at the
end one line of JSON says what their clients have made of the answers."""

import asyncio
import json
import os
import sys
from decimal import Decimal
from typing import Literal, Optional

from pydantic import BaseModel, Field

URL = os.environ["SWITCHBOARD_URL"] + "/v1"
TOKEN = os.environ["SWITCHBOARD_TOKEN"]
MODEL = "workflow"
QUESTION = "Plan a trip to Ulm"
CHANGE = "Create a workflow that sends an email to manager@example.com when an order is created"


class Stop(BaseModel):
    at: str
    kind: Literal["sight", "food"]


class Trip(BaseModel):
    """A trip to one city."""

    city: str = Field(min_length=1)
    days: int = Field(ge=1)
    stops: list[Stop]
    note: Optional[str] = None


class Priced(BaseModel):
    price: Decimal


def openai_client():
    from openai import OpenAI

    return OpenAI(base_url=URL, api_key=TOKEN, max_retries=0)


def openai_parse():
    done = openai_client().chat.completions.parse(
        model=MODEL, messages=[{"role": "user", "content": QUESTION}], response_format=Trip
    )
    return done.choices[0].message.parsed


def openai_stream():
    with openai_client().chat.completions.stream(
        model=MODEL, messages=[{"role": "user", "content": QUESTION}], response_format=Trip
    ) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion().choices[0].message.parsed


def langchain_model():
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=MODEL, base_url=URL, api_key=TOKEN, max_retries=0, use_responses_api=False)


def langchain(method):
    return langchain_model().with_structured_output(Trip, method=method).invoke(QUESTION)


def langchain_text():
    """An answer as it comes."""
    pieces = list(langchain_model().stream("Good day", stream_usage=True))
    whole = pieces[0]
    for piece in pieces[1:]:
        whole += piece
    reason = whole.response_metadata["finish_reason"]
    return {"content": whole.content, "tokens": whole.usage_metadata["total_tokens"], "reason": reason}


def langchain_tool():
    """A tool of the program's own, called until the model needs none."""
    from langchain_core.messages import HumanMessage
    from langchain_core.tools import tool

    asked = []

    @tool
    def get_weather(city: str) -> str:
        """The weather in a city."""
        asked.append(city)
        return f"It is sunny in {city}."

    model = langchain_model().bind_tools([get_weather])
    messages = [HumanMessage("What is the weather in Paris and in Rome?")]
    while True:
        answer = model.invoke(messages)
        messages.append(answer)
        if not answer.tool_calls:
            return {"asked": asked, "content": answer.content, "kinds": [message.type for message in messages]}
        messages.extend(get_weather.invoke(call) for call in answer.tool_calls)


def langchain_stop():
    """An answer that is read until its first word."""
    stream = langchain_model().stream("Tell me a story")
    content = ""
    for piece in stream:
        content += piece.content
        if content:
            stream.close()
            return {"content": content}


def langchain_again():
    """A conversation that the program keeps itself, whose last answer is made twice."""
    from langchain_core.messages import HumanMessage

    model = langchain_model()
    messages = [HumanMessage("I am Ada.")]
    messages += [model.invoke(messages), HumanMessage("Who am I?")]
    return {"answers": [model.invoke(messages).content for _ in range(2)]}


def langchain_approval():
    """A call that waits for a person."""
    return {"content": langchain_model().invoke(CHANGE).content}


def pydantic_ai(output):
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=URL, api_key=TOKEN))
    agent = Agent(model, output_type=output(Trip), instructions="Answer as a trip.", retries=0)
    return asyncio.run(agent.run(QUESTION)).output


def of_pydantic_ai(name):
    import pydantic_ai.output as forms

    return pydantic_ai(getattr(forms, name))


def decimal():
    """A type whose pattern looks ahead."""
    return langchain_model().with_structured_output(Priced, method="json_schema", strict=False).invoke(QUESTION)


STEPS = {
    "openai-parse": openai_parse,
    "openai-stream": openai_stream,
    "langchain-schema": lambda: langchain("json_schema"),
    "langchain-object": lambda: langchain("json_mode"),
    "langchain-call": lambda: langchain("function_calling"),
    "langchain-text": langchain_text,
    "langchain-tool": langchain_tool,
    "langchain-stop": langchain_stop,
    "langchain-again": langchain_again,
    "langchain-approval": langchain_approval,
    "pydantic-ai-schema": lambda: of_pydantic_ai("NativeOutput"),
    "pydantic-ai-call": lambda: of_pydantic_ai("ToolOutput"),
    "decimal": decimal,
}


def seen(step):
    try:
        value = STEPS[step]()
        return value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    except Exception as error:
        return {"kind": type(error).__name__, "words": str(error)[:500]}


print(json.dumps({step: seen(step) for step in sys.argv[1:]}))
