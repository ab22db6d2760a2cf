import { createHash } from "node:crypto";
import type { Appraisal } from "../attestation/appraisal.ts";
import { gateRefusal } from "../attestation/appraise.ts";
import { buttons, message, type Message, readable, section } from "../messages/message.ts";
import { lines, type Markdown, md, name } from "../messages/text.ts";
import type { KnownVm } from "../inventory/inventory.ts";
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
  /** All of them; absent in records of versions without it. */
  vmIds?: readonly string[];
  /** Whose they are, if not nobody's: what one list stands behind is told to each team apart. */
  place?: string;
}

interface Judged {
  vm: KnownVm;
  appraisal: Appraisal;
}

const dayMs = 86_400_000;
/** Days before their end at which the digest warns; a snooze ends with its stage. */
export const warnDays = [14, 7, 1] as const;
const fewNames = 3;

/** Of what no team has. */
const nobodys = "access";

const keyOf = ({
  what,
  endsAt,
  isNextLevel = false,
  place = nobodys,
}: Pick<UnverifiedRecord, "what" | "isNextLevel" | "place"> & { endsAt?: number | undefined }) =>
  `${what} ${endsAt ?? ""} ${isNextLevel} ${place}`;

/**
 * Grouped by what is missing, or will end within the first stage, and by whose VMs they are. `pinned`: all that should have been
 * judged. Pure.
 */
export function unverifiedIn(
  judged: readonly Judged[],
  {
    before,
    pinned,
    placeOf,
    now,
  }: {
    before: readonly UnverifiedRecord[];
    pinned: ReadonlySet<string>;
    placeOf(vm: KnownVm): string;
    now: number;
  },
): readonly UnverifiedRecord[] {
  const known = new Map(before.map((record) => [keyOf(record), record]));
  const groups = new Map<string, Group>();
  const add = (what: string, vm: KnownVm, endsAt?: number, isNextLevel = false) => {
    const place = placeOf(vm);
    const key = keyOf({ what, endsAt, isNextLevel, place });
    const group = groups.get(key) ?? {
      what,
      ...(endsAt === undefined ? {} : { endsAt }),
      ...(isNextLevel ? { isNextLevel } : {}),
      ...(place === nobodys ? {} : { place }),
      since: known.get(key)?.since ?? now,
      all: [],
    };
    group.all.push(vm);
    groups.set(key, group);
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
  const unread = before.filter(
    (record) => pinned.has(record.vmId) && !seen.has(record.vmId) && !groups.has(keyOf(record)),
  );
  return [...[...groups.values()].map(({ all, ...group }) => ofVms(group, all)), ...unread];
}

type Group = Omit<UnverifiedRecord, "vms" | "names" | "vmId" | "vmIds"> & { all: KnownVm[] };

function ofVms(group: Omit<Group, "all">, all: readonly KnownVm[]): UnverifiedRecord {
  return {
    ...group,
    vms: all.length,
    names: all.slice(0, fewNames).map(({ name: one }) => one),
    vmId: all[0]?.id ?? "",
    vmIds: all.map(({ id }) => id),
  };
}

/** What is so of these VMs, as if there were no others. */
export function amongVms(
  records: readonly UnverifiedRecord[],
  vms: readonly KnownVm[],
): readonly UnverifiedRecord[] {
  const known = new Map(vms.map((vm) => [vm.id, vm]));
  return records.flatMap((record) => {
    const all = (record.vmIds ?? [record.vmId]).flatMap((id) => known.get(id) ?? []);
    return all.length === 0 ? [] : [ofVms(record, all)];
  });
}

/** Not where a report could not be had for the moment, or the VM doesn't run. */
const wasJudged = ({ result, isWithheld }: Appraisal) => result !== undefined || isWithheld;

/** One alarm to each team for what is missing, however many VMs it is about, and one when that is over. */
export function unverifiedNews(
  before: readonly UnverifiedRecord[],
  after: readonly UnverifiedRecord[],
): readonly UnverifiedNews[] {
  const ended = (records: readonly UnverifiedRecord[]) =>
    records.filter(({ endsAt, isNextLevel }) => endsAt === undefined && !isNextLevel);
  const keysOf = (records: readonly UnverifiedRecord[]) => new Set(ended(records).map(keyOf));
  const [were, are] = [keysOf(before), keysOf(after)];
  return [
    ...ended(after)
      .filter((one) => !were.has(keyOf(one)))
      .map((record) => ({ id: idOf(record), record, message: alarm(record) })),
    ...ended(before)
      .filter((one) => !are.has(keyOf(one)))
      .map((record) => ({
        id: `${idOf(record)}-over`,
        record,
        isOver: true,
        message: allClear(record),
      })),
  ];
}

interface UnverifiedNews {
  id: string;
  record: UnverifiedRecord;
  isOver?: boolean;
  message: Message;
}

/** By the day: whoever dies between post and record says it once all the same. */
function idOf({ what, since, place }: UnverifiedRecord): string {
  const named = place === undefined ? what : `${what} ${place}`;
  const mark = createHash("sha256").update(named).digest("hex").slice(0, 16);
  return `unverified-${mark}-${new Date(since).toISOString().slice(0, 10)}`;
}

export function unverifiedWords(record: UnverifiedRecord): Markdown {
  return md`❔ *${vmsOf(record)} can't be verified*: ${record.what}.`;
}

function alarm(record: UnverifiedRecord): Message {
  const text = unverifiedWords(record);
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

function allClear({ what, place }: UnverifiedRecord): Message {
  const whose = place === undefined ? "" : ` of ${place.replaceAll("teams.", "the team ")}`;
  const text = md`🟢 No pinned VM${whose} lacks this any longer: ${what}.`;
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
