import type { KnownVm } from "../fleet/inventory/inventory.ts";
import type { ButtonSpec, Markdown } from "../messages/message.ts";

/**
 * A section that a feature adds to the Home tab, between what waits for a person and what runs. A
 * section without lines isn't shown.
 */
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
