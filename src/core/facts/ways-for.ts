import type { Policy } from "../../config/policy-file.ts";
import type { ButtonSpec } from "../../messages/buttons.ts";
import { type Command, type Target, dottedName } from "../../registry/define.ts";
import { isProtected } from "../permit/permit.ts";
import { askOnce } from "../permit/refusal.ts";
import type { Fact } from "./fact.ts";

interface WaysReader {
  commands: readonly Command[];
  policy: Pick<Policy, "confirm" | "protect">;
  mayRun(command: Command, targets: readonly Target[]): boolean;
  /** Others read the answer, too. */
  isShared: boolean;
  isFrozen: boolean;
}

/**
 * The buttons of facts that this reader may press, each once, in the facts' order. Those that would
 * be refused now are left out.
 */
export function waysFor(
  facts: readonly Fact[],
  target: Target,
  { commands, policy, mayRun, isShared, isFrozen }: WaysReader,
): readonly ButtonSpec[] {
  const offered = facts
    .flatMap(({ ways = [] }) => ways)
    .flatMap(({ command: dotted, button, isRecord = false }): ButtonSpec[] => {
      const command = commands.find((candidate) => dottedName(candidate) === dotted);
      if (!command || !mayRun(command, command.class === "administer" ? [] : [target])) return [];
      if (isProtected({ command, targets: [target] }, policy)) return [];
      if (command.kind === "change" && isFrozen && !isRecord) return [];
      // A button of a request works only in the requester's view of it, or below its card.
      if (isRecord && isShared) return [];
      return [isRecord ? button : askOnce(button, command, target, policy)];
    });
  const each = new Map(offered.map((button) => [`${button.action} ${button.value}`, button]));
  return [...each.values()];
}
