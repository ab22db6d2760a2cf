import type { ModalView } from "@slack/types";
import { UserError } from "../errors.ts";
import { redisTrouble } from "../redis/redis.ts";
import { errorReply } from "../slack/error-reply.ts";
import type { Act } from "./gateway-context.ts";

/** Says to the person what went wrong; without Redis the interaction isn't handled yet, and comes again. */
export async function replyWithError<A extends Act>(
  act: A,
  handle: (act: A) => Promise<unknown>,
): Promise<void> {
  try {
    await handle(act);
  } catch (error) {
    if (redisTrouble(error) !== undefined) throw error;
    await act.reply.privately(errorReply(error, act.gateway.log));
  }
}

/** Throws UserError where the trigger was too old. */
export async function openOr({ reply }: Pick<Act, "reply">, view: ModalView): Promise<void> {
  if ((await reply.open(view)) === undefined) throw tooSlow();
}

export function tooSlow(): UserError {
  return new UserError("That took too long to open.", "Press the button again.");
}
