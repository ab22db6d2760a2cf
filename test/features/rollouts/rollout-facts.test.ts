import { expect, it } from "vitest";
import { restart } from "../../../src/commands/vm/restart.ts";
import { rolloutFacts } from "../../../src/features/rollouts/rollout-facts.ts";
import type { StoredRollout } from "../../../src/features/rollouts/rollout.ts";
import { plainWords } from "../../../src/messages/markdown.ts";
import { vmTarget } from "../../core/asking.ts";
import { factQuery } from "../../core/facts/fact-query.ts";

const rollout = {
  record: { id: "roll-x", requester: { id: "U0AMIR", name: "amir" } },
  targets: [vmTarget("web-1"), vmTarget("web-2")],
  state: "paused",
} as unknown as StoredRollout;

it("a rollout that hasn't ended is named for the VMs that it changes, too", async () => {
  const source = rolloutFacts({ openIds: async () => ["roll-x"], get: async () => rollout });
  const targets = [vmTarget("web-2"), vmTarget("web-3")];
  const facts = await source.read(factQuery({ targets }));
  expect(facts.map(({ text, blocks }) => [plainWords(text), blocks?.(restart)])).toEqual([
    ["web-2 is in a rollout by amir (roll-x), which is paused.", "note"],
  ]);
});
