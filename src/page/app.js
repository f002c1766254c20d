// The page: signs in, puts the parts together, and follows its own address (`#/`, `#/c/<id>`, `#/c/<id>/<message>`, `#/waiting`,
// `#/directives`, `#/usage`, `#/trail/<id>`).

import { Switchboard } from "./client.js";
import "./composer.js";
import "./history.js";
import "./search.js";
import "./thread.js";
import { Banner } from "./banner.js";
import { brand } from "./brand.js";
import { Chat } from "./chat.js";
import { Drawer } from "./drawer.js";
import { announce, h, icon, iconButton } from "./dom.js";
import { explained } from "./errors.js";
import { listen } from "./keys.js";
import { againButton, later, loadAgain } from "./later.js";
import { Library } from "./library.js";
import { menuButton } from "./menu.js";
import { Session } from "./session.js";
import { Workspace } from "./workspace.js";
import { t, translate } from "./texts.js";

// The server's root, also below a prefix of a proxy: the page is its index.
const root = new URL(".", document.baseURI);
const element = (id) => document.getElementById(id);
const [thread, composer, list, search, title, tools] = ["thread", "composer", "history", "search", "title", "tools"].map(element);

const session = new Session(root);
const client = new Switchboard({
  baseUrl: root,
  getToken: async (why) => {
    const token = await session.token(why);
    showUser();
    return token;
  },
  // Some minutes: a server that is updated comes back in that time, and is found soon after.
  retry: { attempts: 120, maxMs: 2500 },
});
const banner = new Banner(element("banner"));
const workspace = new Workspace({ client, thread, banner });
const chat = new Chat({ client, thread, composer, banner, workspace, changed });
const drawer = new Drawer({ side: element("side"), open: element("open-side"), close: element("close-side"), scrim: element("scrim"), main: element("main") });
const library = new Library({
  client, banner,
  changed: (head) => {
    if (chat.conversation === head.id) {
      chat.head = { ...chat.head, ...head };
      showTitle(head.title);
      showTools();
    }
    list.take(head);
  },
  deleted: (id) => {
    list.remove(id);
    if (chat.conversation === id) location.hash = "#/";
    deletions.postMessage(id);
  },
});
// What is deleted in one tab is gone in the others, and nothing more is said in it there.
const deletions = new BroadcastChannel(`switchboard.deleted${root.pathname}`);
deletions.onmessage = ({ data: id }) => {
  list.remove(id);
  chat.gone(id);
};
list.client = client;
list.choices = (head) => library.choices(head);
search.client = client;

/** The address that was gone to last: the browser tells of another one later than it has it. */
let visited = location.hash;

/** The conversation has another title, or is new in the list. */
function changed({ title: text, isNew = false }) {
  if (text !== undefined) showTitle(text);
  const address = chat.conversation ? `#/c/${encodeURIComponent(chat.conversation)}` : "#/";
  // An address that was not gone to yet is where the user goes: it stays.
  if (isNew && location.hash === visited && visited !== address) {
    history.replaceState(null, "", address);
    visited = address;
  }
  list.current = chat.conversation;
  search.current = chat.conversation;
  showTools();
  if (isNew) {
    list.refresh();
    showWaiting();
    showDirectives();
  }
}

function showTitle(text) {
  title.textContent = text || t("New conversation");
  document.title = text ? `${text} · ${brand.name}` : brand.name;
}

function showUser() {
  element("user").textContent = session.user;
  // In development nobody has a name, only an id.
  element("user").title = session.canSignOut ? session.user : session.id;
  element("sign-out").hidden = !session.canSignOut;
}

/** What the banner says while there is no network. */
const OFFLINE = "offline";

const THEMES = { auto: ["half", t("Colours: as the system")], light: ["sun", t("Colours: light")], dark: ["moon", t("Colours: dark")] };

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
  const { head } = chat;
  const focused = document.activeElement?.id;
  tools.replaceChildren(...[
    workspace.isThere && changesButton(),
    head?.archived && h("span", { class: "tag" }, t("Archived")),
    head && menuButton(t("More about this conversation"), () => library.choices(chat.head), { id: "more" }),
    iconButton(THEMES[theme][0], THEMES[theme][1], next, { id: "theme" }),
  ].filter(Boolean));
  if (focused && tools.querySelector(`#${CSS.escape(focused)}`)) element(focused).focus();
}

/** What the assistant has changed in files, with their number. */
function changesButton() {
  const { count } = workspace;
  const label = count === 0 ? t("Changes: none") : count === 1 ? t("Changes: 1 file") : t("Changes: {0} files", count);
  const button = iconButton("changes", label, showChanges, { id: "changes", "aria-haspopup": "dialog" });
  if (count > 0) button.append(h("span", { class: "count", "aria-hidden": "true" }, count > 99 ? "99+" : count));
  return button;
}

/** Most users have no files: what shows them is loaded when it is asked for. */
async function showChanges() {
  const load = () => import("./changes.js");
  try {
    const { openChanges } = await later(load);
    openChanges(workspace);
  } catch (error) {
    const again = () => {
      banner.hide();
      loadAgain(load, showChanges);
    };
    banner.show(`${t("The changes could not be shown")}: ${explained(error)}`, { label: t("Try again"), action: again, now: true });
  }
}

