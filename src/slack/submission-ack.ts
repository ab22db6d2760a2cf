import type { ModalView } from "@slack/types";
import type { Log } from "../log.ts";
import { plainText, section } from "../messages/message.ts";
import { md } from "../messages/text.ts";
import type { SubmissionVerdict } from "./handlers.ts";
import { plainly } from "./handling.ts";
import { at, listAt, textAt } from "./payload.ts";

/** What an ack of a submission may carry (https://docs.slack.dev/surfaces/modals#handling_submissions). */
export type SubmissionAck =
  | { response_action: "errors"; errors: Record<string, string> }
  | { response_action: "update"; view: ModalView }
  | { response_action: "clear" };

export interface SubmissionAnswer {
  /** Undefined closes the modal. */
  ack?: SubmissionAck;
  /** It goes back to the person: not to be handled. */
  isRefused: boolean;
}

/** Waits for the verdict as long as Slack leaves us; whatever goes wrong is shown in the modal. */
export async function answerTo(
  verdict: Promise<SubmissionVerdict | undefined>,
  view: unknown,
  withinMs: number,
  log: Log,
): Promise<SubmissionAnswer> {
  const { promise: late, resolve } = Promise.withResolvers<"late">();
  const timer = setTimeout(() => resolve("late"), Math.max(0, withinMs));
  try {
    const said = await Promise.race([verdict, late]);
    if (said === "late") {
      log.warn("slack.submit-late", {
        callback: textAt(view, "callback_id"),
        withinMs: Math.round(withinMs),
      });
      verdict.catch((error: unknown) => log.error("slack.submit-failed", { error }));
      return {
        ack: problemAck(
          view,
          "This takes too long right now. See what became of it before you try again.",
        ),
        isRefused: true,
      };
    }
    if (Object.keys(said?.errors ?? {}).length > 0) {
      return { ack: { response_action: "errors", errors: { ...said?.errors } }, isRefused: true };
    }
    if (said?.update?.type === "modal")
      return { ack: { response_action: "update", view: said.update }, isRefused: false };
    return said?.clear === true
      ? { ack: { response_action: "clear" }, isRefused: false }
      : { isRefused: false };
  } catch (error) {
    return { ack: problemAck(view, plainly(error, log).text), isRefused: true };
  } finally {
    clearTimeout(timer);
  }
}

/** At the first field, so that what was typed stays; a view without fields is replaced by the sentence. */
export function problemAck(view: unknown, sentence: string): SubmissionAck {
  const field = listAt(view, "blocks").find((block) => textAt(block, "type") === "input");
  const blockId = textAt(field, "block_id");
  if (blockId !== "") return { response_action: "errors", errors: { [blockId]: sentence } };
  const title = textAt(at(view, "title"), "text") || "Gatehouse";
  return {
    response_action: "update",
    view: {
      type: "modal",
      title: plainText(title, 24),
      close: plainText("Close", 24),
      blocks: [section(md`${sentence}`)],
    },
  };
}
