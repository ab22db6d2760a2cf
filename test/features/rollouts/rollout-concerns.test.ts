import { expect, it } from "vitest";
import { restart } from "../../../src/commands/vm/restart.ts";
import { rolloutConcerns } from "../../../src/features/rollouts/rollout-concerns.ts";
import type { StoredRollout } from "../../../src/features/rollouts/rollout.ts";
import { plainWords } from "../../../src/messages/markdown.ts";
import { vmTarget } from "../../core/asking.ts";

const rollout = {
  record: { id: "roll-x", requester: { id: "U0AMIR", name: "amir" } },
  targets: [vmTarget("web-1"), vmTarget("web-2")],
  state: "paused",
} as unknown as StoredRollout;

it("a rollout that hasn't ended is named for the VMs that it changes, too", async () => {
  const part = rolloutConcerns({ openIds: async () => ["roll-x"], get: async () => rollout });
  const targets = [vmTarget("web-2"), vmTarget("web-3")];
  const concerns = await part.read({ command: restart, targets, input: {} });
  expect(concerns.map(({ target, why, effect }) => [target.name, effect, plainWords(why)])).toEqual(
    [["web-2", "note", "is in a rollout by amir (roll-x), which is paused"]],
  );
});
