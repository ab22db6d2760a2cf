import { once } from "node:events";
import { hash } from "node:crypto";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { buildWorld, type World, type WorldOptions } from "../../demo/world.ts";
import { verifyAudit } from "../../src/audit/verify.ts";
import { silentLog } from "../../src/log/log.ts";
import { connectRedis, createKeys } from "../../src/redis/redis.ts";
import { append, sealAll, testFolder } from "../audit/trail-of.ts";
import { type Figure, quantile } from "./figure.ts";
import { type Program, startGatehouse } from "./process.ts";
import { ask, running, tell } from "./told.ts";

const token = "fake-token-one";
const policy = `access: { operate: ["S01ONCALL"], administer: ["U0ADA"] }
limits: { requestsPerMinute: 10000 }
services:
  deploy:
    tokens: ["sha256:${hash("sha256", token)}"]
    view: ["*"]
    propose: [{ operations: ["vm.restart"] }]
    channel: C01OPS
    limits: { requestsPerMinute: 10000, openProposals: 1000 }
`;

/** A world with one Gatehouse in a process of its own, which has answered once. */
async function startWarm(options: WorldOptions = {}) {
  const programs = new AsyncDisposableStack();
  const world = programs.use(
    await buildWorld({
      roles: [],
      policy,
      env: { API_PORT: "0" },
      compute: { world: { projects: 4, vmsPerProject: 20 }, transitionMs: 300 },
      slack: { rateLimits: "off" },
      ...options,
    }),
  );
  const gatehouse = programs.use(await startGatehouse(world));
  await tell(world, ask(world, running(world).slice(-1), ["C01OPS"], 0));
  return { world, gatehouse, [Symbol.asyncDispose]: () => programs.disposeAsync() };
}

/** What people and programs wait for while a part is slow, away, or flooded, and how soon a freeze holds. */
export async function measureTroubles(): Promise<readonly Figure[]> {
  return [
    ...(await answersWithoutRedis()),
    ...(await answersOfSlowService()),
    ...(await longPolls()),
    ...(await freeze()),
    ...(await flood()),
    ...(await verifiedRecords()),
  ];
}

/** Resolves with how long Slack waited for the answer to each of so many commands (s). */
async function answers(world: World, command: string, count = 40): Promise<readonly number[]> {
  const olivia = world.slack.person("olivia");
  const took: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const began = performance.now();
    const { acked, error } = await olivia.types("C01OPS", command);
    if (!acked) throw new Error(`${command}: not answered: ${error}`);
    took.push((performance.now() - began) / 1000);
  }
  return took;
}

const slowest = (took: readonly number[]) => quantile(took, 0.95);

/** Slack waits three seconds, and shows "didn't respond" after that. */
const answerWithin = { unit: "s", most: 2.5 };

async function answersWithoutRedis(): Promise<readonly Figure[]> {
  await using one = await startWarm({ receive: "http" });
  const { world } = one;
  process.kill(world.redis?.pid ?? 0, "SIGSTOP");
  const hung = await answers(world, "/vm list");
  process.kill(world.redis?.pid ?? 0, "SIGCONT");
  await world.redis?.kill();
  const gone = await answers(world, "/vm list");
  return [
    {
      name: "a command over HTTP while Redis hangs, and while it is gone: 95% are answered within",
      values: [hung, gone].map((took) => ({ value: slowest(took), ...answerWithin })),
    },
  ];
}

async function answersOfSlowService(): Promise<readonly Figure[]> {
  await using one = await startWarm();
  const [vm = ""] = running(one.world);
  one.world.compute.weather({ match: "*", hang: "before" });
  return [
    {
      name: "a restart while the compute service hangs: 95% are acknowledged within",
      values: [{ value: slowest(await answers(one.world, `/vm restart ${vm}`)), ...answerWithin }],
    },
  ];
}

