import { offersAtRefusalOf } from "../../talk/service-keys.ts";
import { defineFeature } from "../define-feature.ts";
import { askButton, askCallback, checkAsk, openAsk, submitAsk } from "./ask.ts";

/**
 * Lets a person who is refused for lack of the right ask those who have it. What they ask for is a
 * proposal, so without a feature that keeps proposals nothing is offered.
 */
export const ask = defineFeature({
  name: "ask",
  start() {
    return {
      provides: [offersAtRefusalOf.providedBy(askButton)],
      presses: { ask: openAsk },
      forms: { [askCallback]: { beforeAck: checkAsk, afterAck: submitAsk } },
    };
  },
});
