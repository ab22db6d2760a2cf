import { isDeepStrictEqual } from "node:util";
import type { AfterNote } from "../attestation/render-attestation.ts";
import { readAudit } from "../audit/trail.ts";
import {
  Markdown,
  md,
  type ButtonSpec,
  context,
  message,
  type Message,
  news,
  section,
  counted,
  list,
  name as code,
} from "../messages/message.ts";
import { ownerOf, compileTargetGlobs } from "../policy/refusal.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import type { ChangeCommand, Target } from "../registry/define.ts";
import type { Journal } from "../requests/journal/journal.ts";
import { type StoredRequest, stateWords } from "../requests/journal/record.ts";
import { isUnconfirmed, outcomeOf } from "../requests/render/render-result.ts";
import { showRequest } from "./line-buttons.ts";
import type { Config } from "../config/config.ts";
import { scopeOfChannel, seesUnder, alertChannel, placeOf } from "../policy/access.ts";
import type { KnownVm } from "../inventory/inventory.ts";

const maxOpen = 500;
const maxEnded = 1000;
/** A request older than this, relative to the time in question, ended before it or is still open. */
const longestMs = 24 * 3600_000;
/** Consoles last minutes, so the newest records hold them. */
const newestRecords = 1000;
const notSent = new Set(["draft", "authorized"]);

export type RequestSource = ReturnType<typeof requestsForDigest>;
export type RequestFact = ReturnType<typeof factOf>;
export type ConsoleFact = NonNullable<ReturnType<typeof consoleOf>>;
export type ReviewFact = Awaited<ReturnType<RequestSource["reviews"]>>[number];

/** A use of break-glass whose review nobody has signed. */
interface OpenReview {
  request: string;
  command: string;
  target: string;
  /** Undefined when the request is no longer kept. */
  on: Target | undefined;
  at: number;
  /** The name of the requester. */
  by?: string | undefined;
  reason?: string;
}

/** What digests and monitors read of requests. */
export function requestsForDigest(
  store: Pick<Journal, "openIds" | "recentIds" | "getMany" | "openReviews" | "now">,
  redis: RedisClient,
  key: Keys,
  commands: readonly ChangeCommand[],
) {
  const toFact = (request: StoredRequest) => factOf(request, commands);

  return {
    async open() {
      const all = await store.getMany((await store.openIds()).slice(0, maxOpen));
      return all.map(toFact);
    },

    /** Newest first. */
    async endedSince(at: number) {
      const ids = await store.recentIds({}, maxEnded);
      const ended: StoredRequest[] = [];
      for (const batch of batches(ids)) {
        const some = await store.getMany(batch);
        ended.push(...some.filter(({ final, changedAt }) => final && changedAt > at));
        if (some.length > 0 && some.every(({ record }) => record.createdAt < at - longestMs)) break;
      }
      const asked = ended.filter(
        ({ record, progress }) => record.via !== "safety" && !progress.already,
      );
      return asked.map(toFact).toSorted((a, b) => b.changedAt - a.changedAt);
    },

    async reviews(): Promise<OpenReview[]> {
      const reviews = await store.openReviews();
      const requests = await store.getMany(reviews.map(({ request }) => request));
      const records = new Map(requests.map(({ record }) => [record.id, record]));
      return reviews.map(({ request, command, target, at, reason }) => {
        const made = records.get(request);
        const by = made?.requester.name;
        return { request, command, target, on: made?.target, at, by, reason };
      });
    },

    /** Whether a sent request is open on this VM or its project, or ended after `since` (ms). */
    async touched(vm: { id: string; projectId: string }, since: number) {
      const ids = await Promise.all(
        [vm.id, vm.projectId].map((targetId) => store.recentIds({ targetId }, 20)),
      );
      const requests = await store.getMany(ids.flat());
      return requests.some(({ final, state, changedAt }) =>
        final ? changedAt > since : !notSent.has(state),
      );
    },

    /** Opened through Gatehouse and not expired. */
    async consoles(now: number) {
      const { entries } = await readAudit({ redis, key, most: newestRecords });
      return entries.flatMap(({ record }) => {
        const fact = consoleOf(record);
        return fact && fact.until > now ? [fact] : [];
      });
    },
  };
}

