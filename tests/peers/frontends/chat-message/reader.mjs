// How a page of the protocol chat-message reads an answer.

/**
 * Has `act` see each event of `body`. Once it says that the answer is over, what came in the same read is still looked at,
 * and nothing more is read; the stream is not cancelled. What is no JSON is told to `log`, and skipped.
 */
export async function readEvents(body, act, log) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (let isOver = false; !isOver;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const data of blocks.map(dataOf)) {
      if (data !== "" && data !== "[DONE]" && act(parsed(data, log))) isOver = true;
    }
  }
}

function dataOf(block) {
  const lines = block.split("\n").filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice("data:".length).trimStart()).join("\n");
}

function parsed(data, log) {
  try {
    return JSON.parse(data);
  } catch {
    log(`no JSON: ${data}`);
    return null;
  }
}