async function longPolls(): Promise<readonly Figure[]> {
  await using one = await startWarm();
  const { world, gatehouse } = one;
  const call = (path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${gatehouse.apiPort}/v1/${path}`, {
      ...init,
      headers: { authorization: `Bearer ${token}` },
    });
  const late: number[] = [];
  for (const vm of running(world).slice(0, 20)) {
    const body = JSON.stringify({ command: `vm restart ${vm}`, reason: "release 42" });
    const made = await call("proposals", { method: "POST", body });
    const { id } = (await made.json()) as { id: string };
    const waits = call(`requests/${id}?wait=30&after=open`).then((answer) => answer.json());
    const card = await world.slack.until(() =>
      world.slack.messages().find(({ blocks }) => JSON.stringify(blocks).includes(id)),
    );
    await world.slack.person("olivia").presses("Run", { in: card.ts });
    const began = performance.now();
    await waits;
    late.push((performance.now() - began) / 1000);
  }
  return [
    {
      name: "a program that waits for its proposal: from the press to its answer, 95% within",
      values: [{ value: quantile(late, 0.95), unit: "s", most: 1 }],
    },
  ];
}

async function freeze(): Promise<readonly Figure[]> {
  await using one = await startWarm();
  const { world } = one;
  const vms = running(world).slice(0, 60);
  const restarts = ask(
    world,
    vms,
    vms.map(() => "C01OPS"),
    3_000,
  );
  await world.slack.until(() => world.compute.writes().length > 10);
  await world.slack.person("ada").types("C01OPS", "/gatehouse freeze storage is failing");
  const began = Date.now();
  await sleep(5_000);
  const sent = world.compute.writes();
  if (sent.length >= restarts.length) throw new Error("all were sent before the freeze");
  const after = sent.map(({ at }) => Math.max(0, at - began));
  return [
    {
      name: "a freeze amid sixty restarts in three seconds: from its acknowledgment to the last call that changes something",
      values: [{ value: Math.max(...after) / 1000, unit: "s", most: 1 }],
    },
  ];
}

/** Bodies that never end, and whose signature is false. */
const floodOf = 500;
const bodyBytes = 1_000_000;

async function flood(): Promise<readonly Figure[]> {
  await using one = await startWarm({ receive: "http" });
  const { world, gatehouse } = one;
  const { port } = new URL(world.slack.app.requestUrl ?? "");
  const before = gatehouse.rssMb();
  const sockets: Socket[] = [];
  const started = String(Math.floor(Date.now() / 1000));
  try {
    for (let n = 0; n < floodOf; n += 1) {
      const socket = connect(Number(port), "127.0.0.1");
      sockets.push(socket);
      socket.on("error", () => undefined);
      await once(socket, "connect");
      socket.write(
        `POST /slack/events HTTP/1.1\r\nhost: here\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: ${bodyBytes}\r\nx-slack-request-timestamp: ${started}\r\nx-slack-signature: v0=${"0".repeat(64)}\r\n\r\n`,
      );
      socket.write(Buffer.alloc(bodyBytes - 1, "a"));
    }
    const took = await answers(world, "/gatehouse help", 20);
    return [
      {
        name: `${floodOf} unfinished bodies of ${bodyBytes / 1e6} MB: memory beyond idleness; 95% of commands are answered within`,
        values: [
          { value: peakBeyond(gatehouse, before), unit: "MB", most: 256 },
          { value: slowest(took), ...answerWithin },
        ],
      },
    ];
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

const peakBeyond = (program: Program, before: number) => Math.max(0, program.peakMb() - before);

async function verifiedRecords(): Promise<readonly Figure[]> {
  const count = 10_000;
  await using world = await buildWorld({ roles: [] });
  await using folder = await testFolder();
  const redis = await connectRedis(world.redisUrl, "commands", silentLog());
  const trail = { redis, key: createKeys() };
  try {
    await append(trail, count);
    await sealAll(trail, folder.path);
    const began = performance.now();
    const verdict = await verifyAudit({ ...trail });
    const took = (performance.now() - began) / 1000;
    if (verdict.standing === "broken" || !("sealed" in verdict) || verdict.sealed !== count)
      throw new Error(JSON.stringify(verdict));
    return [
      {
        name: `verifying an audit trail of ${count.toLocaleString("en")} records`,
        values: [{ value: took, unit: "s", most: 2 }],
      },
    ];
  } finally {
    redis.disconnect();
  }
}
