// The official client of OpenAI's protocol against a running Switchboard: node openai.mjs STEP. What the client makes of
// the answers is printed as JSON.
import OpenAI, { toFile } from "openai";

const client = new OpenAI({
  apiKey: process.env.SWITCHBOARD_TOKEN,
  baseURL: `${process.env.SWITCHBOARD_URL}/v1`,
});
const messages = [{ role: "user", content: "Hi" }];
const model = process.argv[3] ?? "workflow";
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

const weather = (asked) => ({
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather in a city.",
    parameters: { type: "object", properties: { city: { type: "string" } } },
    parse: JSON.parse,
    function: ({ city }) => {
      asked.push(city);
      return `sunny in ${city}`;
    },
  },
});

const steps = {
  async models() {
    const ids = [];
    for await (const found of client.models.list()) ids.push(found.id);
    return { ids, one: (await client.models.retrieve("workflow")).id, none: await failure(client.models.retrieve("gpt")) };
  },

  async whole() {
    const answer = await client.chat.completions.create({ model, messages });
    const [choice] = answer.choices;
    return { message: choice.message, reason: choice.finish_reason, usage: answer.usage, object: answer.object };
  },

  async stream() {
    const stream = await client.chat.completions.create({
      model, messages, stream: true, stream_options: { include_usage: true },
    });
    const told = { content: "", reasoning: "", reasons: [], calls: 0, ids: new Set() };
    for await (const chunk of stream) {
      told.ids.add(chunk.id);
      const [choice] = chunk.choices;
      told.content += choice?.delta.content ?? "";
      told.reasoning += choice?.delta.reasoning_content ?? "";
      told.calls += choice?.delta.tool_calls?.length ?? 0;
      if (choice?.finish_reason) told.reasons.push(choice.finish_reason);
      if (chunk.usage) told.tokens = chunk.usage.total_tokens;
    }
    return { ...told, ids: told.ids.size };
  },

  async helper() {
    const stream = client.chat.completions.stream({ model, messages });
    const pieces = [];
    stream.on("content", (piece) => pieces.push(piece));
    const answer = await stream.finalChatCompletion();
    return { pieces, content: answer.choices[0].message.content, reason: answer.choices[0].finish_reason };
  },

  // A loop of the client's own: parallel calls, answered one by one, until there is an answer.
  async tools() {
    const asked = [];
    const runner = client.chat.completions.runTools({ model, messages, tools: [weather(asked)] });
    const content = await runner.finalContent();
    return { asked, content, roles: runner.messages.map((message) => message.role) };
  },

  async streamed_tools() {
    const asked = [];
    const runner = client.chat.completions.runTools({ model, messages, stream: true, tools: [weather(asked)] });
    const content = await runner.finalContent();
    return { asked, content, roles: runner.messages.map((message) => message.role) };
  },

  async refused() {
    const stranger = new OpenAI({ apiKey: "nonsense", baseURL: client.baseURL });
    return [
      await failure(stranger.chat.completions.create({ model, messages })),
      await failure(client.chat.completions.create({ model: "gpt", messages, stream: true })),
      await failure(client.chat.completions.create({ model, messages: [] })),
    ];
  },

  // How an error comes up that happens when the answer has begun.
  async broken() {
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    let content = "";
    try {
      for await (const chunk of stream) content += chunk.choices[0]?.delta.content ?? "";
    } catch (error) {
      return { content, error: caught(error) };
    }
    throw new Error("it did not fail");
  },

  async broken_whole() {
    return failure(client.chat.completions.create({ model, messages }));
  },

  async stopped() {
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    let content = "";
    for await (const chunk of stream) {
      content += chunk.choices[0]?.delta.content ?? "";
      if (content !== "") stream.controller.abort();
    }
    return { content };
  },

  async files() {
    const text = "# Prices\nTea is 3.";
    const expires_after = { anchor: "created_at", seconds: 3600 };
    const kept = await client.files.create({ file: await toFile(Buffer.from(text), "prices.md"), purpose: "user_data", expires_after });
    const other = await client.files.create({ file: await toFile(Buffer.from("Another."), "other.txt"), purpose: "assistants" });
    const found = await client.files.retrieve(kept.id);
    const listed = [];
    for await (const file of client.files.list({ limit: 1 })) listed.push(file.filename);
    const byPurpose = [];
    for await (const file of client.files.list({ purpose: "assistants" })) byPurpose.push(file.id === other.id);
    const content = await (await client.files.content(kept.id)).text();
    const said = await client.chat.completions.create({
      model, messages: [{ role: "user", content: [{ type: "text", text: "What is tea?" }, { type: "file", file: { file_id: kept.id } }] }],
    });
    const deleted = await client.files.delete(kept.id);
    return {
      kept: [kept.object, kept.filename, kept.purpose, kept.bytes === text.length], ends: kept.expires_at - kept.created_at,
      found: found.id === kept.id, listed: listed.sort(), byPurpose, content: content === text,
      said: said.choices[0].message.content, deleted: deleted.deleted, gone: (await failure(client.files.retrieve(kept.id))).code,
    };
  },

  async pictures() {
    const kept = await client.files.create({ file: await toFile(Buffer.from(PIXEL, "base64"), "a.png"), purpose: "vision" });
    const said = [];
    for (const part of [
      { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } },
      { type: "file", file: { file_id: kept.id } },
    ]) {
      const content = [{ type: "text", text: "What is it?" }, part];
      const answer = await client.chat.completions.create({ model, messages: [{ role: "user", content }] });
      said.push(answer.choices[0].message.content);
    }
    return { kept: kept.purpose, said };
  },

  // A conversation that the server keeps.
  async named() {
    const options = { headers: { "X-Conversation-Id": "named" } };
    const said = [];
    for (const content of ["I am Ada.", "Who am I?"]) {
      const answer = await client.chat.completions.create({ model, messages: [{ role: "user", content }] }, options);
      said.push(answer.choices[0].message.content);
    }
    return said;
  },
};

console.log(JSON.stringify(await steps[process.argv[2]]()));
