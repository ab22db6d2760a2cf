import { expect, it } from "vitest";
import { restart } from "../../../src/commands/vm/restart.ts";
import { stop } from "../../../src/commands/vm/stop.ts";
import { attestationFacts } from "../../../src/features/attest/attestation-facts.ts";
import { plainWords } from "../../../src/messages/markdown.ts";
import type { DriftRecord } from "../../../src/monitor/drift-records.ts";
import { vmTarget } from "../../core/asking.ts";
import { factQuery } from "../../core/facts/fact-query.ts";

const recordOf = (name: string, over: Partial<DriftRecord>): [string, DriftRecord] => {
  const vm = {
    id: `vm-payments-${name}`,
    name,
    projectId: "prj-payments",
    projectName: "payments",
  };
  return [vm.id, { vm, mark: "", reason: "", since: 0, lacks: [], ...over }];
};

const known = new Map([
  recordOf("web-1", { mark: "m", reason: "the measurement matches no pin" }),
  recordOf("web-2", { lacks: [{ what: "AMD's revocation list has expired", since: 0 }] }),
  recordOf("web-3", {}),
  recordOf("web-4", {
    lacks: [
      { what: "AMD's revocation list expires", since: 0, endsAt: 1 },
      { what: "Intel's next level counts", since: 0, isNextLevel: true },
    ],
  }),
  recordOf("web-5", { verifiedAt: 1 }),
]);
const source = attestationFacts({
  records: { readRecords: async () => known },
  appraiser: {
    attest: () => Promise.reject(new Error("nobody asked for fresh evidence")),
    lastVerified: async () => undefined,
    pinsOf: async () => ({ values: [], from: "gatehouse.yml" }),
  },
});
const targets = ["web-1", "web-2", "web-3", "web-4", "web-5"].map((name) => vmTarget(name));

it("a VM that fails attestation or can't be verified now halts a change that boots it, and no other", async () => {
  const facts = await source.read(factQuery({ targets }));
  expect(
    facts.map(({ text, blocks }) => [plainWords(text), blocks?.(restart), blocks?.(stop)]),
  ).toEqual([
    [
      expect.stringMatching(
        /^web-1 has failed attestation since .*: the measurement matches no pin\.$/,
      ),
      "halts",
      "note",
    ],
    [
      expect.stringMatching(
        /^web-2 has been unverifiable since .*: AMD's revocation list has expired\.$/,
      ),
      "halts",
      "note",
    ],
    [expect.stringMatching(/^The attestation of web-5 was verified /), undefined, undefined],
  ]);
});
