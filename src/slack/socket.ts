import { setTimeout as delay } from "node:timers/promises";
import type { App, Receiver } from "@slack/bolt";
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { textAt } from "./payload.ts";
import { openSession, type Session } from "./socket-session.ts";

export interface SlackSocket {
  /** For Bolt's App. `start` begins connecting and resolves with the first connection. */
  readonly receiver: Receiver;
  /** Slack has said hello on the connection we hold now. */
  connected(): boolean;
  /** Why not, in a few words; undefined while connected. */
  problem(): string | undefined;
  /** Ends the connection and never opens another; waits at most two seconds for Slack's goodbye. */
  close(): Promise<void>;
}

export interface SlackSocketOptions {
  appToken: string;
  apiUrl: string;
  log: Log;
  /** Slack drops our events for a while: 30,000 per hour and workspace are delivered. */
  onRateLimited?: (() => void) | undefined;
  onConnected?: ((isConnected: boolean) => void) | undefined;
}

const helloWithinMs = 20_000;
const slowestRetryMs = 15_000;

/**
 * Holds one Socket Mode connection at a time, a new client for each. Reconnecting is ours and not the client's: its own waits
 * five seconds after every refresh of Slack's, leaves rejections unhandled when that fails, and can't be stopped in
 * the middle (@slack/socket-mode 3.1.0).
 */
export function createSlackSocket(options: SlackSocketOptions): SlackSocket {
  const { log } = options;
  const closing = new AbortController();
  const open = new Set<Session>();
  const first = Promise.withResolvers<void>();
  let app: App | undefined;
  let isConnected = false;
  let problem: string | undefined = "not connected yet";
  let running: Promise<void> | undefined;

  function tell(now: boolean, why?: string): void {
    problem = why;
    if (now === isConnected) return;
    isConnected = now;
    options.onConnected?.(now);
    log.info(now ? "slack.connected" : "slack.disconnected", why === undefined ? {} : { why });
  }

  /** One connection from opening to its end; true when Slack said hello. */
  async function hold(session: Session): Promise<boolean> {
    open.add(session);
    void session.closed.then(() => open.delete(session));
    try {
      await session.start(helloWithinMs);
    } catch (error) {
      tell(false, reasonOf(error));
      log.warn("slack.connect-failed", { why: problem });
      void session.end();
      return false;
    }
    tell(true);
    first.resolve();
    const why = await session.over;
    // The next connection is opened at once, while this one still closes.
    tell(false, `reconnecting: ${why}`);
    void session.end();
    return true;
  }

  async function run(to: App): Promise<void> {
    let failures = 0;
    while (!closing.signal.aborted) {
      failures = (await hold(openSession(options, to))) ? 0 : failures + 1;
      const waitMs =
        failures === 0
          ? 50
          : Math.min(slowestRetryMs, 250 * 2 ** Math.min(failures, 8)) * (0.5 + Math.random() / 2);
      await delay(waitMs, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  }

  async function close(): Promise<void> {
    closing.abort();
    tell(false, "closed");
    first.resolve();
    await Promise.all([...open].map((session) => session.end()));
    await running;
    await Promise.all([...open].map((session) => session.end()));
  }

  const receiver: Receiver = {
    init(given) {
      app = given;
    },
    async start() {
      if (app === undefined) throw new Error("the receiver has no app");
      running ??= run(app);
      await first.promise;
    },
    stop: close,
  };
  return { receiver, connected: () => isConnected, problem: () => problem, close };
}

function reasonOf(error: unknown): string {
  const code = textAt(error, "data", "error");
  return code === ""
    ? messageOf(error ?? "closed before Slack said hello")
    : `Slack refuses the app token: ${code}`;
}

/**
 * Rejections that @slack/socket-mode leaves unhandled when Slack goes away at a bad moment. None should come any more;
 * for main's last resort, which logs them instead of ending the process.
 */
export function isKnownSocketRejection(error: unknown): boolean {
  if (error === undefined) return true; // its start(), when disconnect() comes first
  if (textAt(error, "code").startsWith("slack_socket_mode_")) return true;
  return /@slack[/\\]socket-mode/.test(textAt(error, "stack"));
}
