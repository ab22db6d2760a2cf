import type { Sight } from "../core/permit/sight.ts";
import type { KnownVm } from "../fleet/inventory/inventory.ts";
import type { ButtonSpec } from "../messages/buttons.ts";
import type { Markdown } from "../messages/markdown.ts";
import { defineParts } from "../registry/service-key.ts";

/**
 * A section that a feature adds to the Home tab, between what waits for a person and what runs. A
 * section without lines isn't shown.
 */
export interface HomeSection {
  title: string;
  /** The newest first. */
  lines: readonly HomeLine[];
}

export interface HomeLine {
  text: Markdown;
  button?: ButtonSpec | undefined;
  /** The VM that it is about. The tab adds the changes that help it, for people who may make them. */
  vm?: KnownVm | undefined;
}

export type HomePart = (
  seen: Sight & {
    /** When the tab is rendered (ms). */
    now: number;
  },
) => Promise<HomeSection>;

export const homePartsOf = defineParts<HomePart>("sections of the Home tab");
