import { pressToReview } from "../../../src/features/rollouts/propose-rollout.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { formOfMany } from "../../../src/features/rollouts/form-of-many.ts";
import { renderRollout, renderRolloutEnd } from "../../../src/features/rollouts/render-rollout.ts";
import type { Outcome, StoredRollout } from "../../../src/features/rollouts/rollout.ts";
import { md, name } from "../../../src/messages/markdown.ts";
import { type About, type Example, at } from "../example.ts";
import { longName, longReason } from "../long-lists.ts";
import { each, vmTarget } from "../requests.ts";

export const rolled = (about: About, over: Partial<StoredRollout> = {}): StoredRollout => ({
  record: {
    id: "roll-7fk3m9q2",
    command: "vm restart",
    input: {},
    words: "web-*",
    options: { maxUnavailable: 1, canary: false, stopOnFailure: 1 },
    total: 12,
    requester: { id: "U0OLIVIA", teamId: "T0OURS", name: about.who },
    channelId: "C01OPS",
    policyVersion: "v1",
    leftOut: [],
    createdAt: at,
  },
  targets: [vmTarget(about.vm)],
  outcomes: new Map(),
  state: "running",
  final: false,
  revision: 1,
  changedAt: at + 60_000,
  seenAt: at,
  progress: {
    next: 6,
    open: [{ n: 0, request: "r-7fk3m9q2xw" }],
    ok: 4,
    already: 0,
    failed: 1,
    startedAt: at,
  },
  delivered: { marks: {}, isElsewhere: false },
  ...over,
});

const planned = (about: About) => rolled(about, { state: "planned" as StoredRollout["state"] });

const form = (about: About) => {
  const { record } = planned(about);
  const targets = [vmTarget(about.vm), vmTarget("web-1"), vmTarget("web-2", { status: "ERROR" })];
  const leftOut = [{ name: "vault-1", why: "it is protected in gatehouse.yml" }];
  return formOfMany(restart, { ...record, total: 3, leftOut }, targets, {
    frozen: undefined,
    isRehearsed: true,
    known: [
      {
        kind: "status",
        about: vmTarget("web-2", { status: "ERROR" }),
        severity: "alarm",
        sign: "🔴",
        text: md`${name("web-2")} is in ERROR, and the compute service refused a restart before.`,
        blocks: () => "halts",
      },
      {
        kind: "unread",
        severity: "warning",
        sign: "❔",
        text: md`Alerts can't be read now, so there may be more to know.`,
        unread: "alerts",
      },
    ],
  });
};

const failed = (n: number): Outcome => ({ n, is: "failed", request: `r-${n}`, why: longReason });

/** A rollout of 90 VMs that all failed. */
const long = (about: About) => {
  const { record } = rolled(about);
  return rolled(about, {
    record: {
      ...record,
      total: 90,
      leftOut: each(20, (n) => ({ name: longName(200 + n), why: longReason })),
    },
    targets: each(90, (n) => vmTarget(longName(n))),
    outcomes: new Map(each(90, (n) => [n - 1, failed(n - 1)])),
    state: "done",
    final: true,
    progress: { next: 90, open: [], ok: 0, already: 0, failed: 90 },
  });
};

export const examples: readonly Example[] = [
  { name: "the form of a rollout", make: form },
  {
    name: "a rollout",
    reader: "channel",
    make: (about) => renderRollout(rolled(about), restart),
    push: "Restart 12 VMs: 5 of 12 · 1 failed · 1 in progress",
  },
  {
    name: "the end of a rollout",
    reader: "requester",
    make: (about) => {
      const progress = { ...rolled(about).progress, open: [], why: `${about.vm}: it broke` };
      return renderRolloutEnd(rolled(about, { state: "failed", final: true, progress }), restart);
    },
    push: "Restart of 12 VMs was stopped after 1 min: db-1: it broke. 7 not touched. 5 of 12 · 1 failed",
  },
  {
    name: "the end of a rollout of 90 VMs",
    make: (about) => renderRolloutEnd(long(about), restart),
    long: { many: 90, rest: (left) => `${left} more:` },
  },
  {
    name: "a rollout that was mentioned",
    make: (about) => pressToReview(rolled(about).record, restart),
  },
  {
    name: "a rollout that is done",
    make: (about) => {
      const progress = { ...rolled(about).progress, next: 12, open: [], ok: 12, failed: 0 };
      return renderRollout(rolled(about, { state: "done", final: true, progress }), restart);
    },
  },
];
