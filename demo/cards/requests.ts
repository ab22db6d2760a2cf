import type { Target } from "../../src/registry/define.ts";
import type { KnownVm } from "../../src/fleet/inventory/inventory.ts";
import type { Freeze } from "../../src/core/request/freeze.ts";
import type { RequestRecord } from "../../src/core/request/record.ts";
import {
  type Call,
  type Reads,
  type Stage,
  type StageIn,
  type State,
  callOf,
  isFinal,
  noReads,
  noSetbacks,
} from "../../src/core/request/stage.ts";
import type { RequestIn, StoredRequest } from "../../src/core/request/stored-request.ts";
import { type About, at } from "./example.ts";

export function vmTarget(name: string, over: Partial<Target> = {}): Target {
  return {
    kind: "vm",
    id: `vm-payments-${name.slice(0, 40)}`,
    name,
    projectId: "prj-payments",
    projectName: "payments",
    status: "RUNNING",
    ...over,
  };
}

export const knownVm = (name: string, status = "RUNNING", projectName = "shop"): KnownVm => ({
  id: `vm-${name}`,
  name,
  projectId: `p-${projectName}`,
  projectName,
  status,
  createdAt: "2020-01-01T00:00:00Z",
});

/** The facts of a stage whose call was claimed. */
export function called(call: Partial<Call> = {}, reads: Reads = noReads) {
  return { call: { sentAt: 0, ...call }, reads, setbacks: noSetbacks };
}

/** A stage for each state, with the fewest facts that it can have. */
const least: { readonly [In in State]: StageIn<In> } = {
  draft: { state: "draft" },
  authorized: { state: "authorized", setbacks: noSetbacks },
  sending: { state: "sending", ...called() },
  accepted: { state: "accepted", ...called() },
  unclear: { state: "unclear", ...called() },
  unknown: { state: "unknown", ...called(), since: 0, reminders: 0, remindersOver: 0 },
  done: { state: "done", ...called() },
  failed: { state: "failed", ...called(), why: "the compute service reports ERROR" },
  rejected: { state: "rejected", ...called(), why: "the compute service refused" },
  "not-applied": { state: "not-applied", ...called() },
  denied: { state: "denied" },
  expired: { state: "expired", why: "nobody approved it in time", setbacks: noSetbacks },
  cancelled: { state: "cancelled", why: "cancelled", setbacks: noSetbacks },
};

/** Returns a stage of this state, with these facts. */
export function stageOf<In extends State>(
  state: In,
  facts: Partial<StageIn<In>> = {},
): StageIn<In> {
  return { ...least[state], ...facts };
}

/** The part of a stored request that isn't its stage. */
export type Rest = Omit<StoredRequest, "state" | "stage">;

/** Returns a request in this stage, as the journal would return it. */
export function storedIn<At extends Stage>(
  stage: At,
  rest: Pick<Rest, "record" | "changedAt"> & Partial<Rest>,
): RequestIn<At["state"]> {
  return {
    final: isFinal(stage.state),
    attempt: callOf(stage) ? 1 : 0,
    owner: undefined,
    revision: 1,
    votes: [],
    delivered: { marks: {} },
    ...rest,
    state: stage.state,
    stage,
    // The compiler doesn't see that state and stage belong together.
  } as unknown as RequestIn<At["state"]>;
}

/** The record of a stop, unless it says otherwise. */
export function recordOf(
  { who, vm, why }: About,
  over: Partial<RequestRecord> = {},
): RequestRecord {
  return {
    id: "r-7fk3m9q2xw",
    command: "vm stop",
    input: { vms: [vmTarget(vm).id] },
    target: vmTarget(vm),
    requester: { id: "U0OLIVIA", teamId: "T0OURS", name: who },
    channelId: "C01OPS",
    origin: { kind: "form", interaction: "1.1" },
    reason: why,
    policyVersion: "v1",
    approval: {
      required: 1,
      expiresAt: at + 900_000,
      digest: "0".repeat(64),
      why: "a rule",
      evidence: [],
    },
    createdAt: at,
    runsUntil: at + 900_000,
    ...over,
  };
}

export const stored = (
  about: About,
  over: Partial<Rest> = {},
  stage: Stage = stageOf("draft"),
): StoredRequest =>
  storedIn(stage, { record: recordOf(about), attempt: 1, changedAt: at + 34_000, ...over });

export const seenAs = (vm: string, status: string) =>
  ({ id: vmTarget(vm).id, name: vm, projectId: "prj-payments", status }) as const;

export const sent = (about: About) => called({ sentAt: at, before: seenAs(about.vm, "RUNNING") });

export const done = (about: About, over: Partial<RequestRecord> = {}): StoredRequest =>
  stored(
    about,
    { record: recordOf(about, over) },
    stageOf("done", { ...sent(about), after: seenAs(about.vm, "RUNNING") }),
  );

export const unknown = (about: About): StoredRequest =>
  stored(about, {}, stageOf("unknown", { ...called({ sentAt: at }), why: "no clear answer came" }));

export const denied = (about: About): StoredRequest => {
  const { why: reason } = about;
  const no = { voterId: "U0AMIR", name: "amir", vote: "deny", at, digest: "0", reason } as const;
  return stored(about, { votes: [no] }, stageOf("denied"));
};

/** Of a team: requested in another channel, two groups must approve, one has. */
export const elsewhere = (about: About, stage?: Stage): StoredRequest => {
  const votes = [
    { from: ["S0LEADS"], required: 1 },
    { from: ["S0SECURITY"], required: 1 },
  ];
  const needs = [{ called: ["@pay-leads"] }, { called: ["@security"] }];
  const times = { expiresAt: at, remindsAt: at };
  const approval = { required: 2, digest: "0".repeat(64), why: "a rule", evidence: [], ...times };
  const asked = { teamChannel: "C0PAYOPS", approval: { ...approval, votes, needs } };
  const yes = { voterId: "U0AMIR", name: "amir", vote: "approve", at, digest: "0" } as const;
  return stored(about, { record: recordOf(about, asked), votes: [{ ...yes, meets: [0] }] }, stage);
};

/** A freeze by this person, since this time. */
export const freezeBy = ({ who, why }: About, since: number = at): Freeze => ({
  by: who,
  reason: why,
  at: since,
  changedAt: since,
});

export const each = <T>(many: number, make: (n: number) => T): T[] =>
  Array.from({ length: many }, (_, n) => make(n + 1));
