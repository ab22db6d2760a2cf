import { vmEvents } from "../../core/events/event.ts";

/** When pinned VMs began to fail attestation, and when that ended. */
export const attestationEvents = vmEvents(
  "attestation",
  "attestation",
  { words: ["change of attestation", "changes of attestation"], weight: "decision" },
  ({ move }) => move === "failed",
);
