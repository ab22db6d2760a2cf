import { describe, expect, it } from "vitest";
import { update } from "../../../src/commands/project/update.ts";
import type { Target } from "../../../src/registry/define.ts";
import { gate } from "../../../src/core/perform/gate.ts";
import { policyOf } from "../permit/sample.ts";
import { storeRequest, policy, restartOf } from "../asking.ts";
import { asChange, type WorkerHere, workerHere } from "./worker-here.ts";

/**
 * Stores a rename that got into the journal without an approval, and returns the gate's answer
 * under these rules.
 */
async function gateRename(here: WorkerHere, rules: string, meanwhile = () => undefined as unknown) {
  const { id, name } = here.compute.project("payments");
  const target: Target = { kind: "project", id, name, projectId: id, status: "ACTIVE" };
  here.by.policy = { ...policy, ...rulesOf(rules) };
  const { approval: _none, ...plain } = restartOf(target);
  const input = { project: id, name: "pay" };
  const request = await storeRequest(here.by.store, { ...plain, command: update, input });
  meanwhile();
  return gate(request, asChange(update, input), here.by);
}

function rulesOf(rules: string) {
  const { approvals, protect, attestation, operations } = policyOf(
    `{ access: { approve: ["S02LEADS"] }, ${rules} }`,
  );
  return { approvals, protect, attestation, operations };
}

const needs = (targets: string) =>
  `approvals: [{ operations: ["project.update"], targets: ["${targets}"], required: 1 }]`;

describe("the gate before a rename", () => {
  it.each([
    ["the new name is protected", `protect: ["pay"]`, /^payments \(because of its new name pay\)/],
    ["a VM inside is protected", `protect: ["db-*"]`, /^payments \(because of db-1\) is protected/],
    ["a VM inside is protected by the new name", `protect: ["pay/db-1"]`, /because of pay\/db-1/],
    [
      "a VM inside would lose its pin",
      `attestation: { pins: [{ targets: ["payments/db-1"], measurements: ["${"aa".repeat(48)}"] }] }`,
      /db-1 in it is pinned/,
    ],
    ["the old name needs an approval", needs("payments"), /lacks the approvals/],
    ["the new name needs one", needs("pay"), /lacks the approvals/],
    [
      "the old name needs one for something else",
      `approvals: [{ operations: ["project.delete"], targets: ["payments"], required: 2 }]`,
      /lacks the approvals/,
    ],
    ["a VM inside needs one", needs("db-1"), /now needs more approvals: .*because of db-1/],
  ])("closes when %s, whatever the journal says", async (_what, rules, why) => {
    await using here = await workerHere();
    expect(await gateRename(here, rules)).toMatchObject({
      kind: "closed",
      why: expect.stringMatching(why),
    });
    expect(here.compute.writes()).toEqual([]);
  });

  it("opens when no rule names any of them", async () => {
    await using here = await workerHere();
    expect(await gateRename(here, `${needs("other")}, protect: ["vault-*"]`)).toMatchObject({
      kind: "open",
    });
  });
});
