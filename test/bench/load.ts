import { randomBytes } from "node:crypto";
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { signedHeaders } from "../../sandbox/slack/deliver/http-delivery.ts";

/** What to deliver, and to which apps. */
export interface Load {
  urls: readonly string[];
  signingSecret: string;
  teamId: string;
  appId: string;
  /** Where answers go after the ack. */
  responseUrl: string;
  clients: number;
  /** How often each app has its turn at a hundred a second, and with all clients, after those in which code gets warm. */
  turnsPaced: number;
  turnsTogether: number;
  /** A turn (ms). */
  pacedForMs: number;
  togetherForMs: number;
}

/** By app. */
export interface Loaded {
  /** Each ack at a hundred a second (ms). */
  pacedMs: readonly number[];
  /** Acks of all clients together, of each turn. */
  perSecond: readonly number[];
}

// Delivers `/gatehouse help` as Slack does over HTTP, each a command of its own: first a hundred a second, then from all
// clients as fast as they are acknowledged. The apps take short turns: whatever else this machine does strikes all, and none has
// time to give back its memory in between.
const load = JSON.parse(process.env["BENCH"] ?? "{}") as Load;
const agent = new Agent({ keepAlive: true, maxSockets: load.clients });
const warmPart = 0.15;
/** What one app still does after its last ack mustn't cost the next one. */
const pauseMs = 250;

function bodyOf(triggerId: string): string {
  return new URLSearchParams({
    token: "sandbox-verification-token",
    team_id: load.teamId,
    team_domain: "confidential",
    channel_id: "C01OPS",
    channel_name: "ops",
    user_id: "U0OLIVIA",
    user_name: "olivia",
    command: "/gatehouse",
    text: "help",
    api_app_id: load.appId,
    is_enterprise_install: "false",
    response_url: load.responseUrl,
    trigger_id: triggerId,
  }).toString();
}

/** Resolves with how long the ack took (ms). */
function deliver(url: string, triggerId: string): Promise<number> {
  const body = bodyOf(triggerId);
  const headers = {
    "content-type": "application/x-www-form-urlencoded",
    "content-length": Buffer.byteLength(body),
    ...signedHeaders(load.signingSecret, Math.floor(Date.now() / 1000), body),
  };
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const began = performance.now();
  const call = request(url, { method: "POST", agent, headers }, (response) => {
    const took = performance.now() - began;
    response.resume().on("end", () => {
      if (response.statusCode === 200) resolve(took);
      else reject(new Error(`not acknowledged: ${response.statusCode}`));
    });
  });
  call.on("error", reject).end(body);
  return promise;
}

const newId = () => randomBytes(12).toString("hex");

const pacedEveryMs = 10;

/** Each when its time has come: what an app still does after one ack may delay the next. */
async function paced(url: string): Promise<number[]> {
  const began = performance.now();
  const delivered: Promise<number>[] = [];
  for (let atMs = 0; atMs < load.pacedForMs; atMs += pacedEveryMs) {
    await sleep(Math.max(0, began + atMs - performance.now()));
    delivered.push(deliver(url, newId()));
  }
  return Promise.all(delivered);
}

async function together(url: string): Promise<number> {
  const untilMs = performance.now() + load.togetherForMs;
  const again = async () => {
    let count = 0;
    for (; performance.now() < untilMs; count += 1) await deliver(url, newId());
    return count;
  };
  const counts = await Promise.all(Array.from({ length: load.clients }, again));
  return counts.reduce((sum, count) => sum + count, 0) / (load.togetherForMs / 1000);
}

/** What each app did in its turns, without those in which code gets warm. Every second time they come in reverse. */
async function inTurns<T>(turns: number, act: (url: string) => Promise<T>): Promise<T[][]> {
  const warm = Math.ceil(turns * warmPart);
  const apps = load.urls.map((url) => ({ url, done: [] as T[] }));
  for (let turn = 0; turn < warm + turns; turn += 1)
    for (const { url, done } of turn % 2 === 0 ? apps : apps.toReversed()) {
      await sleep(pauseMs);
      const result = await act(url);
      if (turn >= warm) done.push(result);
    }
  return apps.map(({ done }) => done);
}

const pacedMs = await inTurns(load.turnsPaced, paced);
const perSecond = await inTurns(load.turnsTogether, together);
const all = load.urls.map((_, place): Loaded => ({
  pacedMs: pacedMs[place]?.flat() ?? [],
  perSecond: perSecond[place] ?? [],
}));
process.stdout.write(`${JSON.stringify(all)}\n`);
agent.destroy();
