import { createServer } from "node:http";
import { listen } from "../../sandbox/listen.ts";
import { startWorld, type World } from "../../sandbox/world.ts";
import { type Figure, quantile } from "./figure.ts";
import type { Load, Loaded } from "./load.ts";
import { startBolt, startGatehouse, startProgram } from "./process.ts";

const policy = `access: { view: ["*"] }\n`;

/** How fast deliveries over HTTP are acknowledged, beside a Bolt app that only acknowledges, and one that also stores and answers each. */
export async function measureThroughput(): Promise<readonly Figure[]> {
  await using world = await startWorld({
    roles: [],
    receive: "http",
    policy,
    slack: { rateLimits: "off" },
  });
  await using bare = await startBolt(world.env);
  await using storing = await startBolt({ ...world.env, STORE_IN: world.redisUrl });
  await using answers = await startAnswers(world.slack.apiUrl);
  const env = { ...world.env, SLACK_API_URL: answers.apiUrl };
  await using programs = new AsyncDisposableStack();
  programs.use(await startGatehouse({ ...world, env }));
  const port = Number(new URL(world.slack.app.requestUrl ?? "").port);
  const ports = [port, bare.told, storing.told];
  const [ours, peer, storer] = await load(world, ports, answers.responseUrl);
  if (!ours || !peer || !storer) throw new Error("an app was not measured");
  const beside = (all: Loaded, of: (one: Loaded) => number) => ({
    value: of(all),
    times: of(all) / of(peer),
  });
  const to = "a Bolt app that only acks";
  const half = ({ oneMs }: Loaded) => quantile(oneMs, 0.5);
  const most = ({ oneMs }: Loaded) => quantile(oneMs, 0.99);
  const p50 = beside(ours, half);
  const p99 = beside(ours, most);
  const stored50 = beside(storer, half);
  const stored99 = beside(storer, most);
  const many = beside(ours, ({ perSecond }) => quantile(perSecond, 0.5));
  return [
    {
      name: "ack over HTTP, one client, a hundred commands a second: p50",
      value: p50.value,
      unit: "ms",
      ratio: { to, times: p50.times, bound: 1.7 },
    },
    {
      name: "… p99",
      value: p99.value,
      unit: "ms",
      ratio: { to, times: p99.times, bound: 1.5 },
    },
    {
      name: "the same of a Bolt app that stores each before its ack and answers it after: p50",
      value: stored50.value,
      unit: "ms",
      ratio: { to, times: stored50.times },
    },
    { name: "… p99", value: stored99.value, unit: "ms", ratio: { to, times: stored99.times } },
    {
      name: "acks over HTTP a second, 32 clients that each deliver the same again and again",
      value: many.value,
      unit: "",
      ratio: { to, times: many.times, least: 0.6 },
    },
  ];
}

/** Takes what is answered after acks and forgets it: here its cost is the answerer's alone. All else is the sandbox Slack's. */
async function startAnswers(apiUrl: string) {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (!request.url?.startsWith("/api/")) {
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
    [Symbol.asyncDispose]: () => listening.close(),
  };
}

/** By port. */
async function load(
  world: World,
  ports: readonly number[],
  responseUrl: string,
): Promise<readonly Loaded[]> {
  const what: Load = {
    urls: ports.map((port) => `http://127.0.0.1:${port}/slack/events`),
    signingSecret: world.slack.app.signingSecret,
    teamId: world.slack.workspace.team.id,
    appId: world.slack.app.appId,
    responseUrl,
    clients: 32,
    turnsAlone: 64,
    aloneForMs: 1_000,
    turnsTogether: 8,
    togetherForMs: 1_000,
  };
  await using program = await startProgram(
    ["test/bench/load.ts"],
    { BENCH: JSON.stringify(what) },
    (line) => (line.startsWith("[") ? (JSON.parse(line) as readonly Loaded[]) : undefined),
  );
  return program.told;
}
