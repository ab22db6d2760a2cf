import type { AnyMiddlewareArgs, Middleware } from "@slack/bolt";
import { foreignness } from "../people/foreign-deliveries.ts";
import type { BotIdentity } from "../people/identity.ts";
import { toleranceSeconds } from "./slack-signature.ts";

/**
 * A delivery for another app or workspace, or dated in the future. It is neither stored nor
 * answered.
 */
export class RefusedDelivery extends Error {
  override readonly name = "RefusedDelivery";
  /** Bolt wraps errors without a code. */
  readonly code = "gatehouse_refused_delivery";
  readonly reason: "app" | "team" | "timestamp";

  constructor(reason: RefusedDelivery["reason"]) {
    super(reason);
    this.reason = reason;
  }
}

/**
 * Global middleware that refuses deliveries for others. A signature says that Slack sent something,
 * not that it is for this app and workspace, and over HTTP Bolt checks the date of a delivery only
 * against the past.
 */
export function refuseForeign(
  identity: BotIdentity,
  now: () => number,
): Middleware<AnyMiddlewareArgs> {
  return async ({ body, context, next }) => {
    const signedAt: unknown = context["signedAtSeconds"];
    if (typeof signedAt === "number" && signedAt - now() / 1000 > toleranceSeconds)
      throw new RefusedDelivery("timestamp");
    const foreign = foreignness(body, identity);
    if (foreign !== undefined) throw new RefusedDelivery(foreign);
    await next();
  };
}
