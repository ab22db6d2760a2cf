import { expect, it } from "vitest";
import { restart } from "../../../src/commands/vm/restart.ts";
import { renderRollout, renderRolloutEnd } from "../../../src/features/rollouts/render-rollout.ts";
import type { Outcome, StoredRollout } from "../../../src/features/rollouts/rollout.ts";
import { shownText } from "../../commands/shown-text.ts";
import { vmTarget } from "../../core/asking.ts";

const ends = ["ok", "already", "failed", "unknown", "cancelled"] as const;
const outcomeOf = (is: Outcome["is"], n: number): Outcome => ({ n, is, request: `r-${n}` });

const stopped: StoredRollout = {
  record: {
    id: "roll-7fk3m9q2",
    command: "vm restart",
    input: {},
    words: "web-*",
    options: { maxUnavailable: 1, canary: false, stopOnFailure: 9 },
    total: 6,
    requester: { id: "U0OLIVIA", teamId: "T0OURS", name: "olivia" },
    channelId: "C01OPS",
    policyVersion: "v1",
    leftOut: [],
    createdAt: 0,
  },
  targets: [...ends, "none"].map((is) => vmTarget(is)),
  outcomes: new Map(ends.map((is, n) => [n, outcomeOf(is, n)])),
  state: "stopped",
  final: true,
  revision: 1,
  changedAt: 60_000,
  seenAt: 0,
  progress: { next: 5, open: [], ok: 2, already: 1, failed: 2, unknown: 1 },
  delivered: { marks: {}, isElsewhere: false },
};

it("the end of a rollout has the signs of single results", () => {
  const shown = shownText(renderRolloutEnd(stopped, restart)).split("\n");
  expect(shown[0]).toMatch(/^❌ <@U0OLIVIA> Restart of 6 VMs was stopped/);
  expect(shown.slice(-6).map((row) => row.split(" | ").slice(0, 2).join(" "))).toEqual([
    "failed ❌ Failed",
    "unknown ❓ Unknown",
    "cancelled ❌ Canceled",
    "none – Not started",
    "ok ✅ Restarted",
    "already ⚪ Nothing to do",
  ]);
});

it("names the VMs at work of a rollout", () => {
  const open = [{ n: 0, request: "r-0" }];
  const progress = { ...stopped.progress, open };
  const running = { ...stopped, state: "running", final: false, progress } as const;
  expect(shownText(renderRollout(running, restart))).toContain("In progress: ok.");
});
