import { digest } from "../../commands/gatehouse/digest.ts";
import { UserError } from "../../errors.ts";
import { md } from "../../messages/text.ts";
import { say } from "../error-reply.ts";
import type { Interaction, Reply } from "../receive/interaction.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { authorize } from "./authorize.ts";

/** Hides one line of this channel's digests for a day. */
export async function snooze(
  interaction: Interaction,
  value: Record<string, unknown>,
  reply: Pick<Reply, "privately">,
  gateway: GatewayContext,
): Promise<void> {
  const { line } = value;
  const isLine = typeof line === "string" && /^[a-z-]+:\S{1,300}$/.test(line);
  if (!isLine || interaction.channelId === "")
    throw new UserError("This button no longer works.", "The next digest has new ones.");
  const person = await gateway.person(interaction.userId, interaction.teamId);
  const asked = { command: digest, targets: [], person, channelId: interaction.channelId };
  await authorize(asked, gateway);
  await gateway.digests.snoozes.snooze(interaction.channelId, line, gateway.now());
  await gateway.store.note({
    what: "digest-snooze",
    who: person.id,
    team: person.teamId,
    channel: interaction.channelId,
    line: line.slice(0, 200),
  });
  await reply.privately(
    say(md`😴 Snoozed: digests in this channel omit that line for 24 hours, for everyone.`),
  );
}
