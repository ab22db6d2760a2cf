import { severalHandlerOf } from "../../talk/service-keys.ts";
import { defineFeature } from "../define-feature.ts";
import { handoverPartsOf } from "../digest-part.ts";
import { rolloutSteps } from "./advance-rollout.ts";
import { confirmRollout } from "./confirm-rollout.ts";
import { rolloutCallback } from "./form-of-many.ts";
import { rolloutPresses } from "./press-rollout.ts";
import { proposeRollout } from "./propose-rollout.ts";
import { rollingFlags } from "./rolling.ts";
import { rolloutFacts } from "./rollout-facts.ts";
import { rolloutSource } from "./rollout-source.ts";
import { createRollouts } from "./rollouts.ts";
import { rolloutsInHandovers } from "./tell-handover.ts";
import { rolloutEvents } from "./rollout-events.ts";

/** Runs one command on several VMs: some at a time, each as a request, until too many fail. */
export const rollouts = defineFeature({
  name: "rollouts",
  flags: rollingFlags,
  needs: ["redis", "key", "changes", "store", "editMs", "at"],
  start({ redis, key, changes, store, editMs, at }) {
    const all = createRollouts(redis, key);
    return {
      provides: [
        severalHandlerOf.providedBy(proposeRollout(all)),
        handoverPartsOf.providedBy(rolloutsInHandovers({ rollouts: all, changes })),
      ],
      presses: rolloutPresses(all),
      forms: { [rolloutCallback]: confirmRollout(all) },
      messages: [rolloutSource({ rollouts: all, commands: changes, editMs })],
      facts: rolloutFacts(all),
      events: rolloutEvents({ rollouts: all, store, changes }),
      work: { inWorkers: [rolloutSteps({ rollouts: all, at })] },
    };
  },
});
