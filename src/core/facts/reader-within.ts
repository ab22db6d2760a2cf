import type { Scope } from "../../fleet/inventory/inventory.ts";
import { seesUnder } from "../permit/access.ts";
import { ownerOf } from "../permit/refusal.ts";
import type { SeenTarget } from "../permit/sight.ts";
import type { FactReader } from "./facts-about.ts";

/** The reader of facts that a scope limits, as for a message that a channel reads. */
export function readerWithin(
  scope: Scope | undefined,
  on: {
    store: FactReader["journal"];
    /** Resolves a project's present name; undefined when it isn't known. */
    projectName(id: string): Promise<string | undefined>;
  },
): FactReader {
  async function sees(target: SeenTarget): Promise<boolean> {
    const { id, name } = ownerOf(target);
    return scope === undefined || seesUnder(scope, id, [name, await on.projectName(id)]);
  }
  return {
    journal: {
      freezeState: () => on.store.freezeState(),
      recentIds: (filter, most) => on.store.recentIds(filter, most),
      async getMany(ids) {
        const requests = await on.store.getMany(ids);
        const isSeen = await Promise.all(requests.map(({ record }) => sees(record.target)));
        return requests.filter((_, index) => isSeen[index]);
      },
    },
    sees: async (targets) => (await Promise.all(targets.map(sees))).every(Boolean),
    seesAll: async () => scope === undefined,
  };
}
