import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { Redis } from "ioredis";
import type { PersonActions } from "../../sandbox/slack/actions.ts";
import type { startRedis as startOurRedis } from "../../sandbox/ensure-redis.ts";
import type { startWorld as startOurWorld } from "../../sandbox/world.ts";
import type { State } from "./state.ts";

/**
 * Makes the state file that an older version leaves behind in the middle of its work: what stands in Redis, in Slack, in the
 * compute service, and in its data directory. Run it with a checkout of that version, whose own code then does everything:
 *
 *     git worktree add /tmp/older COMMIT && ln -s "$PWD/node_modules" /tmp/older/
 *     node test/upgrade/make-state.ts /tmp/older NAME
 */
const [folder = "", name = ""] = process.argv.slice(2);
const older = path.resolve(folder);
const sandbox = existsSync(path.join(older, "sandbox/world.ts")) ? "sandbox" : "src/sandbox";
// As they were then: close enough to ours for what is asked of them here
const { startWorld } = (await import(path.join(older, sandbox, "world.ts"))) as {
  startWorld: typeof startOurWorld;
};
const { startRedis } = (await import(path.join(older, sandbox, "ensure-redis.ts"))) as {
  startRedis: typeof startOurRedis;
};

const policy = `access:
  view: ["*"]
  operate: ["S01ONCALL"]
  approve: ["S02LEADS"]
  administer: ["U0ADA"]
approvals: [{ operations: ["vm.snapshot"], targets: ["vm-0000-005"], required: 1 }]
audit: { channel: C03AUDIT }
alerts: { channel: C02STATUS }
timing: { httpTimeout: 2s, claimWindow: 500ms, quiesce: 4500ms, settleDeadline: 60s, restartMark: 5s, pollFirst: 50ms, pollMost: 200ms, stableGap: 50ms, sweep: 200ms, heartbeat: 200ms }
`;
const redisServer = await startRedis({
  dir: await mkdtemp(path.join(tmpdir(), "gatehouse-older-")),
});
const redis = new Redis(redisServer.url);
const world = await startWorld({
  policy,
  redisUrl: redisServer.url,
  slack: { rateLimits: "off" },
  compute: {
    world: { projects: 1, vmsPerProject: 12 },
    transitionMs: { restart: 60, start: 60, snapshot: 60, stop: 600_000 } as never,
  },
});
const olivia: PersonActions = world.slack.person("olivia");
const vm = (number: number) => `vm-0000-${String(number).padStart(3, "0")}`;

async function stateOf(target: string, command: string): Promise<string | undefined> {
  for (const key of await redis.keys("{gatehouse}:request:*")) {
    if ((await redis.type(key)) !== "hash") continue;
    const { record = "{}", state } = await redis.hgetall(key);
    const read = JSON.parse(record) as { command?: string; target?: { id: string } };
    if (read.command === command && read.target?.id === target) return state;
  }
  return undefined;
}
async function reaches(target: string, command: string, wanted: string): Promise<void> {
  const deadline = performance.now() + 30_000;
  for (;;) {
    const state = await stateOf(target, command);
    if (state === wanted) return;
    if (performance.now() > deadline) throw new Error(`${command} ${target} is ${state}`);
    await sleep(20);
  }
}
async function asks(words: string, number: number, wanted: string, more = ""): Promise<void> {
  await olivia.types("ops", `/${words} ${vm(number)} ${more}`.trim());
  await reaches(vm(number), words, wanted);
}

await asks("vm restart", 0, "done");
await asks("vm snapshot", 1, "done", "nightly");
world.compute.weather({ match: `POST /v1/vms/${vm(2)}/snapshot*`, lost: "after" });
await asks("vm snapshot", 2, "unknown", "nobody-knows");
await olivia.types("ops", "/gatehouse digest on 09:00 Europe/Paris mon-fri");
await asks("vm snapshot", 5, "draft", "before-the-upgrade");
await olivia.types("ops", `/vm stop ${vm(6)} ${vm(7)} ${vm(8)}`);
await world.slack.until(() => world.slack.seenBy("olivia").modals.length > 0);
await sleep(500); // the dialog is filled in later
await olivia.submits({ "roll:most": "1" });
await reaches(vm(6), "vm stop", "accepted");
await asks("vm stop", 3, "accepted");
await asks("vm restart", 3, "authorized");
const drawn = () => world.slack.messages().length;
for (let seen = -1; seen !== drawn(); await sleep(1500)) seen = drawn();
// From now on Slack takes nothing more from Gatehouse, and two calls hang
for (const method of ["chat.postMessage", "chat.update"])
  world.slack.weather.add({ method, kind: "server-error" });
await asks("vm restart", 10, "done");
world.compute.edit.setStatus({ vm: vm(4), status: "STOPPED" });
world.compute.weather({ match: `POST /v1/vms/${vm(4)}/start`, hang: "after" });
world.compute.weather({ match: `POST /v1/vms/${vm(9)}/stop`, hang: "before" });
await sleep(300);
await Promise.all([asks("vm start", 4, "sending"), asks("vm stop", 9, "sending")]);
await sleep(100); // both calls are under way

// As text, which every Redis reads
await redis.config("SET", "aof-use-rdb-preamble", "no");
const [seconds, micros] = await redis.time();
await redis.bgrewriteaof();
while (/aof_rewrite_in_progress:1/.test(await redis.info("persistence"))) await sleep(20);
const aofs = path.join(redisServer.dir, "appendonlydir");
const base = (await readdir(aofs)).filter((one) => one.endsWith(".base.aof")).at(-1) ?? "";

const data: Record<string, string> = {};
const dataDir = world.env["DATA_DIR"] ?? "";
for (const entry of await readdir(dataDir, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue;
  const file = path.join(entry.parentPath, entry.name);
  data[path.relative(dataDir, file)] = await readFile(file, "utf8");
}
const state: State = {
  atMs: Number(seconds) * 1000 + Math.floor(Number(micros) / 1000),
  policy,
  redis: await readFile(path.join(aofs, base), "utf8"),
  data,
  vms: Array.from({ length: 12 }, (_, number) => {
    const { createdAt } = world.compute.edit.findVm(vm(number));
    return { id: vm(number), createdAt };
  }),
  messages: [...world.slack.workspace.messages.values()]
    .flat()
    .map((message) => ({ ...message, reactions: [] })),
};
const target = path.join(import.meta.dirname, `${name}.json.gz`);
await writeFile(target, gzipSync(JSON.stringify(state), { level: 9 }));
await redisServer.kill();
process.stdout.write(`${target}: ${JSON.stringify(state).length} characters\n`);
process.exit(0);
