import { UserError } from "../../errors.ts";
import { wordsFor } from "../../registry/define.ts";
import { noteRefusal } from "../../talk/authorize.ts";
import type { GatewayContext } from "../../talk/gateway-context.ts";
import type { AskedChange } from "../proposing.ts";
import { placeFor, prepareChange } from "./prepare-change.ts";
import { proposalsOf } from "./proposals.ts";

/** More open ones of one person would make those who may run them stop reading. */
const mostOpen = 5;

/** Keeps a change that a person asks others to run as a proposal (`Proposing.propose`). */
export async function askOthers(
  { id, asker, lacked, reason, channelId }: AskedChange,
  gateway: GatewayContext,
): Promise<{ channelId: string; isNew: boolean }> {
  const proposals = proposalsOf(gateway);
  const known = await proposals.get(id);
  if (known) return { channelId: known.record.channelId, isNew: false };
  const { command, target, allowed } = lacked;
  const refuse = async (rule: string, text: string, hint?: string): Promise<never> => {
    await noteRefusal({ command, person: asker, targets: [target] }, rule, gateway);
    throw new UserError(text, hint);
  };
  const change = await prepareChange(lacked, gateway);
  if ("never" in change) {
    const { rule, title, detail } = change.never;
    return refuse(rule, title, detail);
  }
  // Others read nothing in a direct message.
  const askedIn = /^[CG]/.test(channelId) ? channelId : undefined;
  const place = placeFor(lacked, gateway, { second: askedIn });
  if ("lacks" in place)
    return refuse(
      "channels",
      `No channel can be told of this in which /${command.name} can be run. Nobody was asked.`,
      "Ask those people yourself.",
    );
  const { policy, store } = gateway;
  const { limits, timing } = policy;
  const expiresMs = timing.approvalExpiresMs;
  await store
    .countAgainstLimits({ personId: asker.id, holder: id, limits })
    .catch((error: unknown) =>
      error instanceof UserError
        ? refuse("limits", error.message, error.hint)
        : Promise.reject(error),
    );
  const isOver = (state: string) => state !== "open";
  const places = { windowMs: expiresMs, most: mostOpen, holderKind: "proposal" as const, isOver };
  if ((await store.takeApiPlace(`asked ${asker.id}`, id, places)) > 0)
    return refuse(
      "limits",
      `${mostOpen} of the changes you asked for are still open, which is the limit. Nobody was asked.`,
      "Withdraw one, or wait until one is run or dismissed, or expires.",
    );
  const { id: askerId, teamId, name } = asker;
  const isNew = await proposals.propose({
    id,
    by: { asker: { id: askerId, teamId, name }, allowed, askedIn: askedIn ?? "" },
    words: wordsFor(command, change.input, target),
    reason,
    command: command.name,
    ...change,
    channelId: place.channelId,
    expiresAt: (await proposals.now()) + expiresMs,
  });
  return { channelId: place.channelId, isNew };
}
