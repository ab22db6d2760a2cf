import { createServer } from "node:http";
import { listen } from "../../sandbox/listen.ts";
import { buildWorld, type World } from "../../demo/world.ts";
import { type Figure, quantile } from "./figure.ts";
import type { Load, Loaded } from "./load.ts";
import { startBolt, startGatehouse, startProgram } from "./process.ts";

const policy = `access: { view: ["*"] }\n`;

/** Each pair of processes is compiled anew, and one is as much as a third faster than another with the same code. */
const pairs = 3;

/**
 * How fast commands over HTTP are acknowledged, beside a Bolt app that adds a job of BullMQ before each acknowledgment. Both answer
 * with the same words.
 */
export async function measureThroughput(): Promise<readonly Figure[]> {
  const all: Awaited<ReturnType<typeof measurePair>>[] = [];
  for (let n = 0; n < pairs; n++) all.push(await measurePair());
  const median = (of: (pair: (typeof all)[number]) => number) => quantile(all.map(of), 0.5);
  const peerIs = "a Bolt app that adds a job of BullMQ before its ack";
  return [
    {
      name: `acknowledging 100 distinct commands a second over HTTP: p50; against ${peerIs}; p99`,
      values: [
        { value: median(({ halfMs }) => halfMs), unit: "ms" },
        { value: median(({ halfMs, peerHalfMs }) => halfMs / peerHalfMs), unit: "×", most: 1.5 },
        { value: median(({ lateMs }) => lateMs), unit: "ms", most: 25 },
      ],
    },
    {
      name: "32 clients with distinct commands: acknowledged a second; against the same app, which answers with the same text",
      values: [
        { value: median(({ perSecond }) => perSecond), unit: "" },
        {
          value: median(({ perSecond, peerPerSecond }) => perSecond / peerPerSecond),
          unit: "×",
          least: 0.4,
        },
      ],
    },
  ];
}

async function measurePair() {
  await using world = await buildWorld({
    roles: [],
    receive: "http",
    policy,
    slack: { rateLimits: "off" },
  });
  await using answers = await startAnswers(world.slack.apiUrl);
  const env = { ...world.env, SLACK_API_URL: answers.apiUrl };
  await using programs = new AsyncDisposableStack();
  programs.use(await startGatehouse({ ...world, env }));
  const port = Number(new URL(world.slack.app.requestUrl ?? "").port);
  await load(world, [port], answers.responseUrl, { turnsPaced: 1, turnsTogether: 0 });
  const peerEnv = { ...env, STORE_IN: world.redisUrl, ANSWER: answers.last() };
  const { told } = programs.use(await startBolt(peerEnv));
  const turns = { turnsPaced: 20, turnsTogether: 4 };
  const [ours, peer] = await load(world, [port, told], answers.responseUrl, turns);
  if (!ours || !peer) throw new Error("an app was not measured");
  const half = ({ pacedMs }: Loaded) => quantile(pacedMs, 0.5);
  const many = ({ perSecond }: Loaded) => quantile(perSecond, 0.5);
  return {
    halfMs: half(ours),
    peerHalfMs: half(peer),
    lateMs: quantile(ours.pacedMs, 0.99),
    perSecond: many(ours),
    peerPerSecond: many(peer),
  };
}

/** Takes what is answered after acks and forgets it: here its cost is the answerer's alone. All else is the sandbox Slack's. */
async function startAnswers(apiUrl: string) {
  let last = "{}";
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (!request.url?.startsWith("/api/")) {
        last = Buffer.concat(chunks).toString();
        response.end("ok");
        return;
      }
      const { authorization = "", "content-type": type = "" } = request.headers;
      void fetch(new URL(request.url.slice("/api/".length), apiUrl), {
        method: "POST",
        headers: { authorization, "content-type": type },
        body: Buffer.concat(chunks),
      })
        .then((answer) => answer.text())
        .then((text) => response.setHeader("content-type", "application/json").end(text));
    });
  });
  const listening = await listen(server, 0);
  return {
    apiUrl: `${listening.url}/api/`,
    responseUrl: `${listening.url}/answers`,
    /** What was answered last. */
    last: () => last,
    [Symbol.asyncDispose]: () => listening.close(),
  };
}

/** By port. */
async function load(
  world: World,
  ports: readonly number[],
  responseUrl: string,
  turns: Pick<Load, "turnsPaced" | "turnsTogether">,
): Promise<readonly Loaded[]> {
  const what: Load = {
    urls: ports.map((port) => `http://127.0.0.1:${port}/slack/events`),
    signingSecret: world.slack.app.signingSecret,
    teamId: world.slack.workspace.team.id,
    appId: world.slack.app.appId,
    responseUrl,
    clients: 32,
    ...turns,
    pacedForMs: 1_000,
    togetherForMs: 1_000,
  };
  await using program = await startProgram(
    ["test/bench/load.ts"],
    { BENCH: JSON.stringify(what) },
    (line) => (line.startsWith("[") ? (JSON.parse(line) as readonly Loaded[]) : undefined),
  );
  return program.told;
}
