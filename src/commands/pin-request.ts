import * as z from "zod";

/** What `pins propose` and `pins drop` have in common: someone else approves, and no worker sends anything. */
export const pinRequest = {
  kind: "change",
  on: "vm",
  class: "change",
  protect: false,
  minApprovals: 1,
  attestAfter: false,
  effect: { wanted: () => false, again: "never" },
  perform: () => Promise.reject(new Error("a pin is kept, not sent")),
} as const;

/** The words after the VM. */
export const reason = z
  .string()
  .max(300, { error: "must be at most 300 characters" })
  .optional()
  .meta({ isRest: true, description: "why, for those who approve it" });
