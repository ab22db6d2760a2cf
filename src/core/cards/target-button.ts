import type { ButtonSpec } from "../../messages/buttons.ts";
import {
  type Command,
  type Target,
  calledName,
  dottedName,
  isChange,
  runButton,
} from "../../registry/define.ts";
import { type Input, withTarget } from "../../registry/invocation.ts";
import { type Confirming, askOnce } from "../permit/refusal.ts";

/**
 * A button that runs a command on a target. A command that interrupts asks first, even where typed
 * words don't.
 */
export function targetButton(
  command: Command,
  input: Input,
  target: Target,
  policy: Confirming = { confirm: [] },
): ButtonSpec {
  const label = isChange(command) ? command.say.verb : "Show";
  const about = calledName(target);
  const button = runButton(label, dottedName(command), withTarget(command, input, target), about);
  return askOnce(button, command, target, policy);
}
