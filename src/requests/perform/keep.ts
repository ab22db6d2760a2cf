import type { Seen } from "../../registry/define.ts";
import type { StoredRequest } from "../journal/record.ts";
import type { Freeze } from "../journal/switches.ts";
import type { Change, WorkerContext } from "./worker-context.ts";

type KeepDecision =
  /** It is sent to the compute service. */
  | { is: "not kept" }
  | { is: "done" }
  /** Another worker was first. */
  | { is: "changed" }
  | { is: "frozen"; freeze: Freeze }
  | { is: "closed"; why: string; hint?: string | undefined }
  | { is: "later"; why: string };

/**
 * For what changes nothing but what Gatehouse keeps: looks whether it still is as it was approved, and keeps it in the step that
 * ends the request. So it is kept exactly once, wherever a worker dies.
 */
export async function keepIfKept(
  request: StoredRequest,
  { command, args }: Change,
  seen: Seen | undefined,
  by: WorkerContext,
): Promise<KeepDecision> {
  if (command.on !== "vm" || !command.keeps) return { is: "not kept" };
  const { record, progress } = request;
  const prepared = await command.keeps.prepare(record.target, args, by);
  if (prepared.is === "later") return { is: "later", why: prepared.why.text };
  if (prepared.is === "no")
    return { is: "closed", why: prepared.why.text, hint: prepared.why.hint };
  if (prepared.values !== record.input["values"])
    return { is: "closed", why: "it is no longer what was approved", hint: "Request again." };
  const { why: _was, hint: _old, ...rest } = progress;
  const { id, target: vm, requester } = record;
  const values = command.keeps.pin(prepared.values);
  const said = values === undefined ? undefined : { values, request: id, vm, by: requester.name };
  const moved = await by.store.move(request, {
    state: "done",
    progress: { ...rest, ...(seen === undefined ? {} : { before: seen, after: seen }) },
    why: "kept",
    keep: { vmId: vm.id, pin: said && by.appraiser.accepted.vouched(said) },
  });
  await by.at("move", record.id);
  if (moved.is === "frozen") return moved;
  return { is: moved.is === "changed" ? "changed" : "done" };
}
