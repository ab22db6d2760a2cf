import { type ButtonSpec } from "../../messages/buttons.ts";
import { type ChangeCommand, dottedName, runButton } from "../../registry/define.ts";
import { withTarget } from "../../registry/invocation.ts";
import { beforeOf } from "../request/stage.ts";
import type { StoredRequest } from "../request/stored-request.ts";

/**
 * The button that runs the command again with what the VM had before this request. Undefined where
 * the command has no way back, or that isn't known.
 */
export function wayBack(
  { record: { target }, stage }: StoredRequest,
  command: ChangeCommand,
): ButtonSpec | undefined {
  const before = beforeOf(stage);
  if (command.on !== "vm" || !command.back || !before || !("projectId" in before)) return undefined;
  const input = command.back.input(before);
  const named = input && withTarget(command, input, target);
  return named && runButton(command.back.label, dottedName(command), named);
}
