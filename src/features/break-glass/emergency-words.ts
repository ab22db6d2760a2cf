import { md, name } from "../../messages/markdown.ts";
import type { EmergencyWords } from "../../registry/emergency.ts";

const flag = name('--break-glass "why"');

export const emergencyWords: EmergencyWords = {
  warning: md`🚨 *This skips approval.* It runs at once. The audit channel is told who did it, why, and how it ended, and someone else must sign a review.`,
  reasonHint: "Shown in the audit channel and to who signs the review.",
  help: md`🚨 In an emergency you can skip approval: add ${flag} to a command that interrupts or destroys. A form asks for the name; the audit channel is told, and someone else signs a review.`,
  instead: md`🚨 In an emergency you can: add ${flag} to the slash command. It runs at once without approval, the audit channel is told, and someone else signs a review.`,
  onCard: (who) => md`🚨 In an emergency, ${who} can skip this: add ${flag} to the slash command.`,
};
