// Files: those of the message that is being written, which are uploaded while the user writes, and those of messages that were
// said. Loaded when there is one.

import { ask } from "./dialogs.js";
import { announce, h, icon, iconButton } from "./dom.js";
import { inWords } from "./errors.js";
import { sentence } from "./format.js";
import { locale, t } from "./texts.js";

const LOOKS = h("link", { rel: "stylesheet", href: new URL("./attachments.css", import.meta.url).href });

/** Done when there is something to be shown with. @type {Promise<void>} */
export const ready = new Promise((done) => {
  LOOKS.addEventListener("load", () => done());
  LOOKS.addEventListener("error", () => done());
  document.head.append(LOOKS);
});

/** What is shown as a picture. What it is, the server has found out by its bytes. */
const PICTURES = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/** So many are uploaded at once. */
const AT_ONCE = 3;

/** An upload of which nothing goes for so long is given up. */
const IDLE_MS = 60_000;

/** So many bytes of pictures that were read are kept, and of one at most: a thread is drawn anew now and again. */
const MOST_READ = 40e6;
const LARGEST_READ = 4e6;

/** Why a file is not taken, by the server's codes; of any other the server's own words are shown. */
const WORDS = {
  files_off: t("This server keeps no files."),
  files_unavailable: t("Files cannot be kept at the moment."),
  file_unsupported: t("Only pictures (PNG, JPEG, WebP, GIF), PDF documents and texts in UTF-8 are taken."),
  storage_quota_exceeded: t("As many files are kept for you as may be. Delete conversations that you do not need any more."),
  not_found: t("One of the files is not kept any more. Attach it again."),
  body_timeout: t("The connection to the server was lost."),
  body_unreadable: t("The connection to the server was lost."),
};

/** The files of a message that is being written. Dispatches `change`, `touch` (the user has done something about them), `leave` (there is
 *  nothing here any more to have the focus) and `off` (the server keeps none). */
class Attachments extends HTMLElement {
  #list = h("ul", { class: "attachments", "aria-label": t("Files") });
  #unseen = h("p", { class: "note", hidden: true });
  #input = ["image", "pdf"];
  #limits;
  /** @type {Chip[]} */
  #chips = [];
  /** @type {import("./client.js").Switchboard} */
  client = null;

