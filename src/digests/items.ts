import { isTransitional, isSettledVmStatus } from "../compute/compute.ts";
import type { KnownVm } from "../inventory/inventory.ts";
import type { ButtonSpec } from "../messages/message.ts";
import { counted, duration, type Markdown, md, name, when } from "../messages/text.ts";
import { lackingIn, namesIn, vmsOf, warnDays } from "./drift-monitor.ts";
import type { Facts, RequestFact } from "./facts.ts";
import {
  attestVm,
  listed,
  showChanges,
  showRequest,
  showVm,
  signReview,
  showSnapshots,
} from "./line-buttons.ts";

/** The most urgent first; singular and plural. */
export const kinds = {
  error: ["VM in ERROR", "VMs in ERROR"],
  stuck: ["VM stuck", "VMs stuck"],
  drift: ["failed attestation", "failed attestations"],
  unverified: ["reason why VMs can't be verified", "reasons why VMs can't be verified"],
  unknown: ["unknown outcome", "unknown outcomes"],
  review: ["review to sign", "reviews to sign"],
  approval: ["waiting for approval", "waiting for approval"],
  change: ["change", "changes"],
  snapshot: ["about snapshots", "about snapshots"],
} as const;

export type Kind = keyof typeof kinds;

/** One line. */
export interface Item {
  kind: Kind;
  /** Identifies the line for snoozing, for as long as digests have it. */
  key: string;
  text: Markdown;
  /** The one that stands beside it. */
  button: ButtonSpec;
  /** How many of its kind it stands for; default one. */
  count?: number;
  /** Can't be snoozed: somebody must decide, or it is past. */
  isLasting?: boolean;
}

export function itemsOf(facts: Facts): Item[] {
  return [
    ...vmItems(facts),
    ...driftItems(facts),
    ...unverifiedItems(facts),
    ...unknownItems(facts),
    ...reviewItems(facts),
    ...approvalItems(facts),
    ...changeItems(facts),
    ...snapshotItems(facts),
  ];
}

const ago = (facts: Facts, at: number) => duration(facts.now - at);
const atTime = (at: number) => when(at, "{date_short_pretty} {time}");

function vmItems(facts: Facts): Item[] {
  const unread = new Set(facts.unreadProjects);
  return (facts.vms ?? []).flatMap((vm): Item[] => {
    const { id, status } = vm;
    if (status !== "ERROR" && !isTransitional(status)) return [];
    const since = facts.statusSince.get(id);
    const lastRead = unread.has(vm.projectName) ? " when it was last read" : "";
    const what = md`*${vm.name}* in ${vm.projectName}`;
    const button = showVm(id);
    if (status === "ERROR") {
      const from = since === undefined ? "" : md`, seen since ${atTime(since)}`;
      const text = md`🔴 ${what} is in ERROR${from}${lastRead}.`;
      return [{ kind: "error", key: `error:${id}`, text, button }];
    }
    if (since === undefined || facts.now - since <= facts.stuckAfterMs) return [];
    const text = md`🟡 ${what} has been ${status} for ${ago(facts, since)}${lastRead}.`;
    return [{ kind: "stuck", key: `stuck:${id}:${since}`, text, button }];
  });
}

function driftItems(facts: Facts): Item[] {
  return (facts.drift ?? []).flatMap(({ vm, since, reason, mark, recoveredAt }): Item[] => {
    const line = { kind: "drift", button: attestVm(vm.id) } as const;
    if (mark !== "") {
      const text = md`🔴 *${vm.name}* in ${vm.projectName}: attestation has failed since ${atTime(since)}: ${reason}.`;
      return [{ ...line, key: `drift:${vm.id}:${mark}:${since}`, text }];
    }
    if (recoveredAt === undefined || recoveredAt <= facts.since) return [];
    const text = md`🟢 *${vm.name}* in ${vm.projectName}: attestation had failed; resolved at ${atTime(recoveredAt)}.`;
    return [{ ...line, key: `drift-over:${vm.id}:${recoveredAt}`, text }];
  });
}

const dayMs = 24 * 3600_000;

/** What is missing, and what will end: each stage is a line of its own, so that one that was snoozed comes back. */
function unverifiedItems(facts: Facts): Item[] {
  return [...lackingIn(facts.drift ?? []).values()].map((lacking) => {
    const { what, endsAt, since, isNextLevel, vms } = lacking;
    const daysLeft = endsAt === undefined ? 0 : (endsAt - facts.now) / dayMs;
    const stage = warnDays.filter((days) => daysLeft <= days).length;
    const text = isNextLevel
      ? md`⏳ Once Intel's next level counts, ${vmsOf(lacking)} will fail (${namesIn(lacking)}): ${what}.`
      : endsAt === undefined
        ? md`❔ ${vmsOf(lacking)} unverifiable since ${atTime(since)}: ${what}.`
        : md`⏳ ${what} expires ${atTime(endsAt)} (in ${duration(endsAt - facts.now)}); after that, ${vmsOf(lacking)} can't be verified (${namesIn(lacking)}).`;
    return {
      kind: "unverified",
      key: `unverified:${what}:${endsAt ?? since}:${stage}`,
      text,
      button: attestVm(vms[0]?.id ?? ""),
    };
  });
}

