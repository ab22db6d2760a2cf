import { isTransitional } from "../compute/settle.ts";
import type { KnownVm } from "../inventory/inventory.ts";
import type { ButtonSpec } from "../messages/message.ts";
import { duration, type Markdown, md, name, when } from "../messages/text.ts";
import { changeItems } from "./changes.ts";
import type { Facts, RequestFact } from "./facts.ts";
import { attestVm, showRequest, showVm, signReview } from "./line-buttons.ts";
import { snapshotItems } from "./snapshots.ts";

/** What a digest can tell of, the most urgent first, and how one and several of a kind are called. */
export const kinds = {
  error: ["VM in ERROR", "VMs in ERROR"],
  stuck: ["VM stuck", "VMs stuck"],
  drift: ["failed attestation", "failed attestations"],
  unknown: ["unknown outcome", "unknown outcomes"],
  review: ["review to sign", "reviews to sign"],
  approval: ["waiting for approval", "waiting for approval"],
  change: ["change", "changes"],
  snapshot: ["about snapshots", "about snapshots"],
} as const;

export type Kind = keyof typeof kinds;

/** One line. Only those that are shown are drawn: there may be thousands. */
export interface Item {
  kind: Kind;
  /** The same for as long as it is about the same: what is snoozed by. */
  key: string;
  draw(): { text: Markdown; button: ButtonSpec };
  /** Stays until somebody has done something about it. */
  isLasting?: boolean;
}

export function itemsOf(facts: Facts): Item[] {
  return [
    ...vmItems(facts),
    ...driftItems(facts),
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
        key: `error:${vm.id}:${since ?? ""}`,
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
      const text = md`🔴 *${vmName}* in ${projectName}: attestation fails since ${atTime(since)}: ${reason}.`;
      return [
        { kind: "drift", key: `drift:${vmId}:${mark}:${since}`, draw: () => ({ text, button }) },
      ];
    }
    if (recoveredAt === undefined || recoveredAt <= facts.since) return [];
    const text = md`🟢 *${vmName}* in ${projectName}: attestation had failed, and is verified again since ${atTime(recoveredAt)}.`;
    return [
      { kind: "drift", key: `drift-over:${vmId}:${recoveredAt}`, draw: () => ({ text, button }) },
    ];
  });
}

function unknownItems(facts: Facts): Item[] {
  const unknown = (facts.open ?? []).filter(({ state }) => state === "unknown");
  return oldestFirst(unknown).map((request) => ({
    kind: "unknown",
    key: `unknown:${request.id}`,
    draw: () => ({
      text: md`❓ *${request.command}* ${name(request.target.name)}, asked by ${request.requester}: the outcome is unknown for ${ago(facts, request.changedAt)}. A person has to say it.`,
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
      text: md`🚨 *${review.command}* ${name(review.target)} ran without approval ${ago(facts, review.at)} ago. Another administrator signs the review.`,
      button: signReview(review.request),
    }),
  }));
}

function approvalItems(facts: Facts): Item[] {
  const waiting = (facts.open ?? []).filter(({ state, approval }) => state === "draft" && approval);
  return oldestFirst(waiting).map((request) => ({
    kind: "approval",
    key: `approval:${request.id}`,
    draw: () => {
      const { yes = 0, required = 1, expiresAt = 0 } = request.approval ?? {};
      return {
        text: md`✋ *${request.command}* ${name(request.target.name)}, asked by ${request.requester}, has ${yes} of ${required} ${required === 1 ? "approval" : "approvals"}, until ${when(expiresAt, "{time}")}.`,
        button: showRequest(request.id, "Show"),
      };
    },
  }));
}

function oldestFirst(requests: readonly RequestFact[]): RequestFact[] {
  return requests.toSorted((a, b) => a.createdAt - b.createdAt);
}
