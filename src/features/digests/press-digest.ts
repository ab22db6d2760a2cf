import * as z from "zod";
import { UserError } from "../../errors.ts";
import { type Message } from "../../messages/blocks.ts";
import { sentence } from "../../messages/card.ts";
import { duration, md } from "../../messages/markdown.ts";
import { waysRow } from "../../messages/parts.ts";
import { authorize } from "../../talk/authorize.ts";
import { type Act, type PressHandler, personOf } from "../../talk/gateway-context.ts";
import { say } from "../../slack/error-reply.ts";
import type { Press } from "../../slack/receive/interaction.ts";
import type { Digests } from "./create-digests.ts";
import { digest } from "./digest.ts";
import { unsnooze as unsnoozeButton } from "./line-buttons.ts";

const line = z.string().regex(/^[a-z-]+:[0-9a-f]{16}$/);
const mostHours = 7 * 24;
const snoozing = z.object({ line, hours: z.number().positive().max(mostHours) });
/** A missing line means all lines of the channel. */
const unsnoozing = z.object({ line: line.exactOptional() });

export function pressesOfDigests(digests: Digests): Readonly<Record<string, PressHandler>> {
  return {
    "digest:snooze": onDigest(snoozing, snooze),
    "digest:unsnooze": onDigest(unsnoozing, unsnooze),
  };

  async function snooze(
    { line: about, hours }: z.output<typeof snoozing>,
    { interaction, gateway }: Act<Press>,
  ): Promise<Message> {
    const lastsMs = hours * 3_600_000;
    await digests.snoozes.snooze(interaction.channelId, about, gateway.now() + lastsMs);
    const text = md`😴 Snoozed for ${duration(lastsMs)}: digests in this channel omit that line, for everyone. When it is gone and comes back, they show it.`;
    return sentence(text, waysRow([unsnoozeButton(about)]));
  }

  async function unsnooze(
    { line: about }: z.output<typeof unsnoozing>,
    { interaction }: Act<Press>,
  ): Promise<Message> {
    await digests.snoozes.unsnooze(interaction.channelId, about);
    const lineWords = about === undefined ? "every line" : "that line";
    return say(md`The next digest in this channel shows ${lineWords} again.`);
  }
}

/** Wraps a handler for people who may change what digests in this channel show. */
function onDigest<About extends { line?: string }>(
  schema: z.ZodType<About>,
  change: (about: About, act: Act<Press>) => Promise<Message>,
): PressHandler {
  return async (act, value) => {
    const { interaction, reply, gateway } = act;
    const { action, channelId } = interaction;
    const about = schema.safeParse(value).data;
    if (about === undefined || channelId === "")
      throw new UserError("This button no longer works.", "The next digest has new ones.");
    const person = await personOf(act);
    await authorize({ command: digest, person, channelId }, gateway);
    const message = await change(about, act);
    const actor = { who: person.id, team: person.teamId, channel: channelId };
    await gateway.store.note({
      what: action.replace(":", "-"),
      ...actor,
      line: about.line ?? "all",
    });
    await reply.instead(message);
  };
}
