import { randomBytes } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { within } from "../../deadline.ts";
import { messageOf, UserError } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { type Keys, defineScript, fromPairs, type RedisClient } from "../../redis/redis.ts";
import { redisTrouble } from "../../redis/trouble.ts";
import type { Interaction } from "./interaction.ts";
import * as scripts from "./intake-scripts.ts";
import { textsAt, at, parseJson, payloadOf, textAt } from "../web.ts";

/** Redis didn't store it: nothing was done, and the ack says so. */
export class IntakeDown extends UserError {
  /** Redis works, but too many interactions are pending. */
  readonly isCrowded: boolean;

  constructor(why: string, { isCrowded = false } = {}) {
    super(`${why}: nothing was done.`, "Try again in a minute.");
    this.isCrowded = isCrowded;
  }
}

export type Claimed = "new" | "seen" | "gone";

export type Intake = ReturnType<typeof createIntake>;

interface IntakeOptions {
  redis: RedisClient;
  key: Keys;
  log: Log;
  /** Default: random. */
  gateway?: string;
  staleAfterMs?: number;
  acceptWithinMs?: number;
  /** Heartbeat interval; the same for all gateways. */
  beatMs?: number;
}

/** A delivery may be dated 300 s ahead and redelivered until 300 s after that. */
const seenForMs = 11 * 60_000;
const staleAfterMs = 10 * 60_000;
/** A frozen Redis may execute, when it wakes, what was sent to it on a connection that is long gone. */
const undoneForMs = 10 * 60_000;
const maxOwed = 20_000;
const settledPerBeat = 500;
const rememberGatewaysMs = 24 * 3_600_000;
const maxTakeovers = 3;
const maxAtOnce = 100;
const maxPending = 10_000;
const maxBytes = 128 * 1024;

