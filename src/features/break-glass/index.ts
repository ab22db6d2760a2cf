import { isReviewed } from "../../core/request/record.ts";
import { openOr } from "../../talk/reply-with-error.ts";
import { defineFeature } from "../define-feature.ts";
import { emergencyWords } from "./emergency-words.ts";
import { reviewCallback, reviewModal, signReview } from "./sign-review.ts";
import { openReview, tellEnd } from "./tell-audit.ts";

/**
 * Lets people listed in `access.breakGlass` skip approvals in an emergency. The audit channel is
 * told, and someone else signs a review.
 */
export const breakGlass = defineFeature({
  name: "break-glass",
  needs: ["store", "changes", "tellAudit"],
  start({ store, changes, tellAudit }) {
    return {
      emergency: emergencyWords,
      presses: {
        "review:sign": async (act, value) => openOr(act, await reviewModal(act, value)),
      },
      forms: { [reviewCallback]: { check: signReview } },
      async afterRequest(made) {
        if (!isReviewed(made)) return;
        const request = await store.get(made.id);
        const command = changes.find(({ name }) => name === request?.record.command);
        if (request && command) await openReview(request, command, { store, tellAudit });
      },
      afterResult: (request, command) => tellEnd(request, command, tellAudit),
    };
  },
});
