import type { RequestRecord } from "../../requests/journal/record.ts";

/** A request, and what made it. */
export type MadeRequest = Pick<RequestRecord, "id" | "origin" | "breakGlass">;
