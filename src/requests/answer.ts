import type { Accepted } from "../compute/compute.ts";
import { ComputeError } from "../compute/errors.ts";
import type { ChangeCommand, Effect, Seen } from "../registry/define.ts";
import { readTarget } from "./gate.ts";
import { giveBack, moveOwn } from "./own.ts";
import { backoff, ended, jitter, type Next, type Performing, waitFor } from "./performing.ts";
import type { Progress, StoredRequest } from "./record.ts";
import { watchKeyOf } from "./record.ts";

/** A call that provably never left may be tried again this often. */
const mostNotSent = 3;
/** When the service says "slow down" but not for how long. */
const slowDownMs = 5000;

/** What the service's answer, or its absence, means for the request (the table of reliability.md section 2). */
export async function takeAnswer(
  claimed: StoredRequest,
  command: ChangeCommand,
  args: unknown,
  answer: Accepted | ComputeError,
  by: Performing,
): Promise<Next> {
  const endedAt = await by.store.now();
  if (!(answer instanceof ComputeError)) return accepted(claimed, command, answer, endedAt, by);
  const learned: Partial<Progress> = {
    endedAt,
    answer: {
      class: answer.kind,
      ...(answer.status === undefined ? {} : { status: answer.status }),
      ...(answer.serviceMessage ? { message: answer.serviceMessage } : {}),
    },
  };
  switch (answer.kind) {
    case "unreachable": {
      const notSent = (claimed.progress.notSent ?? 0) + 1;
      const why = "the service could not be reached; nothing was sent";
      if (notSent > mostNotSent) {
        await moveOwn(
          claimed,
          { state: "rejected", learned: { ...learned, notSent, why }, why },
          by,
        );
        return ended;
      }
      const inMs = backoff(notSent + 1, by.policy.timing);
      await giveBack(claimed, { ...learned, notSent, why, inMs }, by);
      return waitFor(inMs);
    }
    case "busy": {
      const pause = answer.retryAfterMs ?? slowDownMs;
      await by.store.throttle(pause);
      const throttled = (claimed.progress.throttled ?? 0) + 1;
      const inMs = pause + jitter(1000);
      await giveBack(
        claimed,
        { ...learned, throttled, why: "the service asked us to slow down", inMs },
        by,
      );
      return waitFor(inMs);
    }
    case "unclear":
    case "unexpected":
      await moveOwn(claimed, { state: "unclear", learned, why: "no clear answer" }, by);
      await by.watch(watchKeyOf(claimed.record), true);
      return ended;
    default:
      return refused(claimed, command, args, learned, answer, by);
  }
}

async function accepted(
  claimed: StoredRequest,
  command: ChangeCommand,
  answer: Accepted,
  endedAt: number,
  by: Performing,
): Promise<Next> {
  const effect = command.effect as Effect<Seen, unknown>;
  const told: Seen | undefined = answer.vm ?? answer.project;
  const began = told !== undefined && effect.mark?.(told, claimed.progress.before) === true;
  const learned: Partial<Progress> = {
    endedAt,
    answer: {
      class: "accepted",
      status: answer.status,
      ...(answer.snapshotId ? { snapshotId: answer.snapshotId } : {}),
    },
    ...(began && told
      ? { mark: { status: "status" in told ? told.status : "", at: endedAt } }
      : {}),
  };
  if (effect.provenBy?.(answer)) {
    await moveOwn(claimed, { state: "done", learned, why: "the answer proves it" }, by);
    return ended;
  }
  await moveOwn(claimed, { state: "accepted", learned, why: "accepted by the service" }, by);
  await by.watch(watchKeyOf(claimed.record), true);
  return ended;
}

/** One read: a refusal whose state is already the wanted one is done ("already stopped"). */
async function refused(
  claimed: StoredRequest,
  command: ChangeCommand,
  args: unknown,
  learned: Partial<Progress>,
  answer: ComputeError,
  by: Performing,
): Promise<Next> {
  if (answer.status === 401 || answer.status === 403) {
    await by.store.freeze({
      by: "Gatehouse",
      reason: `the service refused our key (${answer.status})`,
    });
  }
  if (answer.kind === "conflict") {
    const effect = command.effect as Effect<Seen, unknown>;
    const read = await readTarget(claimed.record.target, by).catch(() => undefined);
    if (read?.seen && effect.already?.(read.seen, args)) {
      const state = { ...learned, after: read.seen, already: true };
      await moveOwn(
        claimed,
        { state: "done", learned: state, why: "it stands that way already" },
        by,
      );
      return ended;
    }
    // What it is busy with may be our own first call, come late after all: reads tell
    if ((claimed.progress.resent ?? 0) > 0) {
      const why = "sent again, the service says that its state does not allow it";
      await moveOwn(claimed, { state: "unclear", learned, why }, by);
      await by.watch(watchKeyOf(claimed.record), true);
      return ended;
    }
  }
  const why = answer.serviceMessage
    ? `the service refused: ${answer.serviceMessage}`
    : `the service refused (${answer.status ?? answer.kind})`;
  await moveOwn(claimed, { state: "rejected", learned: { ...learned, why }, why }, by);
  return ended;
}
