import { isTransitional, isSettledVmStatus } from "../compute/compute.ts";
import type { KnownVm } from "../inventory/inventory.ts";
import type { ButtonSpec } from "../messages/message.ts";
import { duration, type Markdown, md, name, when } from "../messages/text.ts";
import { namesIn, vmsOf, warnDays } from "./unverified-watch.ts";
import type { Facts, RequestFact } from "./facts.ts";
import {
  attestVm,
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

/** One line. Only shown lines are drawn: there may be thousands. */
export interface Item {
  kind: Kind;
  /** Identifies the line for snoozing, for as long as digests have it. */
  key: string;
  /** `button`: the one that stands beside it. */
  draw(): { text: Markdown; button: ButtonSpec };
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

const ago = (facts: Facts, at: number) => duration(Math.max(1000, facts.now - at));
const atTime = (at: number) => when(at, "{date_short_pretty} {time}");

function vmItems(facts: Facts): Item[] {
  const error: Item[] = [];
  const stuck: Item[] = [];
  const unread = new Set(facts.unreadProjects);
  for (const vm of facts.vms ?? []) {
    if (vm.status !== "ERROR" && !isTransitional(vm.status)) continue;
    const since = facts.statusSince.get(vm.id);
    const lastRead = unread.has(vm.projectName) ? " when it was last read" : "";
    if (vm.status === "ERROR") {
      const from = since === undefined ? md`` : md`, seen since ${atTime(since)}`;
      error.push({
        kind: "error",
        key: `error:${vm.id}`,
        draw: () => ({
          text: md`🔴 *${vm.name}* in ${vm.projectName} is in ERROR${from}${lastRead}.`,
          button: showVm(vm.id),
        }),
      });
    } else if (since !== undefined && facts.now - since > facts.stuckAfterMs) {
      stuck.push(stuckItem(vm, since, lastRead, facts));
    }
  }
  return [...error, ...stuck];
}

function stuckItem(vm: KnownVm, since: number, lastRead: string, facts: Facts): Item {
  return {
    kind: "stuck",
    key: `stuck:${vm.id}:${since}`,
    draw: () => ({
      text: md`🟡 *${vm.name}* in ${vm.projectName} has been ${vm.status} for ${ago(facts, since)}${lastRead}.`,
      button: showVm(vm.id),
    }),
  };
}

function driftItems(facts: Facts): Item[] {
  return (facts.drift ?? []).flatMap((record): Item[] => {
    const { vmId, vmName, projectName, verdict, since, reason, mark, recoveredAt } = record;
    const button = attestVm(vmId);
    if (verdict === "failed") {
      const text = md`🔴 *${vmName}* in ${projectName}: attestation has failed since ${atTime(since)}: ${reason}.`;
      return [
        { kind: "drift", key: `drift:${vmId}:${mark}:${since}`, draw: () => ({ text, button }) },
      ];
    }
    if (recoveredAt === undefined || recoveredAt <= facts.since) return [];
    const text = md`🟢 *${vmName}* in ${projectName}: attestation had failed; resolved at ${atTime(recoveredAt)}.`;
    return [
      { kind: "drift", key: `drift-over:${vmId}:${recoveredAt}`, draw: () => ({ text, button }) },
    ];
  });
}

const dayMs = 24 * 3600_000;

/** What is missing, and what will end: each stage is a line of its own, so that one that was snoozed comes back. */
function unverifiedItems(facts: Facts): Item[] {
  return (facts.unverified ?? []).map((record) => {
    const { what, endsAt, since, vmId } = record;
    const daysLeft = endsAt === undefined ? 0 : (endsAt - facts.now) / dayMs;
    const stage = warnDays.filter((days) => daysLeft <= days).length;
    const text = record.isNextLevel
      ? md`⏳ Once Intel's next level counts, ${vmsOf(record)} will fail (${namesIn(record)}): ${what}.`
      : endsAt === undefined
        ? md`❔ ${vmsOf(record)} can't be verified since ${atTime(since)}: ${what}.`
        : md`⏳ ${what} ends ${when(endsAt, "{date_short_pretty} {time}")}, in ${duration(Math.max(1000, endsAt - facts.now))}: then ${vmsOf(record)} can't be verified (${namesIn(record)}).`;
    return {
      kind: "unverified",
      key: `unverified:${what}:${endsAt ?? since}:${stage}`,
      draw: () => ({ text, button: attestVm(vmId) }),
    };
  });
}

function unknownItems(facts: Facts): Item[] {
  const unknown = (facts.open ?? []).filter(({ state }) => state === "unknown");
  return oldestFirst(unknown).map((request) => ({
    kind: "unknown",
    key: `unknown:${request.id}`,
    isLasting: true,
    draw: () => ({
      text: md`❓ *${request.command}* ${name(request.target.name)}, requested by ${request.requester}: outcome unknown for ${ago(facts, request.changedAt)}. Someone must record it.`,
      button: showRequest(request.id),
    }),
  }));
}

function reviewItems(facts: Facts): Item[] {
  return (facts.reviews ?? []).map((review) => ({
    kind: "review",
    key: `review:${review.request}`,
    isLasting: true,
    draw: () => ({
      text: md`🚨 *${review.command}* ${name(review.target)} ran without approval ${ago(facts, review.at)} ago. Another administrator or approver signs the review.`,
      button: signReview(review.request),
    }),
  }));
}

function approvalItems(facts: Facts): Item[] {
  const waiting = (facts.open ?? []).filter(({ state, approval }) => state === "draft" && approval);
  return oldestFirst(waiting).map((request) => ({
    kind: "approval",
    key: `approval:${request.id}`,
    isLasting: true,
    draw: () => {
      const { yes = 0, required = 1, expiresAt = 0 } = request.approval ?? {};
      return {
        text: md`✋ *${request.command}* ${name(request.target.name)}, requested by ${request.requester}, has ${yes} of ${required} ${required === 1 ? "approval" : "approvals"}, until ${when(expiresAt, "{time}")}.`,
        button: showRequest(request.id, "Show"),
      };
    },
  }));
}

function oldestFirst(requests: readonly RequestFact[]): RequestFact[] {
  return requests.toSorted((a, b) => a.createdAt - b.createdAt);
}

/** Names in one line; the rest is counted. */
const maxNames = 6;

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
    draw: () => ({
      text: md`✖️ *${command}* ${name(target.name)} failed at ${atTime(changedAt)}, requested by ${requester}${why ? md`: ${why}` : ""}.`,
      button: showRequest(id),
    }),
  };
}

