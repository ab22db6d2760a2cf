import { isReviewed } from "../../core/request/record.ts";
import { emergencyWordsOf } from "../../registry/emergency.ts";
import { openOr } from "../../talk/reply-with-error.ts";
import { defineFeature } from "../define-feature.ts";
import { digestPartsOf } from "../digest-part.ts";
import { emergencyWords } from "./emergency-words.ts";
import { reviewCallback, reviewModal, signReview } from "./sign-review.ts";
import { createReviews, signAction } from "./reviews.ts";
import { openReview, tellEnd } from "./tell-audit.ts";
import { reviewsInDigests } from "./tell-reviews.ts";

/**
 * Lets people listed in `access.breakGlass` skip approvals in an emergency. The audit channel is
 * told, and someone else signs a review.
 */
export const breakGlass = defineFeature({
  name: "break-glass",
  needs: ["announce", "changes", "config", "key", "namesOf", "redis", "store", "tellAudit"],
  start(on) {
    const { store, changes, tellAudit } = on;
    const reviews = createReviews(on.redis, on.key);
    return {
      provides: [
        emergencyWordsOf.providedBy(emergencyWords),
        digestPartsOf.providedBy(reviewsInDigests({ ...on, reviews })),
      ],
      presses: {
        [signAction]: {
          isAnsweredForAll: true,
          handle: async (act, value) => openOr(act, await reviewModal(act, value, reviews)),
        },
      },
      forms: { [reviewCallback]: { beforeAck: (act) => signReview(act, reviews) } },
      on: {
        async requestMade(made) {
          if (!isReviewed(made)) return;
          const request = await store.get(made.id);
          const command = changes.find(({ name }) => name === request?.record.command);
          if (request && command) await openReview(request, command, { ...on, reviews });
        },
        async requestEnded(request, command) {
          // The process that made the request may have died before it opened the review.
          if (isReviewed(request.record)) await openReview(request, command, { ...on, reviews });
          await tellEnd(request, command, tellAudit);
        },
      },
    };
  },
});
