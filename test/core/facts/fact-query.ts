import type { FactQuery } from "../../../src/core/facts/fact.ts";
import { commands } from "../../../src/features/index.ts";

/** A question about targets on which nobody requested anything. */
export const factQuery = (over: Partial<FactQuery>): FactQuery => ({
  targets: [],
  change: undefined,
  isFresh: false,
  tellsRecent: false,
  requests: { open: async () => [], on: async () => [] },
  commands,
  now: Date.now(),
  ...over,
});
