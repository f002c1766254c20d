// The official clients of Anthropic's Messages against a running Switchboard: node messages.mjs STEP [MODEL]. What they make
// of the answers is printed as JSON.
import { createAnthropic } from "@ai-sdk/anthropic";
import Anthropic, { toFile } from "@anthropic-ai/sdk";
import { generateText, stepCountIs, streamText, tool, jsonSchema } from "ai";

const baseURL = process.env.SWITCHBOARD_URL;
const token = process.env.SWITCHBOARD_TOKEN;
const client = new Anthropic({ authToken: token, baseURL });
const model = process.argv[3] ?? "workflow";
const sdk = createAnthropic({ apiKey: token, baseURL: `${baseURL}/v1` })(model);
const question = { model, max_tokens: 1024, messages: [{ role: "user", content: "Hi" }] };
const thinking = { type: "adaptive" };
/** A picture of one pixel. */
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** What an error is to whoever catches it, and whether it names its request. */
const caught = (error) => ({
  kind: error.constructor.name, status: error.status ?? null, type: error.type, named: Boolean(error.requestID ?? error.error?.request_id),
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

const text = (message) => message.content.filter((block) => block.type === "text").map((block) => block.text).join("");

const told = (message) => ({
  text: text(message), kinds: message.content.map((block) => block.type), reason: message.stop_reason,
  tokens: [message.usage.input_tokens, message.usage.output_tokens],
});

const schema = { type: "object", properties: { city: { type: "string" } } };

/** A loop of the client's own; `answer` gets the message to a request. */
async function loop(answer) {
  const tools = [{ name: "get_weather", description: "The weather in a city.", input_schema: schema }];
  const messages = [...question.messages];
  const asked = [];
  for (;;) {
    const message = await answer({ ...question, messages, tools });
    if (message.stop_reason !== "tool_use") return { asked, text: text(message) };
    messages.push({ role: "assistant", content: message.content });
    const calls = message.content.filter((block) => block.type === "tool_use");
    messages.push({
      role: "user",
      content: calls.map(({ id, input }) => {
        asked.push(input.city);
        return { type: "tool_result", tool_use_id: id, content: `sunny in ${input.city}` };
      }),
    });
  }
}

const steps = {
  async whole() {
    return told(await client.messages.create({ ...question, thinking }));
  },

  // Put together by hand, as the protocol says.
  async raw() {
    let message;
    for await (const event of await client.messages.create({ ...question, thinking, stream: true })) {
      if (event.type === "message_start") message = event.message;
      if (event.type === "content_block_start") message.content.push(event.content_block);
      if (event.type === "content_block_delta" && event.delta.type === "text_delta") message.content[event.index].text += event.delta.text;
      if (event.type === "message_delta") Object.assign(message, event.delta, { usage: event.usage });
    }
    return told(message);
  },

  async helper() {
    const stream = client.messages.stream({ ...question, thinking });
    let said = "";
    stream.on("text", (delta) => { said += delta; });
    const message = await stream.finalMessage();
    return { ...told(message), text: said };
  },

  tools: () => loop((body) => client.messages.create(body)),
  streamed_tools: () => loop((body) => client.messages.stream(body).finalMessage()),

  async models() {
    const ids = [];
    for await (const one of client.models.list()) ids.push(one.id);
    const one = await client.models.retrieve(model);
    const none = await failure(client.models.retrieve("chief"));
    const { input_tokens: tokens } = await client.messages.countTokens({ model, messages: question.messages });
    return { ids, one: one.display_name, none: none.kind, tokens };
  },

  async refused() {
    const stranger = new Anthropic({ apiKey: "nonsense", authToken: null, baseURL });
    return [
      await failure(stranger.messages.create(question)),
      await failure(client.messages.create({ ...question, model: "claude", stream: true })),
      await failure(client.messages.create({ ...question, messages: [] })),
    ];
  },

  async broken() {
    const stream = client.messages.stream(question);
    let said = "";
    stream.on("text", (delta) => { said += delta; });
    const error = await failure(stream.finalMessage());
    return { text: said, stream: error, whole: await failure(client.messages.create(question)) };
  },

  async files() {
    const prices = "# Prices\nTea is 3.";
    const { files } = client.beta;
    const kept = await files.upload({ file: await toFile(Buffer.from(prices), "prices.md", { type: "text/markdown" }) });
    const other = await files.upload({ file: await toFile(Buffer.from("Another."), "other.txt", { type: "text/plain" }) });
    const found = await files.retrieveMetadata(kept.id);
    const listed = [];
    for await (const file of files.list({ limit: 1 })) listed.push(file.filename);
    const content = await (await files.download(kept.id)).text();
    const document = { type: "document", source: { type: "file", file_id: kept.id } };
    const said = await client.beta.messages.create({
      model, max_tokens: 100, betas: ["files-api-2025-04-14"], messages: [{ role: "user", content: [{ type: "text", text: "What is tea?" }, document] }],
    });
    const deleted = await files.delete(kept.id);
    return {
      kept: [kept.type, kept.filename, kept.mime_type, kept.downloadable, kept.size_bytes === prices.length], other: other.filename,
      found: found.id === kept.id, listed: listed.sort(), content: content === prices, said: text(said), deleted: deleted.type,
      gone: (await failure(files.retrieveMetadata(kept.id))).type,
    };
  },

  async pictures() {
    const kept = await client.beta.files.upload({ file: await toFile(Buffer.from(PIXEL, "base64"), "a.png", { type: "image/png" }) });
    const said = [];
    for (const source of [{ type: "base64", media_type: "image/png", data: PIXEL }, { type: "file", file_id: kept.id }]) {
      const content = [{ type: "text", text: "What is it?" }, { type: "image", source }];
      said.push(text(await client.messages.create({ model, max_tokens: 100, messages: [{ role: "user", content }] })));
    }
    return { kept: kept.mime_type, said };
  },

  // The AI SDK's own loop, with a tool of the page's and those of the server, and a second question.
  async sdk() {
    const asked = [];
    const messages = [{ role: "user", content: "Hi" }];
    const get_weather = tool({
      description: "The weather in a city.",
      inputSchema: jsonSchema(schema),
      execute: ({ city }) => {
        asked.push(city);
        return `sunny in ${city}`;
      },
    });
    const first = streamText({ model: sdk, messages, tools: { get_weather }, stopWhen: stepCountIs(5) });
    const parts = [];
    for await (const part of first.fullStream) {
      if (["tool-call", "tool-result", "error", "finish"].includes(part.type)) {
        parts.push({ type: part.type, name: part.toolName, by: part.providerExecuted ?? false, reason: part.finishReason });
      }
    }
    const said = await first.text;
    messages.push(...(await first.response).messages, { role: "user", content: "And now?" });
    const second = await generateText({ model: sdk, messages, tools: { get_weather } });
    return { asked, parts, said, second: second.text };
  },

  async sdk_broken() {
    const result = streamText({ model: sdk, prompt: "Hi", onError() {} });
    const types = [];
    for await (const part of result.fullStream) types.push(part.type);
    return { types };
  },

  async sdk_reasoning() {
    const result = await generateText({ model: sdk, prompt: "Hi", providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } } });
    return { text: result.steps.at(-1).text, reasoning: result.reasoningText ?? null, reason: result.finishReason, tokens: result.usage.totalTokens };
  },
};

console.log(JSON.stringify(await steps[process.argv[2]]()));
