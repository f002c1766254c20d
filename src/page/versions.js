// Which of several versions of a message or an answer is shown, and the way to the others.

import { h, iconButton } from "./dom.js";
import { t } from "./texts.js";

/** @typedef {{at: number, branches: string[]}} Versions `at` of `branches` is shown; each names the run that its branch ends with. */

/** A switcher, `‹ 2/3 ›`; `null` where there is one version. @param {Versions|null|undefined} versions @param {string} what Of what.
 *  @param {HTMLElement} host Dispatches `branch` (detail: the run). */
export function switcher(versions, what, host) {
  const count = versions?.branches.length ?? 0;
  if (count < 2) return null;
  const go = (at, side, label) => iconButton("fold", label,
    () => host.dispatchEvent(new CustomEvent("branch", { detail: { run: versions.branches[at], side }, bubbles: true })),
    { class: `icon-button ${side}`, disabled: at < 0 || at >= count });
  return h("span", { class: "versions", role: "group", "aria-label": what },
    go(versions.at - 1, "before", t("Earlier version")),
    h("span", { class: "versions-at" }, h("span", { class: "visually-hidden" }, t("Version ")), `${versions.at + 1}/${count}`),
    go(versions.at + 1, "after", t("Later version")));
}
