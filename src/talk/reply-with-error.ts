import type { ModalView } from "@slack/types";
import { UserError } from "../errors.ts";
import { redisTrouble } from "../redis/redis.ts";
import { errorReply } from "../slack/error-reply.ts";
import { Refused } from "./authorize.ts";
import type { Act } from "./gateway-context.ts";
import { offersAtRefusal } from "./service-keys.ts";

/**
 * Handles an act and tells the person what went wrong. An error of Redis is thrown instead, because
 * the interaction is delivered again.
 */
export async function replyWithError<A extends Act>(
  act: A,
  respond: (act: A) => Promise<unknown>,
): Promise<void> {
  try {
    await respond(act);
  } catch (error) {
    if (redisTrouble(error) !== undefined) throw error;
    const { gateway, reply } = act;
    const lacked = error instanceof Refused ? error.lacked : undefined;
    const offers = lacked ? offersAtRefusal(lacked, gateway) : [];
    await reply.privately(errorReply(error, gateway.log, offers));
  }
}

/** Opens a modal. Throws UserError when Slack's trigger has expired. */
export async function openOr({ reply }: Pick<Act, "reply">, view: ModalView): Promise<void> {
  if ((await reply.open(view)) === undefined) throw tooSlow();
}

export function tooSlow(): UserError {
  return new UserError("That took too long to open. Nothing was done.", "Press the button again.");
}
