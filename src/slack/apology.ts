import { randomBytes } from "node:crypto";
import { ComputeError } from "../compute/errors.ts";
import { UserError } from "../errors.ts";
import type { Log } from "../log.ts";
import { type Message, readable, section, message } from "../messages/message.ts";
import { hintOf, lines, md, Markdown, name } from "../messages/text.ts";

/** Anything thrown, as words for a person. A bug shows a reference only; its stack goes to the log. */
export function apologise(error: unknown, log: Log): Message {
  if (error instanceof UserError) return say(md`${error.message}`, hintOf(error.hint));
  if (error instanceof ComputeError) return say(...computeWords(error));
  const reference = randomBytes(4).toString("hex");
  log.error("bug", { reference, error });
  return say(
    md`Something went wrong in Gatehouse. Nothing was sent to the service by this.`,
    md`Tell whoever runs it: ${name(reference)}.`,
  );
}

/** A refusal or an answer in one sentence, and the way out under it. */
export function say(text: Markdown, hint?: Markdown): Message {
  const all = lines(text, hint);
  return message(readable(all), section(all));
}

function computeWords(error: ComputeError): [Markdown, Markdown | undefined] {
  const theirs = error.serviceMessage ? md` It says: ${error.serviceMessage}` : md``;
  if (error.status === 401 || error.status === 403) {
    return [
      md`The service refuses our key (${error.status}).${theirs}`,
      md`Whoever runs Gatehouse must look at ${name("COMPUTE_API_KEY")}. Nothing was changed.`,
    ];
  }
  switch (error.kind) {
    case "not-found":
      return [
        md`The service doesn't know it any more.${theirs}`,
        md`It may have been deleted a moment ago.`,
      ];
    case "busy":
      return [md`The service asks us to slow down.`, md`Try again in a minute.`];
    case "unreachable":
      return [
        md`The service can't be reached right now.`,
        md`Nothing was changed. ${name("/gatehouse status")} shows when it is back.`,
      ];
    case "unexpected":
      return [
        md`The service answered something I can't read (${error.message}).`,
        md`Nothing was changed.`,
      ];
    default:
      return [md`The service refused (${error.status ?? error.kind}).${theirs}`, undefined];
  }
}
