import { expect, it } from "vitest";
import { restart } from "../../../src/commands/vm/restart.ts";
import type { Appraiser } from "../../../src/attestation/appraiser.ts";
import type { Command } from "../../../src/registry/define.ts";
import { attest } from "../../support/commands.ts";
import { silentLog } from "../../../src/log/log.ts";
import { createAttestationNote } from "../../../src/core/deliver/after-result.ts";
import type { State } from "../../../src/core/request/stage.ts";
import type { StoredRequest } from "../../../src/core/request/stored-request.ts";
import { policyOf } from "../permit/sample.ts";
import { stageOf, vmTarget } from "../asking.ts";

const policy = policyOf(`
access: { operate: ["S0PLATFORM"] }
teams: { pay: { projects: ["payments"], operate: ["S0PAYONCALL", "U0PAY"] } }
`);

/**
 * Returns the note after the restart of a VM in this project whose evidence fails, and how often
 * the evidence was read. The note is requested `times` times.
 */
async function noteOn(
  projectName: string,
  {
    times = 1,
    isReadable = true,
    commands = [attest] as readonly Command[],
    toldBefore = [] as readonly State[],
  } = {},
) {
  let reads = 0;
  const vm = { status: "RUNNING", attestation: { enabled: true } };
  const appraisal = { verdict: "failed", measurement: { matchesPin: false }, reasons: ["changed"] };
  const note = createAttestationNote({
    appraiser: {
      async attest() {
        reads += 1;
        if (!isReadable) throw new Error("the service is away");
        return { vm, appraisal };
      },
      isAskedOf: async () => true,
    } as unknown as Appraiser,
    config: { policy },
    commands,
    keep: async (_id, kept) => kept,
    log: silentLog(),
  });
  const request = {
    record: {
      id: "r-1",
      target: vmTarget("db-1", { projectId: `prj-${projectName}`, projectName }),
    },
    stage: { ...stageOf("done"), after: vm },
    state: "done",
    delivered: { marks: {} },
  } as unknown as StoredRequest;
  for (const state of toldBefore)
    expect(await note({ ...request, state, stage: stageOf(state) } as StoredRequest, restart)).toBe(
      undefined,
    );
  const asked = Array.from({ length: times }, () => note(request, restart));
  const [first] = new Set(
    (await Promise.all(asked)).map((found) => `${found?.but}. ${String(found?.line.value)}`),
  );
  return { text: first, reads };
}

it("evidence that doesn't hold after a change calls those who operate what its team has, and elsewhere those of access", async () => {
  const { text: ours } = await noteOn("payments");
  expect(ours).toContain("no longer matches its pin");
  expect(ours).toContain(
    "🔴 Changed. <!subteam^S0PAYONCALL> <@U0PAY>, check whether this was meant.",
  );
  expect(ours).not.toContain("S0PLATFORM");
  expect((await noteOn("shop")).text).toContain("<!subteam^S0PLATFORM>");
});

it("it is read once, however often the result that waits for its turn is rendered", async () => {
  const { text, reads } = await noteOn("payments", { times: 3 });
  expect(text).toContain("no longer matches its pin");
  expect(reads).toBe(1);
});

it("it is read once the change took effect late, after it was told as not applied", async () => {
  const { text, reads } = await noteOn("payments", { toldBefore: ["not-applied"] });
  expect(text).toContain("no longer matches its pin");
  expect(reads).toBe(1);
});

it("evidence that can't be read is said, and what checks it where a command does", async () => {
  const unread = { isReadable: false };
  expect((await noteOn("payments", unread)).text).toMatch(
    /could not be read\. `\/vm attest` checks it\.$/,
  );
  expect((await noteOn("payments", { ...unread, commands: [] })).text).toMatch(
    /could not be read\.$/,
  );
});
