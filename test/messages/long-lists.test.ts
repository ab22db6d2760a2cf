import { restart } from "../../src/commands/vm/restart.ts";
import { renderUnasked } from "../../src/monitor/status-probe.ts";
import { type Member, renderSharedCard } from "../../src/core/cards/render-card.ts";
import { renderRolloutEnd } from "../../src/features/rollouts/render-rollout.ts";
import type { Outcome, StoredRollout } from "../../src/features/rollouts/rollout.ts";
import { type LongList, each, judgeLongLists, nameOf } from "./judge-long-lists.ts";
import { called, stageOf, storedIn, vmTarget } from "../core/asking.ts";

const at = Date.parse("2026-11-20T12:00:00Z");
const why = "the compute service reports a failure of the host, and says what it was at length. ";

function member(n: number): Member {
  const record = {
    id: `r-${n}`,
    command: "vm restart",
    input: { vms: [`id-${n}`] },
    target: vmTarget(nameOf(n)),
    requester: { id: "U0OLIVIA", teamId: "T0OURS", name: "olivia" },
    channelId: "C01OPS",
    origin: { kind: "typed", interaction: "1.1" } as const,
    policyVersion: "v1",
    createdAt: at,
    runsUntil: at + 600_000,
  };
  const request = storedIn(stageOf("rejected", { ...called({ sentAt: at }), why }), {
    record,
    owner: "w-1",
    revision: 3,
    changedAt: at + 4000,
    delivered: { said: { card: "shared s-1" } },
  });
  return { request, command: restart };
}

const failed = (n: number): Outcome => ({ n, is: "failed", request: `r-${n}`, why });
const rollout: StoredRollout = {
  record: {
    id: "roll-7fk3m9q2",
    command: "vm restart",
    input: {},
    words: "vm-*",
    options: { maxUnavailable: 100, canary: false, stopOnFailure: 100 },
    total: 90,
    requester: { id: "U0OLIVIA", teamId: "T0OURS", name: "olivia" },
    channelId: "C01OPS",
    policyVersion: "v1",
    leftOut: each(20, (n) => ({ name: nameOf(200 + n), why })),
    createdAt: 0,
  },
  targets: each(90, (n) => vmTarget(nameOf(n))),
  outcomes: new Map(each(90, (n) => [n - 1, failed(n - 1)])),
  state: "done",
  final: true,
  revision: 1,
  changedAt: 60_000,
  seenAt: 0,
  progress: { next: 90, open: [], ok: 0, already: 0, failed: 90 },
  delivered: { said: {}, isElsewhere: false },
};

const lists: readonly LongList[] = [
  [
    "VMs that changed without a request",
    40,
    renderUnasked(
      each(40, (n) => ({
        vm: {
          id: `id-${n}`,
          name: nameOf(n),
          projectId: "p-1",
          projectName: "payments ".repeat(150),
          status: "ERROR",
        },
        from: "RUNNING",
        key: `k-${n}`,
      })),
      60_000,
    ),
    (left) => `… and ${left} more.`,
  ],
  [
    "requests that share a card",
    60,
    renderSharedCard(each(60, member)),
    (left) => `… ${left} more: choose one below for its details.`,
  ],
  ["the end of a rollout", 90, renderRolloutEnd(rollout, restart), (left) => `${left} more:`],
];

judgeLongLists(lists);
