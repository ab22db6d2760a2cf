import { hasNoCard, isChannel } from "../../core/cards/render-result.ts";
import type { Journal } from "../../core/request/journal.ts";
import { type RecentReader, recentRequests } from "../../core/request/lists.ts";
import { callOf, isAlready, isPolled } from "../../core/request/stage.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { type ChangeCommand, requestable } from "../../registry/define.ts";

/**
 * How long the result of a request may take to be told (ms). The alarm about a failure that the
 * request explains waits for so long.
 */
export const resultWithinMs = 120_000;

/** A person makes one change of a VM at a time, so the one under way is among these. */
const mostRead = 20;

/**
 * Finds the request that explains why a VM's measurement changed, and whose result will say so in a
 * channel: one under way, or just done, of a command that can change the measurement. Only the
 * journal decides this, never what the compute service says. Undefined also when Redis can't say.
 */
export const findTellingRequest =
  (options: { store: RecentReader & Pick<Journal, "now">; changes: readonly ChangeCommand[] }) =>
  async ({ id }: { id: string }): Promise<StoredRequest | undefined> => {
    const explaining = new Set<string>(
      requestable(options.changes).filter(changesMeasurement).map(nameOf),
    );
    try {
      const now = await options.store.now();
      const recent = await recentRequests({ targetId: id, most: mostRead }, options.store);
      return recent.find(
        (request) => explaining.has(request.record.command) && isToldSoon(request, now),
      );
    } catch {
      return undefined;
    }
  };

const nameOf = ({ name }: ChangeCommand) => name;

const changesMeasurement = (command: ChangeCommand) =>
  command.on === "vm" && command.attestAfter && command.changesMeasurement === true;

function isToldSoon(request: StoredRequest, now: number): boolean {
  const { record, stage, state, changedAt, delivered } = request;
  if (callOf(stage) === undefined || isAlready(stage) || hasNoCard(request)) return false;
  // A direct message tells the requester alone, and not those who operate the VM.
  if (!isChannel(record.channelId) || delivered.closedBy !== undefined) return false;
  return isPolled(state) || (state === "done" && now - changedAt < resultWithinMs);
}
