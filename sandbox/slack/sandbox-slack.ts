import { createServer } from "node:http";
import { listen } from "../listen.ts";
import type { PersonActions } from "./actions.ts";
import { type WorkspaceEdits, workspaceEdits } from "./acts/edits.ts";
import { personActions } from "./acts/person.ts";
import { type Acked, Deliveries, type Delivery, type DeliveryKind } from "./deliver/deliveries.ts";
import { type HttpAnswer, post, sign } from "./deliver/http-delivery.ts";
import { SocketMode } from "./deliver/socket-mode.ts";
import { describeWorkspace } from "./describe-seen.ts";
import type { Seen } from "./seen.ts";
import { type AppSettings, settingsFromManifest } from "./state/app-settings.ts";
import { usualPatience, type Waiting } from "./state/changes.ts";
import { everyMessage } from "./state/messages.ts";
import { addBot } from "./state/people.ts";
import type { Team } from "./state/records.ts";
import { seedDemo } from "./state/seed.ts";
import { seenBy } from "./state/seen-by.ts";
import { Workspace } from "./state/workspace.ts";
import { send } from "./web-api/answer-call.ts";
import { CallLog, type CallRecord } from "./web-api/call-log.ts";
import { answerRequest } from "./web-api/http-server.ts";
import { RateCounter, type RateLimits } from "./web-api/rate-limits.ts";
import { Weather } from "./web-api/weather.ts";

export interface SandboxSlackOptions {
  /** 0, the default: any free one. Always on 127.0.0.1. */
  port?: number;
  /**
   * The app's manifest, parsed from YAML or JSON: its name, commands, shortcuts, scopes, and events. Without it the app is one that
   * was just created, and may do nothing yet.
   */
  manifest?: unknown;
  /** What is to be otherwise than the manifest says, and what a manifest doesn't say. */
  app?: Partial<AppSettings>;
  /** Default: Confidential, `T01CONF`. */
  team?: Partial<Team>;
  /** Default `slack`: the original's. */
  rateLimits?: RateLimits;
  /** People, groups, and channels, beside the app's bot; default `seedDemo`. */
  seed?: (workspace: Workspace) => void;
  /** For the weather's dice. */
  weatherSeed?: number;
  /** Milliseconds since the epoch. */
  now?: () => number;
  /** Told of every call, also of those that are forgotten later. */
  onCall?: (record: CallRecord) => void;
  /** How those who wait for something to be seen do it. */
  waiting?: Partial<Waiting>;
}

export interface SandboxSlack extends AsyncDisposable {
  url: string;
  /** What goes into SLACK_API_URL. */
  apiUrl: string;
  /** The app's settings. Change them as on Slack's settings page; `requestUrl` switches from Socket Mode to HTTP. */
  app: AppSettings;
  workspace: Workspace;
  weather: Weather;
  socketMode: SocketMode;
  edit: WorkspaceEdits;
  person(who: string): PersonActions;
  seenBy(who: string): Seen;
  /** Called after every change; returns the function that stops it. */
  onChange(listener: () => void): () => void;
  /** Resolves as soon as `wanted` gives something other than undefined or false; looks at every change. */
  until<T>(wanted: () => T | undefined | false): Promise<T>;
  /** Resolves when the app has this many Socket Mode connections. */
  connected(count?: number): Promise<number>;
  calls(method?: string): CallRecord[];
  callCounts(): Record<string, number>;
  forgetCalls(): void;
  deliveries(kind?: DeliveryKind): readonly Delivery[];
  /** Sends a delivery again, byte for byte; see `Deliveries.repeat`. */
  redeliver(
    delivery: Delivery | string,
    change?: { headers?: Record<string, string | undefined>; atSeconds?: number },
  ): Promise<Acked>;
  /** Posts anything to the request URL, as anybody on the internet could. */
  sendRaw(body: string, headers: Record<string, string>): Promise<HttpAnswer>;
  /** The signature Slack would put on it. */
  sign(timestampSeconds: number, body: string): string;
  setRateLimits(limits: RateLimits): void;
  /** Every message in the workspace, metadata included. */
  messages(): ReturnType<typeof everyMessage>;
  close(): Promise<void>;
}

/** Starts a Slack of our own: one workspace, one app, strict like the original. */
export async function startSandboxSlack(options: SandboxSlackOptions = {}): Promise<SandboxSlack> {
  const app = { ...settingsFromManifest(options.manifest), ...options.app };
  const workspace = new Workspace(app, options.now ?? Date.now);
  Object.assign(workspace.team, options.team);
  const weather = new Weather(options.weatherSeed);
  const rates = new RateCounter(options.rateLimits ?? "slack");
  const calls = new CallLog(options.onCall);
  const socketMode = new SocketMode(workspace);
  const deliveries = new Deliveries(workspace, socketMode);
  const parts = { workspace, weather, rates, calls };

  const server = createServer((request, response) => {
    response.setHeader("date", new Date(workspace.now()).toUTCString());
    answerRequest(parts, request, response).catch((error: unknown) => {
      console.error("sandbox slack:", error);
      if (!response.headersSent) send(response, { status: 500, body: "internal_error" });
    });
  });
  server.on("upgrade", (request, socket, head) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://sandbox");
    if (pathname.startsWith("/link")) socketMode.accept(request, socket, head, searchParams);
    else socket.destroy();
  });
  const listening = await listen(server, options.port ?? 0);
  workspace.url = listening.url;
  const seed = options.seed ?? seedDemo;
  addBot(workspace);
  seed(workspace);

  const waiting: Waiting = { patience: usualPatience, explain: () => "", ...options.waiting };
  const until = <T>(wanted: () => T | undefined | false) =>
    workspace.changes.until(
      () => wanted() || undefined,
      waiting.patience,
      () =>
        `${String(wanted)}; ${describeWorkspace(workspace, calls.counts())}${waiting.explain()}`,
    );
  const close = async () => {
    deliveries.close();
    socketMode.close();
    await listening.close();
  };
  return {
    url: workspace.url,
    apiUrl: `${workspace.url}/api/`,
    app,
    workspace,
    weather,
    socketMode,
    edit: workspaceEdits(workspace, deliveries),
    person: (who) => personActions(workspace, deliveries, who, waiting),
    seenBy: (who) => seenBy(workspace, who),
    onChange: (listener) => workspace.changes.listen(listener),
    until,
    connected: (count = 1) =>
      until(() => (socketMode.connections >= count ? socketMode.connections : undefined)),
    calls: (method) => calls.list(method),
    callCounts: () => calls.counts(),
    forgetCalls: () => calls.forget(),
    deliveries: (kind) =>
      deliveries.list.filter((delivery) => kind === undefined || delivery.kind === kind),
    redeliver: (delivery, change) =>
      deliveries.repeat(typeof delivery === "string" ? delivery : delivery.id, change),
    sendRaw: (body, headers) => {
      if (app.requestUrl === undefined)
        throw new Error("Without a request URL nobody can post to the app");
      return post(app.requestUrl, body, headers, app.ackTimeoutMs);
    },
    sign: (timestampSeconds, body) => sign(app.signingSecret, timestampSeconds, body),
    setRateLimits: (limits) => rates.set(limits),
    messages: () => everyMessage(workspace),
    close,
    [Symbol.asyncDispose]: close,
  };
}
