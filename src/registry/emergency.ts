import { UserError } from "../errors.ts";
import type { Markdown } from "../messages/message.ts";

/** What is said of a change that skips approvals. Where nobody says it, `--break-glass` is refused. */
export interface EmergencyWords {
  /** First in its form. */
  warning: Markdown;
  /** Under the reason in its form. */
  reasonHint: string;
  /** In help, to those whom `access.breakGlass` lists. */
  help: Markdown;
  /** To the same, about a command that they may not run, or not without approval. */
  instead: Markdown;
  /** On the card of a request that waits for approval. Names no one: a name would notify. */
  onCard: Markdown;
}

/** Where approvals can't be skipped, whomever gatehouse.yml lists. */
export const noEmergency = (): UserError =>
  new UserError(
    "--break-glass isn't part of this Gatehouse. Nothing was done.",
    "Run the command without it: it waits for approval where gatehouse.yml requires one.",
  );