/** Groups by command and person that one line names. */
const maxGroups = 3;

function doneItem(requests: readonly RequestFact[], since: number): Item {
  const groups = [
    ...Map.groupBy(requests, ({ done, requester }) => `${done} ${requester}`).values(),
  ];
  const more = groups.length - maxGroups;
  return {
    kind: "change",
    key: "changes",
    count: requests.length,
    isLasting: true,
    draw: () => {
      const shown = groups.slice(0, maxGroups).map(groupWords);
      const all = shown.reduce((said, one) => md`${said}; ${one}`);
      return {
        text: md`✏️ ${all}${more > 0 ? ` and ${more} more` : ""}`,
        button: showChanges(since),
      };
    },
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

/** `a`, `b` and 3 more. */
export function listed(names: readonly string[], most = maxNames): Markdown {
  const shown = names.slice(0, most).map((one) => name(one));
  const [first = md``, ...rest] = shown;
  const together = rest.reduce((all, one) => md`${all}, ${one}`, first);
  const more = names.length - shown.length;
  return more > 0 ? md`${together} and ${more.toLocaleString("en-US")} more` : together;
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
  const oldest = old.toSorted(
    (a, b) => (newestSnapshots.get(a.id) ?? 0) - (newestSnapshots.get(b.id) ?? 0),
  );
  const items: Item[] = [];
  if (oldest[0]) items.push(itemOf("old", oldest[0], oldSentence(oldest, newestSnapshots, now)));
  if (without[0]) items.push(itemOf("none", without[0], noneSentence(without)));
  return items;
}

function itemOf(key: string, first: KnownVm, text: ReturnType<typeof md>): Item {
  return {
    kind: "snapshot",
    key: `snapshots:${key}`,
    draw: () => ({ text, button: showSnapshots(first) }),
  };
}

function oldSentence(old: readonly KnownVm[], newest: ReadonlyMap<string, number>, now: number) {
  const age = duration(now - (newest.get(old[0]?.id ?? "") ?? now));
  return old.length === 1
    ? md`💾 The newest snapshot of ${listed(namesOf(old))} is ${age} old.`
    : md`💾 ${old.length} VMs have only old snapshots, the oldest ${age}: ${listed(namesOf(old), 3)}.`;
}

function noneSentence(without: readonly KnownVm[]) {
  const count = without.length.toLocaleString("en-US");
  return without.length === 1
    ? md`💾 Gatehouse knows no snapshot of ${listed(namesOf(without))}.`
    : md`💾 Gatehouse knows no snapshot of ${count} VMs: ${listed(namesOf(without), 3)}.`;
}

const namesOf = (vms: readonly KnownVm[]) => vms.map((vm) => `${vm.projectName}/${vm.name}`);
