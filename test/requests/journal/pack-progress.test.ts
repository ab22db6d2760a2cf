import { describe, expect, it } from "vitest";
import { commands } from "../../../src/commands/index.ts";
import type { ChangeCommand } from "../../../src/registry/define.ts";
import { packTold } from "../../../src/requests/journal/pack-progress.ts";
import { parseStored } from "../../../src/requests/journal/parse-stored.ts";
import type {
  Progress,
  RequestRecord,
  StoredRequest,
} from "../../../src/requests/journal/record.ts";
import { renderCard } from "../../../src/requests/render/render-card.ts";
import { renderResult } from "../../../src/requests/render/render-result.ts";

const vm = {
  id: "vm-1",
  name: "web-1",
  status: "RUNNING",
  projectId: "p-1",
  ipAddress: "10.0.0.3",
  createdAt: "2026-10-23T13:26:04.920Z",
  specs: { cpu: 4, memory: 16, disk: 100 },
  attestation: { enabled: true, measurement: "ab".repeat(48) },
};
const { ipAddress: _address, attestation: _evidence, ...known } = vm;
const record: RequestRecord = {
  v: 1,
  id: "r-1",
  command: "vm restart",
  input: { vms: ["vm-1"] },
  target: { kind: "vm", projectName: "shop", ...known },
  requester: { id: "U0OLIVIA", teamId: "T0", name: "olivia" },
  channelId: "C01OPS",
  via: "command",
  policyVersion: "v1",
  createdAt: 5,
  runsUntil: 9,
  interaction: "command:1",
};

function ended(over: Partial<RequestRecord>, progress: Progress): StoredRequest {
  return {
    record: { ...record, ...over },
    state: "done",
    final: true,
    attempt: 1,
    owner: undefined,
    revision: 4,
    changedAt: 8000,
    progress,
    votes: [],
    delivered: { said: {} },
  };
}

const read: Progress = {
  before: vm,
  after: { ...vm },
  sentAt: 1000,
  mark: { status: "REBOOTING", at: 2000 },
  lastLook: { at: 7000, status: "RUNNING", print: "" },
  why: "read RUNNING",
};

/** As it is read once it was packed. */
function kept(request: StoredRequest): StoredRequest {
  const packed = packTold(request);
  const fields = { state: "done", final: "1", attempt: "1", revision: "4", changedAt: "8000" };
  const stored = parseStored({ ...fields, createdAt: "5", ...packed });
  if (!packed || !stored) throw new Error("it can't be read");
  return stored;
}

describe("an ended request that Slack has all of", () => {
  const changes = commands.filter((one): one is ChangeCommand => one.kind === "change");
  const bigger = { ...vm, specs: { cpu: 8, memory: 32, disk: 100 } };
  it.each([
    ["vm restart", { vms: ["vm-1"] }, read],
    ["vm resize", { vms: ["vm-1"], cpu: "8", memory: "32" }, { ...read, after: bigger }],
    ["vm resize", { vms: ["vm-1"], cpu: "4", memory: "16" }, { ...read, already: true }],
    ["vm start", { vms: ["vm-1"] }, { ...read, before: { ...vm, status: "STOPPED" } }],
  ])("%s is shown as before, without what was read besides", (name, input, progress) => {
    const command = changes.find((one) => one.name === name);
    if (!command) throw new Error(`no ${name}`);
    const request = ended({ command: name, input }, progress);
    const told = kept(request);
    expect(renderCard(told, command)).toEqual(renderCard(request, command));
    const [said, ...facts] = renderResult(told, command).blocks;
    expect(said).toEqual(renderResult(request, command).blocks[0]);
    expect(JSON.stringify(facts)).not.toMatch(/REBOOTING|undefined/);
    expect(JSON.stringify(told)).not.toMatch(/10\.0\.0\.3|abab|command:1/);
    expect(JSON.stringify(told).length).toBeLessThan(JSON.stringify(request).length / 1.6);
  });

  it("keeps what votes are bound to", () => {
    const approval = { required: 1, expiresAt: 9, digest: "d", why: "", evidence: [] };
    const { interaction: _gone, ...bound } = { ...record, approval };
    expect(kept(ended({ approval }, read)).record).toEqual(bound);
  });

  it.each(["command", "safety"] as const)("keeps how it was made: by %s", (via) => {
    expect(kept(ended({ via }, read)).record.via).toBe(via);
  });

  it("keeps the policy that it ran under", () => {
    expect(kept(ended({}, read)).record.policyVersion).toBe("v1");
  });

  it("keeps what an undo is bound to", () => {
    const progress = { ...read, safety: { request: "r-0", snapshotId: "snap-1" } };
    expect(kept(ended({}, progress)).record.target).toEqual(record.target);
  });

  it("keeps reads of projects whole", () => {
    const project = { id: "p-1", name: "shop", type: "web", status: "ACTIVE", region: "eu-west-1" };
    const progress = { before: project, after: { ...project, name: "shop-2" } };
    expect(kept(ended({}, progress)).progress).toEqual(progress);
  });
});
