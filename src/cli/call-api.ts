import { deadlineMs } from "../deadline.ts";
import { messageOf, codeOf, rootCause, statusOfProxy } from "../errors.ts";
import type { ApiAccess } from "../config/api-access.ts";
import { plain } from "../messages/markdown.ts";
import { parseJson } from "../text/parse-json.ts";

/** The longest time for which the API lets a call wait (ms). */
export const oneWaitMs = 30_000;
/** The extra time that a call gets for an answer on its way (ms). */
const onItsWayMs = 2_000;

/**
 * Makes text safe for the logs of pipelines. Their runners obey `::command` at the beginning of a
 * line, and `##[command]` anywhere in it.
 */
export const onOneLine = (text: string) =>
  plain(text, 1_000)
    .replace(/^\s*::/, ": :")
    .replaceAll(/##(?=\w*\[)/g, "# #");

/** Errors after which nothing was sent, because no connection was made. */
const unsent =
  /^(ENOTFOUND|EAI_\w+|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|\w*CERT\w*|UNABLE_TO_\w+|ERR_TLS_\w+)$/;

/** Makes one call to the API with the token of a service. Never rejects. */
export async function callOnce(to: ApiAccess, path: string, forMs: number, sent?: RequestInit) {
  const headers = new Headers(sent?.headers);
  headers.set("authorization", `Bearer ${to.token}`);
  const signal = AbortSignal.timeout(Math.min(forMs, oneWaitMs) + deadlineMs(onItsWayMs));
  try {
    // The path is appended to the address's own path, because a proxy may have the API below one.
    const address = to.url.replace(/\/*$/, path);
    const answer = await fetch(address, { ...sent, headers, signal, redirect: "manual" });
    const body = parseJson(await textOf(answer));
    return { answer, body, why: `what is there answered ${answer.status}` };
  } catch (error) {
    const cause = rootCause(error);
    const status = statusOfProxy(cause);
    if (status !== undefined)
      return { why: `the proxy in HTTPS_PROXY answers ${status}`, isUnsent: true };
    // A name may have several addresses.
    const first = cause instanceof AggregateError ? cause.errors[0] : cause;
    return { why: onOneLine(messageOf(first)), isUnsent: unsent.test(codeOf(first)) };
  }
}

/** An answer of the API is never larger (bytes). */
const mostBytes = 4 * 1024 * 1024;

/** Reads a body. Empty when it is larger than any that the API sends. */
async function textOf(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of answer.body ?? []) {
    size += chunk.length;
    if (size > mostBytes) return "";
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