  connectedCallback() {
    if (!this.#list.isConnected) this.append(this.#list, this.#unseen);
    this.hidden = this.#chips.length === 0;
  }

  get count() { return this.#chips.length; }

  /** Whether some are still on their way. */
  get isPending() { return this.#chips.some(({ state }) => state === "waiting" || state === "sending"); }

  get hasFailed() { return this.#chips.some(({ state }) => state === "failed"); }

  /** Those that the server has, with their bytes where they came from here. */
  get kept() { return this.#chips.map(({ kept }) => kept).filter(Boolean); }

  /** What is wrong with files, for people. @param {import("./client.js").SwitchboardError} error */
  why({ status, code, message }) {
    const most = status === 413 ? Number(/more than (\d+) bytes/.exec(message)?.[1]) : 0;
    if (most > 0) return t("The file is too large: {0} at most.", size(most));
    return Object.hasOwn(WORDS, code) ? WORDS[code] : sentence(inWords(code, message));
  }

  /** The same of a message that was refused. Those of its files that are gone are marked. @param {import("./client.js").SwitchboardError} error */
  async wrong(error) {
    if (error.code !== "not_found") return this.why(error);
    await Promise.all(this.#chips.filter(({ state }) => state === "kept").map(async (chip) => {
      const { status } = await this.client.file(chip.kept.id).catch((why) => why);
      if (status === 404) chip.lose();
    }));
    this.#changed();
    return this.hasFailed ? this.why(error) : sentence(error.message);
  }

  /** What the model that is picked can be shown, and how large files may be. @param {string[]} input @param {{max_bytes?: number}|undefined} limits */
  know(input, limits) {
    this.#input = input;
    this.#limits = limits;
    this.#look();
  }

  /** Says what the model will not be shown, before it is sent. */
  #look() {
    const types = this.#chips.filter(({ state }) => state !== "failed").map(({ kept, type }) => kept?.media_type ?? type);
    const unseen = [
      !this.#input.includes("image") && types.some((type) => PICTURES.includes(type)) && t("This model takes no pictures: it reads their names only."),
      !this.#input.includes("pdf") && types.includes("application/pdf") && t("This model takes no PDF documents: it reads their names only."),
    ].filter(Boolean).join(" ");
    this.#unseen.hidden = unseen === "";
    if (this.#unseen.textContent === unseen) return;
    this.#unseen.textContent = unseen;
    if (unseen !== "") announce(unseen);
  }

  /** Uploads files. @param {File[]} files */
  add(files) {
    if (files.length === 0) return;
    this.#show(files.map((file) => new Chip({ file })));
    announce(files.length === 1 ? t("{0} is being uploaded.", files[0].name) : t("{0} files are being uploaded.", files.length));
    this.#next();
  }

  /** Shows files that the server has. @param {import("./client.js").KeptFile[]} files */
  bring(files) {
    const known = new Map([...files, ...this.kept].map((file) => [file.id, file]));
    for (const { id } of this.kept) known.delete(id);
    this.#show([...known.values()].map((kept) => new Chip({ kept, client: this.client })));
  }

  /** They belong to a message by now. */
  clear() {
    const hasFocus = this.contains(document.activeElement);
    for (const chip of this.#chips) chip.end();
    this.#chips = [];
    this.#changed();
    if (hasFocus) this.dispatchEvent(new Event("leave"));
  }

  #show(chips) {
    for (const chip of chips) {
      chip.remove = () => this.#remove(chip);
      chip.retry = () => {
        this.dispatchEvent(new Event("touch"));
        chip.to("waiting");
        this.#next();
      };
      chip.draw();
      this.#list.append(chip.element);
    }
    this.#chips.push(...chips);
    this.#changed();
  }

  #remove(chip) {
    const at = this.#chips.indexOf(chip);
    chip.end();
    this.#chips.splice(at, 1);
    announce(t("{0} is removed.", chip.name));
    this.dispatchEvent(new Event("touch"));
    this.#changed();
    const next = this.#chips[Math.min(at, this.#chips.length - 1)];
    if (next) next.element.querySelector(".remove").focus();
    else this.dispatchEvent(new Event("leave"));
    this.#next();
  }

  #next() {
    while (this.#chips.filter(({ state }) => state === "sending").length < AT_ONCE) {
      const chip = this.#chips.find(({ state }) => state === "waiting");
      if (!chip) break;
      this.#send(chip);
    }
    this.#changed();
  }

  async #send(chip) {
    const most = this.#limits?.max_bytes;
    if (chip.file.size > most) {
      // The server would say so when it has read as much.
      chip.why = t("The file is too large: {0} at most.", size(most));
      chip.isLasting = true;
      chip.to("failed");
      return;
    }
    chip.to("sending");
    try {
      const kept = await this.client.uploadFile(chip.file, {
        name: chip.name, signal: chip.stop.signal, fetch: watched((part) => chip.come(part)),
      });
      if (chip.stop.signal.aborted) return;
      // The same bytes are one file, whatever they are called.
      if (this.kept.some(({ id }) => id === kept.id)) {
        this.#drop(chip);
        return;
      }
      chip.kept = { ...kept, blob: chip.file };
      chip.to("kept");
      announce(t("{0} is attached.", chip.name));
    } catch (error) {
      if (chip.stop.signal.aborted) return;
      chip.why = this.why(error);
      chip.isLasting = [413, 415].includes(error.status) || ["invalid_request", "files_off"].includes(error.code);
      chip.to("failed");
      if (error.code === "files_off") this.dispatchEvent(new Event("off"));
    }
    this.#next();
  }

  /** One that is there already. */
  #drop(chip) {
    const hasFocus = chip.element.contains(document.activeElement);
    chip.end();
    this.#chips = this.#chips.filter((other) => other !== chip);
    announce(t("{0} is attached already.", chip.name));
    if (hasFocus) this.dispatchEvent(new Event("leave"));
    this.#next();
  }

  #changed() {
    this.hidden = this.#chips.length === 0;
    this.#look();
    this.dispatchEvent(new Event("change"));
  }
}

customElements.define("sb-attachments", Attachments);

/** @param {import("./client.js").Switchboard} client */
export function attachments(client) {
  return Object.assign(document.createElement("sb-attachments"), { client });
}

/** One file of the message that is being written. */
class Chip {
  #note = h("span", { class: "attachment-note" });
  #words = h("div", { class: "attachment-words" });
  #bar = h("progress", { max: 1, value: 0 });
  #again;
  #url = "";
  #bytes;
  element = h("li", { class: "attachment" });
  stop = new AbortController();
  why = "";
  /** Whether it fails again when it is sent again. */
  isLasting = false;
  /** @type {"waiting"|"sending"|"kept"|"failed"} */
  state = "waiting";
  remove = () => {};
  retry = () => {};

