import * as z from "zod";
import { digest } from "../../commands/gatehouse/digest.ts";
import { jobs } from "../../commands/gatehouse/jobs.ts";
import { changesAction, unsnoozeAction } from "../../digests/line-buttons.ts";
import { UserError } from "../../errors.ts";
import { buttons, message, readable, section } from "../../messages/message.ts";
import { duration, md } from "../../messages/text.ts";
import { scopeShownTo } from "../../policy/scope.ts";
import { say } from "../error-reply.ts";
import type { Press, Reply } from "../receive/interaction.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { authorize } from "./authorize.ts";

const line = z.string().regex(/^[a-z-]+:[0-9a-f]{16}$/);
const snoozing = z.object({
  line,
  hours: z
    .number()
    .positive()
    .max(7 * 24),
});
/** Without a line: all of the channel. */
const unsnoozing = z.object({ line: line.exactOptional() });

/** A button or the menu of a digest. */
export async function pressOnDigest(
  interaction: Press,
  pressed: Record<string, unknown>,
  reply: Pick<Reply, "privately" | "instead">,
  gateway: GatewayContext,
): Promise<void> {
  const { action, channelId } = interaction;
  const person = await gateway.person(interaction.userId, interaction.teamId);
  if (action === changesAction) {
    await authorize({ command: jobs, targets: [], person, channelId }, gateway);
    const since = typeof pressed["since"] === "number" ? pressed["since"] : gateway.now();
    const scope = scopeShownTo(person, channelId, gateway.policy, gateway.ourTeamId);
    return reply.privately(await gateway.digests.changes(since, scope));
  }
  const ended = action === unsnoozeAction ? unsnoozing.safeParse(pressed).data : undefined;
  const begun = action === unsnoozeAction ? undefined : snoozing.safeParse(pressed).data;
  if ((!ended && !begun) || channelId === "")
    throw new UserError("This button no longer works.", "The next digest has new ones.");
  await authorize({ command: digest, targets: [], person, channelId }, gateway);
  const { snoozes } = gateway.digests;
  const note = (what: string, about = "all") =>
    gateway.store.note({
      what,
      who: person.id,
      team: person.teamId,
      channel: channelId,
      line: about,
    });
  if (ended) {
    await snoozes.unsnooze(channelId, ended.line);
    await note("digest-unsnooze", ended.line);
    const what = ended.line === undefined ? "every line" : "that line";
    return reply.instead(say(md`The next digest in this channel shows ${what} again.`));
  }
  if (!begun) return;
  const lastsMs = begun.hours * 3_600_000;
  await snoozes.snooze(channelId, begun.line, gateway.now() + lastsMs);
  await note("digest-snooze", begun.line);
  const text = md`😴 Snoozed for ${duration(lastsMs)}: digests in this channel omit that line, for everyone. When it is gone and comes back, they show it.`;
  const value = JSON.stringify({ line: begun.line });
  const undo = { label: "Un-snooze", action: unsnoozeAction, value };
  await reply.instead(message(readable(text), section(text), buttons([undo])));
}
