import type { RequestRecord } from "../core/request/record.ts";

/** A request that was just made, as features are told of it. */
export type MadeRequest = Pick<
  RequestRecord,
  "id" | "origin" | "breakGlass" | "command" | "target" | "createdAt"
>;
