import type { Fact, FactSource } from "../../core/facts/fact.ts";
import { md, name } from "../../messages/markdown.ts";
import { calledName } from "../../registry/define.ts";
import type { Rollouts } from "./rollouts.ts";

/** Says which targets a rollout that hasn't ended changes, too. */
export const rolloutFacts = (rollouts: Pick<Rollouts, "openIds" | "get">): FactSource => ({
  name: "other rollouts",
  async read({ targets }) {
    const ids = await rollouts.openIds();
    const open = await Promise.all(ids.map((id) => rollouts.get(id)));
    return open.flatMap((rollout) => {
      if (!rollout) return [];
      const { record, state } = rollout;
      const changed = new Set(rollout.targets.map(({ id }) => id));
      return targets
        .filter(({ id }) => changed.has(id))
        .map((target): Fact => ({
          kind: "rollout",
          about: target,
          severity: "info",
          sign: "🚚",
          text: md`${name(calledName(target))} is in a rollout by ${record.requester.name} (${name(record.id)}), which is ${state}.`,
          blocks: () => "note",
        }));
    });
  },
});
