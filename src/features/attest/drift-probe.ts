import { hash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type Appraisal, failureMark, gateRefusal } from "../../attestation/appraise.ts";
import type { Appraiser } from "../../attestation/appraiser.ts";
import { type NamedVm, namesOf } from "../../attestation/pins.ts";
import type { Trail } from "../../audit/trail.ts";
import type { Pin } from "../../config/policy-file.ts";
import type { SeenTarget } from "../../core/permit/sight.ts";
import type { OwedNotices } from "../../core/deliver/notices.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import type { Alarms } from "../../monitor/alarms.ts";
import {
  type DriftRecord,
  type Lack,
  type Lacking,
  type createDriftRecords,
  dayMs,
  isMissing,
  lackKey,
  lackingIn,
  vmNamesIn,
  vmsOf,
  warnDays,
} from "../../monitor/drift-records.ts";
import { showVm } from "../../registry/command-buttons.ts";
import { attestFirst, attestVm } from "./attest-button.ts";
import { resultWithinMs } from "./telling-request.ts";
import { untilWords } from "./lacking-words.ts";
import { isExpiry, wayOut } from "./way-out.ts";
import { messageOf } from "../../errors.ts";
import type { Inventory, KnownVm } from "../../fleet/inventory/inventory.ts";
import type { Log } from "../../log/log.ts";
import { type Message } from "../../messages/blocks.ts";
import { sentence, card } from "../../messages/card.ts";
import { type Markdown, md } from "../../messages/markdown.ts";
import { compileGlob } from "../../text/glob.ts";
import { tellRecord } from "../../core/cards/tell-record.ts";
import { type Probe, type Observation, type Telling, runProbe } from "../../monitor/monitor.ts";
import type { News } from "../../monitor/news.ts";

/** An alarm, and the news of it for subscribers. */
interface DriftChange {
  /** Equal changes have equal IDs, so each is posted once. */
  id: string;
  place: string;
  alarm: Message;
  /** The VM whose measurement alone fails now, which a request may explain. */
  explainable?: Pick<KnownVm, "id">;
  /** The alarm about the failure that is over now. */
  ends?: string | undefined;
  news?: Pick<News, "about" | "line">;
  /** The audit record of the change, if it is a failure or the end of one. */
  record?: AttestationRecord;
}

interface AttestationRecord {
  what: "attestation";
  target: SeenTarget;
  /** `ended`: nothing contradicts any more, and nothing more is required of the VM. */
  move: "failed" | "verified" | "ended";
  /** The first reason of a failure, or how it ended: `is verified again`. */
  why: string;
}

/** How many VMs are attested at a time. */
const atOnce = 4;

interface DriftProbeOptions extends Telling {
  trail: Pick<Trail, "appendOnce">;
  owed: OwedNotices;
  /** Finds the request whose result will tell this failure, if there is one. Never rejects. */
  tellingRequest(vm: Pick<KnownVm, "id">): Promise<StoredRequest | undefined>;
  records: ReturnType<typeof createDriftRecords>;
  inventory: Pick<Inventory, "vms">;
  /** Every appraisal it makes is remembered (`rememberVerdicts`). */
  appraiser: Appraiser;
  /** The pins of the present policy. */
  pins(): readonly Pin[];
  everyMs: number;
  log: Log;
  now(): number;
  signal?: AbortSignal | undefined;
}

/**
 * Attests every pinned VM. Each failure, changed failure and recovery is reported when it is seen.
 * What keeps VMs from being verified is reported once for all of them, after the last one.
 */
export function driftProbe(options: DriftProbeOptions): Probe<DriftRecord, DriftChange> {
  const { records, everyMs, signal, now } = options;
  const { placeOf } = options.alarms;

  async function attestAll(): Promise<Observation<DriftRecord, DriftChange> | undefined> {
    const approved = new Set(await options.appraiser.accepted.vmIds());
    const known = await records.readRecords();
    const pins = options.pins();
    if (pins.length === 0 && approved.size === 0 && known.size === 0) return undefined;
    const vms = await options.inventory.vms();
    const globs = pins.flatMap(({ targets }) => targets).map(compileGlob);
    const isNamed = (vmName: string) => globs.some((matches) => matches(vmName));
    const isPinned = (vm: KnownVm) => approved.has(vm.id) || namesOf(vm).some(isNamed);
    const judged = await judgeEach(
      vms.filter((vm) => isPinned(vm) || (known.get(vm.id)?.mark ?? "") !== ""),
      options,
    );
    if (signal?.aborted) return undefined;
    const pinned = new Set(vms.filter(isPinned).map(({ id }) => id));
    const ofPinned = judged.filter(({ vm }) => pinned.has(vm.id));
    return {
      compare: (before) => compareLacks(before, ofPinned, { pinned, placeOf, now: now() }),
      async remembered() {
        const seen = await records.readRecords(vms.map(({ id }) => id));
        const kept = [...seen].flatMap(([id, record]) => (isRemembered(record, now()) ? [id] : []));
        await records.keepOnly(new Set([...pinned, ...kept]));
      },
    };
  }

  return {
    name: "drift",
    every: { ms: everyMs, retryAfterMs: everyMs / 4 },
    records,
    observe: attestAll,
    reportChanges: (changes) => reportChanges(changes, options),
  };
}

