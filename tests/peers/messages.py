"""The official client of Anthropic's Messages for Python against a running Switchboard: messages.py STEP [MODEL]."""

import base64
import json
import os
import sys

from anthropic import Anthropic, APIError, APIStatusError

url = os.environ["SWITCHBOARD_URL"]
client = Anthropic(auth_token=os.environ["SWITCHBOARD_TOKEN"], base_url=url, max_retries=0)
model = sys.argv[2] if len(sys.argv) > 2 else "workflow"
question = {"model": model, "max_tokens": 1024, "messages": [{"role": "user", "content": "Hi"}]}
thinking = {"type": "adaptive"}
# A picture of one pixel.
pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def text(message):
    return "".join(block.text for block in message.content if block.type == "text")


def told(message):
    return {
        "text": text(message),
        "kinds": [block.type for block in message.content],
        "reason": message.stop_reason,
        "tokens": [message.usage.input_tokens, message.usage.output_tokens],
    }


def whole():
    return told(client.messages.create(**question, thinking=thinking))


def helper():
    with client.messages.stream(**question, thinking=thinking) as stream:
        said = "".join(stream.text_stream)
        return {**told(stream.get_final_message()), "text": said}


def tools():
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    offered = [{"name": "get_weather", "description": "The weather in a city.", "input_schema": schema}]
    messages, asked = list(question["messages"]), []
    while True:
        with client.messages.stream(model=model, max_tokens=1024, messages=messages, tools=offered) as stream:
            message = stream.get_final_message()
        if message.stop_reason != "tool_use":
            return {"asked": asked, "text": text(message)}
        results = []
        for block in message.content:
            if block.type == "tool_use":
                asked.append(block.input["city"])
                content = f"sunny in {block.input['city']}"
                results.append({"type": "tool_result", "tool_use_id": block.id, "content": content})
        messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]


def models():
    ids = [one.id for one in client.models.list()]
    tokens = client.messages.count_tokens(model=model, messages=question["messages"]).input_tokens
    return {"ids": ids, "one": client.models.retrieve(model).display_name, "tokens": tokens}


def files():
    text = b"# Prices\nTea is 3."
    kept = client.beta.files.upload(file=("prices.md", text, "text/markdown"), expires_in_seconds=3600)
    other = client.files.upload(file=("other.txt", b"Another.", "text/plain"))
    found = client.files.retrieve_metadata(kept.id)
    document = {"type": "document", "source": {"type": "file", "file_id": kept.id}}
    content = [{"type": "text", "text": "What is tea?"}, document]
    said = client.messages.create(model=model, max_tokens=1024, messages=[{"role": "user", "content": content}])
    seen = {
        "kept": [kept.type, kept.filename, kept.mime_type, kept.downloadable, kept.size_bytes == len(text)],
        "ends": (kept.expires_at - kept.created_at).total_seconds(),
        "found": found.id == kept.id and found.expires_at == kept.expires_at,
        "listed": sorted(file.filename for file in client.files.list(limit=1)),
        "these": [file.id == other.id for file in client.beta.files.list(ids=[other.id])],
        "content": client.beta.files.download(kept.id).read() == text,
        "said": "".join(block.text for block in said.content),
        "deleted": client.beta.files.delete(kept.id).type,
    }
    return {**seen, "gone": failure(lambda: client.files.retrieve_metadata(kept.id))["type"]}


def pictures():
    kept = client.beta.files.upload(file=("a.png", base64.b64decode(pixel), "image/png"))
    said = []
    for source in (
        {"type": "base64", "media_type": "image/png", "data": pixel},
        {"type": "file", "file_id": kept.id},
    ):
        content = [{"type": "text", "text": "What is it?"}, {"type": "image", "source": source}]
        said.append(text(client.messages.create(model=model, max_tokens=100, messages=[{"role": "user", "content": content}])))
    return {"kept": kept.mime_type, "said": said}


def failure(act):
    try:
        act()
    except APIStatusError as error:
        kind = type(error).__name__
        return {"kind": kind, "status": error.status_code, "type": error.type, "named": bool(error.request_id)}
    raise AssertionError("it did not fail")


def refused():
    stranger = Anthropic(api_key="nonsense", base_url=url, max_retries=0)
    return [
        failure(lambda: stranger.messages.create(**question)),
        failure(lambda: client.messages.create(**{**question, "model": "claude"}, stream=True)),
        failure(lambda: client.messages.create(**{**question, "messages": []})),
    ]


def broken():
    said = ""
    try:
        with client.messages.stream(**question) as stream:
            for piece in stream.text_stream:
                said += piece
    except APIError as error:
        return {"text": said, "kind": type(error).__name__, "type": error.body["error"]["type"]}
    raise AssertionError("it did not fail")


print(json.dumps(globals()[sys.argv[1]]()))
