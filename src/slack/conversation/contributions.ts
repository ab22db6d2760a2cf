import type { KnownVm } from "../../inventory/inventory.ts";
import type { ButtonSpec, Markdown } from "../../messages/message.ts";
import type { RequestRecord } from "../../requests/journal/record.ts";

/** What the Home tab shows between what waits for a person and what runs; nothing without lines. */
export interface HomeSection {
  title: string;
  /** The newest first. */
  lines: readonly { text: Markdown; button?: ButtonSpec | undefined }[];
}

export type HomePart = (seen: {
  /** The VMs that the person sees. */
  vms: readonly KnownVm[];
  /** Whether they see everything. */
  seesAll: boolean;
}) => Promise<HomeSection>;

/** A request, and what made it. */
export type MadeRequest = Pick<RequestRecord, "id" | "origin" | "breakGlass">;
