// The official clients of OpenAI's Responses against a running Switchboard: node responses.mjs STEP [MODEL]. What they make
// of the answers is printed as JSON.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool, jsonSchema } from "ai";
import OpenAI from "openai";

const baseURL = `${process.env.SWITCHBOARD_URL}/v1`;
const apiKey = process.env.SWITCHBOARD_TOKEN;
const client = new OpenAI({ apiKey, baseURL, maxRetries: 0 });
const model = process.argv[3] ?? "workflow";
const sdk = createOpenAI({ apiKey, baseURL })(model);
const input = "Hi";
/** A picture of one pixel. */
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** What an error is to whoever catches it. */
const caught = (error) => ({
  kind: error.constructor.name, status: error.status, code: error.code, type: error.type, param: error.param,
});

/** The answer of something that fails. */
async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return caught(error);
  }
  throw new Error("it did not fail");
}

const kinds = (response) => response.output.map((item) => item.type);

const weather = (asked) => tool({
  description: "The weather in a city.",
  inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } } }),
  execute: ({ city }) => {
    asked.push(city);
    return `sunny in ${city}`;
  },
});

const steps = {
  async pictures() {
    const said = [];
    for (const answer of [
      async (image) => (await client.responses.create({ model, input: [{ role: "user", content: [image] }] })).output_text,
      async () => (await generateText({ model: sdk, messages: [{ role: "user", content: [{ type: "file", mediaType: "image/png", data: Buffer.from(PIXEL, "base64") }] }] })).text,
    ]) said.push(await answer({ type: "input_image", detail: "auto", image_url: `data:image/png;base64,${PIXEL}` }));
    return { said };
  },

  async whole() {
    const response = await client.responses.create({ model, input });
    return { text: response.output_text, kinds: kinds(response), tokens: response.usage.total_tokens, status: response.status };
  },

  async raw() {
    const stream = await client.responses.create({ model, input, stream: true });
    const types = [];
    let text = "";
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === "response.output_text.delta") text += event.delta;
    }
    return { types, text };
  },

  async helper() {
    const stream = client.responses.stream({ model, input });
    let text = "";
    stream.on("response.output_text.delta", (event) => { text += event.delta; });
    const response = await stream.finalResponse();
    return { text, whole: response.output_text, kinds: kinds(response), status: response.status, error: response.error?.code ?? null };
  },

  // Read again by both ways that the client has.
  async again() {
    const first = await client.responses.create({ model, input, background: true, stream: true });
    const all = [];
    for await (const event of first) all.push(event);
    const id = all[0].response.id;
    const rest = [];
    for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: 3 })) rest.push(event);
    const helper = client.responses.stream({ response_id: id, starting_after: 3 });
    const numbers = [];
    for await (const event of helper) numbers.push(event.sequence_number);
    const response = await client.responses.retrieve(id);
    const items = [];
    for await (const item of client.responses.inputItems.list(id)) items.push(item.content[0].text);
    return {
      same: JSON.stringify(all.slice(4)) === JSON.stringify(rest), numbers, text: response.output_text, items,
      helper: (await helper.finalResponse()).status,
    };
  },

  async life() {
    const begun = await client.responses.create({ model, input, background: true });
    const cancelled = await client.responses.cancel(begun.id);
    await client.responses.delete(begun.id);
    return { begun: begun.status, cancelled: cancelled.status, gone: await failure(client.responses.retrieve(begun.id)) };
  },

  async conversation() {
    const conversation = await client.conversations.create({});
    const said = [];
    for (const text of ["I am Ada.", "Who am I?"]) {
      said.push((await client.responses.create({ model, input: text, conversation: conversation.id })).output_text);
    }
    const items = [];
    for await (const item of client.conversations.items.list(conversation.id, { order: "asc", limit: 3 })) items.push(item.content[0].text);
    const deleted = await client.conversations.delete(conversation.id);
    return { said, items, deleted: deleted.deleted };
  },

  // A loop of the client's own.
  async tools() {
    const tools = [{ type: "function", name: "get_weather", strict: false, parameters: { type: "object", properties: { city: { type: "string" } } } }];
    let response = await client.responses.create({ model, input, tools });
    const asked = [];
    for (let calls; (calls = response.output.filter((item) => item.type === "function_call")).length > 0;) {
      const results = calls.map((call) => {
        const { city } = JSON.parse(call.arguments);
        asked.push(city);
        return { type: "function_call_output", call_id: call.call_id, output: `sunny in ${city}` };
      });
      response = await client.responses.create({ model, input: results, tools, previous_response_id: response.id });
    }
    return { asked, text: response.output_text };
  },

  async approved() {
    const first = await client.responses.create({ model, input });
    const requests = first.output.filter((item) => item.type === "mcp_approval_request");
    const answers = requests.map(({ id }) => ({ type: "mcp_approval_response", approval_request_id: id, approve: true }));
    const second = await client.responses.create({ model, input: answers, previous_response_id: first.id });
    return { asked: requests.map((request) => request.name), kinds: kinds(second), text: second.output_text };
  },

  async refused() {
    const stranger = new OpenAI({ apiKey: "nonsense", baseURL });
    return [
      await failure(stranger.responses.create({ model, input })),
      await failure(client.responses.create({ model: "gpt", input, stream: true })),
      await failure(client.responses.create({ model, input, previous_response_id: "resp_1" })),
    ];
  },

  async broken() {
    const types = [];
    const stream = await client.responses.create({ model, input, stream: true });
    for await (const event of stream) types.push(event.type);
    return { last: types.at(-1), whole: await failure(client.responses.create({ model, input })) };
  },

  // The AI SDK's own loop, with a tool of the page's and those of the server, and a second question.
  async sdk() {
    const asked = [];
    const messages = [{ role: "user", content: "Hi" }];
    const tools = { get_weather: weather(asked) };
    const first = streamText({ model: sdk, messages, tools, stopWhen: stepCountIs(5) });
    const parts = [];
    for await (const part of first.fullStream) {
      if (["tool-call", "tool-result", "error", "finish"].includes(part.type)) {
        parts.push({ type: part.type, name: part.toolName, by: part.providerExecuted ?? false, reason: part.finishReason });
      }
    }
    const said = await first.text;
    messages.push(...(await first.response).messages, { role: "user", content: "And now?" });
    const second = await generateText({ model: sdk, messages, tools });
    return { asked, parts, said, second: second.text };
  },

  async sdk_broken() {
    const result = streamText({ model: sdk, prompt: "Hi", onError() {} });
    const types = [];
    for await (const part of result.fullStream) types.push(part.type);
    return { types };
  },

  async sdk_reasoning() {
    const result = await generateText({ model: sdk, prompt: "Hi" });
    return { text: result.text, reasoning: result.reasoningText ?? null, reason: result.finishReason, tokens: result.usage.totalTokens };
  },
};

console.log(JSON.stringify(await steps[process.argv[2]]()));
