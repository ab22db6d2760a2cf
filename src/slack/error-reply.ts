import { randomBytes } from "node:crypto";
import { ComputeError, unreachableWords } from "../fleet/compute/compute.ts";
import { UserError } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { Message } from "../messages/blocks.ts";
import type { ButtonSpec } from "../messages/buttons.ts";
import { sentence } from "../messages/card.ts";
import { hintOf, lines, md, Markdown, name } from "../messages/markdown.ts";
import { waysRow, small } from "../messages/parts.ts";
import { redisTrouble } from "../redis/redis.ts";

/**
 * Anything thrown, in words for a person, with buttons for what they can do instead. A bug shows
 * only a reference; its stack goes to the log.
 */
export function errorReply(error: unknown, log: Log, offers: readonly ButtonSpec[] = []): Message {
  if (error instanceof UserError) {
    const { message: text, hint, smallPrint } = error;
    return sayNo(lines(md`${text}`, hintOf(hint)), { smallPrint, offers });
  }
  if (error instanceof ComputeError) return say(...computeWords(error));
  const trouble = redisTrouble(error);
  if (trouble !== undefined) {
    log.warn("redis.in-the-way", { error });
    return say(
      md`${trouble}, so it isn't known whether this was done.`,
      md`${name("/gatehouse jobs")} shows it once Redis answers again. Check before you try again.`,
    );
  }
  const reference = randomBytes(4).toString("hex");
  log.error("bug", { reference, error });
  return say(
    md`Something went wrong in Gatehouse. Check whether your request ran before you try again.`,
    md`Report to the team that runs Gatehouse: ${name(reference)}.`,
  );
}

/** A refusal, with what the person can press instead, and below it the rule in small print. */
export function sayNo(
  text: Markdown,
  how: { smallPrint?: string | undefined; offers?: readonly ButtonSpec[] },
): Message {
  const smallPrint = hintOf(how.smallPrint);
  return sentence(text, waysRow(how.offers ?? []), smallPrint && small(smallPrint));
}

/** A refusal or an answer in one sentence, with the next step below it. */
export function say(text: Markdown, hint?: Markdown): Message {
  return sentence(lines(text, hint));
}

function computeWords(error: ComputeError): [Markdown, Markdown | undefined] {
  const serviceWords = error.serviceMessage ? md` It says: ${error.serviceMessage}` : md``;
  if (error.status === 401) {
    return [
      md`The compute service rejected Gatehouse's API key (${error.status}).${serviceWords}`,
      md`Nothing was changed. The team that runs Gatehouse must check ${name("COMPUTE_API_KEY")}.`,
    ];
  }
  const isRead = error.endpoint.startsWith("GET ");
  const checkFirst = md`It may have happened. Check before you try again.`;
  switch (error.kind) {
    case "not-found":
      return [
        md`The compute service no longer has it.${serviceWords}`,
        md`It may have just been deleted.`,
      ];
    case "busy":
      return [md`The compute service is limiting requests.`, md`Try again in a minute.`];
    case "unreachable":
      return [
        md`The compute service ${unreachableWords(error)} right now.`,
        md`Nothing was changed. ${name("/gatehouse status")} shows when it is back.`,
      ];
    case "unclear":
      return [
        md`The compute service gave no clear answer (${error.message}).${serviceWords}`,
        checkFirst,
      ];
    case "unexpected":
      return [
        md`Gatehouse can't read the compute service's answer (${error.message}).${serviceWords}`,
        isRead ? md`Nothing was changed.` : checkFirst,
      ];
    default:
      return [
        md`The compute service refused (${error.status ?? error.kind}).${serviceWords}`,
        error.status === 403
          ? md`Nothing was changed. ${name("/gatehouse status")} shows whether it refuses Gatehouse's key for everything.`
          : undefined,
      ];
  }
}
