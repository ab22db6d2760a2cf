import type { DigestFacts } from "../../../src/features/digests/items.ts";
import { digest } from "../../../src/features/digests/digest.ts";
import { digestsOf } from "../../../src/features/digests/create-digests.ts";
import type { OpenRequest } from "../../../src/features/digests/open-requests.ts";
import { renderDigest, renderHandover } from "../../../src/features/digests/render-digest.ts";
import type { Event } from "../../../src/core/events/event.ts";
import { md, name } from "../../../src/messages/markdown.ts";
import type { Input } from "../../../src/registry/invocation.ts";
import { type About, type Example, at } from "../example.ts";
import { answerOf, readingOf } from "../reading.ts";
import { freezeBy, knownVm, vmTarget } from "../requests.ts";

const factsAbout = (vm: string, over: Partial<DigestFacts> = {}): DigestFacts => ({
  now: at,
  since: at - 3_600_000,
  vms: [knownVm(vm, "ERROR"), knownVm("web-1")],
  statusSince: new Map(),
  refreshedAt: at,
  stale: false,
  unreadProjects: [],
  open: [],
  events: [],
  unread: [],
  stuckAfterMs: 1,
  ...over,
});

const requestOn = ({ who, vm }: About, over: Partial<OpenRequest> = {}): OpenRequest => ({
  id: "r-7fk3m9q2xw",
  command: "vm restart",
  target: vmTarget(vm),
  requester: who,
  state: "accepted",
  stateWords: "running",
  createdAt: at - 3_000_000,
  changedAt: at - 2_900_000,
  approval: undefined,
  ...over,
});

const changes = { words: ["change", "changes"], weight: "routine" } as const;
const failures = { words: ["failed change", "failed changes"], weight: "decision" } as const;

const eventsOf = ({ who, vm, why }: About): readonly Event[] => [
  {
    id: "r-done111111",
    kind: changes,
    at: at - 3_000_000,
    endedAt: at - 2_966_000,
    text: md`✅ *${who}* restarted ${name(vm)} in 34 s: “${why}”`,
    deed: { begin: md`✅ *${who}* restarted `, target: vm },
    records: ["1-0"],
  },
  {
    id: "r-failed2222",
    kind: failures,
    at: at - 2_900_000,
    endedAt: at - 2_800_000,
    text: md`❌ *${who}* requested a stop of ${name(vm)}, which failed: the compute service reports ERROR`,
    records: ["2-0"],
  },
];

/** A night with something of everything. */
const busy = (about: About): DigestFacts =>
  factsAbout(about.vm, {
    vms: [
      knownVm(about.vm, "ERROR"),
      knownVm("web-1"),
      knownVm("web-2", "STOPPED"),
      knownVm("cache-1", "REBOOTING"),
    ],
    frozen: freezeBy(about, at - 600_000),
    statusSince: new Map([[knownVm(about.vm).id, at - 1_800_000]]),
    open: [
      requestOn(about, { id: "r-unknown111", state: "unknown", stateWords: "outcome unknown" }),
    ],
    events: eventsOf(about),
    unread: ["alerts"],
    unreadProjects: ["staging"],
  });

const rule = {
  channel: "C01OPS",
  at: "09:00",
  timezone: "Europe/Paris",
  days: ["mon", "tue", "wed", "thu", "fri"],
};

const answers =
  (input: Input, rules: readonly object[] = [rule]) =>
  (about: About) => {
    const stored = {
      schedules: { of: async () => rules, set: async () => undefined, clear: async () => true },
      build: async () => renderDigest(factsAbout(about.vm), { title: "Digest" }),
      handover: async () => renderHandover(factsAbout(about.vm), []),
    };
    const services = new Map([digestsOf.providedBy(stored as never)]);
    return answerOf(digest, input, readingOf(about, [digest], { services }));
  };

export const examples: readonly Example[] = [
  {
    name: "a digest",
    reader: "channel",
    make: ({ vm }) =>
      renderDigest(factsAbout(vm), { title: "Digest, Fri 20 Nov, 09:00", snoozed: new Set() }),
    push: "Digest, Fri 20 Nov, 09:00: 1 VM in ERROR",
  },
  {
    name: "a digest of a busy night",
    reader: "channel",
    make: (about) =>
      renderDigest(busy(about), { title: "Digest, Fri 20 Nov, 09:00", snoozed: new Set() }),
    push: "Digest, Fri 20 Nov, 09:00: 1 freeze of all changes, 1 VM in ERROR, 1 unknown outcome, 1 change, 1 failed change",
  },
  {
    name: "a digest without news",
    reader: "channel",
    make: () =>
      renderDigest(factsAbout("", { vms: [knownVm("web-1")] }), {
        title: "Digest, Fri 20 Nov, 09:00",
      }),
    push: "Digest, Fri 20 Nov, 09:00: nothing new",
  },
  {
    name: "a handover",
    make: (about) =>
      renderHandover(
        { ...busy(about), open: [requestOn(about, { state: "accepted" })] },
        [
          {
            name: "rollouts",
            list: { title: "Rollouts", none: "none", lines: [] },
          },
        ],
        { left: { author: about.who, text: about.why } },
      ),
  },
  { name: "/gatehouse digest", make: answers({}) },
  { name: "/gatehouse digest, without one", make: answers({}, []) },
  { name: "/gatehouse digest on", make: answers({ action: "on", when: "09:00 Europe/Paris" }) },
  { name: "/gatehouse digest off", make: answers({ action: "off" }) },
  { name: "/gatehouse digest now", make: answers({ action: "now" }) },
  { name: "/gatehouse digest handover", make: answers({ action: "handover" }) },
];