function consoleOf(record: Readonly<Record<string, unknown>>) {
  const { what, who, until, target } = record;
  if (what !== "console" || typeof until !== "number" || typeof who !== "string") return undefined;
  const { id = "", name = "?" } = (target ?? {}) as { id?: unknown; name?: unknown };
  return { vm: String(name), vmId: String(id), by: who, until };
}

function factOf(request: StoredRequest, commands: readonly ChangeCommand[]) {
  const { record, state, changedAt, progress, votes } = request;
  const { id, command, target, requester, createdAt, approval } = record;
  const known = commands.find(({ name }) => name === command);
  return {
    id,
    command,
    /** "Restarted", as the command says it; or that its success can't be confirmed. */
    done:
      known && state === "done" && isUnconfirmed(request, known)
        ? `${known.say.verb} accepted, not confirmed:`
        : (known?.say.done ?? `Done: ${command} of`),
    target,
    /** A name: a digest mentions no one. */
    requester: requester.name,
    state,
    stateWords: stateWords(state),
    createdAt,
    changedAt: (state === "unknown" ? progress.unknownSince : undefined) ?? changedAt,
    isBreakGlass: record.breakGlass === true,
    why: progress.why,
    ...decisionsOf(request, known),
    approval: approval && {
      yes: votes.filter(({ vote }) => vote === "approve").length,
      required: approval.required,
      expiresAt: approval.expiresAt,
    },
  };
}

/** Who decided what about a request, by their names, and why. */
interface Decisions {
  /** `from nightly`, as the command says it. */
  detail?: string | undefined;
  isDestructive?: boolean;
  isUndo?: boolean;
  approvedBy?: readonly string[];
  denied?: { name: string; reason?: string | undefined } | undefined;
  /** Who recorded an outcome that Gatehouse couldn't know, or canceled it. */
  decidedBy?: { name: string; reason?: string | undefined } | undefined;
  /** Why it was requested. */
  reason?: string | undefined;
}

function decisionsOf(
  { record, progress, votes }: StoredRequest,
  command: ChangeCommand | undefined,
): Decisions {
  return {
    detail: command?.say.detail?.(record.input, record.labels ?? {}),
    isDestructive: command?.class === "destroy",
    isUndo: record.undoes !== undefined,
    approvedBy: votes.filter(({ vote }) => vote === "approve").map((vote) => vote.name),
    denied: votes.find(({ vote }) => vote === "deny"),
    decidedBy: progress.decidedBy,
    reason: record.reason,
  };
}

/** What channels that are subscribed read of a change that was made, once its own has read it. Idempotent. */
export async function tellElsewhere(
  request: StoredRequest,
  command: ChangeCommand,
  to: {
    /** The name of a project now; undefined where it isn't known. */
    projectName(id: string): Promise<string | undefined>;
    /** The address of a message in Slack, where Slack says it. */
    linkTo(message: { channelId: string; ts: string } | undefined): Promise<string | undefined>;
    follow: Follow;
    attestationNote(request: StoredRequest, command: ChangeCommand): Promise<AfterNote | undefined>;
  },
): Promise<void> {
  const { record, delivered } = request;
  const { id } = ownerOf(record.target);
  const line = async (): Promise<Line> => ({
    text: madeLine(request, command, await to.attestationNote(request, command)).value,
    link: await to.linkTo(delivered.card),
    button: showRequest(record.id),
  });
  const projectNameNow = id === "" ? undefined : await to.projectName(id);
  const about = [{ ...record.target, projectNameNow }];
  const saidIn = [record.channelId, delivered.card?.channelId];
  await to.follow([{ event: "changes", key: record.id, about, line, saidIn }]);
}

/** `✅ Restarted web-2 in 34 s. In payments, requested by olivia.` */
function madeLine(request: StoredRequest, command: ChangeCommand, note?: AfterNote): Markdown {
  const { target, requester } = request.record;
  const isInProject = target.kind === "vm" && target.projectName !== undefined;
  const asked = isInProject ? md`In ${target.projectName}, requested` : md`Requested`;
  const { sign, text } = outcomeOf(request, command, note);
  return md`${sign} ${text} ${asked} by ${requester.name}.`;
}

