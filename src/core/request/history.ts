import * as z from "zod";
import { defineRecord } from "../../redis/define-record.ts";

/** A step of a request's history. */
export interface HistoryStep {
  /** Redis time (ms). */
  at: number;
  state: string;
  why: string;
  /** The person who did it, if one did. */
  actor?: string | undefined;
}

/** A step's state, its reason, and the person. */
export const stepRecord = defineRecord<
  readonly [state: string, why: string, actor?: string | undefined]
>({
  name: "step of a request",
  schema: z.tuple([z.string(), z.string(), z.string().optional()]),
});

/** One line of the request's hash for a step (`keepStep` adds it). */
export const stepText = ({ state, why, actor }: Omit<HistoryStep, "at">): string =>
  stepRecord.write(actor === undefined ? [state, why] : [state, why, actor]);

/** Reads the history out of a request's hash. */
export function parseSteps({
  key,
  createdAt,
  history,
}: {
  /** The hash's key. */
  key: string;
  createdAt: number;
  history: string;
}): HistoryStep[] {
  return history
    .split("\n")
    .slice(0, -1)
    .flatMap((row) => {
      const at = row.indexOf(" ");
      const step = stepRecord.parse(row.slice(at + 1), key);
      if (!step) return [];
      const [state, why, actor] = step;
      const afterMs = Number(row.slice(0, at));
      return { at: createdAt + afterMs, state, why, ...(actor === undefined ? {} : { actor }) };
    });
}
