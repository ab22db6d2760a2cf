import { messageOf } from "../../errors.ts";
import { type AuditEntry, compareIds, readAudit } from "../../audit/trail.ts";
import { sightOf } from "../../core/permit/sight.ts";
import { aboutRequest } from "../../core/cards/asking.ts";
import { proofOf } from "../../core/cards/render-result.ts";
import { actIdOf, signOfAct, tellAct, tellGone, tellRollout } from "../../core/cards/tell-act.ts";
import { tellRecord } from "../../core/cards/tell-record.ts";
import type { Journal } from "../../core/request/journal.ts";
import { isAlready } from "../../core/request/stage.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import type { Inventory, Scope } from "../../fleet/inventory/inventory.ts";
import type { Log } from "../../log/log.ts";
import { md, when } from "../../messages/message.ts";
import { batches } from "../../redis/batches.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import { showRequest } from "../../registry/command-buttons.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import { defineService } from "../../registry/service-key.ts";
import type { NightAct, NightPart } from "../night-part.ts";
import { statusesAtNight } from "./tell-statuses.ts";

/** The acts since a time, as far as the reader sees them. */
export interface Night {
  /** The oldest first. */
  acts: readonly NightAct[];
  since: number;
  /** Only the newest records of that time were read. */
  isCut: boolean;
  /** What could not be read. */
  unread: readonly string[];
}

export type Nights = ReturnType<typeof createNights>;
export const nightsOf = defineService<Nights>("nights");

interface NightsOptions {
  redis: RedisClient;
  key: Keys;
  inventory: Inventory;
  store: Pick<Journal, "getMany">;
  changes: readonly ChangeCommand[];
  parts(): readonly NightPart[];
  personName(id: string): Promise<string>;
  log: Log;
}

/** More than a busy night has, and read in a fraction of a second. */
const mostRecords = 10_000;

/** Records about a request, all with its ID. */
const ofRequests = ["request", "review-signed", "alarm", "late-effect"];
const switches = ["freeze", "thaw"];

const textOf = (value: unknown) => (typeof value === "string" ? value : "");
const idsOf = (entries: readonly AuditEntry[]) => entries.map(({ id }) => id);

