import { randomBytes } from "node:crypto";
import { messageOf, UserError } from "../errors.ts";
import type { Log } from "../log.ts";
import { defineScript, type Keys, type RedisClient } from "../redis.ts";
import type { Ask } from "./ask.ts";
import * as scripts from "./intake-scripts.ts";
import { at, parseJson, payloadOf, textAt, textsAt } from "./payload.ts";

/** Redis didn't take it: nothing was done, and the person is told so within the ack. */
export class IntakeDown extends UserError {
  constructor(sentence = "Redis is down: nothing was done.") {
    super(sentence, "Try again in a minute.");
  }
}

/** A pending ask whose gateway died, now ours. It has no trigger any more. */
export interface LeftAsk {
  ask: Ask;
  sealedResponseUrl?: string;
}

export interface Intake {
  /** This gateway, as the others know it. */
  readonly gateway: string;
  /**
   * Writes the ask down, before it is acked. `seen`: the same delivery was taken before (10 minutes back).
   * Kinds that make something happen are kept until `finish`; then any gateway can take over from a dead one.
   * Throws IntakeDown within about a second when Redis doesn't take it, and UserError when the ask is too large.
   */
  accept(ask: Ask, options?: { sealedResponseUrl?: string | undefined }): Promise<"new" | "seen">;
  /** It is handled, or with `forget` refused so that the very same delivery may come again. Never throws. */
  finish(id: string, options?: { forget?: boolean }): Promise<void>;
  /**
   * Takes over what gateways left that have shown no life for `olderThanMs`; each ask goes to exactly one caller.
   * Asks older than `staleAfterMs`, and those that three gateways died over, are dropped and logged.
   */
  recover(olderThanMs: number): Promise<LeftAsk[]>;
  /** Shows life, now and every two seconds. */
  start(): Promise<void>;
  /** Stops showing life: what is unfinished goes to the next gateway that recovers. */
  close(): Promise<void>;
}

export interface IntakeOptions {
  redis: RedisClient;
  key: Keys;
  log: Log;
  /** Default: random, new with each start. */
  gateway?: string;
  staleAfterMs?: number;
  acceptWithinMs?: number;
}

const seenForMs = 10 * 60_000;
const beatEveryMs = 2_000;
const rememberGatewaysMs = 24 * 3_600_000;
const mostTakeovers = 3;
const mostPending = 10_000;
const mostBytes = 128 * 1024;