/**
 * Whether a VM that isn't pinned is remembered: while it fails, and for two days after, so that the
 * same failure is news again, whose ID without a record is the day's.
 */
const isRemembered = ({ mark, recoveredAt = 0 }: DriftRecord, now: number): boolean =>
  mark !== "" || now - recoveredAt < 2 * dayMs;

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

interface Judged {
  vm: KnownVm;
  appraisal: Appraisal;
}

/**
 * Attests a few VMs at a time, spread over half of the interval. VMs that couldn't be read are left
 * out.
 */
async function judgeEach(pinned: readonly KnownVm[], options: DriftProbeOptions) {
  const { appraiser, everyMs, log, signal } = options;
  const gapMs = Math.min(1000, everyMs / 2 / pinned.length);
  const judged: Judged[] = [];
  async function judge(vm: KnownVm): Promise<void> {
    try {
      judged.push({ vm, appraisal: (await appraiser.attest(vm, { signal })).appraisal });
    } catch (error) {
      if (!signal?.aborted) log.warn("drift.unread", { vm: vm.id, why: messageOf(error) });
    }
  }
  for (let from = 0; from < pinned.length && !signal?.aborted; from += atOnce) {
    const some = pinned.slice(from, from + atOnce);
    const gap = pause(some.length * gapMs, undefined, { ref: false, signal }).catch(
      () => undefined,
    );
    await Promise.all([gap, ...some.map(judge)]);
  }
  return judged;
}

/**
 * Remembers the appraisal of a VM's evidence, whoever asked for it, and reports it if it is news.
 * Never rejects.
 */
export function rememberVerdicts(
  options: Pick<DriftProbeOptions, "records" | "log" | "now"> &
    TellOptions & { inventory: Pick<Inventory, "findVm"> },
): (vm: Pick<NamedVm, "id">, appraisal: Appraisal) => Promise<void> {
  return async ({ id }, appraisal) => {
    try {
      const known = await options.inventory.findVm(id, { onlyKnown: true });
      if (!("record" in known) || known.record.id !== id) return;
      const judged = { vm: known.record, appraisal };
      const place = options.alarms.placeOf(judged.vm);
      await runProbe({
        records: options.records,
        observe: async () => ({
          ids: [id],
          compare: (before) => compareDrift(before.get(id), judged, place, options.now()),
        }),
        reportChanges: (changes: readonly DriftChange[]) => reportChanges(changes, options),
      });
    } catch (error) {
      options.log.warn("drift.unkept", { vm: id, why: messageOf(error) });
    }
  };
}

type TellOptions = Pick<
  DriftProbeOptions,
  "alarms" | "follow" | "owed" | "tellingRequest" | "trail"
>;

/**
 * The alarm about a failure that a request explains waits for the result of that request. It is
 * stored before anything else is, and posted unless a channel shows a result that tells the failure.
 * So a process that dies, and a result that can't be read or posted, leave it due.
 */
async function reportChanges(
  changes: readonly DriftChange[],
  { alarms, follow, owed, tellingRequest, trail }: TellOptions,
): Promise<void> {
  for (const { id, place, alarm, news, explainable, ends, record } of changes) {
    if (record) await trail.appendOnce(id, { ...record });
    const request = explainable && (await tellingRequest(explainable));
    // Where no alarm told the failure, none tells its end.
    const isUntold = ends !== undefined && (await owed.isWithdrawn(ends));
    if (ends !== undefined && !isUntold) await owed.hasten(ends);
    const inMs = request ? resultWithinMs : 0;
    const alarmed = isUntold ? undefined : await alarms.sendAlarm(id, alarm, place, { inMs });
    const saidIn = request && alarmed !== undefined ? shownIn(request) : [alarmed];
    if (news) await follow([{ ...news, topic: "drift", key: id, saidIn }]);
  }
}

