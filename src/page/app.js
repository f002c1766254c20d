// The page: signs in, puts the parts together, and follows its own address (`#/`, `#/c/<id>`, `#/waiting`, `#/directives`).

import { Switchboard } from "./client.js";
import "./composer.js";
import "./directives.js";
import "./history.js";
import "./thread.js";
import { Banner } from "./banner.js";
import { Chat } from "./chat.js";
import { Drawer } from "./drawer.js";
import { confirm, askText } from "./dialogs.js";
import { announce, h, icon, iconButton } from "./dom.js";
import { Session } from "./session.js";
import { waitingList } from "./waiting.js";
import { Workspace } from "./workspace.js";

// The server's root, also below a prefix of a proxy: this file is `<root>/page/app.js`.
const root = new URL("..", import.meta.url);
const element = (id) => document.getElementById(id);
const [thread, composer, list, title, tools] = ["thread", "composer", "history", "title", "tools"].map(element);

const session = new Session(root);
const client = new Switchboard({
  baseUrl: root,
  getToken: async (why) => {
    const token = await session.token(why);
    showUser();
    return token;
  },
  // Some minutes: a server that is updated comes back in that time.
  retry: { attempts: 24 },
});
const banner = new Banner(element("banner"));
const workspace = new Workspace({ client, thread, banner });
const chat = new Chat({ client, thread, composer, banner, workspace, changed });
const drawer = new Drawer({ side: element("side"), open: element("open-side"), close: element("close-side"), scrim: element("scrim"), main: element("main") });
list.client = client;

/** The conversation has another title, or is new in the list. */
function changed({ title: text, isNew = false }) {
  if (text !== undefined) showTitle(text);
  const address = chat.conversation ? `#/c/${encodeURIComponent(chat.conversation)}` : "#/";
  if (isNew && location.hash !== address) history.replaceState(null, "", address);
  list.current = chat.conversation;
  showTools();
  if (isNew) {
    list.refresh();
    showWaiting();
    showDirectives();
  }
}

function showTitle(text) {
  title.textContent = text || "New conversation";
  document.title = text ? `${text} · Switchboard` : "Switchboard";
}

function showUser() {
  element("user").textContent = session.user;
  // In development nobody has a name, only an id.
  element("user").title = session.canSignOut ? session.user : session.id;
  element("sign-out").hidden = !session.canSignOut;
}

/** What the banner says while there is no network. */
const OFFLINE = "offline";

const THEMES = { auto: ["half", "Colours: as the system"], light: ["sun", "Colours: light"], dark: ["moon", "Colours: dark"] };

function showTools() {
  const theme = window.switchboardTheme.get();
  const next = () => {
    const names = Object.keys(THEMES);
    const chosen = names[(names.indexOf(window.switchboardTheme.get()) + 1) % names.length];
    window.switchboardTheme.set(chosen);
    announce(THEMES[chosen][1]);
    showTools();
    element("theme").focus();
  };
  const isKept = chat.conversation !== "";
  const focused = document.activeElement?.id;
  tools.replaceChildren(...[
    workspace.isThere && changesButton(),
    isKept && iconButton("edit", "Rename conversation", rename, { id: "rename" }),
    isKept && iconButton("save", "Export conversation", save, { id: "export" }),
    isKept && iconButton("trash", "Delete conversation", remove, { id: "delete" }),
    iconButton(THEMES[theme][0], THEMES[theme][1], next, { id: "theme" }),
  ].filter(Boolean));
  if (focused && tools.querySelector(`#${CSS.escape(focused)}`)) element(focused).focus();
}

/** What the assistant has changed in files, with their number. */
function changesButton() {
  const { count } = workspace;
  const label = count === 0 ? "Changes: none" : `Changes: ${count} ${count === 1 ? "file" : "files"}`;
  const button = iconButton("changes", label, showChanges, { id: "changes", "aria-haspopup": "dialog" });
  if (count > 0) button.append(h("span", { class: "count", "aria-hidden": "true" }, count > 99 ? "99+" : count));
  return button;
}

/** Most users have no files: what shows them is loaded when it is asked for. */
function showChanges() {
  return attempt("The changes could not be shown", async () => {
    const { openChanges } = await import("./changes.js");
    openChanges(workspace);
  });
}

/** Does something with the open conversation, and says when it does not work. */
async function attempt(what, act) {
  try {
    await act();
  } catch (error) {
    banner.show(`${what}: ${error.message}`, { label: "Close", action: () => banner.hide(), now: true });
  }
}

