import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Message } from "../messages/message.ts";
import { md } from "../messages/text.ts";
import { apologise, say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import type { Handlers } from "./handlers.ts";
import type { Intake } from "./intake.ts";
import type { LeftAsk } from "./intake-record.ts";
import type { Reply } from "./reply.ts";

/** Everything that goes on after the ack: nothing in here throws, and `idle` waits for it. */
export interface Handling {
  handle(ask: Ask): void;
  repeated(ask: Ask): void;
  tell(ask: Ask, message: Message): void;
  /** What only reads, while Redis is away. */
  read(ask: Ask): void;
  /** An ask that a dead gateway left. */
  takeOver(left: LeftAsk): void;
  running(): number;
  /** Waits until nothing runs, for at most so long; how much still does. */
  idle(deadlineMs: number): Promise<number>;
}

export function createHandling(options: {
  handlers: Handlers;
  intake: Intake;
  log: Log;
  replyTo: (ask: Ask) => Reply;
  /** Undefined when it isn't ours or isn't Slack's. */
  openUrl: (sealed: string) => string | undefined;
}): Handling {
  const { handlers, intake, log, replyTo } = options;
  const running = new Set<Promise<void>>();

  function track(work: () => Promise<void>): void {
    const task = Promise.try(work)
      .catch((error: unknown) => log.error("slack.handling-failed", { error }))
      .finally(() => running.delete(task));
    running.add(task);
  }

  async function attempt(ask: Ask, work: (reply: Reply) => Promise<void>): Promise<void> {
    const reply = replyTo(ask);
    try {
      await work(reply);
    } catch (error) {
      const words = apologise(error, log);
      // Opening the Home tab asks for nothing that an apology would answer.
      if (ask.kind !== "home") await reply.privately(words);
    }
  }

  async function finishing(ask: Ask, work: (reply: Reply) => Promise<void>): Promise<void> {
    await attempt(ask, work);
    await intake.finish(ask.id);
  }

  async function takeOver(
    { ask, sealedResponseUrl, tooLate }: LeftAsk,
    reply: Reply,
  ): Promise<void> {
    if (tooLate) return handlers.tooLate(reply);
    log.info("intake.taken-over", {
      ask: ask.id,
      kind: ask.kind,
      answerable: sealedResponseUrl !== undefined,
    });
    if (ask.kind === "submission") {
      const verdict = await handlers.submit(ask);
      // Its modal is gone, so what was wrong with it is told in words.
      const wrong = Object.values(verdict?.errors ?? {}).join(" ");
      if (wrong !== "") return reply.privately(say(md`Nothing was done: ${wrong}`));
    }
    await handlers.handle(ask, reply);
  }

  return {
    handle: (ask) => track(() => finishing(ask, (reply) => handlers.handle(ask, reply))),
    repeated: (ask) => track(() => attempt(ask, (reply) => handlers.repeated(ask, reply))),
    tell: (ask, message) => track(() => attempt(ask, (reply) => reply.privately(message))),
    read: (ask) =>
      track(() => attempt(ask, async (reply) => handlers.readWithoutRedis?.(ask, reply))),
    takeOver(left) {
      const url =
        left.sealedResponseUrl === undefined ? undefined : options.openUrl(left.sealedResponseUrl);
      const ask = url === undefined ? left.ask : { ...left.ask, responseUrl: url };
      track(() => finishing(ask, (reply) => takeOver({ ...left, ask }, reply)));
    },
    running: () => running.size,
    async idle(deadlineMs) {
      const until = performance.now() + deadlineMs;
      while (running.size > 0) {
        const leftMs = until - performance.now();
        if (leftMs <= 0) break;
        await soon(Promise.allSettled(running), leftMs);
      }
      if (running.size > 0) log.warn("slack.still-handling", { running: running.size, deadlineMs });
      return running.size;
    },
  };
}

/** Resolves with the promise, or after so long without it. */
export async function soon<T>(promise: Promise<T>, withinMs: number): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), withinMs);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** For what was asked and could not be taken: words and the way out, in plain text for an ack. */
export function plainly(error: unknown, log: Log): { text: string; message: Message } {
  const message = apologise(error, log);
  log.info("slack.not-taken", { why: messageOf(error) });
  return { text: message.text.replaceAll("\n", " "), message };
}