const shownIn = ({ record, delivered }: StoredRequest) => [
  delivered.card?.channelId ?? record.teamChannel ?? record.channelId,
];

/** Withdraws the alarm about a failure that a channel was told as the result of a request. */
export function withdrawTold({
  records,
  owed,
  log,
}: Pick<DriftProbeOptions, "records" | "owed" | "log">) {
  return async (vm: Pick<KnownVm, "id">, mark: string): Promise<void> => {
    try {
      const known = (await records.readRecords([vm.id])).get(vm.id);
      if (known?.mark === mark && known.alarm !== undefined) await owed.withdraw(known.alarm);
    } catch (error) {
      log.warn("drift.told-twice", { vm: vm.id, why: messageOf(error) });
    }
  };
}

/**
 * Finds what changed about one VM. News is a first or different failure, and its end: the VM is
 * verified, or as good as the policy asks for. Without endorsements in gatehouse.yml it is enough
 * that nothing contradicts. Pure.
 */
function compareDrift(
  before: DriftRecord | undefined,
  { vm, appraisal }: Judged,
  place: string,
  now: number,
): { after: Map<string, DriftRecord>; changes: DriftChange[] } {
  const { verdict, reasons, measurement } = appraisal;
  const { id, name: vmName, projectId, projectName } = vm;
  const { verifiedAt: _before, ...was } = before ?? { mark: "", reason: "", since: now, lacks: [] };
  const known: DriftRecord = {
    ...was,
    vm: { id, name: vmName, projectId, projectName },
    ...(verdict === "verified" ? { verifiedAt: now } : {}),
  };
  const isFailed = verdict === "failed";
  // Of a VM that isn't pinned, only a failure is remembered.
  if (!before && !isFailed && measurement.pins.length === 0 && measurement.pinDoubt === undefined)
    return { after: new Map(), changes: [] };
  // A VM that could not be verified neither ends a failure nor starts one.
  const isOpen = !isFailed && gateRefusal(appraisal) !== undefined;
  if (isOpen) return { after: new Map([[id, known]]), changes: [] };
  const mark = isFailed ? failureMark(appraisal) : "";
  const { isPinnable } = appraisal;
  const record = { ...known, reason: reasons[0] ?? "", isPinnable: isFailed && isPinnable };
  if (mark === known.mark) return { after: new Map([[id, record]]), changes: [] };
  const since = isFailed ? { since: now } : { since: now, recoveredAt: now };
  const attestation: AttestationRecord = {
    what: "attestation",
    target: { kind: "vm", id, name: vmName, projectId, projectName },
    move: isFailed ? "failed" : verdict === "verified" ? "verified" : "ended",
    why: isFailed ? (reasons[0] ?? "") : passedWords(appraisal),
  };
  const change: DriftChange = {
    id: `drift-${id}-${before?.since ?? dayOf(now)}-${mark || "over"}`,
    place,
    alarm: renderDrift(vm, appraisal),
    ...(isFailed && isPinnable ? { explainable: vm } : {}),
    ends: isFailed ? undefined : before?.alarm,
    news: {
      about: [{ kind: "vm", ...vm }],
      line: () => ({ text: eventLine(attestation).value, button: attestVm(vm) }),
    },
    record: attestation,
  };
  const { alarm: _ended, ...kept } = record;
  const alarm = isFailed ? { alarm: change.id } : {};
  return { after: new Map([[id, { ...kept, mark, ...alarm, ...since }]]), changes: [change] };
}

/** The line for subscribers: the sentence of the event that the record proves, and the VM's project. */
const eventLine = (record: AttestationRecord): Markdown =>
  md`${tellRecord({ ...record }, { person: (id) => id, vm: (id) => id })} In ${record.target.projectName ?? ""}.`;

/** The title of the alarm. */
function driftWords(vm: KnownVm, appraisal: Appraisal): Markdown {
  const { verdict, reasons } = appraisal;
  if (verdict === "failed")
    return md`🔴 *Attestation of ${vm.name} in ${vm.projectName} failed*: ${reasons[0] ?? ""}.`;
  return md`🟢 *${vm.name}* in ${vm.projectName}: attestation ${passedWords(appraisal)}.`;
}

const passedWords = ({ verdict }: Appraisal): string =>
  verdict === "verified" ? "is verified again" : "no longer fails";

