import type { ServiceRule } from "../../config/policy-file.ts";
import { type Command, type Target, dottedName } from "../../registry/define.ts";
import type { Input } from "../../registry/invocation.ts";
import { scopeOfView } from "./access.ts";
import { matchesAny, matchingTarget, ownerOf, renamed } from "./refusal.ts";

/**
 * Whether a service may propose a command: on this target, or on any target when none is given. A
 * project is also judged under its new name, so that no rename leads out of `targets`, or, where
 * those are left out, out of `view`.
 */
export function mayPropose(
  { propose, view }: ServiceRule,
  command: Command,
  target?: Target,
  input: Input = {},
): boolean {
  const own = propose.filter(({ operations }) => matchesAny(operations, dottedName(command)));
  if (!target) return own.length > 0;
  const scope = scopeOfView(view);
  const isSeen = ({ id, name = "" }: ReturnType<typeof ownerOf>) =>
    scope?.sees({ id, name }) ?? true;
  const afterwards = renamed({ command, targets: [target], input }).map(({ after }) => after);
  return (
    own.some(({ targets }) => !targets || matchingTarget(targets, target)) &&
    afterwards.every((newTarget) =>
      own.some(({ targets }) =>
        targets ? matchingTarget(targets, newTarget) !== undefined : isSeen(ownerOf(newTarget)),
      ),
    )
  );
}
