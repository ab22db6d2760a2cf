import type { RequestRecord } from "../core/request/record.ts";

/** A request, and what made it. */
export type MadeRequest = Pick<RequestRecord, "id" | "origin" | "breakGlass">;
