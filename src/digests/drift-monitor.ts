import { setImmediate as breathe, setTimeout as pause } from "node:timers/promises";
import type { Appraisal } from "../attestation/appraisal.ts";
import { gateRefusal } from "../attestation/appraise.ts";
import type { Appraiser } from "../attestation/appraiser.ts";
import { namesOf, pinsFor } from "../attestation/pins.ts";
import { messageOf } from "../errors.ts";
import type { Inventory, KnownVm } from "../inventory/inventory.ts";
import type { Log } from "../log/log.ts";
import { buttons, message, type Message, news as short, section } from "../messages/message.ts";
import { lines, type Markdown, md } from "../messages/text.ts";
import type { Pin } from "../config/policy-file.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import {
  amongVms,
  type createUnverifiedRecords,
  unverifiedNews,
  unverifiedIn,
  unverifiedWords,
} from "./unverified-watch.ts";
import type { Alarms } from "./alarms.ts";
import { attestVm, showVm } from "./line-buttons.ts";
import type { Follow } from "./subscriptions.ts";
import { takeTurn } from "../redis/lease.ts";
import { createHash } from "node:crypto";

const atOnce = 4;
/** VMs matched before yielding to the event loop. */
const batch = 2000;

interface DriftMonitorOptions {
  redis: RedisClient;
  key: Keys;
  inventory: Pick<Inventory, "vms">;
  appraiser: Appraiser;
  readonly pins: readonly Pin[];
  records: DriftRecords;
  unverified: ReturnType<typeof createUnverifiedRecords>;
  alarms: Alarms;
  /** Tells the channels that are subscribed. */
  follow: Follow;
  everyMs: number;
  now(): number;
  log: Log;
  signal?: AbortSignal;
}

/**
 * Attests every pinned VM, a few at a time and spread over half of the interval. Reports a failure, a different failure,
 * and its end; and once for all VMs what has ended that vouches for them. Reported before it is recorded, under an ID that
 * is posted once.
 */
export async function monitorDrift(options: DriftMonitorOptions): Promise<void> {
  const { redis, key, inventory, records, pins, everyMs, log, signal } = options;
  const approved = new Set(await options.appraiser.accepted.vmIds());
  if (pins.length === 0 && approved.size === 0) {
    await options.unverified.keep([]);
    return records.keepOnly(new Set());
  }
  const vms = await inventory.vms(); // before the turn is taken: without VMs it must not be used up
  if (!(await takeTurn(redis, key, "drift-watch", everyMs))) return;
  const pinned = await pinnedAmong(vms, pins, approved);
  const gapMs = Math.min(1000, everyMs / 2 / Math.max(1, pinned.length));
  const waiting = pinned.values();
  const judged: { vm: KnownVm; appraisal: Appraisal }[] = [];
  const checked = Promise.all(
    Array.from({ length: atOnce }, async () => {
      let isFirst = true;
      for (const vm of waiting) {
        if (!isFirst)
          await pause(gapMs * atOnce, undefined, { ref: false, ...(signal ? { signal } : {}) });
        isFirst = false;
        if (signal?.aborted) return;
        try {
          judged.push({ vm, appraisal: await check(vm, options) });
        } catch (error) {
          log.warn("drift.unread", { vm: vm.id, why: messageOf(error) });
        }
      }
    }),
  );
  await checked.catch((error: unknown) => {
    if (!signal?.aborted) throw error;
  });
  if (signal?.aborted) return;
  const ids = new Set(pinned.map(({ id }) => id));
  await records.keepOnly(ids);
  await reportUnverified(judged, ids, options);
}

async function reportUnverified(
  judged: readonly { vm: KnownVm; appraisal: Appraisal }[],
  pinned: ReadonlySet<string>,
  { unverified, alarms, follow, now }: DriftMonitorOptions,
): Promise<void> {
  const before = await unverified.all();
  const { placeOf } = alarms;
  const after = unverifiedIn(judged, { before, pinned, placeOf, now: now() });
  for (const { id, record, isOver, message: text } of unverifiedNews(before, after)) {
    const told = await alarms.tell(id, text, record.place ?? "access");
    if (isOver) continue;
    const ids = new Set(record.vmIds);
    const about = judged.flatMap(({ vm }) =>
      ids.has(vm.id) ? { kind: "vm" as const, ...vm } : [],
    );
    const line = (some: typeof about) => ({
      text: lines(...amongVms([record], some).map(unverifiedWords)).value,
      button: attestVm(some[0]?.id ?? ""),
    });
    await follow([{ event: "drift", key: id, about, line, saidIn: [told] }]);
  }
  await unverified.keep(after);
}

async function check(vm: KnownVm, options: DriftMonitorOptions): Promise<Appraisal> {
  const { appraiser, records, alarms, now, signal } = options;
  const { appraisal } = await appraiser.attest(vm, { signal });
  const judged = judgeDrift(await records.get(vm.id), vm, appraisal, now());
  if (judged?.news) {
    const { id } = judged.news;
    const told = await alarms.tell(id, renderDrift(judged.news, vm, appraisal), alarms.placeOf(vm));
    const line = () => ({
      text: driftWords(judged.news, vm, appraisal).value,
      button: attestVm(vm.id),
    });
    const about = [{ kind: "vm" as const, ...vm }];
    await options.follow([{ event: "drift", key: id, about, line, saidIn: [told] }]);
  }
  if (judged) await records.set(judged.record);
  return appraisal;
}