export function createIntake(options: IntakeOptions) {
  const { redis, key, log, acceptWithinMs = 1_000, beatMs = 2_000 } = options;
  const { staleAfterMs: oldestMs = staleAfterMs } = options;
  const gateway = options.gateway ?? `gw-${randomBytes(6).toString("hex")}`;
  const records = key("intake", "records");
  const holders = key("intake", "holders");
  const gateways = key("intake", "gateways");
  const seen = (id: string) => key("intake", "seen", id);
  const undone = (stamp: string) => key("intake", "undone", stamp);
  const arrived = key("intake", "arrived");
  const run = {
    claim: defineScript(redis, "gatehouseIntakeClaim", scripts.claim),
    finish: defineScript(redis, "gatehouseIntakeFinish", scripts.finish),
    disown: defineScript(redis, "gatehouseIntakeDisown", scripts.disown),
    beat: defineScript(redis, "gatehouseIntakeBeat", scripts.beat),
    recover: defineScript(redis, "gatehouseIntakeRecover", scripts.recover),
  };
  /** Writes not yet confirmed: what was finished, by its id, and accepts to undo, by their stamp. */
  const owed = new Map<string, { id: string; stamp: string | undefined }>();
  /** What this gateway accepted and has not finished, by id. */
  const accepted = new Map<string, Accepted>();
  /** Stored and not finished: what this gateway accepted or took over. */
  const inHand = new Set<string>();
  /** Under way to Redis, by stamp: stored perhaps, and its answer not read yet. */
  const accepting = new Map<string, string>();
  let recovering: Promise<unknown> = Promise.resolve();
  let count = 0;
  let timer: NodeJS.Timeout | undefined;
  /** From this process's clock to Redis time (ms). */
  let ahead = 0;
  let claims: { stamp: string; id: string; hasArrived: boolean }[] = [];
  let claimed: Promise<ReadonlyMap<string, string>> | undefined;

  /**
   * Stores the interaction before its ack, so that another gateway can take over until `finish`. `seen`: it comes a second time
   * while the first is pending. Throws IntakeDown within about a second when Redis doesn't store it, and UserError when it is
   * too large.
   */
  async function accept(
    interaction: Interaction,
    { sealedResponseUrl }: { sealedResponseUrl?: string | undefined } = {},
  ): Promise<"new" | "seen"> {
    const { id } = interaction;
    const record = toRecord(interaction, sealedResponseUrl);
    if (Buffer.byteLength(record) > maxBytes)
      throw new UserError("That message is too long.", "Nothing was done.");
    const stamp = nextStamp();
    const acceptedAt = Math.round(Date.now() + ahead);
    const value = `${stamp}|${acceptedAt}|${record}`;
    accepting.set(stamp, id);
    try {
      const isFirst = await inTime(interaction, stamp, redis.hsetnx(arrived, id, value));
      if (isFirst === 0) return "seen";
      if (inHand.has(id)) {
        // Stored and claimed before
        redis.hdel(arrived, id).catch(() => undefined);
        return "seen";
      }
    } finally {
      accepting.delete(stamp);
    }
    accepted.set(id, { stamp, acceptedAt, value });
    inHand.add(id);
    return "new";
  }

  const nextStamp = () => `${gateway}/${(count += 1)}`;

  /** Throws IntakeDown when Redis doesn't answer in time. */
  async function inTime<T>({ id, kind }: Interaction, stamp: string, asked: Promise<T>) {
    try {
      return await within(acceptWithinMs, asked, (): never => {
        throw new Error("Command timed out");
      });
    } catch (error) {
      // Only the answer may be lost. The person reads "nothing was done", so that must become true.
      if (accepted.get(id)?.stamp === stamp) letGo(id);
      owe(id, stamp);
      log.warn("intake.down", { error: messageOf(error), kind });
      throw new IntakeDown(redisTrouble(error) ?? "Redis is down");
    }
  }

  /**
   * Before anything is done for it, once for each delivery within 11 minutes: `seen` is a redelivery, `gone` was taken over
   * meanwhile. What was accepted may be claimed after its ack. Throws IntakeDown when too many are pending, and `beforeAck` also
   * when Redis doesn't answer in time.
   */
  async function claim(
    interaction: Interaction,
    { beforeAck = false }: { beforeAck?: boolean } = {},
  ): Promise<Claimed> {
    const { id } = interaction;
    const stored = accepted.get(id);
    const stamp = stored?.stamp ?? nextStamp();
    const asked = stored
      ? claimStored(id, stored)
      : claimTogether({ stamp, id, hasArrived: false });
    const answer = await (beforeAck ? inTime(interaction, stamp, asked) : asked);
    if (answer === "new") return "new";
    if (stored) letGo(id);
    if (answer === "full")
      throw new IntakeDown("Too many requests are pending", { isCrowded: true });
    return answer === "seen" ? "seen" : "gone";
  }

  /** A failover may lose what Redis has just stored; it was acked, so it is stored again. */
  async function claimStored(id: string, stored: Accepted): Promise<string | undefined> {
    const { stamp, acceptedAt, value } = stored;
    const answer = await claimTogether({ stamp, id, hasArrived: true });
    if (answer !== "lost" || Date.now() + ahead - acceptedAt > oldestMs) return answer;
    await redis.hsetnx(arrived, id, value);
    return claimStored(id, stored);
  }

  /** One script for all deliveries that were acked meanwhile. */
  async function claimTogether(one: (typeof claims)[number]): Promise<string | undefined> {
    claims.push(one);
    claimed ??= nextTurn().then(() => {
      const all = claims;
      claims = [];
      claimed = undefined;
      return claimAll(all);
    });
    return (await claimed).get(one.stamp);
  }

  async function claimAll(all: typeof claims): Promise<ReadonlyMap<string, string>> {
    const keys = all.flatMap(({ id, stamp }) => [seen(id), undone(stamp)]);
    const args = all.flatMap(({ id, stamp, hasArrived }) => [stamp, id, hasArrived ? 1 : 0]);
    const answers = await run.claim(
      [arrived, records, holders, ...keys],
      [seenForMs, maxPending, ...args],
    );
    return new Map(all.map(({ stamp }, place) => [stamp, textAt(answers, String(place))]));
  }

  function letGo(id: string): string | undefined {
    const stamp = accepted.get(id)?.stamp;
    accepted.delete(id);
    inHand.delete(id);
    return stamp;
  }

  /** Handled, or with `forget` refused: the same delivery may come again. Never throws. */
  async function finish(id: string, { forget = false }: { forget?: boolean } = {}): Promise<void> {
    const stamp = letGo(id);
    await settle(owe(id, forget ? stamp : undefined));
  }

  function owe(id: string, stamp: string | undefined): string {
    const name = stamp ?? id;
    owed.set(name, { id, stamp });
    const [oldest] = owed.keys();
    if (owed.size > maxOwed && oldest !== undefined) owed.delete(oldest);
    return name;
  }

  async function settle(name: string): Promise<boolean> {
    const write = owed.get(name);
    if (write === undefined) return true;
    const { id, stamp } = write;
    try {
      await (stamp === undefined
        ? run.finish([records, holders], [gateway, id])
        : run.disown(
            [seen(id), records, holders, undone(stamp), arrived],
            [stamp, id, undoneForMs],
          ));
      if (owed.get(name) === write) owed.delete(name);
      return true;
    } catch (error) {
      log.warn("intake.owed", { error: messageOf(error), owed: owed.size });
      return false;
    }
  }

  async function recover(olderThanMs: number, isAgain = false): Promise<LeftInteraction[]> {
    // Sooner would take over from live gateways.
    const silentMs = Math.max(olderThanMs, 3 * beatMs);
    const ages = [silentMs, maxAtOnce, maxTakeovers, oldestMs];
    const owing = [...owed.values()].map(({ id }) => id);
    const args = [gateway, ...ages, ...inHand, ...accepting.values(), ...owing];
    const answer = await run.recover([records, holders, gateways, arrived], args);
    const left = [
      ...textsAt(answer, "0").map((record) => fromRecord(record, false)),
      ...textsAt(answer, "1").map((record) => fromRecord(record, true)),
    ].filter((one) => one !== undefined);
    for (const { interaction, tooLate } of left) {
      const { id, kind, userId: user } = interaction;
      if (tooLate) log.error("intake.too-late", { interaction: id, kind, user });
      else inHand.add(id);
    }
    const unclaimed = textsAt(answer, "2");
    if (unclaimed.length === 0 || isAgain) return left;
    // For those that accepted them: whose they are then is found as for all others
    const pairs = Object.entries(fromPairs(unclaimed));
    await claimAll(pairs.map(([id, stamp]) => ({ id, stamp, hasArrived: true })));
    return [...left, ...(await recover(olderThanMs, true))];
  }

  async function beat(): Promise<void> {
    try {
      const now = Number(await run.beat([gateways], [gateway, rememberGatewaysMs]));
      ahead = now - Date.now();
      for (const one of [...owed.keys()].slice(0, settledPerBeat)) if (!(await settle(one))) return;
    } catch (error) {
      log.debug("intake.silent", { error: messageOf(error) });
    }
  }

  return {
    accept,
    claim,
    finish,
    /** Accepted and not claimed, because Redis went away: `recover` finds it. */
    leave: ({ id }: Interaction): void => void letGo(id),
    /**
     * Takes over from gateways without a heartbeat for `olderThanMs` (at least three beats); each interaction goes to one
     * caller. Also what this gateway finished, if Redis lost that: Redis may have lost its results too. What is older than
     * `staleAfterMs`, or had three gateways die, is returned once, as too late.
     */
    recover(olderThanMs: number): Promise<LeftInteraction[]> {
      // One at a time: what the first takes over is in hand before the next starts
      const recovered = recovering.then(() => recover(olderThanMs));
      recovering = recovered.catch(() => undefined);
      return recovered;
    },
    /** Sends a heartbeat now and every `beatMs`. */
    async start(): Promise<void> {
      await beat();
      timer ??= setInterval(() => void beat(), beatMs).unref();
    },
    /** Stops the heartbeat: unfinished interactions go to the next gateway that recovers. */
    async close(): Promise<void> {
      clearInterval(timer);
      await beat();
      await redis.zrem(gateways, gateway).catch(() => 0);
    },
  };
}

