import { changeWords } from "../../core/cards/since-request.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import type { Markdown } from "../../messages/markdown.ts";
import type { ChangeCommand } from "../../registry/define.ts";

/** The last change of a VM that was made with Gatehouse. */
export interface LastChange {
  /** ID of the request. */
  request: string;
  /** `olivia restarted it` */
  deed: Markdown;
  /** When it ended (ms by Redis). */
  at: number;
}

/** An older change explains no alert (ms). */
const recentMs = 24 * 3600_000;

/**
 * The newest of these requests that changed its VM, or whose outcome is unknown. `requests` are
 * those that the message's readers may see, of one VM. Pure.
 */
export function lastChangeIn(
  requests: readonly StoredRequest[],
  { commands, now }: { commands: readonly ChangeCommand[]; now: number },
): LastChange | undefined {
  const changes = requests.flatMap((request) => {
    const { record, changedAt: at } = request;
    const command = commands.find(({ name }) => name === record.command);
    if (!command || now - at > recentMs) return [];
    const deed = changeWords(request, command, record.target.id);
    return deed ? [{ request: record.id, deed, at }] : [];
  });
  return changes.toSorted((a, b) => b.at - a.at)[0];
}
