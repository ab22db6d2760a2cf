import { readAudit } from "../audit/read.ts";
import { Markdown, md } from "../messages/text.ts";
import { ownerOf } from "../policy/judged.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import type { ChangeCommand } from "../registry/define.ts";
import type { Journal } from "../requests/journal/journal.ts";
import { type StoredRequest, stateWords } from "../requests/journal/record.ts";
import { headline, isUnconfirmed, symbolOf } from "../requests/render/render-result.ts";
import { showRequest } from "./line-buttons.ts";
import type { Follow, Line } from "./subscriptions.ts";

const maxOpen = 500;
const maxEnded = 1000;
const readAtOnce = 100;
/** A request older than this, relative to the time in question, ended before it or is still open. */
const longestMs = 24 * 3600_000;
/** Consoles last minutes, so the newest records hold them. */
const newestRecords = 1000;
const notSent = new Set(["draft", "authorized"]);

export type RequestSource = ReturnType<typeof requestsForDigest>;
export type RequestFact = ReturnType<typeof factOf>;
export type ConsoleFact = NonNullable<ReturnType<typeof consoleOf>>;
export type ReviewFact = Awaited<ReturnType<RequestSource["reviews"]>>[number];

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
      for (let from = 0; from < ids.length; from += readAtOnce) {
        const some = await store.getMany(ids.slice(from, from + readAtOnce));
        ended.push(...some.filter(({ final, changedAt }) => final && changedAt > at));
        if (some.length > 0 && some.every(({ record }) => record.createdAt < at - longestMs)) break;
      }
      const asked = ended.filter(
        ({ record, progress }) => record.via !== "safety" && !progress.already,
      );
      return asked.map(toFact).toSorted((a, b) => b.changedAt - a.changedAt);
    },

    async reviews() {
      const reviews = await store.openReviews();
      const requests = await store.getMany(reviews.map(({ request }) => request));
      const targets = new Map(requests.map(({ record }) => [record.id, record.target]));
      return reviews.map(({ request, command, target, at }) => {
        // Undefined when the request is no longer kept
        const on = targets.get(request);
        return { request, command, target, on, at };
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
    ...(progress.why ? { why: progress.why } : {}),
    ...(approval
      ? {
          approval: {
            yes: votes.filter(({ vote }) => vote === "approve").length,
            required: approval.required,
            expiresAt: approval.expiresAt,
          },
        }
      : {}),
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
  },
): Promise<void> {
  const { record, delivered } = request;
  const { id } = ownerOf(record.target);
  const line = async (): Promise<Line> => ({
    text: madeLine(request, command).value,
    link: await to.linkTo(delivered.card),
    button: showRequest(record.id),
  });
  const projectNameNow = id === "" ? undefined : await to.projectName(id);
  const about = [{ ...record.target, projectNameNow }];
  const saidIn = [record.channelId, delivered.card?.channelId];
  await to.follow([{ event: "changes", key: record.id, about, line, saidIn }]);
}

/** `✅ Restarted web-2: RUNNING → RUNNING in 34 s. In payments, requested by olivia.` */
function madeLine(request: StoredRequest, command: ChangeCommand): Markdown {
  const { target, requester } = request.record;
  const where = target.kind === "vm" && target.projectName !== undefined;
  const by = md`equested by ${requester.name}.`;
  return md`${symbolOf(request, command)} ${headline(request, command)} ${where ? md`In ${target.projectName}, r` : "R"}${by}`;
}