export function createIntake(options: IntakeOptions): Intake {
  const { redis, key, log } = options;
  const gateway = options.gateway ?? `gw-${randomBytes(6).toString("hex")}`;
  const [records, holders, gateways] = [
    key("intake", "records"),
    key("intake", "holders"),
    key("intake", "gateways"),
  ];
  const seen = (id: string) => key("intake", "seen", id);
  const run = {
    accept: defineScript(redis, "gatehouseIntakeAccept", scripts.accept),
    finish: defineScript(redis, "gatehouseIntakeFinish", scripts.finish),
    disown: defineScript(redis, "gatehouseIntakeDisown", scripts.disown),
    beat: defineScript(redis, "gatehouseIntakeBeat", scripts.beat),
    recover: defineScript(redis, "gatehouseIntakeRecover", scripts.recover),
  };
  /** What Redis must still hear from us, once it listens again: id → stamp to undo, or undefined for finished. */
  const owed = new Map<string, string | undefined>();
  const stamps = new Map<string, string>();
  let count = 0;
  let timer: NodeJS.Timeout | undefined;

  async function accept(
    ask: Ask,
    { sealedResponseUrl }: { sealedResponseUrl?: string | undefined } = {},
  ) {
    const record = kinds.has(ask.kind) ? toRecord(ask, sealedResponseUrl) : "";
    if (Buffer.byteLength(record) > mostBytes)
      throw new UserError("That is more text than I can take.", "Nothing was done.");
    const stamp = `${gateway}/${(count += 1)}`;
    const args = [stamp, seenForMs, ask.id, record, gateway, mostPending];
    let answer: unknown;
    try {
      answer = await within(
        options.acceptWithinMs ?? 1_000,
        run.accept([seen(ask.id), records, holders, gateways], args),
      );
    } catch (error) {
      // The answer may be what got lost. The person hears "nothing was done", so it must become true.
      owed.set(ask.id, stamp);
      log.warn("intake.down", { error: messageOf(error), kind: ask.kind });
      throw new IntakeDown();
    }
    if (answer === "full")
      throw new IntakeDown("Too much is waiting to be handled: nothing was done.");
    if (answer !== "new") return "seen";
    if (record !== "") stamps.set(ask.id, stamp);
    return "new";
  }

  async function finish(id: string, { forget = false }: { forget?: boolean } = {}): Promise<void> {
    const stamp = stamps.get(id);
    stamps.delete(id);
    owed.set(id, forget ? stamp : undefined);
    await settle(id);
  }

  /** Tells Redis one thing we owe it; what fails stays owed. */
  async function settle(id: string): Promise<boolean> {
    const stamp = owed.get(id);
    try {
      await (stamp === undefined
        ? run.finish([records, holders], [gateway, id])
        : run.disown([seen(id), records, holders], [stamp, id]));
      if (owed.get(id) === stamp) owed.delete(id);
      return true;
    } catch (error) {
      log.warn("intake.owed", { error: messageOf(error), owed: owed.size });
      return false;
    }
  }

  async function beat(): Promise<void> {
    try {
      for (const id of owed.keys()) if (!(await settle(id))) return;
      await run.beat([gateways], [gateway, rememberGatewaysMs]);
    } catch (error) {
      log.debug("intake.silent", { error: messageOf(error) });
    }
  }

  return {
    gateway,
    accept,
    finish,
    async recover(olderThanMs) {
      const args = [gateway, olderThanMs, 100, mostTakeovers, options.staleAfterMs ?? seenForMs];
      const answer = await run.recover([records, holders, gateways], args);
      for (const left of textsAt(answer, "1").map(fromRecord)) {
        log.error("intake.dropped", {
          ask: left?.ask.id,
          kind: left?.ask.kind,
          user: left?.ask.userId,
        });
      }
      return textsAt(answer, "0")
        .map(fromRecord)
        .filter((left) => left !== undefined);
    },
    async start() {
      await beat();
      timer ??= setInterval(() => void beat(), beatEveryMs).unref();
    },
    async close() {
      clearInterval(timer);
      await beat();
      await redis.zrem(gateways, gateway).catch(() => 0);
    },
  };
}

/** What is written down. The Home tab and shortcuts are only kept from running twice: they change nothing by themselves. */
const kinds: ReadonlySet<string> = new Set<Ask["kind"]>([
  "command",
  "mention",
  "button",
  "submission",
]);

/** Without what expires (trigger) and what is a capability (response URL, sealed only). */
function toRecord(ask: Ask, sealedResponseUrl: string | undefined): string {
  const { triggerId: _trigger, responseUrl: _url, ...kept } = ask;
  return JSON.stringify({
    version: 1,
    ask: kept,
    ...(sealedResponseUrl === undefined ? {} : { sealedResponseUrl }),
  });
}

/** Undefined for what another version wrote in a shape we don't know. */
function fromRecord(text: string): LeftAsk | undefined {
  const record = payloadOf(parseJson(text));
  const [ask, sealed] = [record["ask"], textAt(record, "sealedResponseUrl")];
  if (record["version"] !== 1 || !isAsk(ask)) return undefined;
  return { ask, ...(sealed === "" ? {} : { sealedResponseUrl: sealed }) };
}

/** Only `toRecord` writes records of version 1, so the outline is enough. */
function isAsk(value: unknown): value is Ask {
  return (
    textAt(value, "id") !== "" &&
    textAt(value, "userId") !== "" &&
    kinds.has(textAt(value, "kind")) &&
    typeof at(value, "at") === "number"
  );
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
