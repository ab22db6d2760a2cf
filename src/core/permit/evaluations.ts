import { channel } from "node:diagnostics_channel";

/** One evaluation of a rule. */
export interface Evaluation {
  rule: "access" | "protect" | "approvals";
  command: string;
  /** The number of targets: 0 until their names are looked up. */
  targets: number;
}

/** Publishes each evaluation of a rule. A test counts them. */
const evaluations = channel("gatehouse:policy");

export function publishEvaluation(
  rule: Evaluation["rule"],
  { command, targets }: { command: { name: string }; targets: readonly unknown[] },
): void {
  if (!evaluations.hasSubscribers) return;
  const evaluation: Evaluation = { rule, command: command.name, targets: targets.length };
  evaluations.publish(evaluation);
}
