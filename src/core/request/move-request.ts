import { type KeptPin, pinRecord } from "../../attestation/pins.ts";
import { replicasIn } from "../../redis/check.ts";
import type { Outbox } from "../../redis/outbox.ts";
import { pendingList } from "../../redis/pending.ts";
import { type Keys, type RedisClient, defineScript } from "../../redis/redis.ts";
import { type Freeze, parseFreeze } from "./freeze.ts";
import { stepText } from "./history.ts";
import { auditRecord, locksOf, pollKeyOf } from "./record.ts";
import * as scripts from "./scripts.ts";
import { type MayBecome, type Stage, type State, isFinal } from "./stage.ts";
import type { RequestIn, StoredRequest } from "./stored-request.ts";

/**
 * Says where a request moves to, with the facts of that state. Only states that `moves` in
 * `stage.ts` allows compile. `why` goes into the history and the audit trail; without it, only new
 * facts are saved.
 */
export interface Move<To extends Stage = Stage> {
  to: To;
  attempt?: number;
  owner?: string;
  why?: string;
  /** The move changes nothing that Slack shows, so no message job is added. */
  isSilent?: boolean;
  /** The person who did it, if one did. */
  actor?: string;
  /**
   * The VMs of a claimed project, which no other request may hold meanwhile. The nonce (`newNonce`)
   * belongs to this claim alone.
   */
  claim?: { vmIds: readonly string[]; nonce: string };
  /**
   * The VM's pin, which is kept in the same step; without a pin it is dropped. The audit record
   * tells its values.
   */
  keep?: { vmId: string; pin: KeptPin | undefined };
}

export type Moved<To extends State = State> =
  /**
   * `replicas` is how many replicas were in step with Redis when it took a claim. Undefined where
   * Redis doesn't say.
   */
  | { kind: "moved"; request: RequestIn<To>; at: number; replicas?: number | undefined }
  | { kind: "changed" }
  | { kind: "gone" }
  | { kind: "frozen"; freeze: Freeze }
  | { kind: "locked"; holder: string };

/** Moves requests, each by one compare-and-set with its record in the audit trail. */
export function createMoves(
  redis: RedisClient,
  key: Keys,
  { outbox }: { outbox: Pick<Outbox, "wake"> },
) {
  const runMove = defineScript(redis, "gatehouseMove", scripts.move);
  const runClaim = defineScript(redis, "gatehouseClaim", scripts.claim);
  const runKeepPin = defineScript(redis, "gatehouseKeepPin", scripts.keepPin);

  /**
   * Moves a request by one compare-and-set. Resolves with `changed` when the request is no longer
   * as it was read.
   */
  const move = <To extends Stage>(
    request: RequestIn<MayBecome<To["state"]>>,
    to: Move<To>,
  ): Promise<Moved<To["state"]>> => write(request, to);

  /** Saves new facts of a request, in the same state. */
  async function saveFacts<In extends StoredRequest>(
    request: In,
    to: In["stage"],
    how: Pick<Move, "isSilent"> = {},
  ): Promise<Moved<In["state"]>> {
    if (to.state !== request.state) throw new Error(`${request.state} isn't ${to.state}`);
    return write(request, { to, ...how });
  }

  async function write<To extends State>(request: StoredRequest, how: Move): Promise<Moved<To>> {
    const { record } = request;
    const { to, claim, keep, why, actor } = how;
    const attempt = how.attempt ?? request.attempt;
    const owner = how.owner ?? request.owner ?? "";
    const final = isFinal(to.state);
    const locks = locksOf(record, claim?.vmIds);
    const nonce = claim?.nonce ?? request.nonce;
    const pin = keep && { vm: keep.vmId, values: keep.pin?.values ?? null };
    const entry = {
      move: to.state,
      attempt: attempt > 1 ? attempt : undefined,
      why,
      worker: owner,
      pin,
    };
    const keys = [
      key("request", record.id),
      key("requests", "open"),
      key("audit"),
      pendingList(key),
      key("watch", pollKeyOf(record)),
      key("lock", locks.take),
    ];
    const args = [
      record.id,
      `${request.revision} ${request.nonce ?? ""}`,
      to.state,
      final ? 1 : 0,
      attempt,
      final ? "" : owner, // nobody moves it any more
      factsText(to),
      why ? stepText({ state: to.state, why, actor }) : "",
      why ? auditRecord(record, entry, actor) : "",
      pollKeyOf(record),
      how.isSilent === true ? 1 : 0,
    ];
    const [outcome, value, movedAt, replication] = (await writeMove(
      how,
      keys,
      args,
      locks.free,
    )) as [string, ...(string | number)[]];
    if (outcome === "frozen") return { kind: outcome, freeze: parseFreeze(String(value), key) };
    if (outcome === "locked") return { kind: outcome, holder: String(value) };
    if (outcome === "gone") return { kind: outcome };
    if (outcome !== "moved") return { kind: "changed" };
    if (how.isSilent !== true) outbox.wake(record.id);
    const at = Number(movedAt);
    return {
      kind: outcome,
      at,
      ...(claim ? { replicas: replicasIn(replication) } : {}),
      request: {
        ...request,
        state: to.state,
        stage: to,
        final,
        attempt,
        nonce,
        owner: owner || undefined,
        revision: Number(value),
        changedAt: why ? at : request.changedAt,
        // The compiler doesn't see that state and stage belong together.
      } as unknown as RequestIn<To>,
    };
  }

  function writeMove(
    { claim, keep }: Move,
    keys: readonly string[],
    args: readonly (string | number)[],
    mustBeFree: readonly string[],
  ): Promise<unknown> {
    if (claim) {
      const locks = mustBeFree.map((lock) => key("lock", lock));
      return runClaim([...keys, key("freeze"), ...locks], [...args, claim.nonce]);
    }
    if (!keep) return runMove(keys, args);
    const pin = keep.pin ? pinRecord.write(keep.pin) : "";
    return runKeepPin([...keys, key("freeze"), key("pins")], [...args, keep.vmId, pin]);
  }

  return { move, saveFacts };
}

/**
 * The facts as the request's hash keeps them, without the state, which scripts compare and which
 * stands beside them.
 */
export const factsText = ({ state: _apart, ...facts }: Stage): string => JSON.stringify(facts);