async function pinnedAmong(
  vms: readonly KnownVm[],
  pins: readonly Pin[],
  approved: ReadonlySet<string>,
): Promise<KnownVm[]> {
  const pinned: KnownVm[] = [];
  for (let from = 0; from < vms.length; from += batch) {
    for (const vm of vms.slice(from, from + batch))
      if (approved.has(vm.id) || pinsFor(pins, namesOf(vm)).length > 0) pinned.push(vm);
    await breathe();
  }
  return pinned;
}

/** One line of it. */
function driftWords(news: News | undefined, vm: KnownVm, appraisal: Appraisal): Markdown {
  if (news?.is === "recovered")
    return md`🟢 *${vm.name}* in ${vm.projectName}: attestation ${appraisal.verdict === "verified" ? "is verified again" : "no longer fails"}.`;
  return md`🔴 *Attestation of ${vm.name} in ${vm.projectName} failed*: ${appraisal.reasons[0] ?? ""}.`;
}

export function renderDrift(news: News, vm: KnownVm, appraisal: Appraisal): Message {
  if (news.is === "recovered") {
    const text = driftWords(news, vm, appraisal);
    return message(short(text), section(text), buttons([attestVm(vm.id)]));
  }
  const head = md`🔴 *Attestation of ${vm.name} in ${vm.projectName} failed.*`;
  const why = appraisal.reasons.map((reason) => md`• ${reason}`);
  return message(
    short(md`Attestation of ${vm.name} in ${vm.projectName} failed: ${appraisal.reasons[0] ?? ""}`),
    section(lines(head, ...why, appraisal.difference ? md`${appraisal.difference}` : undefined)),
    buttons([attestVm(vm.id), showVm(vm.id)]),
  );
}

/** The same news has the same ID, so it is posted once. */
type News = { is: "failed" | "recovered"; id: string };

/**
 * News is a first or different failure, and its end: verified, or as good as policy asks for. What could not be verified
 * neither ends a failure nor starts one. Pure.
 */
function judgeDrift(
  before: DriftRecord | undefined,
  vm: Pick<KnownVm, "id" | "name" | "projectName">,
  appraisal: Pick<Appraisal, "verdict" | "reasons" | "measurement" | "isAsked" | "isUnconfigured">,
  now: number,
): { record: DriftRecord; news?: News } | undefined {
  const { reasons, measurement } = appraisal;
  if (appraisal.verdict !== "failed" && gateRefusal(appraisal) !== undefined) return undefined;
  const verdict = appraisal.verdict === "failed" ? "failed" : "verified";
  const mark = verdict === "failed" ? markOf([...reasons, measurement.report ?? ""]) : "";
  const episode = before?.episode ?? 0;
  const shared = {
    vmId: vm.id,
    vmName: vm.name,
    projectName: vm.projectName,
    reason: reasons[0] ?? "",
  };
  if (before && before.verdict === verdict && before.mark === mark)
    return { record: { ...before, ...shared } };
  if (verdict === "failed") {
    const record: DriftRecord = { ...shared, verdict, mark, since: now, episode };
    return { record, news: { is: "failed", id: `drift-${vm.id}-${episode}-${mark}` } };
  }
  if (before?.verdict !== "failed")
    return { record: { ...shared, verdict, mark, since: now, episode } };
  return {
    record: { ...shared, verdict, mark, since: now, episode: episode + 1, recoveredAt: now },
    news: { is: "recovered", id: `drift-${vm.id}-${episode}-over` },
  };
}

function markOf(parts: readonly string[]): string {
  return createHash("sha256").update(parts.join("\n")).digest("hex").slice(0, 16);
}

/** The last result for a pinned VM, as reported. */
export interface DriftRecord {
  vmId: string;
  vmName: string;
  projectName: string;
  /** "could not verify" doesn't change it; without endorsements in gatehouse.yml, nothing contradicts is enough. */
  verdict: "verified" | "failed";
  /** Names a failure: equal marks are the same failure. Empty when verified. */
  mark: string;
  /** Why it fails, as a sentence without full stop. */
  reason: string;
  /** Milliseconds: since when it is so. */
  since: number;
  /** Grows with each recovery, so that the same failure is reported again after one. */
  episode: number;
  recoveredAt?: number;
}

type DriftRecords = ReturnType<typeof createDriftRecords>;

export function createDriftRecords(redis: RedisClient, key: Keys) {
  const named = key("drift");
  return {
    async all(): Promise<DriftRecord[]> {
      const rows = await redis.hvals(named);
      return rows
        .map((text) => JSON.parse(text) as DriftRecord)
        .toSorted((a, b) => a.since - b.since);
    },
    async get(vmId: string): Promise<DriftRecord | undefined> {
      const text = await redis.hget(named, vmId);
      return text === null ? undefined : (JSON.parse(text) as DriftRecord);
    },
    async set(record: DriftRecord): Promise<void> {
      await redis.hset(named, record.vmId, JSON.stringify(record));
    },
    /** Forgets VMs that are gone or no longer pinned. */
    async keepOnly(vmIds: ReadonlySet<string>): Promise<void> {
      const gone = (await redis.hkeys(named)).filter((id) => !vmIds.has(id));
      if (gone.length > 0) await redis.hdel(named, ...gone);
    },
  };
}
