import type { StoredRequest } from "../../core/request/stored-request.ts";
import { type ChangeCommand, type Command, isPin, requestable } from "../../registry/define.ts";

/** A change of a VM that may be why its evidence reads otherwise. */
export interface ImageChange {
  request: StoredRequest;
  command: ChangeCommand;
}

/**
 * The requests after which a VM may measure, or be pinned to, something else. `since`: when it last
 * verified (ms).
 */
export function changesSince(
  since: number,
  requests: readonly StoredRequest[],
  commands: readonly Command[],
): readonly ImageChange[] {
  const known = new Map<string, ChangeCommand>(
    requestable(commands).map((command) => [command.name, command]),
  );
  return requests.flatMap((request): ImageChange[] => {
    const command = known.get(request.record.command);
    if (command?.on !== "vm" || !(command.attestAfter || isPin(command))) return [];
    const wasDone = request.state === "done" || request.attempt > 0;
    return wasDone && request.changedAt >= since ? [{ request, command }] : [];
  });
}
