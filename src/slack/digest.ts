import { createDigests, type Digests, type DigestsOptions } from "../digests/create-digests.ts";
import { readSchedule } from "../digests/read-schedule.ts";
import { daysWords, localWords, nextSlot } from "../digests/slots.ts";
import { UserError } from "../errors.ts";
import type { Log } from "../log.ts";
import { type Message, sentence } from "../messages/message.ts";
import { channelLink, lines, type Markdown, md, name } from "../messages/text.ts";
import { lists } from "../policy/access.ts";
import type { DigestRule, Policy } from "../policy-file.ts";
import type { Control } from "../registry/define.ts";
import type { Person } from "../registry/person.ts";
import { requestsForDigest } from "../requests/for-digest.ts";
import type { Store } from "../requests/store.ts";
import { say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import { postChart } from "./post-chart.ts";
import { isRefused } from "./refuse.ts";
import type { Reply } from "./reply.ts";
import { byDottedName, type Talk } from "./talk.ts";
import type { Web } from "./web.ts";

type Action = Parameters<Control["digest"]>[0];

/** What people do with digests: `/gatehouse digest`, and the button that quiets a line. */
export interface DigestDesk {
  answer(action: Action, words: string, person: Person, channelId: string): Promise<Message>;
  snoozes: Digests["snoozes"];
}

const everyDay = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;

export function createDigestDesk(
  on: Omit<DigestsOptions, "requests" | "now" | "policy"> & {
    policy: Policy;
    store: Store;
    web: Web;
    apiUrl: string;
    ourTeamId: string;
    log: Log;
    now?: () => number;
  },
): DigestDesk {
  const { store, policy, web, apiUrl, log, now = Date.now } = on;
  const requests = requestsForDigest(store, on.redis, on.key);
  const digests = createDigests({ ...on, requests, now });
  const { schedules } = digests;

  async function turnOn(words: ReturnType<typeof readSchedule>, channel: string): Promise<Message> {
    const [before] = await schedules.of(channel);
    const usual = before ?? policy.digests[0];
    const rule: DigestRule = {
      channel,
      at: words.at ?? before?.at ?? "09:00",
      timezone: words.timezone ?? usual?.timezone ?? "UTC",
      days: words.days ?? before?.days ?? everyDay,
    };
    await schedules.set(rule);
    return sentence(
      lines(
        md`Done. ${scheduleWords(rule)} ${nextWords(rule, now())}`,
        words.timezone === undefined &&
          md`The time zone is ${rule.timezone}; ${name(`/gatehouse digest on ${rule.at} Europe/Paris`)} sets another.`,
      ),
    );
  }

  async function howItStands(channel: string): Promise<Message> {
    const rules = await schedules.of(channel);
    if (rules.length === 0) {
      return sentence(
        md`No digest comes to ${channelLink(channel)}. ${name("/gatehouse digest on 09:00 Europe/Paris mon-fri")} changes that, ${name("/gatehouse digest now")} posts one.`,
      );
    }
    return sentence(
      lines(...rules.map((rule) => md`${scheduleWords(rule)} ${nextWords(rule, now())}`)),
    );
  }

  async function postNow(channel: string): Promise<Message> {
    const { message, picture } = await digests.build(channel);
    if (picture) {
      const posted = await postChart({
        web,
        apiUrl,
        log,
        channelId: channel,
        message,
        ...picture,
      });
      return posted.is === "closed" ? unpostable(channel, posted.why) : done(channel);
    }
    const posted = await web.call("chat.postMessage", {
      channel,
      text: message.text,
      blocks: message.blocks,
      unfurl_links: false,
      unfurl_media: false,
    });
    if (posted.ok || posted.kind === "lost") return done(channel);
    return unpostable(channel, posted.kind === "refused" ? posted.error : posted.kind);
  }

  return {
    snoozes: digests.snoozes,
    async answer(action, words, person, here) {
      const read = readSchedule(words);
      const channel = read.channel ?? here;
      if (channel === "") throw new UserError("Ask this in a channel, please.");
      if (action !== "on" && Object.keys(read).some((key) => key !== "channel"))
        throw new UserError(
          "A time, a time zone and days go with `on`.",
          "It is written `/gatehouse digest on 09:00 Europe/Paris mon-fri`.",
        );
      const isAdministrator = lists(policy, person, on.ourTeamId).includes("administer");
      if (channel !== here && !isAdministrator)
        throw new UserError(
          "Only an administrator may do that for another channel.",
          "Ask it in that channel, or look at `access.administer` in gatehouse.yml.",
        );
      const note = (what: string) =>
        store.note({
          what,
          who: person.id,
          team: person.teamId,
          channel,
          words: words.slice(0, 100),
        });
      switch (action) {
        case "on":
          await note("digest-on");
          return turnOn(read, channel);
        case "off":
          await note("digest-off");
          return sentence(
            (await schedules.clear(channel))
              ? md`Done. No digest comes to ${channelLink(channel)} any more.`
              : md`No digest comes to ${channelLink(channel)} as it is.`,
          );
        case "now":
          return postNow(channel);
        case "handover":
          return digests.handover(channel);
        default:
          return howItStands(channel);
      }
    },
  };
}

function scheduleWords({ channel, at, timezone, days }: DigestRule): Markdown {
  return md`A digest comes to ${channelLink(channel)} at ${at} ${timezone}, ${daysWords(days)}.`;
}

function nextWords(rule: DigestRule, now: number): Markdown {
  const next = nextSlot(rule, now);
  return next ? md`The next one: ${localWords(next.at, rule.timezone)}.` : md``;
}

const done = (channel: string) => sentence(md`The digest is in ${channelLink(channel)}.`);

function unpostable(channel: string, why: string): Message {
  return sentence(
    md`I can't post in ${channelLink(channel)} (${why}). ${name("/invite @gatehouse")} changes that; ${name("/gatehouse digest handover")} shows it to you alone.`,
  );
}

/** Quiets one line of the digests of this channel for a day. */
export async function snooze(
  ask: Ask,
  value: Record<string, unknown>,
  reply: Pick<Reply, "privately">,
  talk: Talk,
): Promise<void> {
  const { line } = value;
  const command = byDottedName(talk.commands, "gatehouse.digest");
  const isLine = typeof line === "string" && /^[a-z-]+:\S{1,300}$/.test(line);
  if (!isLine || !command || ask.channelId === "")
    throw new UserError("This button no longer works.", "The next digest has new ones.");
  const person = await talk.person(ask.userId, ask.teamId);
  const asked = { command, targets: [], person, channelId: ask.channelId };
  if (await isRefused(asked, reply, talk)) return;
  await talk.digest.snoozes.snooze(ask.channelId, line, talk.now());
  await talk.store.note({
    what: "digest-snooze",
    who: person.id,
    team: person.teamId,
    channel: ask.channelId,
    line: line.slice(0, 200),
  });
  await reply.privately(
    say(md`😴 Snoozed: digests here leave that line out for 24 hours, for everybody.`),
  );
}
