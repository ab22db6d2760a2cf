import { createHash } from "node:crypto";
import type { Appraisal } from "../attestation/appraise.ts";
import { buttons, message, type Message, readable, section } from "../messages/message.ts";
import { lines, type Markdown, md, name } from "../messages/text.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { attestVm } from "./line-buttons.ts";

/** What vouches for pinned VMs and has ended, or ends soon. One list of a vendor's stands behind many VMs. */
export interface EndorsementRecord {
  /** A sentence without full stop where it has ended; what ends, else. */
  what: string;
  /** When it ends (ms); undefined where it has. */
  endsAt?: number;
  /** Since when it has ended, as far as was seen (ms). */
  since: number;
  vms: number;
  /** A few of them. */
  names: readonly string[];
  /** One of them. */
  vmId: string;
}

interface Judged {
  vm: { id: string; name: string };
  appraisal: Appraisal;
}

const dayMs = 86_400_000;
/** How long before their end they are spoken of; each stage anew. */
export const warnDays = [14, 7, 1] as const;
const fewNames = 3;

/** What isn't a VM's own but a vendor's, or the folder's. */
const ofVendors = /^(crl|collateral|cert|vek)-|^endorsement-age$|^fmspc$|^pceid$/;

/** Grouped by what has ended, or will within the first stage. Pure. */
export function endorsementsOf(
  judged: readonly Judged[],
  before: readonly EndorsementRecord[],
  now: number,
): readonly EndorsementRecord[] {
  const groups = new Map<string, EndorsementRecord>();
  const add = (what: string, { id, name: vmName }: Judged["vm"], endsAt?: number) => {
    const key = `${what} ${endsAt ?? ""}`;
    const found = groups.get(key);
    const known = before.find((one) => one.what === what && one.endsAt === endsAt);
    groups.set(key, {
      what,
      ...(endsAt === undefined ? {} : { endsAt }),
      since: known?.since ?? now,
      vms: (found?.vms ?? 0) + 1,
      names: [...(found?.names ?? []), vmName].slice(0, fewNames),
      vmId: found?.vmId ?? id,
    });
  };
  for (const { vm, appraisal } of judged) {
    const { verdict, result, validUntil = Infinity, endsWith } = appraisal;
    if (verdict === "could not verify" && !appraisal.isUnconfigured)
      for (const { code, says } of result?.reasons ?? []) if (ofVendors.test(code)) add(says, vm);
    if (verdict === "verified" && endsWith !== undefined && validUntil - now <= warnDays[0] * dayMs)
      add(endsWith, vm, validUntil);
  }
  // What wasn't judged this time, since its report could not be read, is as it was
  const seen = new Set(judged.flatMap(({ vm, appraisal }) => (appraisal.result ? vm.id : [])));
  for (const record of before)
    if (!seen.has(record.vmId) && !groups.has(`${record.what} ${record.endsAt ?? ""}`))
      groups.set(`${record.what} ${record.endsAt ?? ""}`, record);
  return [...groups.values()];
}

/** One alarm for what has ended, however many VMs it is about, and one when that is over. */
export function endorsementNews(
  before: readonly EndorsementRecord[],
  after: readonly EndorsementRecord[],
): readonly { id: string; message: Message }[] {
  const ended = (records: readonly EndorsementRecord[]) =>
    records.filter(({ endsAt }) => endsAt === undefined);
  const isIn = (records: readonly EndorsementRecord[], what: string) =>
    ended(records).some((one) => one.what === what);
  return [
    ...ended(after)
      .filter(({ what }) => !isIn(before, what))
      .map((record) => ({ id: idOf(record), message: alarm(record) })),
    ...ended(before)
      .filter(({ what }) => !isIn(after, what))
      .map((record) => ({ id: `${idOf(record)}-over`, message: allClear(record) })),
  ];
}

/** By the day: whoever dies between post and record says it once all the same. */
function idOf({ what, since }: EndorsementRecord): string {
  const mark = createHash("sha256").update(what).digest("hex").slice(0, 16);
  return `endorsement-${mark}-${new Date(since).toISOString().slice(0, 10)}`;
}

function alarm(record: EndorsementRecord): Message {
  const text = md`❔ *${vmsOf(record)} can't be verified*: ${record.what}.`;
  return message(
    readable(text),
    section(
      lines(
        text,
        md`${namesIn(record)}. Renew it in the folder of endorsements (docs/attestation.md). Until then rollouts and consoles on pinned VMs stop.`,
      ),
    ),
    buttons([attestVm(record.vmId)]),
  );
}

function allClear({ what }: EndorsementRecord): Message {
  const text = md`🟢 No pinned VM lacks this any longer: ${what}.`;
  return message(readable(text), section(text));
}

export const vmsOf = ({ vms }: EndorsementRecord): string =>
  vms === 1 ? "1 pinned VM" : `${vms.toLocaleString("en-US")} pinned VMs`;

export function namesIn({ names, vms }: EndorsementRecord): Markdown {
  const [first = md``, ...rest] = names.map((one) => name(one));
  const listed = rest.reduce((all, one) => md`${all}, ${one}`, first);
  return vms > names.length ? md`${listed} and ${vms - names.length} more` : listed;
}

export function createEndorsementRecords(redis: RedisClient, key: Keys) {
  const named = key("endorsements");
  return {
    async all(): Promise<readonly EndorsementRecord[]> {
      return JSON.parse((await redis.get(named)) ?? "[]") as EndorsementRecord[];
    },
    async keep(records: readonly EndorsementRecord[]): Promise<void> {
      if (records.length === 0) await redis.del(named);
      else await redis.set(named, JSON.stringify(records));
    },
  };
}
