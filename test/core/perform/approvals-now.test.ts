import { describe, expect, it } from "vitest";
import { deleteProject } from "../../../src/commands/project/delete.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { approvableOf, type RequestRecord } from "../../../src/core/request/record.ts";
import type { StoredRequest } from "../../../src/core/request/stored-request.ts";
import { advance } from "../../../src/core/perform/perform.ts";
import { gate } from "../../../src/core/perform/gate.ts";
import { fingerprintOf } from "../../../src/core/permit/fingerprint.ts";
import { requestable } from "../../../src/registry/define.ts";
import { console } from "../../support/commands.ts";
import { policyOf } from "../permit/sample.ts";
import {
  called,
  storeRequest,
  member,
  oneOf,
  policy,
  requestIn,
  restartOf,
  stageOf,
} from "../asking.ts";
import { asChange, type WorkerHere, workerHere } from "./worker-here.ts";

/** Requests a restart that needs approvals, and lets these people approve it. */
async function requestApproved(
  here: WorkerHere,
  voters: readonly string[],
  required = voters.length,
): Promise<string> {
  const approval = {
    required,
    expiresMs: 60_000,
    evidence: [["Current status", "RUNNING"]] as const,
  };
  const request = await storeRequest(
    here.by.store,
    restartOf(await here.vm("web-2"), { approval }),
  );
  for (const id of voters) await vote(here, request, id);
  return request.record.id;
}

async function vote(here: WorkerHere, request: StoredRequest, id: string) {
  return here.by.store.vote(
    (await here.by.store.get(request.record.id)) ?? request,
    member(id),
    "approve",
    request.record.approval?.digest.slice(0, 16) ?? "",
  );
}

async function verdict(here: WorkerHere, id: string) {
  const request = requestIn(await here.by.store.get(id), "authorized");
  return gate(request, asChange(restart, { vms: [request.record.target.id] }), here.by);
}

const anHour = { required: 1, expiresMs: 3_600_000, evidence: [] };

/** Advances the request as if so much time had passed (ms). */
async function advancedAfter(ms: number, { record: { id } }: StoredRequest, here: WorkerHere) {
  const { store } = here.by;
  await advance(id, { ...here.by, store: { ...store, now: async () => (await store.now()) + ms } });
  return store.get(id);
}

const alarms = async (here: WorkerHere) =>
  (await here.audit()).filter(({ what }) => what === "alarm");

describe("approvals, counted again right before the send", () => {
  it("open the gate when those who gave them still may", async () => {
    await using here = await workerHere();
    expect((await verdict(here, await requestApproved(here, ["U0AMIR", "U0ADA"]))).kind).toBe(
      "open",
    );
  });

  it.each([
    ["left the group of approvers", member("U0AMIR", { id: "U0EXAMIR" })],
    ["is a guest", member("U0AMIR", { kind: "guest" })],
    ["is deactivated", member("U0AMIR", { kind: "deactivated" })],
    ["is of another team", member("U0AMIR", { teamId: "T0THEIRS" })],
  ])("don't count of somebody who %s by now", async (_what, now) => {
    await using here = await workerHere();
    const id = await requestApproved(here, ["U0AMIR"]);
    here.people.set("U0AMIR", now);
    expect(await verdict(here, id)).toMatchObject({
      kind: "closed",
      why: "0 of 1 approvals are still valid",
    });
    expect(await alarms(here)).toEqual([]);
  });

  it("count of somebody who joined seconds ago, as far as this worker doesn't know yet", async () => {
    await using here = await workerHere();
    const id = await requestApproved(here, ["U0AMIR"]);
    const { person } = here.by;
    here.by.person = async (who, teamId, how) => {
      const known = await person(who, teamId);
      return how?.fresh || who !== "U0AMIR" ? known : { ...known, id: "U0NOBODY", groups: [] };
    };
    expect((await verdict(here, id)).kind).toBe("open");
  });

  it("are worth as long as a request waits that needs none, though there was more time to give them", async () => {
    await using here = await workerHere();
    const asked = restartOf(await here.vm("web-2"), { approval: anHour });
    const request = await storeRequest(here.by.store, asked);
    await vote(here, request, "U0AMIR");
    const { staleAfterMs } = here.by.policy.timing;
    here.compute.weather({ match: "*", status: 503 });
    expect((await advancedAfter(staleAfterMs - 30_000, request, here))?.state).toBe("authorized");
    expect(await advancedAfter(staleAfterMs, request, here)).toMatchObject({
      state: "expired",
      stage: { why: expect.stringMatching(/^it did not start in time: /) },
    });
    expect(here.compute.writes()).toEqual([]);
  });

  it("are worth as long as the record says for what its requester opens, because no worker starts it late", async () => {
    await using here = await workerHere();
    const [opening] = requestable([console]);
    if (!opening) throw new Error("a console can't be requested");
    here.by.commands = [...here.by.commands, opening];
    const vm = await here.vm("web-2");
    const what = { command: opening, input: { vm: vm.id }, approval: anHour };
    const request = await storeRequest(here.by.store, restartOf(vm, what));
    await vote(here, request, "U0AMIR");
    expect((await advancedAfter(1_800_000, request, here))?.state).toBe("authorized");
    expect((await advancedAfter(3_700_000, request, here))?.state).toBe("expired");
  });

  it("don't count of who asked others to make the request", async () => {
    await using here = await workerHere();
    const origin = { kind: "request", request: "r-1", press: "again", asker: "U0AMIR" } as const;
    const request = await storeRequest(
      here.by.store,
      restartOf(await here.vm("web-2"), { origin }),
    );
    await vote(here, request, "U0AMIR");
    expect(await verdict(here, request.record.id)).toMatchObject({
      kind: "closed",
      why: "0 of 1 approvals are still valid",
    });
  });

  it("wait while Slack can't be asked about an approver", async () => {
    await using here = await workerHere();
    const id = await requestApproved(here, ["U0AMIR"]);
    here.people.delete("U0AMIR");
    expect((await verdict(here, id)).kind).toBe("later");
  });
});

