import type { Performing } from "../requests/performing.ts";
import type { RollTargets } from "./roll.ts";
import type { RollStore } from "./store.ts";

/** Everything that advancing rolls needs; joined in `start-worker.ts`. */
export interface RollingWork {
  rolls: RollStore;
  performing: Performing;
  /** Targets of rolls that this process looks after: they never change. */
  known: Map<string, RollTargets>;
  /** Named points, for those who test by ending the process there. */
  at(point: "roll-claimed" | "roll-submitted", roll: string): Promise<void>;
}
