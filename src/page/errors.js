// What went wrong, for people: by the server's codes, whose own texts are for whoever runs it.

import { t } from './texts.js';

/** Words for codes; of any other the server's own are shown. */
const WORDS = {
  provider_unavailable: t('The assistant cannot be reached at the moment.'),
  provider_rate_limited: t('The assistant has too much to do at the moment.'),
  provider_timeout: t('The assistant fell silent.'),
  provider_truncated: t('The answer broke off.'),
  provider_malformed: t('The answer could not be read.'),
  model_fault: t('The assistant made a mistake.'),
  empty_answer: t('The assistant said nothing.'),
  provider_unauthorized: t('The assistant is not set up correctly. Please tell whoever runs this page.'),
  model_not_found: t('The assistant is not set up correctly. Please tell whoever runs this page.'),
  provider_rejected: t('The assistant is not set up correctly. Please tell whoever runs this page.'),
  provider_quota_exceeded: t('What the assistant may use is used up. Please tell whoever runs this page.'),
  context_too_long: t('This conversation is too long for the assistant. Begin a new one.'),
  content_filtered: t('The answer was stopped by a filter. Ask in another way.'),
  model_refused: t('The assistant declined to answer. Ask in another way.'),
  max_tokens: t('The answer was cut off where it became too long.'),
  max_turns: t('The assistant took too many steps. Ask for less at once.'),
  tool_call_limit: t('The assistant took too many steps. Ask for less at once.'),
  run_too_long: t('The answer became too long. Ask for less at once.'),
  run_timeout: t('The answer took too long.'),
  quota_exceeded: t('What you may use for now is used up.'),
  conversation_busy: t('Another answer is being written in this conversation.'),
  preview_stale: t('What this would change has been changed by somebody else since.'),
  connection_lost: t('The connection to the server was lost.'),
  interrupted: t('The server stopped while it was writing this.'),
  internal: t('Something went wrong on the server.'),
  store_unavailable: t('Something went wrong on the server.'),
};

/** Codes of runs that end alike when they are tried again (`docs/ERRORS.md`). */
const LASTING = new Set([
  "data_denied", "max_turns", "tool_call_limit", "tool_failures", "provider_unauthorized", "model_not_found", "provider_quota_exceeded", "provider_rejected",
  "context_too_long", "content_filtered", "model_refused", "model_paused", "max_tokens", "quota_exceeded", "run_too_long",
]);

/** Whether a run that ended so may end otherwise. @param {string} code */
export const isPassing = (code) => !LASTING.has(code);

/** @param {string} code @param {string} message The server's own words. */
export function inWords(code, message) {
  return Object.hasOwn(WORDS, code) ? WORDS[code] : message;
}

/** The same of anything that was thrown: what no server has said is a mistake of this page. @param {any} error */
export const explained = (error) => (error.code ? inWords(error.code, error.message) : t('Something went wrong in this page.'));

/** Codes of messages that are refused for their files. */
const OF_FILES = ["not_found", "files_off", "files_unavailable", "file_unsupported", "storage_quota_exceeded"];

/** Whether a message was refused for its files; also where they are more than it may have. @param {any} error */
export const isOfFiles = ({ code, message }) => OF_FILES.includes(code) || (code === "invalid_request" && /at most \d+ files/.test(message));

/** By how much a message is too long, for people; `null` where that is not what is wrong. @param {any} error @param {string} text */
export function tooLong(error, text) {
  if (error.status !== 413) return null;
  const most = Number(/larger than (\d+) bytes/.exec(error.message)?.[1]);
  const over = new TextEncoder().encode(text).length - most;
  return over > 0 ? t('The message is too long by {0} characters or so.', over.toLocaleString()) : t('The message is too long.');
}
