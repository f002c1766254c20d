"""The official client of OpenAI's Responses for Python against a running Switchboard: responses.py STEP [MODEL]."""

import base64
import json
import os
import sys

from openai import NotFoundError, OpenAI

client = OpenAI(
    api_key=os.environ["SWITCHBOARD_TOKEN"], base_url=os.environ["SWITCHBOARD_URL"] + "/v1", max_retries=0
)
model = sys.argv[2] if len(sys.argv) > 2 else "workflow"
# A picture of one pixel.
pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def kinds(response):
    return [item.type for item in response.output]


def whole():
    response = client.responses.create(model=model, input="Hi")
    return {"text": response.output_text, "kinds": kinds(response), "status": response.status}


def helper():
    with client.responses.stream(model=model, input="Hi") as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        response = stream.get_final_response()
    return {"text": text, "whole": response.output_text, "kinds": kinds(response)}


def again():
    begun = client.responses.create(model=model, input="Hi", background=True, stream=True)
    seen = [event.sequence_number for event in begun]
    response_id = begun.response.headers["x-run-id"]
    with client.responses.stream(response_id=f"resp_{response_id}", starting_after=3) as stream:
        rest = [event.sequence_number for event in stream]
    return {"whole": seen == list(range(len(seen))), "rest": rest == seen[4:]}


def gone():
    first = client.responses.create(model=model, input="Hi", store=False)
    try:
        client.responses.retrieve(first.id)
    except NotFoundError as error:
        return {"status": error.status_code, "code": error.code}
    raise AssertionError("it is there")


def files():
    text = b"# Prices\nTea is 3."
    ends = {"anchor": "created_at", "seconds": 3600}
    kept = client.files.create(file=("prices.md", text), purpose="user_data", expires_after=ends)
    other = client.files.create(file=("other.txt", b"Another."), purpose="assistants")
    found = client.files.retrieve(kept.id)
    document = {"type": "input_file", "file_id": kept.id}
    content = [{"type": "input_text", "text": "What is tea?"}, document]
    said = client.responses.create(model=model, input=[{"role": "user", "content": content}])
    seen = {
        "kept": [kept.object, kept.filename, kept.purpose, kept.status, kept.bytes == len(text)],
        "ends": kept.expires_at - kept.created_at,
        "found": found.id == kept.id and found.expires_at == kept.expires_at,
        "listed": sorted(file.filename for file in client.files.list(limit=1)),
        "by_purpose": [file.id == other.id for file in client.files.list(purpose="assistants", order="asc")],
        "content": client.files.content(kept.id).read() == text,
        "said": said.output_text,
        "deleted": client.files.delete(kept.id).deleted,
    }
    try:
        client.files.retrieve(kept.id)
    except NotFoundError as error:
        return {**seen, "gone": error.code}
    raise AssertionError("it is there")


def pictures():
    kept = client.files.create(file=("a.png", base64.b64decode(pixel)), purpose="vision")
    said = []
    for source in ({"image_url": f"data:image/png;base64,{pixel}"}, {"file_id": kept.id}):
        image = {"type": "input_image", "detail": "auto", **source}
        content = [{"type": "input_text", "text": "What is it?"}, image]
        said.append(client.responses.create(model=model, input=[{"role": "user", "content": content}]).output_text)
    return {"kept": kept.purpose, "said": said}


def broken():
    last = None
    for event in client.responses.create(model=model, input="Hi", stream=True):
        last = event
    return {"type": last.type, "code": last.response.error.code}


print(json.dumps(globals()[sys.argv[1]]()))
