import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { exportExcerpt, excerptText } from "../../audit/excerpt.ts";
import { findSigningKey } from "../../audit/signing-key.ts";
import type { ReadContext } from "../../commands/context.ts";
import { type ViewLimit, viewLimitHere } from "../../commands/view-limit.ts";
import { scopeShownTo } from "../../core/permit/access.ts";
import { UserError } from "../../errors.ts";
import { counted, dotted, plainWords } from "../../messages/markdown.ts";
import { type Answer, defineCommand, fileFlag, rest, wholeNumber } from "../../registry/define.ts";
import { parseSince } from "../../text/parse-since.ts";
import { splitZone } from "../../text/zone.ts";
import { type EventsSince, eventsOf } from "../../core/events/read-events.ts";
import { fileMessage, renderNight } from "./render-night.ts";

const hourMs = 3_600_000;
const usualMs = 12 * hourMs;
const longestMs = 7 * 24 * hourMs;

export const night = defineCommand({
  name: "gatehouse night",
  summary: "Show what happened since a time: alerts, who did what, and how it ended",
  example: "/gatehouse night 8pm",
  class: "read",
  inOwnWords(text) {
    const since = asksWhatHappened.exec(text)?.[1];
    if (since === undefined) return undefined;
    const words = since.trim();
    if (words === "" || words === "here") return {};
    return parseSince(words, Date.now()) === undefined ? undefined : { since: words };
  },
  args: z.object({
    since: rest(
      40,
      "a duration, a time, or a day: `12h`, `8pm`, `last night`; by default 12 hours ago",
    ).optional(),
    skip: wholeNumber(10_000)
      .optional()
      .meta({ isFlag: true, description: "how many of the oldest to leave out" }),
    file: fileFlag("send it as a file whose lines `audit verify` can prove"),
  }),
  async answer({ since: words = "", skip = 0, file }, context: ReadContext) {
    const { person, channelId, policy, ourTeamId } = context;
    const since = sinceWhen(words, context);
    const scope = scopeShownTo(person, channelId, policy, ourTeamId);
    const read = await eventsOf(context).since(since, scope);
    const limit = viewLimitHere(context);
    if (!file) return renderNight(read, { skip, limit });
    return asFile(read, limit, context);
  },
});

const asksWhatHappened =
  /^(?:what(?:'?s| has| have| all)?(?: (?:happened|changed|happens|happening|went on|went wrong|went down|broke|failed|going on|new|been going on|is going on)| (?:did|have) (?:i|we) miss(?:ed)?| was (?:going on|done))|(?:did|has) anything (?:happen|change|break)(?:ed|d)?|anything (?:happen|new)(?:ed)?|who did what)(\s.*|)$/;

/** Throws UserError. */
function sinceWhen(words: string, { now, person }: Pick<ReadContext, "now" | "person">): number {
  const asked = splitZone(words, (typed) => `/gatehouse night ${typed}`);
  const zone = asked.zone ?? person.timeZone;
  const at = words === "" ? now() - usualMs : parseSince(asked.words, now(), zone);
  if (at === undefined)
    throw new UserError(
      `Gatehouse can't tell since when: ${words.slice(0, 40)}.`,
      "Use a duration, a time, or a day: `12h`, `8pm`, `last night`, `yesterday 20:00`, `2026-11-26`.",
    );
  if (now() - at > longestMs)
    throw new UserError(
      "A night goes back 7 days at most.",
      "`/gatehouse audit` shows what was earlier.",
    );
  return at;
}

/** A record is sealed twice a second, so a file that needs the newest one waits for it. */
const sealTries = 25;
const sealPauseMs = 200;

async function asFile(
  read: EventsSince,
  limit: ViewLimit | undefined,
  { trail, journal, person, channelId, now }: ReadContext,
): Promise<Answer> {
  const events = read.events.filter(({ records }) => records.length > 0);
  const from = new Date(read.since).toISOString();
  // Reads of the trail are recorded in it.
  const reader = { who: person.id, team: person.teamId, channel: channelId };
  await journal.note({ what: "audit-excerpt", ...reader, since: from, acts: events.length });
  const acts = events.map(({ at, text, proof, records }) => ({
    at,
    says: plainWords(dotted(text, proof)),
    records,
  }));
  const about = `From ${from} to ${new Date(now()).toISOString()}, as far as ${person.name} sees it: ${counted(acts.length, "act")}.`;
  for (let tries = 0; tries < sealTries; tries += 1) {
    // The first seal of a new installation makes the key.
    const signingKey = findSigningKey(trail.dataDir);
    const excerpt = signingKey && (await exportExcerpt({ ...trail, signingKey, about, acts }));
    if (excerpt) {
      const name = `night-${from.slice(0, 16).replaceAll(":", "")}.json`;
      const content = excerptText(excerpt);
      const message = fileMessage(excerpt.acts.length, {
        left: read.events.length - excerpt.acts.length,
        limit,
        ...read,
      });
      return { message, file: { name, title: "The night", content } };
    }
    await sleep(sealPauseMs);
  }
  throw new UserError(
    "The newest records of the audit trail aren't sealed yet, so there is no file.",
    "Try again in a minute; `/gatehouse status` shows whether Gatehouse is well.",
  );
}
