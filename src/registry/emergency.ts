import { UserError } from "../errors.ts";
import type { Markdown } from "../messages/markdown.ts";
import { defineService } from "./service-key.ts";

/**
 * Texts about changes that skip approvals. If no feature provides them, `--break-glass` is refused.
 */
export interface EmergencyWords {
  /** The first text in its form. */
  warning: Markdown;
  /** The hint below the reason in its form. */
  reasonHint: string;
  /** A line in help for the people whom `access.breakGlass` lists. */
  help: Markdown;
  /** A hint for the same people about a command that they may not run, or not without approval. */
  instead: Markdown;
  /**
   * A line on the card of a request that waits for approval. `who` names those who can skip that,
   * without mentioning them.
   */
  onCard(who: string): Markdown;
}

export const emergencyWordsOf = defineService<EmergencyWords>("the words of emergencies");

/** The refusal where approvals can't be skipped, whoever is listed in gatehouse.yml. */
export const noEmergency = (): UserError =>
  new UserError(
    "--break-glass isn't part of this Gatehouse. Nothing was done.",
    "Run the command without it: it waits for approval where gatehouse.yml requires one.",
  );
