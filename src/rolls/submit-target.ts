import type { ChangeCommand } from "../registry/define.ts";
import type { Target } from "../registry/target.ts";
import { argumentsOf } from "../registry/usage.ts";
import { submit } from "../requests/submit.ts";
import type { RollingWork } from "./rolling-work.ts";
import type { StoredRoll } from "./roll.ts";

/**
 * Asks for the command on one target. However often this is called, and by whom: the id is the same, so the journal has
 * one request. Returns the request that stands for it, another one where the same was asked a moment ago.
 */
export async function submitTarget(
  { record, delivered, state }: StoredRoll,
  requestId: string,
  target: Target,
  command: ChangeCommand,
  { performing }: Pick<RollingWork, "performing">,
): Promise<string> {
  const { id, teamId, name } = record.requester;
  const threadTs = record.threadTs ?? delivered.card?.ts;
  const submitted = await submit(
    {
      command,
      input: inputFor(command, record.input, target),
      target,
      person: { id, teamId, name, kind: "member", groups: [] },
      channelId: record.channelId,
      via: "roll",
      roll: record.id,
      id: requestId,
      askId: `roll-${requestId}`,
      ...(threadTs ? { threadTs } : {}),
    },
    {
      store: performing.store,
      policyVersion: record.policyVersion,
      // Of a roll that ends it is only brought there to be taken back: nobody who finds it there may run it
      staleAfterMs: state === "ending" ? -1 : performing.policy.timing.staleAfterMs,
      wake: state === "ending" ? async () => undefined : performing.wake,
    },
  );
  return submitted.id;
}

function inputFor(
  command: ChangeCommand,
  input: Record<string, unknown>,
  target: Target,
): Record<string, unknown> {
  const named = argumentsOf(command).find((argument) => argument.target !== undefined);
  return named ? { ...input, [named.key]: named.isList ? [target.id] : target.id } : input;
}