async function rename() {
  const id = chat.conversation;
  const text = await askText("Rename conversation", title.textContent, { label: "Title", action: "Rename", maxlength: 200 });
  if (!text) return;
  await attempt("It could not be renamed", async () => {
    const head = await client.renameConversation(id, text);
    if (chat.conversation === id) showTitle(head.title);
    list.refresh();
  });
}

async function remove() {
  const id = chat.conversation;
  if (!await confirm("Delete this conversation?", "Its messages, previews and waiting calls are deleted for good.", "Delete")) return;
  await attempt("It could not be deleted", async () => {
    await client.deleteConversation(id);
    list.remove(id);
    announce("Deleted.");
    location.hash = "#/";
  });
}

async function save() {
  const id = chat.conversation;
  await attempt("It could not be exported", async () => {
    const text = JSON.stringify(await client.exportConversation(id), null, 2);
    const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    h("a", { href: url, download: "conversation.json" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  });
}

/** How much waits for a decision. */
async function showWaiting() {
  const link = element("waiting");
  const { items } = await client.approvals().catch(() => ({ items: [] }));
  link.hidden = items.length === 0;
  link.replaceChildren(icon("inbox"), `${items.length} waiting for a decision`);
  return items;
}

/** Whether there are directives: the user's own, those that ask for one of their roles, or any that they may read. */
async function showDirectives() {
  const none = { items: [], access: "own" };
  let { items, access } = await client.directives({ limit: 1 }).catch(() => none);
  if (items.length === 0 && access && access !== "own") ({ items } = await client.directives({ of: "tenant", limit: 1 }).catch(() => none));
  element("directives").hidden = items.length === 0;
}

/** Goes where the address says. */
async function go() {
  drawer.shut();
  const [, place, id] = /^#\/(c|waiting|directives)(?:\/(.+))?$/.exec(location.hash) ?? [];
  if (place === "c" && id) {
    const wanted = decode(id);
    if (wanted !== chat.conversation) await chat.open(wanted);
  } else if (place === "waiting") {
    chat.openNew();
    showTitle("Waiting for a decision");
    const items = await showWaiting();
    if (location.hash === "#/waiting") thread.notice(...waitingList(items, session.id, { client }));
  } else if (place === "directives") {
    chat.openNew();
    showTitle("Directives");
    thread.place(Object.assign(document.createElement("sb-directives"), { client, user: session.id }));
  } else {
    chat.openNew();
  }
}

function decode(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function wire() {
  element("sign-out").append(icon("out"));
  element("sign-out").addEventListener("click", () => session.signOut());
  element("new").prepend(icon("plus"));
  element("directives").prepend(icon("list"));
  // Something else may stand at their address by now.
  for (const id of ["waiting", "directives"]) element(id).addEventListener("click", () => { if (location.hash === `#/${id}`) go(); });
  workspace.addEventListener("changed", showTools);
  thread.addEventListener("directive-changed", () => {
    showWaiting();
    showDirectives();
  });
  // The address may be that of a new conversation already.
  element("new").addEventListener("click", (event) => {
    event.preventDefault();
    if (location.hash !== "#/") history.pushState(null, "", "#/");
    go();
  });
  element("skip").addEventListener("click", (event) => { event.preventDefault(); element("message").focus(); });
  // The conversation that is open may be chosen again.
  list.addEventListener("click", (event) => { if (event.target.closest("a")) drawer.shut(); });
  addEventListener("hashchange", go);
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (drawer.isOpen) drawer.shut();
    else if (chat.isRunning) chat.stop();
  });
  addEventListener("offline", () => banner.show("This device is offline.", { now: true, about: OFFLINE }));
  addEventListener("online", () => banner.hide("Online again.", OFFLINE));
  // Another tab, or another device, may have gone on.
  document.addEventListener("visibilitychange", () => { if (!document.hidden) list.refresh(); });
}

async function start() {
  try {
    composer.profiles = (await client.profiles()).items;
  } catch (error) {
    // The token that was pasted last is none either.
    if (error.status === 401 && session.canSignOut) return start();
    banner.show(`The server cannot be reached: ${error.message}`, { label: "Try again", action: () => { banner.hide(); start(); }, now: true });
    return;
  }
  showUser();
  list.refresh();
  showWaiting();
  showDirectives();
  await go();
}

wire();
showTools();
start();
