import { SocketModeReceiver, type App } from "@slack/bolt";
import { messageOf } from "../errors.ts";
import { type Log, slackLogger } from "../log.ts";
import { parseJson, textAt, at } from "./payload.ts";
import { clientOptions } from "./web.ts";

/** One Socket Mode connection, from asking for its address to the end. */
export interface Session {
  /** Rejects when Slack hasn't said hello in time. */
  start(withinMs: number): Promise<void>;
  /** Resolves, with the reason, as soon as nothing more should be expected from it. */
  readonly over: Promise<string>;
  /** Resolves when it is really closed. */
  readonly closed: Promise<void>;
  /** Closes it; resolves after two seconds at the latest. */
  end(): Promise<void>;
}

const goodbyeMs = 2_000;

export function openSession(
  options: { appToken: string; apiUrl: string; log: Log; onRateLimited?: (() => void) | undefined },
  app: App,
): Session {
  const { log } = options;
  const receiver = new SocketModeReceiver({
    appToken: options.appToken,
    autoReconnectEnabled: false,
    logger: slackLogger(log),
    // Its own object: the client writes into it, and the App's clients must not share what it writes.
    installerOptions: { clientOptions: clientOptions(options) },
    // What isn't for us is acked, or Slack would send it again.
    processEventErrorHandler: async ({ event }) => {
      await event
        .ack()
        .catch((error: unknown) => log.warn("slack.ack-failed", { error: messageOf(error) }));
      return false;
    },
  });
  receiver.init(app);
  const { client } = receiver;
  const over = Promise.withResolvers<string>();
  const closed = Promise.withResolvers<void>();
  let isEnding = false;

  client.on("disconnected", () => {
    over.resolve("the connection was closed");
    closed.resolve();
  });

  // The client's own listener is wrapped: it throws, unhandled, on an event envelope without an event (`app_rate_limited`).
  const [deliver] = client.listeners("ws_message");
  client.removeAllListeners("ws_message");
  client.on("ws_message", (data: unknown, isBinary: unknown) => {
    const envelope = typeof data === "string" ? parseJson(data) : undefined;
    const type = textAt(envelope, "type");
    if (type === "disconnect") over.resolve(textAt(envelope, "reason") || "disconnect");
    if (type === "events_api" && textAt(envelope, "payload", "event", "type") === "") {
      if (textAt(envelope, "payload", "type") === "app_rate_limited") options.onRateLimited?.();
      log.warn("slack.event-without-event", {
        type: textAt(envelope, "payload", "type").slice(0, 50),
      });
      const ack = JSON.stringify({ envelope_id: at(envelope, "envelope_id"), payload: {} });
      client.websocket?.send(ack, () => undefined);
      return;
    }
    Promise.try(() => deliver?.(data, isBinary)).catch((error: unknown) =>
      log.error("slack.envelope-failed", { error }),
    );
  });

  async function end(): Promise<void> {
    isEnding = true;
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, goodbyeMs);
    // The promise of disconnect() rejects or hangs in states it doesn't foresee; the event is what counts.
    client.disconnect().catch(() => undefined);
    await Promise.race([closed.promise, late]);
    clearTimeout(timer);
    closed.resolve();
  }

  return {
    over: over.promise,
    closed: closed.promise,
    end,
    async start(withinMs) {
      const { promise: late, reject } = Promise.withResolvers<never>();
      const timer = setTimeout(
        () => reject(new Error(`Slack said no hello within ${withinMs / 1000} s`)),
        withinMs,
      );
      const starting: Promise<unknown> = client.start();
      // It goes on after an end() that came in the middle, and would hold a connection nobody knows of.
      starting
        .then(
          () => (isEnding ? client.disconnect() : undefined),
          () => closed.resolve(),
        )
        .catch(() => undefined);
      try {
        await Promise.race([starting, late]);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
