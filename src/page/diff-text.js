// A unified diff as hunks of lines, and as the rows in which they are drawn.
// Pure: no page, no drawing. The tests run it in Node.

/**
 * @typedef {{kind: "same"|"added"|"removed", text: string, before?: number, after?: number, isUnended?: boolean, other?: Line}} Line
 *   `before` and `after` are its numbers, `other` the line that was there instead, `isUnended` says that no line end follows.
 * @typedef {{head: string, lines: Line[]}} Hunk
 * @typedef {{head: string}|{line: Line}|{pair: [Line|null, Line|null]}} Row
 */

const HEAD = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** The hunks of `diff`. What stands between them, and what is no diff, is left out. @param {string} diff @returns {Hunk[]} */
export function hunksOf(diff) {
  const hunks = [];
  let lines = [];
  let [left, right, before, after] = [0, 0, 0, 0];
  for (const text of diff.split("\n")) {
    if (text.startsWith("\\")) {
      if (lines.length > 0) lines.at(-1).isUnended = true;
      continue;
    }
    // How long a hunk is stands in its head: a removed line `-- x` looks like the head of a file.
    if (left > 0 || right > 0) {
      const line = lineOf(text, before, after);
      if (line) {
        if (line.kind !== "added") { before += 1; left -= 1; }
        if (line.kind !== "removed") { after += 1; right -= 1; }
        lines.push(line);
        continue;
      }
    }
    const found = HEAD.exec(text);
    [left, right] = found ? [Number(found[2] ?? 1), Number(found[4] ?? 1)] : [0, 0];
    if (!found) continue;
    [before, after] = [Number(found[1]), Number(found[3])];
    lines = [];
    hunks.push({ head: text, lines });
  }
  for (const hunk of hunks) pair(hunk.lines);
  withoutReturns(hunks);
  return hunks;
}

/** One side alone, as a hunk: all of a file that is new or gone. @param {string} content @param {"added"|"removed"} kind @returns {Hunk[]} */
export function hunksOfContent(content, kind) {
  if (content === "") return [];
  const texts = content.split("\n");
  const isEnded = texts.at(-1) === "";
  if (isEnded) texts.pop();
  const lines = texts.map((text, at) => ({ kind, text, [kind === "added" ? "after" : "before"]: at + 1 }));
  if (!isEnded) lines.at(-1).isUnended = true;
  const hunks = [{ head: "", lines }];
  withoutReturns(hunks);
  return hunks;
}

/** One by one: first what is gone, then what has come. @param {Hunk[]} hunks @returns {Generator<Row>} */
export function* rows(hunks) {
  for (const { head, lines } of hunks) {
    if (head) yield { head };
    for (const line of lines) yield { line };
  }
}

/** Side by side: what has come stands beside what it has taken the place of. @param {Hunk[]} hunks @returns {Generator<Row>} */
export function* rowsBeside(hunks) {
  for (const { head, lines } of hunks) {
    if (head) yield { head };
    for (const line of lines) {
      if (line.kind === "same") yield { pair: [line, line] };
      else if (line.kind === "removed") yield { pair: [line, line.other ?? null] };
      else if (!line.other) yield { pair: [null, line] };
    }
  }
}

/** How many lines there are. @param {Hunk[]} hunks */
export const lengthOf = (hunks) => hunks.reduce((sum, { lines }) => sum + lines.length, 0);

/** Whether there is nothing on the other side: the file is new, or gone. @param {Hunk[]} hunks */
export const isOneSided = (hunks) => ["added", "removed"].some((kind) => hunks.every(({ lines }) => lines.every((line) => line.kind === kind)));

/** `undefined` for what is no line of a hunk. Some programs leave out the blank of an empty line. */
function lineOf(text, before, after) {
  if (text === "" || text[0] === " ") return { kind: "same", text: text.slice(1), before, after };
  if (text[0] === "-") return { kind: "removed", text: text.slice(1), before };
  return text[0] === "+" ? { kind: "added", text: text.slice(1), after } : undefined;
}

/** Tells lines of each other: the first that is gone and the first that has come right behind, and so on. */
function pair(lines) {
  for (let at = 0; at < lines.length;) {
    const end = (kind, from) => { let to = from; while (lines[to]?.kind === kind) to += 1; return to; };
    const middle = end("removed", at);
    const last = end("added", middle);
    for (let step = 0; at + step < middle && middle + step < last; step += 1) {
      const [gone, come] = [lines[at + step], lines[middle + step]];
      [gone.other, come.other] = [come, gone];
    }
    at = Math.max(last, at + 1);
  }
}

/** Where each line ends with a carriage return that is how the file is written; where some do it is a change, and is kept. */
function withoutReturns(hunks) {
  const lines = hunks.flatMap((hunk) => hunk.lines);
  if (!lines.every(({ text, isUnended }) => text.endsWith("\r") || isUnended)) return;
  for (const line of lines) if (line.text.endsWith("\r")) line.text = line.text.slice(0, -1);
}