/** `acceptedAt` in Redis time (ms); `value` as it is stored until its claim. */
interface Accepted {
  stamp: string;
  acceptedAt: number;
  value: string;
}

/** A pending interaction of a dead gateway. Its trigger is gone. */
export interface LeftInteraction {
  interaction: Interaction;
  sealedResponseUrl?: string;
  /** Too old, or several gateways died during it: the person is only told. */
  tooLate: boolean;
}

/** What is accepted before it is claimed. The Home tab and shortcuts change nothing, so they are only deduplicated. */
export const keptKinds: ReadonlySet<string> = new Set<Interaction["kind"]>([
  "command",
  "mention",
  "button",
  "submission",
]);

/** Without the trigger, which expires, and the response URL, a capability that is stored sealed only. */
function toRecord(interaction: Interaction, sealedResponseUrl: string | undefined): string {
  const { triggerId: _trigger, responseUrl: _url, ...kept } = interaction;
  return JSON.stringify({
    ask: kept,
    ...(sealedResponseUrl === undefined ? {} : { sealedResponseUrl }),
  });
}

/** Undefined for what isn't one. */
function fromRecord(text: string, tooLate: boolean): LeftInteraction | undefined {
  const record = payloadOf(parseJson(text));
  const [interaction, sealed] = [record["ask"], textAt(record, "sealedResponseUrl")];
  if (!isInteraction(interaction)) return undefined;
  return { interaction, tooLate, ...(sealed === "" ? {} : { sealedResponseUrl: sealed }) };
}

/** Only `toRecord` writes them, so this is enough. */
function isInteraction(value: unknown): value is Interaction {
  return (
    textAt(value, "id") !== "" &&
    textAt(value, "userId") !== "" &&
    keptKinds.has(textAt(value, "kind")) &&
    typeof at(value, "at") === "number"
  );
}
