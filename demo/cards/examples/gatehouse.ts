import { keptNews, volatileNews } from "../../../src/operate/watch-storage.ts";
import { renderHead, renderVerdict } from "../../../src/audit/render.ts";
import type { TrailVerdict } from "../../../src/audit/verify.ts";
import { policyKeptNews, policyNews } from "../../../src/core/cards/policy-news.ts";
import { thawNews } from "../../../src/core/deliver/freeze-news.ts";
import { renderUnasked } from "../../../src/monitor/status-probe.ts";
import { groupNews } from "../../../src/slack/people/group-news.ts";
import { type Example } from "../example.ts";
import { longName } from "../long-lists.ts";
import { someOf } from "../reading.ts";
import { each, knownVm, stored } from "../requests.ts";

const verdict = (over: Partial<TrailVerdict>) =>
  renderVerdict(
    someOf<TrailVerdict>({
      standing: "intact",
      recorded: [],
      sealed: 1234,
      erased: 0,
      redacted: 0,
      archived: undefined,
      unsealed: { count: 0, oldestMs: 0 },
      anchors: 3,
      signed: { seq: 1200, keys: ["SHA256:abcd"] },
      head: { seq: 1234, hash: "ab".repeat(32) },
      problem: undefined,
      ...over,
    } as Partial<TrailVerdict>),
  );

export const examples: readonly Example[] = [
  {
    name: "a thaw",
    reader: "channels that wait",
    make: ({ who, why }) => thawNews(who, { by: "Gatehouse", reason: why }),
    push: "Changes are allowed again: olivia ended the freeze by Gatehouse (bad migration). Requests that it canceled have Request again on their messages.",
  },
  {
    name: "a change that nobody requested",
    reader: "alerts channel",
    make: ({ vm }) =>
      renderUnasked([{ vm: knownVm(vm, "ERROR"), from: "RUNNING", key: "k" }], 60_000, true),
    push: "🔴 db-1 in shop went to ERROR, was RUNNING.",
  },
  {
    name: "40 changes that nobody requested",
    reader: "alerts channel",
    make: () =>
      renderUnasked(
        each(40, (n) => ({
          vm: { ...knownVm(longName(n), "ERROR"), projectName: "payments ".repeat(150) },
          from: "RUNNING",
          key: `k-${n}`,
        })),
        60_000,
      ),
    push: "40 VMs changed without a request to Gatehouse:",
    long: { many: 40, rest: (left) => `… and ${left} more.` },
  },
  {
    name: "the head of the audit trail",
    reader: "audit channel",
    make: () => renderHead({ seq: 1234, hash: "ab".repeat(32) }),
    push: "Head of the audit trail after 1,234 records",
  },
  { name: "/gatehouse audit verify", make: () => verdict({}) },
  {
    name: "/gatehouse audit verify, of a broken trail",
    make: () =>
      verdict({
        standing: "broken",
        problem: {
          seq: 812,
          id: "1764165600000-0",
          says: "its seal doesn't match",
          kind: "changed",
        },
      } as never),
  },
  {
    name: "news of the policy",
    reader: "audit channel",
    make: (about) =>
      policyNews({
        before: "12 (1f2e3d4c5b6a)",
        after: "13 (aa00bb11cc22)",
        isSameRules: false,
        changes: undefined,
        canceled: [{ request: stored(about), link: undefined }],
        canceledCount: 1,
        nameOf: () => undefined,
      }),
    push: "📜 The policy changed: version 13 (aa00bb11cc22) replaces 12 (1f2e3d4c5b6a).",
  },
  {
    name: "the first policy",
    reader: "audit channel",
    make: () =>
      policyNews({
        after: "1 (aa00bb11cc22)",
        isSameRules: false,
        changes: [],
        canceled: [],
        canceledCount: 0,
        nameOf: () => undefined,
      }),
    push: "📜 The policy has version 1 (aa00bb11cc22). Redis had none: Gatehouse started for the first time, or Redis was emptied.",
  },
  {
    name: "a policy that can't be used",
    reader: "audit channel",
    make: () =>
      policyKeptNews("12 (1f2e3d4c5b6a)", ["gatehouse.yml line 3: access.oprate isn't known"]),
    push: "⚠️ gatehouse.yml changed, and can't be used. The policy before it stays (version 12 (1f2e3d4c5b6a)).",
  },
  {
    name: "news of a user group",
    reader: "audit channel",
    make: ({ who }) =>
      groupNews({ groupId: "S01ONCALL", came: ["U0OLIVIA"], left: [] }, (id) =>
        id === "S01ONCALL" ? "@oncall" : who,
      ),
    push: "👥 The user group @\u2060oncall (S01ONCALL), which the policy names, changed: olivia joined. It counts at once.",
  },
  {
    name: "a Redis that may forget",
    reader: "audit channel",
    make: () => volatileNews("Set `appendonly yes`: Redis keeps nothing over a restart."),
    push: "⚠️ Redis may forget what was sent, so no change is sent. Requests wait until it is fixed.",
  },
  {
    name: "a Redis that keeps everything again",
    reader: "audit channel",
    make: keptNews,
    push: "✅ Redis keeps everything again. Changes are sent again.",
  },
];
