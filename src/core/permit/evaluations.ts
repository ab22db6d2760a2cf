import { channel } from "node:diagnostics_channel";

/** One evaluation of a rule. */
export interface Evaluation {
  rule: "access" | "protect" | "approvals";
  command: string;
  /** On how many targets: none until their names are looked up. */
  targets: number;
}

/** Tells each evaluation of a rule to whoever subscribes; tests count them. */
const evaluations = channel("gatehouse:policy");

export function tellEvaluation(
  rule: Evaluation["rule"],
  { command, targets }: { command: { name: string }; targets: readonly unknown[] },
): void {
  if (!evaluations.hasSubscribers) return;
  const evaluation: Evaluation = { rule, command: command.name, targets: targets.length };
  evaluations.publish(evaluation);
}
