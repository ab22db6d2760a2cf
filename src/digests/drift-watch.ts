import { setImmediate as breathe, setTimeout as pause } from "node:timers/promises";
import { attest, type Attested } from "../attestation/attest.ts";
import { pinsFor } from "../attestation/pins.ts";
import type { Compute } from "../compute/compute.ts";
import { messageOf } from "../errors.ts";
import type { Inventory, KnownVm } from "../inventory/inventory.ts";
import type { Log } from "../log.ts";
import { buttons, message, type Message, readable, section } from "../messages/message.ts";
import { lines, md } from "../messages/text.ts";
import type { Pin } from "../policy-file.ts";
import type { Keys, RedisClient } from "../redis.ts";
import type { DriftRecords } from "./drift-records.ts";
import { judgeDrift, type News } from "./judge-drift.ts";
import { attestVm, showVm } from "./line-buttons.ts";
import { takeTurn } from "./take-turn.ts";

const atOnce = 4;
/** VMs looked through before others get their turn in this process. */
const chunk = 2000;

export interface DriftWatchOptions {
  redis: RedisClient;
  key: Keys;
  inventory: Pick<Inventory, "vms">;
  compute: Pick<Compute, "vms">;
  pins: readonly Pin[];
  records: DriftRecords;
  /** Tells the alerts channel, once per id. */
  tell(id: string, message: Message): Promise<void>;
  everyMs: number;
  now(): number;
  log: Log;
  signal?: AbortSignal;
}

/**
 * Attests every VM that a pin speaks of, a few at a time and spread over half of the interval. The first failure is told,
 * another one again, and its end; told first and remembered afterwards, under an id that makes telling it twice harmless.
 */
export async function watchDrift(options: DriftWatchOptions): Promise<void> {
  const { redis, key, inventory, records, pins, everyMs, log, signal } = options;
  if (pins.length === 0) return records.keepOnly(new Set());
  const vms = await inventory.vms(); // before the turn is taken: who knows no VMs must not use it up
  if (!(await takeTurn(redis, key, "drift-watch", everyMs))) return;
  const pinned = await pinnedAmong(vms, pins);
  const gapMs = Math.min(1000, everyMs / 2 / Math.max(1, pinned.length));
  const waiting = pinned.values();
  const checked = Promise.all(
    Array.from({ length: atOnce }, async () => {
      let isFirst = true;
      for (const vm of waiting) {
        if (!isFirst)
          await pause(gapMs * atOnce, undefined, { ref: false, ...(signal ? { signal } : {}) });
        isFirst = false;
        if (signal?.aborted) return;
        await check(vm, options).catch((error: unknown) =>
          log.warn("drift.unread", { vm: vm.id, why: messageOf(error) }),
        );
      }
    }),
  );
  await checked.catch((error: unknown) => {
    if (!signal?.aborted) throw error;
  });
  if (!signal?.aborted) await records.keepOnly(new Set(pinned.map(({ id }) => id)));
}

async function check(vm: KnownVm, options: DriftWatchOptions): Promise<void> {
  const { compute, records, tell, now, signal } = options;
  const read = await attest(vm.id, {
    compute,
    now,
    pins: pinsFor(options.pins, namesOf(vm)),
    ...(signal ? { signal } : {}),
  });
  const judged = judgeDrift(await records.get(vm.id), vm, read.appraisal, now());
  if (!judged) return;
  if (judged.news) await tell(judged.news.id, renderNews(judged.news, vm, read));
  await records.set(judged.record);
}

/** The names by which a pin may speak of a VM. */
function namesOf(vm: KnownVm): string[] {
  return [vm.name, vm.id, `${vm.projectName}/${vm.name}`];
}

async function pinnedAmong(vms: readonly KnownVm[], pins: readonly Pin[]): Promise<KnownVm[]> {
  const pinned: KnownVm[] = [];
  for (let from = 0; from < vms.length; from += chunk) {
    for (const vm of vms.slice(from, from + chunk))
      if (pinsFor(pins, namesOf(vm)).length > 0) pinned.push(vm);
    await breathe();
  }
  return pinned;
}

export function renderNews(news: News, vm: KnownVm, { appraisal }: Attested): Message {
  if (news.is === "recovered") {
    const text = md`🟢 *${vm.name}* in ${vm.projectName}: attestation is verified again.`;
    return message(readable(text), section(text), buttons([attestVm(vm.id)]));
  }
  const head = md`🔴 *Attestation of ${vm.name} in ${vm.projectName} failed.*`;
  const why = appraisal.reasons.map((reason) => md`• ${reason}`);
  return message(
    readable(
      md`Attestation of ${vm.name} in ${vm.projectName} failed: ${appraisal.reasons[0] ?? ""}`,
    ),
    section(lines(head, ...why, appraisal.difference ? md`${appraisal.difference}` : undefined)),
    buttons([attestVm(vm.id), showVm(vm.id)]),
  );
}