/** Tells a stretch of time from the audit trail, so that each act names the records that prove it. */
export function createNights(options: NightsOptions) {
  const { redis, key, inventory, store, changes, parts, personName, log } = options;

  const commandOf = ({ record }: StoredRequest) =>
    changes.find((command) => command.name === record.command);

  async function recordsSince(after: number, what: readonly string[]) {
    const { entries, isMore } = await readAudit({ redis, key, what, after, most: mostRecords });
    return { entries: entries.toReversed(), isCut: isMore === true };
  }

  async function requestsOf(entries: readonly AuditEntry[]): Promise<StoredRequest[]> {
    const ids = [...new Set(entries.map(({ record }) => textOf(record["request"])))];
    const found: StoredRequest[] = [];
    for (const batch of batches(ids.filter((id) => id !== ""))) {
      found.push(...(await store.getMany(batch)));
    }
    return found;
  }

  /** An act for each request, with its safety snapshot, or for each rollout. */
  async function requestActs(
    entries: readonly AuditEntry[],
    since: number,
    sight: Pick<ReturnType<typeof sightOf>, "only"> & { seesAll: boolean },
  ): Promise<NightAct[]> {
    const all = await sight.only(requestsOf(entries), ({ record }) => record.target);
    const oldest = Math.min(since, ...all.map(({ record }) => record.createdAt));
    // A request that was made earlier has earlier records, too.
    const read = oldest < since ? (await recordsSince(oldest - 1, ofRequests)).entries : entries;
    const parents = new Map(all.map((request) => [request.record.id, actIdOf(request)]));
    const byAct = Map.groupBy(read, ({ record }) => parents.get(textOf(record["request"])));
    const told = all.filter(
      ({ record, stage }) => record.origin.kind !== "safety" && !isAlready(stage),
    );
    const groups = [...Map.groupBy(told, actIdOf)];
    const acts = groups.flatMap(([id, some]) => {
      const [first] = some;
      if (!first) return [];
      const isOne = first.record.origin.kind !== "rollout";
      const act = isOne ? requestAct(first) : rolloutAct(first, some);
      return { ...act, key: id, records: idsOf(byAct.get(id) ?? []) };
    });
    return sight.seesAll ? [...acts, ...goneActs(entries, parents)] : acts;
  }

  function requestAct(request: StoredRequest): Omit<NightAct, "key" | "records"> {
    const { record, final, changedAt } = request;
    const command = commandOf(request);
    return {
      at: record.createdAt,
      text: md`${signOfAct(request, command)} ${tellAct(request, command)}`,
      proof: md`${proofOf(request)}${final ? md` Ended ${when(changedAt)}.` : ""}`,
      button: showRequest(record.id, aboutRequest(record)),
    };
  }

  /** A rollout by its requests alone. What it has not begun is told by its feature. */
  function rolloutAct(
    first: StoredRequest,
    requests: readonly StoredRequest[],
  ): Omit<NightAct, "key" | "records"> {
    const last = Math.max(...requests.map(({ changedAt }) => changedAt));
    const { requester, command } = first.record;
    const isOver = requests.every(({ final }) => final);
    return {
      at: Math.min(...requests.map(({ record }) => record.createdAt)),
      text: tellRollout({ requester, command, requests, isOver }, commandOf(first)),
      proof: isOver ? md`Ended ${when(last)}.` : undefined,
    };
  }

  async function switchActs(entries: readonly AuditEntry[]): Promise<NightAct[]> {
    const acts = entries.map(async ({ id, at, record }): Promise<NightAct> => {
      const who = textOf(record["who"]);
      const by = /^[UW][A-Z0-9]{2,}$/.test(who) ? await personName(who) : who;
      const text = tellRecord(record, { person: () => by, vm: (vm) => vm });
      return { key: id, at, text, records: [id] };
    });
    return Promise.all(acts);
  }

  return {
    /** Everything since a time (ms) that a scope sees. */
    async read(since: number, scope: Scope | undefined): Promise<Night> {
      const own = [statusesAtNight, ...parts()];
      const what = [...ofRequests, ...switches, ...own.flatMap((part) => part.what)];
      const { entries, isCut } = await recordsSince(since - 1, what);
      const ofKinds = (kinds: readonly string[]) =>
        entries.filter(({ record }) => kinds.includes(textOf(record["what"])));
      await inventory.upToDate();
      const sight = sightOf(inventory, scope);
      const about = { vms: await sight.vms(), seesAll: scope === undefined, only: sight.only };
      const unread: string[] = [];
      const read = await Promise.all([
        requestActs(ofKinds(ofRequests), since, about),
        switchActs(ofKinds(switches)),
        ...own.map(async (part) => {
          try {
            return await part.read(ofKinds(part.what), about);
          } catch (error) {
            log.warn("night.unread", { part: part.name, why: messageOf(error) });
            unread.push(part.name);
            return [];
          }
        }),
      ]);
      const acts = [...Map.groupBy(read.flat(), ({ key: act }) => act).values()].flatMap(merge);
      return { acts: acts.toSorted((a, b) => a.at - b.at), since, isCut, unread };
    },
  };
}

/** One act of those that tell the same: the last knows most, and each has records of its own. */
function merge(acts: readonly NightAct[]): readonly NightAct[] {
  const last = acts.at(-1);
  if (!last) return [];
  const records = new Set(acts.flatMap((act) => act.records));
  const at = Math.min(...acts.map((act) => act.at));
  return [{ ...last, at, records: [...records].toSorted(compareIds) }];
}

/** Requests of which the trail knows, and which are no longer kept. */
function goneActs(
  entries: readonly AuditEntry[],
  kept: ReadonlyMap<string, string>,
): readonly NightAct[] {
  const gone = entries.filter(({ record }) => !kept.has(textOf(record["request"])));
  const groups = [...Map.groupBy(gone, ({ record }) => textOf(record["request"]))];
  return groups.flatMap(([id, some]) => {
    const [first] = some;
    if (!first) return [];
    const text = tellGone(id, some);
    return { key: id, at: first.at, text, records: idsOf(some) };
  });
}
