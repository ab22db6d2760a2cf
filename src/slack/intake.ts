import { randomBytes } from "node:crypto";
import { messageOf, UserError } from "../errors.ts";
import type { Log } from "../log.ts";
import { defineScript, type Keys, type RedisClient } from "../redis.ts";
import type { Ask } from "./ask.ts";
import { fromRecord, isRecorded, type LeftAsk, toRecord } from "./intake-record.ts";
import * as scripts from "./intake-scripts.ts";
import { textsAt } from "./payload.ts";

/** Redis didn't take it: nothing was done, and the person is told so within the ack. */
export class IntakeDown extends UserError {
  /** Redis is there, but it holds more than it should. */
  readonly isCrowded: boolean;

  constructor(why: string, { isCrowded = false } = {}) {
    super(`${why}: nothing was done.`, "Try again in a minute.");
    this.isCrowded = isCrowded;
  }
}

/** What Redis says when it is there and takes no writes, and what a person should know of it. */
const refusals: readonly (readonly [said: RegExp, why: string])[] = [
  [/^OOM/, "Redis is full"],
  [/^MISCONF/, "Redis can't write to its disk"],
  [/^READONLY/, "Redis takes no writes, because it is a replica"],
];

function whyNot(error: unknown): string {
  const said = messageOf(error);
  return refusals.find(([refusal]) => refusal.test(said))?.[1] ?? "Redis is down";
}

export interface Intake {
  /** This gateway, as the others know it. */
  readonly gateway: string;
  /**
   * Writes the ask down, before it is acked. `seen`: the same delivery was taken before (11 minutes back).
   * Kinds that make something happen are kept until `finish`; then any gateway can take over from a dead one.
   * Throws IntakeDown within about a second when Redis doesn't take it, and UserError when the ask is too large.
   */
  accept(ask: Ask, options?: { sealedResponseUrl?: string | undefined }): Promise<"new" | "seen">;
  /** It is handled, or with `forget` refused so that the very same delivery may come again. Never throws. */
  finish(id: string, options?: { forget?: boolean }): Promise<void>;
  /**
   * Takes over what gateways left that have shown no life for `olderThanMs` (at least three beats); each ask goes to exactly one caller.
   * So is what this gateway finished, if Redis forgot that: with it, Redis may have forgotten what came of it.
   * Asks older than `staleAfterMs`, and those that three gateways died over, come once more, as too late.
   */
  recover(olderThanMs: number): Promise<LeftAsk[]>;
  /** Shows life, now and every `beatMs`. */
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
  /** How often this gateway shows life; the same for all gateways. */
  beatMs?: number;
}

/** A delivery may be dated 300 s ahead and come again until 300 s after that: remembered for longer than both. */
const seenForMs = 11 * 60_000;
const staleAfterMs = 10 * 60_000;
const mostOwed = 20_000;
const settledPerBeat = 500;
const rememberGatewaysMs = 24 * 3_600_000;
const mostTakeovers = 3;
const mostAtOnce = 100;
const mostPending = 10_000;
const mostBytes = 128 * 1024;

export function createIntake(options: IntakeOptions): Intake {
  const { redis, key, log, beatMs = 2_000 } = options;
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
  /** Written down and not finished: ids of what this gateway took or took over. */
  const inHand = new Set<string>();
  let recovering: Promise<unknown> = Promise.resolve();
  let count = 0;
  let timer: NodeJS.Timeout | undefined;

  async function accept(
    ask: Ask,
    { sealedResponseUrl }: { sealedResponseUrl?: string | undefined } = {},
  ) {
    const record = isRecorded(ask) ? toRecord(ask, sealedResponseUrl) : "";
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
      owe(ask.id, stamp);
      log.warn("intake.down", { error: messageOf(error), kind: ask.kind });
      throw new IntakeDown(whyNot(error));
    }
    if (answer === "full")
      throw new IntakeDown("Too much is waiting to be handled", { isCrowded: true });
    if (answer !== "new") return "seen";
    if (record !== "") {
      stamps.set(ask.id, stamp);
      inHand.add(ask.id);
    }
    return "new";
  }

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
    if (owed.size > mostOwed && oldest !== undefined) owed.delete(oldest);
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

  async function recover(olderThanMs: number): Promise<LeftAsk[]> {
    // Sooner would take over from gateways that live.
    const silentMs = Math.max(olderThanMs, 3 * beatMs);
    const ages = [silentMs, mostAtOnce, mostTakeovers, options.staleAfterMs ?? staleAfterMs];
    const args = [gateway, ...ages, ...inHand, ...owed.keys()];
    const answer = await run.recover([records, holders, gateways], args);
    const left = [
      ...textsAt(answer, "0").map((record) => fromRecord(record, false)),
      ...textsAt(answer, "1").map((record) => fromRecord(record, true)),
    ].filter((one) => one !== undefined);
    for (const { ask, tooLate } of left) {
      if (tooLate) log.error("intake.too-late", { ask: ask.id, kind: ask.kind, user: ask.userId });
      else inHand.add(ask.id);
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
    gateway,
    accept,
    finish,
    recover(olderThanMs) {
      // One after the other: what the first takes over is in hand before the next one looks
      const recovered = recovering.then(() => recover(olderThanMs));
      recovering = recovered.catch(() => undefined);
      return recovered;
    },
    async start() {
      await beat();
      timer ??= setInterval(() => void beat(), beatMs).unref();
    },
    async close() {
      clearInterval(timer);
      await beat();
      await redis.zrem(gateways, gateway).catch(() => 0);
    },
  };
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
