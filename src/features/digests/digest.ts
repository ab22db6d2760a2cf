import * as z from "zod";
import { sectionOf } from "../../config/policy-section.ts";
import { weekdays } from "../../config/policy-values.ts";
import { digestsOf } from "./create-digests.ts";
import { type DigestRule, digestsSection } from "./digests-section.ts";
import { readSchedule, daysWords, nextSlot, timeOfRule } from "./schedules.ts";
import { UserError } from "../../errors.ts";
import { type Message } from "../../messages/blocks.ts";
import { sentence } from "../../messages/card.ts";
import { howToOpen } from "../../messages/channel-errors.ts";
import { channelLink, lines, type Markdown, md, name } from "../../messages/markdown.ts";
import { scopeShownTo } from "../../core/permit/access.ts";
import { momentWords } from "../../text/time-words.ts";
import { isListed } from "../../core/permit/permit.ts";
import { defineCommand, rest } from "../../registry/define.ts";
import { noteInChannel, type ReadContext } from "../../commands/context.ts";
import { viewLimitHere } from "../../commands/view-limit.ts";

export const digest = defineCommand({
  name: "gatehouse digest",
  aliases: ["handover"],
  summary: "Post a digest here daily or now, or hand over to the next shift",
  example: "/gatehouse digest on 09:00 Europe/Paris mon-fri",
  class: "change",
  speaksFor: ({ action }) => action !== "handover",
  args: z.object({
    action: z.enum(["on", "off", "now", "handover"]).optional().meta({
      description:
        "`handover` is shown only to you, with what is running and open, until you share it",
    }),
    when: rest(
      200,
      "for `on`: a time, a time zone, and days, in any order; for `handover`: a note to the next shift",
    ).optional(),
  }),
  async answer({ action, when: words = "" }, context: ReadContext) {
    const { channelId: here, policy, person, ourTeamId } = context;
    const digests = digestsOf(context);
    if (action === "handover") {
      if (here === "") throw new UserError("Run this in a channel.");
      const left = { author: person.name, text: words.trim() };
      const scope = scopeShownTo(person, here, policy, ourTeamId);
      const limit = viewLimitHere(context);
      return { message: await digests.handover(here, scope, { left, limit }), isSharable: true };
    }
    const read = readSchedule(words);
    if (here === "" && read.channel === undefined) throw new UserError("Run this in a channel.");
    if (action !== "on" && Object.keys(read).some((key) => key !== "channel"))
      throw new UserError(
        "Only `on` takes a time, a time zone, or days.",
        "Usage: `/gatehouse digest on 09:00 Europe/Paris mon-fri`.",
      );
    const channel = read.channel === undefined ? here : await channelNamed(read.channel, context);
    if (action === undefined) return showSchedule(channel, context);
    if (action === "now") return postNow(channel, context);
    await noteInChannel(context, `digest-${action}`, channel, words.slice(0, 100));
    if (action === "on") return turnOn(read, channel, context);
    return sentence(
      (await digests.schedules.clear(channel))
        ? md`Done. Digests for ${channelLink(channel)} are turned off.`
        : md`No digest is set up for ${channelLink(channel)}.`,
    );
  },
});

/**
 * The ID of the channel. Only administrators learn whether another one exists. Throws UserError.
 */
async function channelNamed(word: string, context: ReadContext): Promise<string> {
  const { channelId: here, person, findChannel } = context;
  if (word === here) return here;
  const channel = await findChannel(word);
  if (channel.kind === "found" && channel.id === here) return here;
  if (!isListed(person, "administer", context))
    throw new UserError(
      "Only an administrator can do that for another channel.",
      "Run it in that channel, or see `access.administer` in gatehouse.yml.",
    );
  if (channel.kind === "found") return channel.id;
  // The digest of a channel that is gone, or that Gatehouse has left, can still be turned off.
  if ((await digestsOf(context).schedules.of(word)).length > 0) return word;
  const called = word.slice(0, 80);
  if (channel.kind === "none")
    throw new UserError(
      `Gatehouse sees no channel ${called} in Slack. Nothing was done.`,
      "Invite `@gatehouse` there if it is private, or run this in that channel.",
    );
  throw new UserError(
    `Slack didn't say whether there is a channel ${called} (${channel.why}). Nothing was done.`,
    "Try again in a minute, or run this in that channel.",
  );
}

async function turnOn(
  words: ReturnType<typeof readSchedule>,
  channel: string,
  context: ReadContext,
): Promise<Message> {
  const { policy, person, now } = context;
  const { schedules } = digestsOf(context);
  const [before] = await schedules.of(channel);
  const usual = before ?? sectionOf(policy, digestsSection)[0];
  // A time without a zone is the asker's own.
  const own = words.at === undefined ? undefined : person.timeZone;
  const timezone = words.timezone ?? own ?? usual?.timezone ?? person.timeZone ?? "UTC";
  const rule: DigestRule = {
    channel,
    at: words.at ?? before?.at ?? "09:00",
    timezone,
    days: words.days ?? before?.days ?? weekdays,
    ...(before?.targets ? { targets: before.targets } : {}),
  };
  await schedules.set(rule);
  return sentence(
    lines(
      md`Done. ${scheduleWords(rule, now())}`,
      words.zoneName !== undefined &&
        md`${words.zoneName}; Gatehouse uses the clocks of ${timezone}.`,
      words.timezone === undefined &&
        md`The time zone is ${timezone}${timezone === person.timeZone ? ", yours in Slack" : ""}. ${name(`/gatehouse digest on ${rule.at} ${otherZone(timezone)}`)} sets another.`,
    ),
  );
}

async function postNow(channel: string, context: ReadContext): Promise<Message> {
  const closed = await context.post(channel, await digestsOf(context).build(channel));
  if (closed === undefined) return sentence(md`The digest is in ${channelLink(channel)}.`);
  const way = howToOpen(closed);
  const why = way
    ? md`Can't post in ${channelLink(channel)} (${closed}). ${way}`
    : md`The digest was not posted in ${channelLink(channel)}: Slack didn't take the message (${closed}). Try again in a minute.`;
  return sentence(md`${why} ${name("/gatehouse digest handover")} shows it only to you.`);
}

async function showSchedule(channel: string, context: ReadContext): Promise<Message> {
  const rules = await digestsOf(context).schedules.of(channel);
  if (rules.length === 0) {
    return sentence(
      md`No digest is set up for ${channelLink(channel)}. ${name("/gatehouse digest on 09:00 Europe/Paris mon-fri")} sets one up; ${name("/gatehouse digest now")} posts one.`,
    );
  }
  return sentence(lines(...rules.map((rule) => scheduleWords(rule, context.now()))));
}

function scheduleWords(rule: DigestRule, now: number): Markdown {
  const { channel, timezone, days, targets } = rule;
  const about = targets ? md` about ${targets.join(", ")}` : md``;
  const next = nextSlot(rule, now);
  return md`A digest${about} is posted in ${channelLink(channel)} at ${timeOfRule(rule)}, ${daysWords(days)}. ${next ? md`Next: ${momentWords(next.at, timezone)}.` : md``}`;
}

const otherZone = (zone: string) => (zone === "Europe/Paris" ? "America/New_York" : "Europe/Paris");