function unknownItems(facts: Facts): Item[] {
  const unknown = (facts.open ?? []).filter(({ state }) => state === "unknown");
  return oldestFirst(unknown).map((request) => ({
    kind: "unknown",
    key: `unknown:${request.id}`,
    isLasting: true,
    text: md`❓ *${request.command}* ${name(request.target.name)}, requested by ${request.requester}: outcome unknown for ${ago(facts, request.changedAt)}. Someone must record it.`,
    button: showRequest(request.id),
  }));
}

function reviewItems(facts: Facts): Item[] {
  return (facts.reviews ?? []).map((review) => ({
    kind: "review",
    key: `review:${review.request}`,
    isLasting: true,
    text: md`🚨 *${review.command}* ${name(review.target)} ran without approval ${ago(facts, review.at)} ago. Another administrator or approver must sign the review.`,
    button: signReview(review.request),
  }));
}

function approvalItems(facts: Facts): Item[] {
  const waiting = (facts.open ?? []).filter(({ state }) => state === "draft");
  return oldestFirst(waiting).flatMap(({ id, command, target, requester, approval }): Item[] => {
    if (!approval) return [];
    const { yes, required, expiresAt } = approval;
    const text = md`✋ *${command}* ${name(target.name)}, requested by ${requester}, has ${yes} of ${counted(required, "approval")}, until ${when(expiresAt, "{time}")}.`;
    const button = showRequest(id, "Show");
    return [{ kind: "approval", key: `approval:${id}`, isLasting: true, text, button }];
  });
}

function oldestFirst(requests: readonly RequestFact[]): RequestFact[] {
  return requests.toSorted((a, b) => a.createdAt - b.createdAt);
}

/** Failures one by one; successes in one line. Past, so nothing of it is snoozed. */
function changeItems(facts: Facts): Item[] {
  const ended = facts.ended ?? [];
  const failed = ended.filter(({ state }) => state === "failed");
  const done = ended.filter(({ state }) => state === "done");
  return [...failed.map(failedItem), ...(done.length > 0 ? [doneItem(done, facts.since)] : [])];
}

function failedItem(request: RequestFact): Item {
  const { id, command, target, requester, changedAt, why } = request;
  return {
    kind: "change",
    key: `change:${id}`,
    isLasting: true,
    text: md`✖️ *${command}* ${name(target.name)} failed at ${atTime(changedAt)}, requested by ${requester}${why ? md`: ${why}` : ""}.`,
    button: showRequest(id),
  };
}

/** Groups by command and person that one line names. */
const maxGroups = 3;

function doneItem(requests: readonly RequestFact[], since: number): Item {
  const groups = [
    ...Map.groupBy(requests, ({ done, requester }) => `${done} ${requester}`).values(),
  ];
  const more = groups.length - maxGroups;
  const all = groups
    .slice(0, maxGroups)
    .map(groupWords)
    .reduce((said, one) => md`${said}; ${one}`);
  return {
    kind: "change",
    key: "changes",
    count: requests.length,
    isLasting: true,
    text: md`✏️ ${all}${more > 0 ? ` and ${more} more` : ""}`,
    button: showChanges(since),
  };
}

/** `Restarted web-1, web-3 · olivia, 07:00`. */
function groupWords(group: readonly RequestFact[]): Markdown {
  const [newest] = group;
  if (!newest) return md``;
  const names = [...new Set(group.map(({ target }) => target.name))];
  const times = group.length === 2 ? ", twice" : `, ${group.length} times`;
  const last = group.length === 1 ? "" : "last ";
  return md`${newest.done} ${listed(names)} · ${newest.requester}${names.length === group.length ? "" : times}, ${last}${atTime(newest.changedAt)}`;
}

/** Younger VMs need no snapshot yet. */
const freshMs = 24 * 3600_000;

/** One line on VMs with only old snapshots, one on those without. Only Gatehouse's own snapshots are known. */
function snapshotItems({ vms, newestSnapshots, now, snapshotOldMs }: Facts): Item[] {
  if (!vms || !newestSnapshots) return [];
  const old: KnownVm[] = [];
  const without: KnownVm[] = [];
  for (const vm of vms) {
    if (!isSettledVmStatus(vm.status) || vm.status === "ERROR") continue;
    const at = newestSnapshots.get(vm.id);
    if (at !== undefined && now - at > snapshotOldMs) old.push(vm);
    if (at === undefined && !(now - Date.parse(vm.createdAt ?? "") < freshMs)) without.push(vm);
  }
  const ageOf = (vm: KnownVm) => now - (newestSnapshots.get(vm.id) ?? now);
  return [
    ...snapshotItem(
      "old",
      old.toSorted((a, b) => ageOf(b) - ageOf(a)),
      (names, oldest) =>
        old.length === 1
          ? md`💾 The newest snapshot of ${names} is ${duration(ageOf(oldest))} old.`
          : md`💾 ${old.length} VMs have only old snapshots, the oldest ${duration(ageOf(oldest))}: ${names}.`,
    ),
    ...snapshotItem("none", without, (names) =>
      without.length === 1
        ? md`💾 Gatehouse knows no snapshot of ${names}.`
        : md`💾 Gatehouse knows no snapshot of ${counted(without.length, "VM")}: ${names}.`,
    ),
  ];
}

function snapshotItem(
  key: string,
  vms: readonly KnownVm[],
  words: (names: Markdown, first: KnownVm) => Markdown,
): Item[] {
  const [first] = vms;
  if (!first) return [];
  const names = vms.map((vm) => `${vm.projectName}/${vm.name}`);
  const text = words(listed(names, 3), first);
  return [{ kind: "snapshot", key: `snapshots:${key}`, text, button: showSnapshots(first) }];
}
