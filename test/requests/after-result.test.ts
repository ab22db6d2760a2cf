import { expect, it } from "vitest";
import { restart } from "../../src/commands/vm/restart.ts";
import type { Appraiser } from "../../src/attestation/appraiser.ts";
import { silentLog } from "../../src/log/log.ts";
import { createAttestationNote } from "../../src/requests/after-result.ts";
import type { StoredRequest } from "../../src/requests/journal/record.ts";
import { policyOf } from "../policy/sample.ts";
import { vmTarget } from "./asking.ts";

const policy = policyOf(`
access: { operate: ["S0PLATFORM"] }
teams: { pay: { projects: ["payments"], operate: ["S0PAYONCALL", "U0PAY"] } }
`);

/** Evidence that doesn't hold after the restart of a VM in this project. */
async function noteOn(projectName: string): Promise<string> {
  const vm = { status: "RUNNING", attestation: { enabled: true } };
  const appraisal = { verdict: "failed", measurement: { matchesPin: false }, reasons: ["changed"] };
  const note = createAttestationNote({
    appraiser: { attest: async () => ({ vm, appraisal }) } as unknown as Appraiser,
    policy,
    log: silentLog(),
  });
  const request = {
    record: { target: vmTarget("db-1", { projectId: `prj-${projectName}`, projectName }) },
    progress: { after: vm },
    state: "done",
  } as unknown as StoredRequest;
  return String((await note(request, restart))?.value);
}

it("evidence that doesn't hold after a change calls those who operate what its team has, and elsewhere those of access", async () => {
  const ours = await noteOn("payments");
  expect(ours).toContain("no longer matches its pin");
  expect(ours).toContain("<!subteam^S0PAYONCALL> <@U0PAY>");
  expect(ours).not.toContain("S0PLATFORM");
  expect(await noteOn("shop")).toContain("<!subteam^S0PLATFORM>");
});
