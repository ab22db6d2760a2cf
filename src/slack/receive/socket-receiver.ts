import { setTimeout as delay } from "node:timers/promises";
import { type App, SocketModeReceiver } from "@slack/bolt";
import type { Dispatcher } from "undici";
import { type Live, currentValue } from "../../config/changing-file.ts";
import { within } from "../../deadline.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { slackLogger } from "../../log/slack-logger.ts";
import { at, textAt } from "../json.ts";
import { parseJson } from "../../text/parse-json.ts";
import { clientOptions } from "../web.ts";
import type { ProcessEvent } from "./process-event.ts";

interface SocketReceiverOptions {
  processEvent: ProcessEvent;
  /** Each new connection uses the current token. */
  appToken: Live;
  apiUrl: string;
  /**
   * For a WebSocket through a proxy, because the client uses the process's own dispatcher only for
   * the Web API.
   */
  dispatcher?: Dispatcher | undefined;
  log: Log;
}

const helloWithinMs = 20_000;
const slowestRetryMs = 15_000;

/**
 * Keeps one Socket Mode connection, with a new client for each. The client's own reconnect isn't
 * used: it waits five seconds after each refresh by Slack, leaves rejections unhandled, and can't
 * be stopped midway (@slack/socket-mode 3.1.0).
 */
export function createSocketReceiver(options: SocketReceiverOptions) {
  const { log } = options;
  const closing = new AbortController();
  const open = new Set<ReturnType<typeof openSession>>();
  const first = Promise.withResolvers<void>();
  /** Why it isn't connected. Undefined while it is. */
  let problem: string | undefined = "not connected yet";
  let running: Promise<void> | undefined;

  function reportProblem(why: string | undefined): void {
    const was = problem;
    problem = why;
    if (why === undefined && was !== undefined) log.info("slack.connected", {});
    if (why !== undefined && was === undefined) log.info("slack.disconnected", { why });
  }

  /** Runs one connection from start to end. Resolves with true when Slack said hello. */
  async function hold(session: ReturnType<typeof openSession>): Promise<boolean> {
    open.add(session);
    void session.closed.then(() => open.delete(session));
    try {
      await session.start(helloWithinMs);
    } catch (error) {
      reportProblem(reasonOf(error));
      log.warn("slack.connect-failed", { why: problem });
      void session.end();
      return false;
    }
    reportProblem(undefined);
    first.resolve();
    const why = await session.over;
    // The next connection opens while this one is still closing.
    reportProblem(`reconnecting: ${why}`);
    void session.end();
    return true;
  }

  async function run(): Promise<void> {
    let failures = 0;
    while (!closing.signal.aborted) {
      failures = (await hold(openSession(options))) ? 0 : failures + 1;
      const waitMs =
        failures === 0
          ? 50
          : Math.min(slowestRetryMs, 250 * 2 ** Math.min(failures, 8)) * (0.5 + Math.random() / 2);
      await delay(waitMs, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  }

  /** Ends the connection for good. Waits at most two seconds for Slack to close it. */
  async function close(): Promise<void> {
    closing.abort();
    reportProblem("closed");
    first.resolve();
    await Promise.all([...open].map((session) => session.end()));
    await running;
    await Promise.all([...open].map((session) => session.end()));
  }

  return {
    /** Resolves with the first connection. */
    async start(): Promise<void> {
      running ??= run();
      await first.promise;
    },
    /** Why it isn't connected. Undefined while it is. */
    problem: () => problem,
    close,
  };
}

function reasonOf(error: unknown): string {
  const code = textAt(error, "data", "error");
  return code === ""
    ? messageOf(error ?? "closed before Slack said hello")
    : `Slack rejected the app token (${code})`;
}

const goodbyeMs = 2_000;

function openSession(options: SocketReceiverOptions) {
  const { log } = options;
  const receiver = new SocketModeReceiver({
    appToken: currentValue(options.appToken),
    autoReconnectEnabled: false,
    ...(options.dispatcher && { dispatcher: options.dispatcher }),
    logger: slackLogger(log),
    installerOptions: { clientOptions: clientOptions(options) },
    // A refused delivery is acknowledged, because Slack would otherwise deliver it again.
    processEventErrorHandler: async ({ event }) => {
      await event
        .ack()
        .catch((error: unknown) => log.warn("slack.ack-failed", { error: messageOf(error) }));
      return false;
    },
  });
  // The receiver calls nothing else of an App.
  receiver.init({ processEvent: options.processEvent } as Pick<App, "processEvent"> as App);
  const { client } = receiver;
  const over = Promise.withResolvers<string>();
  const closed = Promise.withResolvers<void>();
  let isEnding = false;

  client.on("disconnected", () => {
    over.resolve("the connection was closed");
    closed.resolve();
  });

  // Wraps the client's listener, which throws an unhandled error for an envelope without an event
  // (`app_rate_limited`).
  const [deliver] = client.listeners("ws_message");
  // If an update renames this event, deliveries must not be dropped silently.
  if (deliver === undefined) throw new Error("@slack/socket-mode has no listener for messages");
  client.removeAllListeners("ws_message");
  client.on("ws_message", (data: unknown, isBinary: unknown) => {
    const envelope = typeof data === "string" ? parseJson(data) : undefined;
    const type = textAt(envelope, "type");
    if (type === "disconnect") over.resolve(textAt(envelope, "reason") || "disconnect");
    if (type === "events_api" && textAt(envelope, "payload", "event", "type") === "") {
      log.warn("slack.event-without-event", {
        type: textAt(envelope, "payload", "type").slice(0, 50),
      });
      const ack = JSON.stringify({ envelope_id: at(envelope, "envelope_id"), payload: {} });
      client.websocket?.send(ack, () => undefined);
      return;
    }
    Promise.try(() => deliver(data, isBinary)).catch((error: unknown) =>
      log.error("slack.envelope-failed", { error }),
    );
  });

  async function end(): Promise<void> {
    isEnding = true;
    // The promise of disconnect() may reject or hang; the event is reliable.
    client.disconnect().catch(() => undefined);
    await within(goodbyeMs, closed.promise, () => undefined);
    closed.resolve();
  }

  return {
    /** Resolves with the reason when the session ends, or Slack announces its end. */
    over: over.promise,
    closed: closed.promise,
    end,
    /** Rejects when Slack hasn't said hello in time. */
    async start(withinMs: number): Promise<void> {
      const starting: Promise<unknown> = client.start();
      // The client's start continues after an end() midway, and would leave a connection open.
      starting
        .then(
          () => (isEnding ? client.disconnect() : undefined),
          () => closed.resolve(),
        )
        .catch(() => undefined);
      await within(withinMs, starting, () => {
        throw new Error(`Slack said no hello within ${withinMs / 1000} s`);
      });
    },
  };
}
