import { createHash } from "node:crypto";
import type { Appraisal } from "../attestation/appraisal.ts";
import { gateRefusal } from "../attestation/appraise.ts";
import { buttons, message, type Message, readable, section } from "../messages/message.ts";
import { lines, type Markdown, md, name } from "../messages/text.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { attestVm } from "./line-buttons.ts";

/** What keeps pinned VMs from being verified, or soon will. One list of a vendor's stands behind many VMs. */
export interface UnverifiedRecord {
  /** A sentence without full stop where they can't be verified; what ends, else. */
  what: string;
  /** When it ends (ms); undefined where they can't be verified already. */
  endsAt?: number;
  /** They fail once Intel's next level counts, and are fine until then. */
  isNextLevel?: boolean;
  /** Since when it is so, as far as was seen (ms). */
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
/** Days before their end at which the digest warns; a snooze ends with its stage. */
export const warnDays = [14, 7, 1] as const;
const fewNames = 3;

const keyOf = ({
  what,
  endsAt,
  isNextLevel = false,
}: {
  what: string;
  endsAt?: number | undefined;
  isNextLevel?: boolean;
}) => `${what} ${endsAt ?? ""} ${isNextLevel}`;

/** Grouped by what is missing, or will end within the first stage. `pinned`: all that should have been judged. Pure. */
export function unverifiedIn(
  judged: readonly Judged[],
  {
    before,
    pinned,
    now,
  }: { before: readonly UnverifiedRecord[]; pinned: ReadonlySet<string>; now: number },
): readonly UnverifiedRecord[] {
  const groups = new Map<string, UnverifiedRecord>();
  const add = (
    what: string,
    { id, name: vmName }: Judged["vm"],
    endsAt?: number,
    isNextLevel = false,
  ) => {
    const key = keyOf({ what, endsAt, isNextLevel });
    const found = groups.get(key);
    const known = before.find((one) => keyOf(one) === key);
    groups.set(key, {
      what,
      ...(endsAt === undefined ? {} : { endsAt }),
      ...(isNextLevel ? { isNextLevel } : {}),
      since: known?.since ?? now,
      vms: (found?.vms ?? 0) + 1,
      names: [...(found?.names ?? []), vmName].slice(0, fewNames),
      vmId: found?.vmId ?? id,
    });
  };
  for (const { vm, appraisal } of judged) {
    const { verdict, validUntil = Infinity, endsWith } = appraisal;
    if (wasJudged(appraisal) && gateRefusal(appraisal) !== undefined && verdict !== "failed")
      for (const reason of appraisal.reasons) add(reason, vm);
    if (appraisal.soon !== undefined) add(appraisal.soon, vm, undefined, true);
    if (verdict === "verified" && endsWith !== undefined && validUntil - now <= warnDays[0] * dayMs)
      add(endsWith, vm, validUntil);
  }
  // What wasn't judged this time, since its report could not be read, is as it was
  const seen = new Set(judged.flatMap(({ vm, appraisal }) => (wasJudged(appraisal) ? vm.id : [])));
  for (const record of before) {
    const key = keyOf(record);
    const isUnread = pinned.has(record.vmId) && !seen.has(record.vmId);
    if (isUnread && !groups.has(key)) groups.set(key, record);
  }
  return [...groups.values()];
}

/** Not where a report could not be had for the moment, or the VM doesn't run. */
const wasJudged = ({ result, isOff }: Appraisal) => result !== undefined || isOff;

/** One alarm for what is missing, however many VMs it is about, and one when that is over. */
export function unverifiedNews(
  before: readonly UnverifiedRecord[],
  after: readonly UnverifiedRecord[],
): readonly { id: string; message: Message }[] {
  const ended = (records: readonly UnverifiedRecord[]) =>
    records.filter(({ endsAt, isNextLevel }) => endsAt === undefined && !isNextLevel);
  const isIn = (records: readonly UnverifiedRecord[], what: string) =>
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
function idOf({ what, since }: UnverifiedRecord): string {
  const mark = createHash("sha256").update(what).digest("hex").slice(0, 16);
  return `unverified-${mark}-${new Date(since).toISOString().slice(0, 10)}`;
}

function alarm(record: UnverifiedRecord): Message {
  const text = md`❔ *${vmsOf(record)} can't be verified*: ${record.what}.`;
  return message(
    readable(text),
    section(
      lines(
        text,
        md`${namesIn(record)}. ${name("/vm attest")} says what to do. Until then rollouts and consoles on them stop.`,
      ),
    ),
    buttons([attestVm(record.vmId)]),
  );
}

function allClear({ what }: UnverifiedRecord): Message {
  const text = md`🟢 No pinned VM lacks this any longer: ${what}.`;
  return message(readable(text), section(text));
}

export const vmsOf = ({ vms }: UnverifiedRecord): string =>
  vms === 1 ? "1 pinned VM" : `${vms.toLocaleString("en-US")} pinned VMs`;

export function namesIn({ names, vms }: UnverifiedRecord): Markdown {
  const [first = md``, ...rest] = names.map((one) => name(one));
  const listed = rest.reduce((all, one) => md`${all}, ${one}`, first);
  return vms > names.length ? md`${listed} and ${vms - names.length} more` : listed;
}

export function createUnverifiedRecords(redis: RedisClient, key: Keys) {
  const named = key("unverified");
  return {
    async all(): Promise<readonly UnverifiedRecord[]> {
      return JSON.parse((await redis.get(named)) ?? "[]") as UnverifiedRecord[];
    },
    async keep(records: readonly UnverifiedRecord[]): Promise<void> {
      if (records.length === 0) await redis.del(named);
      else await redis.set(named, JSON.stringify(records));
    },
  };
}