/** Renders the alarm for a failure or its end. */
export function renderDrift(vm: KnownVm, appraisal: Appraisal): Message {
  const { verdict, reasons, difference } = appraisal;
  const more = verdict === "failed" ? [...reasons.slice(1), difference] : [];
  return card({
    title: driftWords(vm, appraisal),
    lines: more.map((line) => line !== undefined && md`• ${line}`),
    ways: [attestVm(vm), showVm(vm)],
  });
}

/**
 * Finds new and resolved reasons why VMs can't be verified: one alarm for each team and reason, for
 * however many VMs. `pinned`: all VMs that should have been judged. Pure.
 */
export function compareLacks(
  before: ReadonlyMap<string, DriftRecord>,
  judged: readonly Judged[],
  options: { pinned: ReadonlySet<string>; placeOf: Alarms["placeOf"]; now: number },
): { after: Map<string, DriftRecord>; changes: DriftChange[] } {
  const { pinned, placeOf, now } = options;
  const were = lackingIn(before.values(), placeOf);
  const after = new Map([...before].filter(([id]) => pinned.has(id)));
  for (const { vm, appraisal } of judged) {
    const record = after.get(vm.id);
    // If no report is available now, or the VM doesn't run, its record stays as it was.
    if (!record || !appraisal.isJudged) continue;
    const lacks = lacksIn(appraisal, now).map((lack) => ({
      ...lack,
      since: were.get(lackKey(lack, placeOf(vm)))?.since ?? now,
    }));
    after.set(vm.id, { ...record, lacks });
  }
  const are = lackingIn(after.values(), placeOf);
  const missingNow = [...are].filter(([key, lacking]) => isMissing(lacking) && !were.has(key));
  const resolved = [...were].filter(([key, lacking]) => isMissing(lacking) && !are.has(key));
  const changes = [
    ...missingNow.map(([, lacking]) => renderLacking(lacking)),
    ...resolved.map(([, lacking]) => renderResolved(lacking)),
  ];
  return { after, changes };
}

/** What a VM lacks now, and what will expire within the first warning stage. */
function lacksIn(appraisal: Appraisal, now: number): Omit<Lack, "since">[] {
  const { verdict, reasons, soon, endsWith, validUntil = Infinity } = appraisal;
  const isOpen = verdict !== "failed" && gateRefusal(appraisal) !== undefined;
  const way = wayOut(appraisal);
  const missing = isOpen
    ? reasons.map((reason, index) => ({
        what: reason,
        ...(way === undefined ? {} : { way }),
        ...(isExpiry(appraisal.codes[index]) ? { isExpired: true } : {}),
      }))
    : [];
  const next = soon === undefined ? [] : [{ what: soon, isNextLevel: true }];
  const isEnding = verdict === "verified" && validUntil - now <= warnDays[0] * dayMs;
  const ending = isEnding && endsWith !== undefined ? [{ what: endsWith, endsAt: validUntil }] : [];
  return [...missing, ...next, ...ending];
}

/** The place of VMs that belong to no team. */
const withoutTeam = "access";

/**
 * The ID of an alarm. It contains the day, so a process that dies between posting and recording
 * doesn't repeat it.
 */
function idOf({ what: reason, since, place }: Lacking): string {
  const named = place === withoutTeam ? reason : `${reason} ${place}`;
  return `unverified-${hashOf(named)}-${dayOf(since)}`;
}

const hashOf = (text: string) => hash("sha256", text).slice(0, 16);

function renderLacking(lacking: Lacking): DriftChange {
  const { place, vms } = lacking;
  const words = (some: readonly { name: string }[]) => {
    const [only = { name: "" }, ...others] = some;
    const which = others.length === 0 ? only.name : vmsOf({ vms: some });
    return md`❔ *${which} can't be verified*: ${lacking.what}.`;
  };
  const more = vms.length === 1 ? undefined : md`${vmNamesIn(lacking)}.`;
  return {
    id: idOf(lacking),
    place,
    alarm: card({
      title: words(vms),
      lines: [more, md`${untilWords(lacking)}`],
      ways: [attestFirst(vms)],
    }),
    news: {
      about: vms.map((vm) => ({ kind: "vm", ...vm })),
      line: (some) => ({ text: words(some).value, button: attestFirst(some) }),
    },
  };
}

function renderResolved(lacking: Lacking): DriftChange {
  const { what: reason, place } = lacking;
  const whose = place === withoutTeam ? "" : ` of ${place.replaceAll("teams.", "the team ")}`;
  const alarm = sentence(md`🟢 Resolved for all pinned VMs${whose}: ${reason}.`);
  return { id: `${idOf(lacking)}-over`, place, alarm };
}
