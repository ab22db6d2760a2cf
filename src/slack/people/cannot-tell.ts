import { UserError } from "../../errors.ts";
import type { WebAnswer } from "../web-answer.ts";
import { groupsHint } from "./user-groups.ts";

/** The person can't be verified right now, so the answer is no. */
export class CannotTell extends UserError {
  constructor(why: string, hint = "Try again in a minute.") {
    super(`Can't verify who you are right now: ${why}. Nothing was done.`, hint);
  }
}

export class Unanswered extends CannotTell {
  readonly isLimited: boolean;

  constructor(answer: WebAnswer, subject: string) {
    const isScope = !answer.ok && answer.kind === "refused" && answer.error === "missing_scope";
    const hint = isScope
      ? "The app lacks a scope in Slack: reinstall it from manifest.yml."
      : groupsHint;
    super(
      whyUnanswered(answer, subject),
      !answer.ok && answer.kind === "refused" ? hint : undefined,
    );
    this.isLimited = !answer.ok && answer.kind === "limited";
  }
}

function whyUnanswered(answer: WebAnswer, subject: string): string {
  if (answer.ok) return `Slack's answer about ${subject} is invalid`;
  if (answer.kind === "limited") return "Slack limits calls";
  if (answer.kind !== "refused") return "Slack isn't answering";
  return `Slack refused information about ${subject} (${answer.error})`;
}