describe("somebody with a hand in Redis", () => {
  it("is refused a request that they set to authorized, with an alarm in the trail and in the log", async () => {
    await using here = await workerHere();
    const request = await storeRequest(here.by.store, restartOf(await here.vm("web-2")));
    await here.redis.hset(here.requestKey(request.record.id), "state", "authorized");
    expect(await verdict(here, request.record.id)).toMatchObject({ kind: "closed" });
    expect(await alarms(here)).toMatchObject([{ request: request.record.id }]);
    expect(here.lines.join("")).toMatch(/"level":"error"/);
  });

  it("has such a request canceled while changes are frozen, as any other", async () => {
    await using here = await workerHere();
    const { record } = await storeRequest(here.by.store, restartOf(await here.vm("web-2")));
    await here.redis.hset(here.requestKey(record.id), "state", "authorized");
    await here.by.store.freeze({ by: "ada", reason: "storage" });
    await advance(record.id, here.by);
    expect(await here.by.store.get(record.id)).toMatchObject({
      state: "cancelled",
      stage: { wasFrozen: true, hint: "Nothing was sent. Request again after the thaw." },
    });
  });

  it("is refused with votes that they invented, because the trail knows of none", async () => {
    await using here = await workerHere();
    const request = await storeRequest(here.by.store, restartOf(await here.vm("web-2")));
    const invented = {
      voterId: "U0AMIR",
      name: "amir",
      vote: "approve",
      at: Date.now(),
      digest: request.record.approval?.digest,
    };
    await here.redis.hset(here.requestKey(request.record.id), {
      state: "authorized",
      "vote:U0AMIR": JSON.stringify(invented),
    });
    expect((await verdict(here, request.record.id)).kind).toBe("closed");
    expect(await alarms(here)).toHaveLength(1);
  });

  it.each<[string, (record: RequestRecord) => RequestRecord]>([
    [
      "the target",
      (record) => ({ ...record, target: { ...record.target, id: "vm-payments-db-1" } }),
    ],
    ["the arguments", (record) => ({ ...record, input: { vms: ["vm-payments-db-1"] } })],
    ["the command", (record) => ({ ...record, command: "vm stop" })],
    ["the reason", (record) => ({ ...record, reason: "something else" })],
    ["the requester", (record) => ({ ...record, requester: { ...record.requester, id: "U0ADA" } })],
    ["the channel", (record) => ({ ...record, channelId: "C0OTHER" })],
    [
      "the evidence",
      (record) => withApproval(record, { evidence: [["Current status", "STOPPED"]] }),
    ],
    ["how many are needed", (record) => withApproval(record, { required: 0 })],
    ["when it expires", (record) => withApproval(record, { expiresAt: Number.MAX_SAFE_INTEGER })],
    ["the digest", (record) => withApproval(record, { digest: "0".repeat(64) })],
    ["that approvals are needed at all", ({ approval: _gone, ...record }) => record],
  ])("who changes %s is refused, with an alarm", async (_what, change) => {
    await using here = await workerHere();
    here.by.policy = {
      ...policy,
      approvals: [{ operations: ["vm.*"], required: 1, expiresMs: 60_000 }],
    };
    const id = await requestApproved(here, ["U0AMIR"]);
    await here.edit(id, change);
    expect((await verdict(here, id)).kind).toBe("closed");
    expect(await alarms(here)).toMatchObject([
      {
        why: expect.stringMatching(
          /^(differs from what was approved|authorized without the approvals)/,
        ),
      },
    ]);
    expect(here.compute.writes()).toEqual([]);
  });
});

