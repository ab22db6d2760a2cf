import { expect, it } from "vitest";
import {
  type ProposalRecord,
  createProposals,
  dismissalRecord,
  proposalRecord,
  proposalState,
} from "../../../src/features/proposals/proposals.ts";
import { member, vmTarget } from "../../core/asking.ts";
import { expectOnlyWhole, garbage } from "../../support/only-whole.ts";
import { testRedis } from "../../support/with-redis.ts";

const vera = { id: "U0VERA", teamId: "T0OURS", name: "vera" };
const proposal: ProposalRecord = {
  id: "p-1",
  by: { service: "deploy" },
  words: "vm restart db-1",
  reason: "it hangs",
  command: "vm restart",
  input: { vms: ["db-1"] },
  target: vmTarget("db-1"),
  labels: { snapshot: "nightly" },
  risk: ["it interrupts"],
  channelId: "C01OPS",
  expiresAt: 1,
};

it("a proposal is read whole or not at all, whoever proposed it", () => {
  expect(proposalState.check("running", "p-1")).toBe("running");
  expectOnlyWhole(proposalRecord, proposal);
  expectOnlyWhole(proposalRecord, { ...proposal, by: { person: vera } });
  const asker = { asker: vera, allowed: ["U0AMIR"], askedIn: "C01OPS" };
  expectOnlyWhole(proposalRecord, { ...proposal, by: asker });
  expectOnlyWhole(dismissalRecord, { id: "U0AMIR", name: "amir", reason: "not now" });
});

it("a proposal that can't be read is as good as gone: a dismissed one isn't open again", async () => {
  await using here = await testRedis();
  const proposals = createProposals(here.redis, here.key);
  const hash = here.key("proposal", proposal.id);
  await proposals.propose(proposal);
  const open = await proposals.get(proposal.id);
  if (!open) throw new Error("it is gone");
  await proposals.dismiss(open, member("U0AMIR"), "not now");
  const whole = await here.redis.hgetall(hash);
  expect(await proposals.get(proposal.id)).toMatchObject({ state: "dismissed" });
  for (const part of ["record", "state", "dismissal"])
    for (const text of garbage) {
      await here.redis.hset(hash, { ...whole, [part]: text });
      expect(await proposals.get(proposal.id), `${part}: ${text}`).toBeUndefined();
      expect(await proposals.untold(-1)).toEqual([]);
    }
});
