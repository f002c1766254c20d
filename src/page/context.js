// The state of a screen, as the assistant is told it: shown in short beside the composer. `context-edit.js` changes it.

import { recall, recalled } from "./tab.js";
import { t } from "./texts.js";

/** Where what the user has set for a profile is kept in the tab. */
export const KEY = "switchboard.context.";

/** What the user last set for a profile, else its example; `undefined` where there is neither. @param {any} profile */
export function contextOf(profile) {
  if (!profile) return undefined;
  const key = KEY + profile.context_type;
  // Empty means no screen.
  return recall(key)?.trim() === "" ? undefined : recalled(key, profile.context);
}

/** What the assistant sees, in two words. @param {any} profile */
export function contextWords(profile) {
  const context = contextOf(profile);
  if (Object.keys(context ?? {}).length === 0) return t("No screen");
  return JSON.stringify(context) === JSON.stringify(profile.context) ? t("Example screen") : t("Your screen");
}
