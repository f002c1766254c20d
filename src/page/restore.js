// What may be done about changes of files: approve them, or have back what was there. How it stands then is read anew.

import { confirm } from "./dialogs.js";
import { explained } from "./errors.js";
import { sentence } from "./format.js";
import { t } from "./texts.js";

/** @typedef {import("./workspace.js").Workspace} Workspace */

/** @param {Workspace} workspace @returns {Promise<number>} How many checkpoints were approved. */
export async function approve(workspace) {
  const { checkpoints_approved: count } = await workspace.client.approveChanges(workspace.conversation).finally(() => workspace.refresh());
  return count;
}

/** @param {Workspace} workspace @returns {Promise<string|null>} The files as they were before; null where nothing had changed. */
export async function reset(workspace) {
  const { checkpoint_before: before } = await workspace.client.resetChanges(workspace.conversation).finally(() => workspace.refresh());
  return before;
}

/** @param {Workspace} workspace @param {string} checkpoint */
export async function restore(workspace, checkpoint) {
  await workspace.client.restoreCheckpoint(workspace.conversation, checkpoint).finally(() => workspace.refresh());
}

/** Asks first. @param {string} when As which time the files become, in words. */
export function mayRestore(when) {
  return confirm(t("Restore the files?"),
    t("They become as they were {0}. How they are now is kept as a checkpoint, so this can be undone. The conversation stays as it is.", when), t("Restore"));
}

/** The files become as they were before a message, if the user agrees; what was said stays.
 *  @param {Workspace} workspace @param {string} checkpoint @param {import("./banner.js").Banner} banner */
export async function restoreBefore(workspace, checkpoint, banner) {
  const { conversation } = workspace;
  if (!await mayRestore(t("before this message")) || conversation !== workspace.conversation) return;
  let said = t("The files are as they were before that message. How they were until now is among the checkpoints.");
  try {
    await restore(workspace, checkpoint);
  } catch (error) {
    said = t("The files were not restored. {0}", refusal(error));
  }
  if (conversation === workspace.conversation) banner.tell(said);
}

/** Why the server did not do it, and what helps. @param {any} error */
export function refusal(error) {
  if (error.code === "workspace_busy") return t("An answer is being given in this workspace. Try again when it is over.");
  if (error.status === 403) return t("Your role does not allow it.");
  if (error.status === 404) return t("It is not there any more.");
  return sentence(explained(error));
}
