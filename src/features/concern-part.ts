import type { Concern, Considered } from "../talk/contributions.ts";

/**
 * What a feature knows of the targets of a change before it is requested: forms and rehearsals show
 * it. It only reads, and only about these targets, which the person sees.
 */
export interface ConcernPart {
  /** What isn't known when this can't be read: `open consoles`. */
  name: string;
  read(change: Considered): Promise<readonly Concern[]>;
}
