import { expect, it } from "vitest";
import { restart } from "../../../src/commands/vm/restart.ts";
import { stop } from "../../../src/commands/vm/stop.ts";
import { attestationConcerns } from "../../../src/features/attest/attestation-concerns.ts";
import { plainWords } from "../../../src/messages/markdown.ts";
import type { DriftRecord } from "../../../src/monitor/drift-records.ts";
import { vmTarget } from "../../core/asking.ts";

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
]);
const part = attestationConcerns({ readRecords: async () => known });
const targets = ["web-1", "web-2", "web-3", "web-4"].map((name) => vmTarget(name));

it("a VM that fails attestation or can't be verified halts a change that boots it, and no other", async () => {
  const concerns = await part.read({ command: restart, targets, input: {} });
  expect(concerns.map(({ target, why, effect }) => [target.name, effect, plainWords(why)])).toEqual(
    [
      [
        "web-1",
        "halts",
        expect.stringMatching(/^has failed attestation since .*: the measurement matches no pin$/),
      ],
      ["web-2", "halts", "can't be verified: AMD's revocation list has expired"],
    ],
  );
  const stopped = await part.read({ command: stop, targets, input: {} });
  expect(stopped.map(({ effect }) => effect)).toEqual(["note", "note"]);
});
