import type { ButtonSpec } from "../../messages/message.ts";

const signAction = "review:sign";

export const signReviewButton = (request: string): ButtonSpec => ({
  label: "Sign review",
  action: signAction,
  value: JSON.stringify({ request }),
});

/** Stands beside the button, and goes with it. */
export const asksForReview = "Another administrator or approver must sign the review.";

/** Whether a message has the button: who signs is edited in there. */
export const asksToSign = ({ blocks }: { blocks: readonly object[] }): boolean =>
  JSON.stringify(blocks).includes(`"action_id":"${signAction}"`);
