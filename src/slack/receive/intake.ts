import { randomBytes } from "node:crypto";
import { within } from "../../deadline.ts";
import { messageOf, UserError } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { type Keys, defineScript, type RedisClient } from "../../redis/redis.ts";
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
  const gateway = options.gateway ?? `gw-${randomBytes(6).toString("hex")}`;
  const records = key("intake", "records");
  const holders = key("intake", "holders");
  const gateways = key("intake", "gateways");
  const seen = (id: string) => key("intake", "seen", id);
  const undone = (stamp: string) => key("intake", "undone", stamp);
  const run = {
    accept: defineScript(redis, "gatehouseIntakeAccept", scripts.accept),
    finish: defineScript(redis, "gatehouseIntakeFinish", scripts.finish),
    disown: defineScript(redis, "gatehouseIntakeDisown", scripts.disown),
    beat: defineScript(redis, "gatehouseIntakeBeat", scripts.beat),
    recover: defineScript(redis, "gatehouseIntakeRecover", scripts.recover),
  };
  /** Writes not yet confirmed: id → stamp to undo, or undefined for finished. */
  const owed = new Map<string, string | undefined>();
  const stamps = new Map<string, string>();
  /** Stored and not finished: what this gateway accepted or took over. */
  const inHand = new Set<string>();
  /** Under way to Redis, by stamp: stored perhaps, and its answer not read yet. */
  const accepting = new Map<string, string>();
  let recovering: Promise<unknown> = Promise.resolve();
  let count = 0;
  let timer: NodeJS.Timeout | undefined;

  /**
   * Stores the interaction before its ack. `seen`: a redelivery (within 11 minutes). Kinds that may change something are
   * kept until `finish`, so that another gateway can take over. Throws IntakeDown within about a second when Redis
   * doesn't store it, and UserError when it is too large.
   */
  async function accept(
    interaction: Interaction,
    { sealedResponseUrl }: { sealedResponseUrl?: string | undefined } = {},
  ): Promise<"new" | "seen"> {
    const record = kinds.has(interaction.kind) ? toRecord(interaction, sealedResponseUrl) : "";
    if (Buffer.byteLength(record) > maxBytes)
      throw new UserError("That message is too long.", "Nothing was done.");
    const stamp = `${gateway}/${(count += 1)}`;
    const args = [stamp, seenForMs, interaction.id, record, gateway, maxPending];
    let answer: unknown;
    accepting.set(stamp, interaction.id);
    try {
      const keys = [seen(interaction.id), records, holders, gateways, undone(stamp)];
      answer = await within(acceptWithinMs, run.accept(keys, args), () => {
        throw new Error("Command timed out");
      });
    } catch (error) {
      // Only the answer may be lost. The person reads "nothing was done", so that must become true.
      owe(interaction.id, stamp);
      log.warn("intake.down", { error: messageOf(error), kind: interaction.kind });
      throw new IntakeDown(redisTrouble(error) ?? "Redis is down");
    } finally {
      accepting.delete(stamp);
    }
    if (answer === "full")
      throw new IntakeDown("Too many requests are pending", { isCrowded: true });
    if (answer !== "new") return "seen";
    if (record !== "") {
      stamps.set(interaction.id, stamp);
      inHand.add(interaction.id);
    }
    return "new";
  }

  /** Handled, or with `forget` refused: the same delivery may come again. Never throws. */
  async function finish(id: string, { forget = false }: { forget?: boolean } = {}): Promise<void> {
    const stamp = stamps.get(id);
    stamps.delete(id);
    inHand.delete(id);
    owe(id, forget ? stamp : undefined);
    await settle(id);
  }

  function owe(id: string, stamp: string | undefined): void {
    owed.set(id, stamp);
    const [oldest] = owed.keys();
    if (owed.size > maxOwed && oldest !== undefined) owed.delete(oldest);
  }

  async function settle(id: string): Promise<boolean> {
    const stamp = owed.get(id);
    try {
      await (stamp === undefined
        ? run.finish([records, holders], [gateway, id])
        : run.disown([seen(id), records, holders, undone(stamp)], [stamp, id, undoneForMs]));
      if (owed.get(id) === stamp) owed.delete(id);
      return true;
    } catch (error) {
      log.warn("intake.owed", { error: messageOf(error), owed: owed.size });
      return false;
    }
  }

  async function recover(olderThanMs: number): Promise<LeftInteraction[]> {
    // Sooner would take over from live gateways.
    const silentMs = Math.max(olderThanMs, 3 * beatMs);
    const ages = [silentMs, maxAtOnce, maxTakeovers, options.staleAfterMs ?? staleAfterMs];
    const args = [gateway, ...ages, ...inHand, ...accepting.values(), ...owed.keys()];
    const answer = await run.recover([records, holders, gateways], args);
    const left = [
      ...textsAt(answer, "0").map((record) => fromRecord(record, false)),
      ...textsAt(answer, "1").map((record) => fromRecord(record, true)),
    ].filter((one) => one !== undefined);
    for (const { interaction, tooLate } of left) {
      const { id, kind, userId: user } = interaction;
      if (tooLate) log.error("intake.too-late", { interaction: id, kind, user });
      else inHand.add(id);
    }
    return left;
  }

  async function beat(): Promise<void> {
    try {
      await run.beat([gateways], [gateway, rememberGatewaysMs]);
      for (const id of [...owed.keys()].slice(0, settledPerBeat)) if (!(await settle(id))) return;
    } catch (error) {
      log.debug("intake.silent", { error: messageOf(error) });
    }
  }

  return {
    accept,
    finish,
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

/** A pending interaction of a dead gateway. Its trigger is gone. */
export interface LeftInteraction {
  interaction: Interaction;
  sealedResponseUrl?: string;
  /** Too old, or several gateways died during it: the person is only told. */
  tooLate: boolean;
}

/** What is stored. The Home tab and shortcuts change nothing, so they are only deduplicated. */
const kinds: ReadonlySet<string> = new Set<Interaction["kind"]>([
  "command",
  "mention",
  "button",
  "submission",
]);

/** Without the trigger, which expires, and the response URL, a capability that is stored sealed only. */
function toRecord(interaction: Interaction, sealedResponseUrl: string | undefined): string {
  const { triggerId: _trigger, responseUrl: _url, ...kept } = interaction;
  return JSON.stringify({
    version: 1,
    ask: kept,
    ...(sealedResponseUrl === undefined ? {} : { sealedResponseUrl }),
  });
}

/** Undefined for records of another version. */
function fromRecord(text: string, tooLate: boolean): LeftInteraction | undefined {
  const record = payloadOf(parseJson(text));
  const [interaction, sealed] = [record["ask"], textAt(record, "sealedResponseUrl")];
  if (record["version"] !== 1 || !isInteraction(interaction)) return undefined;
  return { interaction, tooLate, ...(sealed === "" ? {} : { sealedResponseUrl: sealed }) };
}

/** Only `toRecord` writes version 1, so this is enough. */
function isInteraction(value: unknown): value is Interaction {
  return (
    textAt(value, "id") !== "" &&
    textAt(value, "userId") !== "" &&
    kinds.has(textAt(value, "kind")) &&
    typeof at(value, "at") === "number"
  );
}