  /** @param {{file?: File, kept?: import("./client.js").KeptFile & {blob?: Blob}, client?: import("./client.js").Switchboard}} what */
  constructor({ file, kept, client }) {
    this.file = file ?? kept.blob;
    this.kept = kept;
    this.name = file?.name ?? kept.name;
    this.type = file?.type ?? kept.media_type;
    this.#bytes = file?.size ?? kept.bytes;
    this.client = client;
    if (kept) this.state = "kept";
  }

  draw() {
    this.#again = iconButton("retry", t("Upload {0} again", this.name), () => this.retry(), { class: "icon-button" });
    this.#bar.setAttribute("aria-label", t("Upload of {0}", this.name));
    this.#words.append(h("span", { class: "attachment-name", title: this.name }, this.name), this.#note, this.#bar);
    this.element.append(this.#look(), this.#words, this.#again, iconButton("cross", t("Remove {0}", this.name), () => this.remove(), { class: "icon-button remove" }));
    this.to(this.state);
  }

  /** The picture itself, where it is one. */
  #look() {
    const look = h("span", { class: "attachment-look", "aria-hidden": "true" }, icon("file"));
    if (!PICTURES.includes(this.type)) return look;
    const show = (blob) => {
      if (this.stop.signal.aborted) return;
      this.#url = URL.createObjectURL(blob);
      const picture = h("img", { src: this.#url, alt: "", draggable: "false" });
      picture.addEventListener("load", () => look.replaceChildren(picture));
    };
    if (this.file) show(this.file);
    else read(this.kept, this.client).then(show, () => {});
    return look;
  }

  /** So much of it has gone. @param {number} part */
  come(part) {
    this.#bar.value = part;
    this.#note.textContent = part < 1 ? `${size(this.#bytes)} · ${Math.floor(part * 100)} %` : size(this.#bytes);
  }

  /** The server does not have it any more. What came from here can be uploaded again. */
  lose() {
    this.kept = undefined;
    this.why = t("not kept any more");
    this.isLasting = !this.file;
    this.to("failed");
  }

  to(state) {
    this.state = state;
    this.element.dataset.state = state;
    this.#bar.hidden = state !== "sending";
    const hadFocus = this.#again === document.activeElement;
    this.#again.hidden = state !== "failed" || this.isLasting;
    if (hadFocus && this.#again.hidden) this.element.querySelector(".remove").focus();
    // Said with its name.
    if (state === "failed") this.#words.setAttribute("role", "alert");
    else this.#words.removeAttribute("role");
    this.#note.textContent = state === "failed" ? this.why : size(this.#bytes);
    if (state === "sending") this.#bar.value = 0;
  }

  end() {
    this.stop.abort();
    this.element.remove();
    if (this.#url) URL.revokeObjectURL(this.#url);
  }
}

/** A `fetch` that tells which part of what is sent has gone. @param {(part: number) => void} told */
const watched = (told) => (url, { method, headers, body, signal }) => new Promise((done, fail) => {
  signal.throwIfAborted();
  const request = new XMLHttpRequest();
  let timer;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => request.abort(), IDLE_MS);
  };
  request.open(method, url);
  for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
  request.upload.addEventListener("progress", ({ loaded, total }) => {
    alive();
    told(total > 0 ? loaded / total : 1);
  });
  request.addEventListener("load", () => {
    const named = (name) => [[name, request.getResponseHeader(name)]].filter(([, value]) => value !== null);
    done(new Response(request.responseText, { status: request.status, headers: [...named("retry-after"), ...named("x-request-id")] }));
  });
  request.addEventListener("error", () => fail(new TypeError("the connection was lost")));
  request.addEventListener("abort", () => fail(new DOMException("given up", "AbortError")));
  request.addEventListener("loadend", () => clearTimeout(timer));
  signal.addEventListener("abort", () => request.abort());
  alive();
  request.send(body);
});

/** Pictures that were read, the newest last. @type {Map<string, {bytes: number, reading: Promise<Blob>}>} */
const READ = new Map();

/** A file's bytes. */
function read({ id, media_type: type, bytes, blob }, client) {
  if (blob) return Promise.resolve(blob);
  if (READ.has(id)) return READ.get(id).reading;
  const reading = client.fileContent(id).then((content) => new Blob([content], { type }));
  if (bytes <= LARGEST_READ) {
    READ.set(id, { bytes, reading });
    reading.catch(() => READ.delete(id));
    let all = [...READ.values()].reduce((sum, read) => sum + read.bytes, 0);
    for (const [oldest, read] of READ) {
      if (all <= MOST_READ) break;
      READ.delete(oldest);
      all -= read.bytes;
    }
  }
  return reading;
}

/** A picture of a message, which is read when it comes into view. */
class Picture extends HTMLElement {
  #url = "";
  #sight = null;
  /** @type {import("./client.js").KeptFile} */
  file = null;
  client = null;

  connectedCallback() {
    const isNear = (seen) => { if (seen.some(({ isIntersecting }) => isIntersecting)) this.#load(); };
    this.#sight = new IntersectionObserver(isNear, { root: this.closest(".scroller"), rootMargin: "600px" });
    this.#sight.observe(this);
  }

  disconnectedCallback() {
    this.#sight.disconnect();
    this.#sight = null;
    URL.revokeObjectURL(this.#url);
    this.replaceChildren();
  }

  async #load() {
    const sight = this.#sight;
    sight.disconnect();
    // Elsewhere it is read again.
    const isGone = () => sight !== this.#sight;
    const { name } = this.file;
    try {
      const blob = await read(this.file, this.client);
      if (isGone()) return;
      this.#url = URL.createObjectURL(blob);
      const picture = h("img", { src: this.#url, alt: name, draggable: "false" });
      await picture.decode();
      const open = () => enlarge(this.file, blob);
      if (!isGone()) this.replaceChildren(h("button", { type: "button", class: "picture", "aria-label": t("Show {0} larger", name), onclick: open }, picture));
    } catch (error) {
      if (isGone()) return;
      this.replaceChildren(error.status === 404 ? gone(name) : saving(this.file, this.client, t("could not be read")));
    }
  }
}

customElements.define("sb-picture", Picture);

/** A picture as large as the window. */
function enlarge(file, blob) {
  const url = URL.createObjectURL(blob);
  ask(file.name, (close) => [
    h("img", { class: "picture-large", src: url, alt: file.name }),
    h("div", { class: "dialog-actions" },
      h("button", { type: "button", class: "button", onclick: () => save(blob, file.name) }, icon("save"), t("Save")),
      h("button", { type: "button", class: "button", "data-first": true, onclick: () => close() }, t("Close"))),
  ], { wide: true }).then(() => URL.revokeObjectURL(url));
}

/** Shows files of a message: pictures, and what can be saved. Those that are shown stay. @param {HTMLElement & {client: any}} element
 *  @param {import("./client.js").KeptFile[]} files */
export async function show(element, files) {
  await ready;
  const { client } = element;
  if (!element.querySelector("ul")) element.replaceChildren(h("ul", { class: "files", "aria-label": t("Files") }));
  const list = element.querySelector("ul");
  list.append(...files.slice(list.childElementCount).map((file) => h("li", {}, PICTURES.includes(file.media_type)
    ? Object.assign(document.createElement("sb-picture"), { file, client }) : saving(file, client))));
}

/** A button that saves a file. @param {string} [note] What is wrong with it. */
function saving(file, client, note = size(file.bytes)) {
  const words = h("span", { class: "attachment-note" }, note);
  const button = h("button", { type: "button", class: "file" }, icon("file"), h("span", { class: "visually-hidden" }, t("Save")), " ",
    h("span", { class: "attachment-name" }, file.name), " ", words, icon("save"));
  button.addEventListener("click", async () => {
    try {
      save(await read(file, client), file.name);
    } catch (error) {
      words.textContent = error.status === 404 ? t("not kept any more") : t("could not be read");
      announce(`${file.name}: ${words.textContent}`);
    }
  });
  return button;
}

/** Messages go on naming what was deleted. */
function gone(name) {
  return h("span", { class: "file" }, icon("file"), h("span", { class: "attachment-name" }, name),
    h("span", { class: "attachment-note" }, t("not kept any more")));
}

/** How large a file is: `840 B`, `120 kB`, `4.2 MB`. */
function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const [unit, by] = bytes < 999_500 ? ["kB", 1e3] : ["MB", 1e6];
  return `${new Intl.NumberFormat(locale, { maximumFractionDigits: bytes / by < 10 ? 1 : 0 }).format(bytes / by)} ${unit}`;
}

function save(blob, name) {
  // As bytes of no kind: nothing but a file comes of it.
  const url = URL.createObjectURL(new Blob([blob], { type: "application/octet-stream" }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