/** How much waits for a decision. */
async function showWaiting() {
  const link = element("waiting");
  const { items } = await client.approvals().catch(() => ({ items: [] }));
  link.hidden = items.length === 0;
  link.replaceChildren(icon("inbox"), t("{0} waiting for a decision", items.length));
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
  visited = location.hash;
  drawer.shut();
  const [, place, id, message] = /^#\/(c|waiting|directives|usage|trail)(?:\/([^/]+)(?:\/([^/]+))?)?$/.exec(location.hash) ?? [];
  if (place === "c" && id) {
    const wanted = decode(id);
    const found = message && { message: decode(message), words: search.words };
    if (wanted !== chat.conversation) await chat.open(wanted, found);
    else if (found) await chat.goTo(found);
  } else if (place === "waiting") {
    chat.openNew();
    showTitle(t("Waiting for a decision"));
    const load = () => import("./waiting.js");
    try {
      const [items, { waitingList }] = await Promise.all([showWaiting(), later(load)]);
      if (location.hash === "#/waiting") thread.notice(...waitingList(items, session.id, { client }));
    } catch (error) {
      if (location.hash === "#/waiting") cannotRead(error, load);
    }
  } else if (place === "directives") {
    await showLater(t("Directives"), () => import("./directives.js"), "sb-directives", { client, user: session.id });
  } else if (place === "usage") {
    await showLater(t("Usage"), () => import("./usage.js"), "sb-usage", { client });
  } else if (place === "trail" && id) {
    await showLater(t("What happened"), () => import("./trail.js"), "sb-trail", { client, conversation: decode(id) });
  } else {
    chat.openNew();
  }
}

/** Shows something else than a conversation, which is loaded when it is asked for. */
async function showLater(name, load, tag, fields) {
  const { hash } = location;
  chat.openNew();
  showTitle(name);
  thread.loading();
  // Who has begun a conversation meanwhile stays there, also where the message was not taken.
  const isGone = () => location.hash !== hash || chat.isRunning || chat.conversation !== "" || thread.questions.length > 0;
  try {
    await later(load);
    if (!isGone()) thread.place(Object.assign(document.createElement(tag), fields));
  } catch (error) {
    if (!isGone()) cannotRead(error, load);
  }
}

function cannotRead(error, load) {
  thread.notice(h("h2", {}, t("It could not be read")), h("p", {}, explained(error)), againButton(load, go));
}

function decode(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function wire() {
  element("brand").textContent = brand.name;
  if (brand.logo) element("brand").previousElementSibling.replaceWith(h("img", { class: "brand-logo", src: new URL(brand.logo, import.meta.url).href, alt: "" }));
  element("sign-out").append(icon("out"));
  element("sign-out").addEventListener("click", () => session.signOut());
  element("new").prepend(icon("plus"));
  element("directives").prepend(icon("list"));
  element("usage").prepend(icon("chart"));
  element("archived").prepend(icon("archive"));
  // Something else may stand at their address by now.
  for (const id of ["waiting", "directives", "usage"]) element(id).addEventListener("click", () => { if (location.hash === `#/${id}`) go(); });
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
  // What is open may be chosen again.
  element("side").addEventListener("click", ({ target }) => {
    const link = target.closest("sb-history a, sb-search a");
    if (!link) return;
    drawer.shut();
    if (link.hash === location.hash) go();
  });
  search.addEventListener("open", ({ detail: isOpen }) => { element("all").hidden = isOpen; });
  search.addEventListener("leave", () => (drawer.isOpen ? drawer.shut() : element("message").focus()));
  const showArchive = (isArchive) => {
    search.clear();
    element("archived").setAttribute("aria-pressed", String(isArchive));
    list.showArchive(isArchive);
  };
  element("archived").addEventListener("click", () => showArchive(!list.isArchive));
  list.addEventListener("leave-archive", () => {
    showArchive(false);
    element("archived").focus();
  });
  addEventListener("hashchange", go);
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (drawer.isOpen) drawer.shut();
    else if (chat.isRunning) chat.stop();
  });
  listen({
    begin: () => element("new").click(),
    find: () => {
      drawer.show();
      search.focus();
    },
    write: () => element("message").focus(),
  });
  addEventListener("offline", () => banner.show(t("This device is offline."), { now: true, about: OFFLINE }));
  addEventListener("online", () => banner.hide(t("Online again."), OFFLINE));
  // Another tab, or another device, may have gone on.
  document.addEventListener("visibilitychange", () => { if (!document.hidden) list.refresh(); });
}

async function start() {
  try {
    const { items, files } = await client.profiles();
    composer.limits = files;
    composer.profiles = items;
  } catch (error) {
    // The token that was pasted last is none either.
    if (error.status === 401 && session.canSignOut) return start();
    banner.show(t("The server cannot be reached: {0}", explained(error)), { label: t("Try again"), action: () => { banner.hide(); start(); }, now: true });
    return;
  }
  showUser();
  list.refresh();
  showWaiting();
  showDirectives();
  await go();
}

translate(document);
wire();
showTools();
start();
