import { md, name } from "../../messages/markdown.ts";
import type { Concern } from "../../talk/contributions.ts";
import type { ConcernPart } from "../concern-part.ts";
import type { Rollouts } from "./rollouts.ts";

/** Says which targets a rollout that hasn't ended changes, too. */
export const rolloutConcerns = (rollouts: Pick<Rollouts, "openIds" | "get">): ConcernPart => ({
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
        .map((target): Concern => {
          const what = md`a rollout by ${record.requester.name} (${name(record.id)})`;
          return { target, why: md`is in ${what}, which is ${state}`, effect: "note" };
        });
    });
  },
});
