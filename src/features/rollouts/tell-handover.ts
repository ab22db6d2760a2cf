import { listed, md, name } from "../../messages/markdown.ts";
import { type ChangeCommand, nounOf } from "../../registry/define.ts";
import type { HandoverPart } from "../digest-part.ts";
import type { StoredRollout } from "./rollout.ts";
import type { Rollouts } from "./rollouts.ts";
import { unbegunIn } from "./rollout-events.ts";

/** Rollouts under way, by the targets that have no request yet: those with one are listed as such. */
export const rolloutsInHandovers = (on: {
  rollouts: Pick<Rollouts, "openIds" | "get">;
  changes: readonly ChangeCommand[];
}): HandoverPart => ({
  name: "Rollouts",
  async read({ seesVm }) {
    const all = await Promise.all((await on.rollouts.openIds()).map((id) => on.rollouts.get(id)));
    const lines = all.map(async (rollout) => {
      if (!rollout || rollout.final) return undefined;
      const left = unbegunIn(rollout);
      const isSeen = await Promise.all(left.map(({ id }) => seesVm(id)));
      const names = left.filter((_, index) => isSeen[index]).map((target) => target.name);
      return names.length > 0 ? lineOf(rollout, names, on.changes) : undefined;
    });
    const seenLines = (await Promise.all(lines)).filter((line) => line !== undefined);
    return { title: "Rollouts under way", lines: seenLines };
  },
});

function lineOf(
  { record, state }: StoredRollout,
  names: readonly string[],
  changes: readonly ChangeCommand[],
) {
  const command = changes.find((candidate) => candidate.name === record.command);
  const noun = command ? nounOf(command) : record.command;
  return md`${record.requester.name}'s ${noun} (${name(record.id)}), ${state}, hasn't begun on ${listed(names, 3)}`;
}
