import { defineFeature } from "../define-feature.ts";
import { digestPartsOf } from "../digest-part.ts";
import { night } from "./night.ts";
import { nightButton } from "./render-night.ts";

/**
 * Tells a night on one page: each alert and each change, who approved it, what was read, and when it
 * ended; and as a file that the audit trail proves.
 */
export const nights = defineFeature({
  name: "night",
  commands: [night],
  start: () => ({
    provides: [
      digestPartsOf.providedBy({
        name: "the night",
        read: async ({ since }) => ({ all: [], buttons: [nightButton("The night", since)] }),
      }),
    ],
  }),
});