function withApproval(
  record: RequestRecord,
  over: Partial<NonNullable<RequestRecord["approval"]>>,
): RequestRecord {
  return {
    ...record,
    approval: { ...record.approval, ...over } as NonNullable<RequestRecord["approval"]>,
  };
}

describe("a project that is deleted", () => {
  it("is not deleted when it gained or lost a VM since it was shown", async () => {
    await using here = await workerHere();
    here.by.policy = policyOf(`access: { operate: ["U0OLIVIA"], approve: ["U0AMIR"] }`);
    const { id } = here.compute.project("ml");
    const target = { kind: "project" as const, id, name: "ml", projectId: id, status: "ACTIVE" };
    const children = await Promise.all(["gpu-1", "train-7"].map((name) => here.vm(name)));
    const request = await storeRequest(here.by.store, {
      ...restartOf(target),
      command: deleteProject,
      input: { project: id },
      approval: oneOf(["U0AMIR"]),
      children,
    });
    await vote(here, request, "U0AMIR");
    const look = async () => {
      const now = requestIn(await here.by.store.get(request.record.id), "authorized");
      return gate(now, asChange(deleteProject, { project: id }), here.by);
    };
    expect((await look()).kind).toBe("open");
    here.compute.edit.addVm({ project: "ml", name: "fresh" });
    expect(await look()).toMatchObject({
      kind: "closed",
      why: "ml changed since the request: fresh added",
    });
    here.compute.edit.removeVm({ vm: "gpu-1" });
    expect(await look()).toMatchObject({
      why: "ml changed since the request: fresh added; gpu-1 removed",
    });
  });
});

describe("the digest of a request", () => {
  it("covers everything in its record but itself", async () => {
    await using here = await workerHere();
    const id = await requestApproved(here, [], 1);
    const record = (await here.by.store.get(id))?.record;
    if (!record?.approval) throw new Error("it is gone");
    const { approval } = record;
    const base = fingerprintOf(approvableOf(record, approval));
    expect(base).toBe(approval.digest);
    const others: RequestRecord[] = [
      { ...record, id: "r-other" },
      { ...record, command: "vm stop" },
      { ...record, input: { vms: ["x"] } },
      { ...record, target: { ...record.target, status: "STOPPED" } },
      { ...record, target: { ...record.target, createdAt: "2020-01-01" } },
      { ...record, target: { ...record.target, specs: { cpu: 99 } } },
      { ...record, children: [record.target] },
      { ...record, requester: { ...record.requester, id: "U0X" } },
      { ...record, requester: { ...record.requester, teamId: "T0X" } },
      { ...record, channelId: "C0X" },
      { ...record, reason: "" },
      { ...record, policyVersion: "v2" },
    ];
    const digests = others.map((other) => fingerprintOf(approvableOf(other, approval)));
    expect(new Set([base, ...digests]).size).toBe(others.length + 1);
    for (const over of [{ required: 2 }, { expiresAt: approval.expiresAt + 1 }, { evidence: [] }]) {
      expect(fingerprintOf(approvableOf(record, { ...approval, ...over }))).not.toBe(base);
    }
  });
});

describe("an undo, which an approver may request", () => {
  it("is one only of what was saved of the same VM: what merely says so in Redis is refused", async () => {
    await using here = await workerHere();
    const { store } = here.by;
    const [web, db] = [await here.vm("web-2"), await here.vm("db-1")];
    const { approval: _, ...unapproved } = restartOf(web);
    const undone = await storeRequest(store, unapproved);
    const safety = { request: "r-safety0000", snapshotId: "snap-1" };
    await store.move(undone, { to: stageOf("sending", called({ safety })), why: "claimed" });
    const asked = async (target: typeof web, undoes: string, snapshot: string) => {
      const { approval: __, ...submission } = restartOf(target, { person: member("U0AMIR") });
      const request = await storeRequest(store, submission);
      const { input } = request.record;
      const origin = { kind: "request", request: undoes, press: "undo", undoes } as const;
      const record = { ...request.record, origin, input: { ...input, snapshot } };
      return gate({ ...request, record }, asChange(restart, { vms: [target.id] }), here.by);
    };
    expect((await asked(web, undone.record.id, "snap-1")).kind).toBe("open");
    for (const [target, undoes, snapshot] of [
      [db, undone.record.id, "snap-1"],
      [web, "r-2222222222", "snap-1"],
      [web, undone.record.id, "snap-2"],
    ] as const)
      expect(await asked(target, undoes, snapshot)).toMatchObject({
        kind: "closed",
        why: expect.stringContaining("amir may no longer restart "),
      });
  });
});
