import { randomBytes } from "node:crypto";
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { signedHeaders } from "../../sandbox/slack/deliver/http-delivery.ts";

/** What to deliver, and to whom. */
export interface Load {
  url: string;
  signingSecret: string;
  teamId: string;
  appId: string;
  /** Where answers go after the ack. */
  responseUrl: string;
  clients: number;
  /** How long one client delivers, then all of them (ms). */
  oneForMs: number;
  manyForMs: number;
}

export interface Loaded {
  /** Each ack of one client alone. */
  oneMs: readonly number[];
  /** Acks of all clients together. */
  perSecond: number;
}

// Delivers `/gatehouse help` as Slack does over HTTP: first one client, a hundred new ones a second, then all of them as fast as
// they are acknowledged, each the same delivery again: so what is counted is receiving, not the answers to help.
const load = JSON.parse(process.env["BENCH"] ?? "{}") as Load;
const agent = new Agent({ keepAlive: true, maxSockets: load.clients });

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
function deliver(triggerId: string): Promise<number> {
  const body = bodyOf(triggerId);
  const headers = {
    "content-type": "application/x-www-form-urlencoded",
    "content-length": Buffer.byteLength(body),
    ...signedHeaders(load.signingSecret, Math.floor(Date.now() / 1000), body),
  };
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const began = performance.now();
  const call = request(load.url, { method: "POST", agent, headers }, (response) => {
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

async function alone(untilMs: number): Promise<number[]> {
  const took: number[] = [];
  while (performance.now() < untilMs) {
    await sleep(10);
    took.push(await deliver(newId()));
  }
  return took;
}

async function together(untilMs: number): Promise<number> {
  const id = newId();
  let count = 0;
  for (; performance.now() < untilMs; count += 1) await deliver(id);
  return count;
}

const oneMs = await alone(performance.now() + load.oneForMs);
const untilMs = performance.now() + load.manyForMs;
const counts = await Promise.all(Array.from({ length: load.clients }, () => together(untilMs)));
const perSecond = counts.reduce((sum, count) => sum + count, 0) / (load.manyForMs / 1000);
process.stdout.write(`${JSON.stringify({ oneMs, perSecond } satisfies Loaded)}\n`);
agent.destroy();
