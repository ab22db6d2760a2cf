import { digest } from "../../commands/gatehouse/digest.ts";
import { jobs } from "../../commands/gatehouse/jobs.ts";
import {
  changesAction,
  snoozeAction,
  snoozeButtons,
  unsnoozeAction,
} from "../../digests/line-buttons.ts";
import { UserError } from "../../errors.ts";
import { buttons, message, readable, section } from "../../messages/message.ts";
import { duration, md } from "../../messages/text.ts";
import { scopeShownTo } from "../../policy/scope.ts";
import { say } from "../error-reply.ts";
import type { Press, Reply } from "../receive/interaction.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { authorize } from "./authorize.ts";

const longestHours = 7 * 24;

/** A button or the menu of a digest. */
export async function pressOnDigest(
  interaction: Press,
  value: Record<string, unknown>,
  reply: Pick<Reply, "privately" | "instead">,
  gateway: GatewayContext,
): Promise<void> {
  const { action, channelId } = interaction;
  const person = await gateway.person(interaction.userId, interaction.teamId);
  if (action === changesAction) {
    await authorize({ command: jobs, targets: [], person, channelId }, gateway);
    const since = typeof value["since"] === "number" ? value["since"] : gateway.now();
    const scope = scopeShownTo(person, channelId, gateway.policy, gateway.ourTeamId);
    return reply.privately(await gateway.digests.changes(since, scope));
  }
  const { line, hours } = value;
  const isLine = typeof line === "string" && /^[a-z-]+:[0-9a-f]{16}$/.test(line);
  const isAll = action === unsnoozeAction && line === undefined;
  if ((!isLine && !isAll) || channelId === "")
    throw new UserError("This button no longer works.", "The next digest has new ones.");
  await authorize({ command: digest, targets: [], person, channelId }, gateway);
  const { snoozes } = gateway.digests;
  const note = (what: string) =>
    gateway.store.note({
      what,
      who: person.id,
      team: person.teamId,
      channel: channelId,
      line: isLine ? line : "all",
    });
  if (action === unsnoozeAction) {
    await snoozes.unsnooze(channelId, isLine ? line : undefined);
    await note("digest-unsnooze");
    return reply.instead(
      say(md`The next digest in this channel shows ${isLine ? "that line" : "every line"} again.`),
    );
  }
  if (!isLine) return;
  if (typeof hours !== "number" || !(hours > 0 && hours <= longestHours)) {
    const text = md`Snooze that line for everyone who reads this channel's digests. For how long?`;
    return reply.privately(message(readable(text), section(text), buttons(snoozeButtons(line))));
  }
  const now = gateway.now();
  await snoozes.snooze(channelId, line, now + hours * 3_600_000, now);
  await note(snoozeAction.replace(":", "-"));
  const text = md`😴 Snoozed for ${duration(hours * 3_600_000)}: digests in this channel omit that line, for everyone.`;
  const undo = { label: "Un-snooze", action: unsnoozeAction, value: JSON.stringify({ line }) };
  await reply.instead(message(readable(text), section(text), buttons([undo])));
}