/** What a channel can be notified about: VMs in ERROR and out of it, attestation that fails, and changes that were made elsewhere. */
export const events = ["trouble", "drift", "changes"] as const;
export type Event = (typeof events)[number];

export interface Subscription {
  channelId: string;
  /** A name or a glob, as `compileTargetGlobs` reads it. */
  glob: string;
  events: readonly Event[];
  /** User ID. */
  by: string;
  at: number;
}

/** What subscribers read of one thing that happened. `text` is mrkdwn. */
export interface Line {
  text: string;
  /** The address of a message that has more. */
  link?: string | undefined;
  button?: ButtonSpec;
}

export type Followed = Pick<Target, "kind" | "id" | "name" | "projectId" | "projectName"> & {
  /** Where the project may have another name by now. */
  projectNameNow?: string | undefined;
};

/** One thing that happened. */
export interface News {
  event: Event;
  /** The same news has the same key, in any process. */
  key: string;
  about: readonly Followed[];
  /** About those of them that a channel is subscribed to, and may see. */
  line(about: readonly Followed[]): Line | Promise<Line>;
  /** These channels know already. */
  saidIn?: readonly (string | undefined)[];
}

/** At least once for each thing that happened: each channel is told once. */
export type Follow = (news: readonly News[]) => Promise<void>;

export type Subscriptions = ReturnType<typeof createSubscriptions>;

/** Per channel and glob, in one hash: what two people say at the same time stands side by side. */
export function createSubscriptions(options: {
  redis: RedisClient;
  key: Keys;
  config: Pick<Config, "policy">;
  /** Puts lines into a channel, each once by its key. */
  post(channelId: string, lines: readonly (Line & { key: string })[]): Promise<void>;
}) {
  const { redis, key } = options;
  const named = key("subscriptions");
  const fieldOf = ({ channelId, glob }: Pick<Subscription, "channelId" | "glob">) =>
    `${channelId} ${glob}`;

  async function all(): Promise<Subscription[]> {
    const rows = Object.values(await redis.hgetall(named));
    return rows.map((text) => JSON.parse(text) as Subscription).toSorted((a, b) => a.at - b.at);
  }

  const follow: Follow = async (happened) => {
    if (happened.length === 0) return;
    const subscriptions = await all();
    for (const [channelId, own] of Map.groupBy(subscriptions, (one) => one.channelId)) {
      const scope = scopeOfChannel(options.config.policy, channelId);
      const mayTell = (one: Followed) => {
        const { id, name } = ownerOf(one);
        return seesUnder(scope, id, [name, one.projectNameNow]);
      };
      const lines: (Line & { key: string })[] = [];
      for (const { event, key: id, about, line, saidIn = [] } of happened) {
        const wanted = own.filter((one) => one.events.includes(event));
        if (wanted.length === 0 || saidIn.includes(channelId)) continue;
        const isMeant = compileTargetGlobs(wanted.map(({ glob }) => glob));
        const meant = about.filter((one) => isMeant(one) && mayTell(one));
        if (meant.length > 0) lines.push({ ...(await line(meant)), key: `${event} ${id}` });
      }
      if (lines.length > 0) await options.post(channelId, lines);
    }
  };

  return {
    /** Key in Redis, which is there while any channel is subscribed. */
    named,
    follow,
    all,
    of: async (channelId: string) => (await all()).filter((one) => one.channelId === channelId),
    /** In place of what was said of this glob in this channel before. */
    async set(subscription: Subscription): Promise<void> {
      await redis.hset(named, fieldOf(subscription), JSON.stringify(subscription));
    },
    async remove(subscription: Pick<Subscription, "channelId" | "glob">): Promise<void> {
      await redis.hdel(named, fieldOf(subscription));
    },
  };
}

/** The rest is counted. */
const maxLines = 15;

