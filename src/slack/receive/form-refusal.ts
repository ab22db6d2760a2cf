import type { ViewResponseAction } from "@slack/bolt";
import { within } from "../../deadline.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import type { Message } from "../../messages/blocks.ts";
import { md } from "../../messages/markdown.ts";
import { paragraph } from "../../messages/parts.ts";
import { modal } from "../../messages/views.ts";
import { errorReply } from "../error-reply.ts";
import { at, listAt, textAt } from "../json.ts";
import type { SubmissionResult } from "./interaction.ts";

/** Why a form isn't taken, in a message of its own; `action` keeps the form open and says it there. */
export interface Refusal {
  text: string;
  action: ViewResponseAction;
}

/**
 * Why the submission can't be handled. Undefined closes the modal
 * (https://docs.slack.dev/surfaces/modals#handling_submissions).
 */
export async function refusalOf(
  result: Promise<SubmissionResult | undefined>,
  view: unknown,
  withinMs: number,
  log: Log,
): Promise<Refusal | undefined> {
  try {
    const answer = await within(withinMs, result, () => "late" as const);
    if (answer === "late") {
      log.warn("slack.submit-late", {
        callback: textAt(view, "callback_id"),
        withinMs: Math.round(withinMs),
      });
      result.catch((error: unknown) => log.error("slack.submit-failed", { error }));
      return problemIn(view, "This takes too long. Check whether it ran before you try again.");
    }
    const errors = { ...answer?.errors };
    if (Object.keys(errors).length === 0) return undefined;
    const text = `The form was not taken: ${Object.values(errors).join(" ")}`;
    return { text, action: { response_action: "errors", errors } };
  } catch (error) {
    return problemIn(view, plainly(notTaken(error, log)));
  }
}

/**
 * Shows the problem at the first field, so that the input stays. A view without fields is replaced.
 */
export function problemIn(view: unknown, text: string): Refusal {
  const field = listAt(view, "blocks").find((block) => textAt(block, "type") === "input");
  const blockId = textAt(field, "block_id");
  if (blockId !== "")
    return { text, action: { response_action: "errors", errors: { [blockId]: text } } };
  const title = textAt(at(view, "title"), "text") || "Gatehouse";
  const replaced = modal(title, [paragraph(md`${text}`)]);
  return { text, action: { response_action: "update", view: replaced } };
}

/** The message for a failure before the acknowledgment. */
export function notTaken(error: unknown, log: Log): Message {
  log.info("slack.not-taken", { why: messageOf(error) });
  return errorReply(error, log);
}

export const plainly = ({ text }: Message) => text.replaceAll("\n", " ");
