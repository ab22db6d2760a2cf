import type { KnownVm } from "../fleet/inventory/inventory.ts";
import type { ButtonSpec, Markdown } from "../messages/message.ts";

/** What a feature shows on the Home tab between what waits for a person and what runs; nothing without lines. */
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