/** What a channel is subscribed to, as it happened: one line, or some that came together. Without mentions. */
export function renderFeed(lines: readonly Line[]): Message {
  const shown = lines.slice(0, maxLines);
  const rows = shown.map(({ text, link, button }) =>
    section(new Markdown(link === undefined ? text : `${text} <${link}|Its message>`), button),
  );
  const first = new Markdown(shown[0]?.text ?? "");
  const head = md`*${counted(lines.length, "event")} this channel is subscribed to:*`;
  return message(
    news(lines.length === 1 ? first : md`${head} ${first}`),
    lines.length === 1 ? undefined : section(head),
    list(rows, {
      beyond: lines.length - shown.length,
      rest: (left) => md`… and ${left.toLocaleString("en-US")} more.`,
    }),
    context(md`${code("/gatehouse subscribe")} shows what this channel is subscribed to.`),
  );
}

/** What every monitor needs. */
export interface MonitorOptions<Known> {
  redis: RedisClient;
  key: Keys;
  records: Records<Known>;
  alarms: Alarms;
  /** Tells the channels that are subscribed. */
  follow: Follow;
  everyMs: number;
  now(): number;
}

/**
 * One round of a monitor: compares what is seen with what was known, tells what changed, and remembers it. In this order, and
 * under IDs made of what was known before: a process that dies in between leaves the same comparison to the next round, whose
 * news have the same IDs and are posted once.
 */
export async function watch<Known, Change>(monitor: {
  records: Records<Known>;
  /** Those to compare; by default all that are known. */
  ids?: readonly string[];
  /** Pure. `after` has the records that are new or differ. */
  compare(before: ReadonlyMap<string, Known>): {
    after: ReadonlyMap<string, Known>;
    changes: readonly Change[];
  };
  tell(changes: readonly Change[]): Promise<void>;
}): Promise<void> {
  const before = await monitor.records.read(monitor.ids);
  const { after, changes } = monitor.compare(before);
  await monitor.tell(changes);
  // Another process may have written the others meanwhile
  const differing = [...after].filter(([id, one]) => !isDeepStrictEqual(one, before.get(id)));
  await monitor.records.write(new Map(differing));
}

export type Records<Known> = ReturnType<typeof createRecords<Known>>;

/** What a monitor knows, for all processes: a record for each ID, in one hash. */
export function createRecords<Known>(redis: RedisClient, named: string) {
  return {
    /** Of these IDs, by default of all. */
    async read(ids?: readonly string[]): Promise<Map<string, Known>> {
      const found = new Map<string, Known>();
      for (const some of batches(ids ?? (await redis.hkeys(named))))
        for (const [n, text] of (await redis.hmget(named, ...some)).entries())
          if (text !== null) found.set(some[n] ?? "", JSON.parse(text) as Known);
      return found;
    },
    async write(records: ReadonlyMap<string, Known>): Promise<void> {
      for (const some of batches([...records]))
        await redis.hset(named, new Map(some.map(([id, record]) => [id, JSON.stringify(record)])));
    },
    /** Forgets what is about something that is gone. */
    async keepOnly(ids: ReadonlySet<string>): Promise<void> {
      const gone = (await redis.hkeys(named)).filter((id) => !ids.has(id));
      for (const some of batches(gone)) await redis.hdel(named, ...some);
    },
  };
}

const atOnce = 100;

/** Few enough per call that neither Redis nor this process blocks. */
export function* batches<T>(all: readonly T[]): Iterable<readonly T[]> {
  for (let from = 0; from < all.length; from += atOnce) yield all.slice(from, from + atOnce);
}

export type Alarms = ReturnType<typeof createAlarms>;

/** Where what nobody asked for is told: to the team that has it, else to `alerts`. */
export function createAlarms(options: {
  /** Its policy is read at each use: it may be another one by then. */
  config: Pick<Config, "policy">;
  announce(notice: { id: string; channelId: string; message: Message }): Promise<unknown>;
}) {
  const { config, announce } = options;
  return {
    /** Whose a VM is: what is told together is of one place. */
    placeOf: ({ projectId, projectName }: Pick<KnownVm, "projectId" | "projectName">): string =>
      placeOf(config.policy, { id: projectId, name: projectName }),
    /** Once per ID; returns the channel, where there is one for it. */
    async tell(id: string, said: Message, place: string): Promise<string | undefined> {
      const channelId = alertChannel(config.policy, place);
      if (channelId !== undefined) await announce({ id, channelId, message: said });
      return channelId;
    },
  };
}
