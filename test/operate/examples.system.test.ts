import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseEnv, promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { verifyAudit } from "../../src/audit/verify.ts";
import { loadConfig } from "../../src/config/config.ts";
import { root } from "../structure/sources.ts";
import { hears } from "../stories/words.ts";
import { composeRedis, composeServices, filledIn } from "../support/compose.ts";
import { portsOf, startNode } from "../support/start-program.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";
import { policyTerms } from "../../src/features/index.ts";
import { until } from "../support/until.ts";
import { imageStarts } from "./deployed.ts";

/** A process as an example starts it: its command line and its variables, as they stand there. */
interface Example {
  name: string;
  words: readonly string[];
  variables: Readonly<Record<string, string>>;
}

const fileOf = (name: string) => readFileSync(path.join(root, name), "utf8");

/**
 * Starts them with what is in a container, or on a server, put in its place here. Resolves when all serve. `areReady`: whether all
 * say so of themselves.
 */
async function startExamples(
  world: TestWorld,
  examples: readonly Example[],
  more: Readonly<Record<string, string>> = {},
): Promise<AsyncDisposable & { secrets: string; areReady(): Promise<boolean> }> {
  const ports: (number | undefined)[] = [];
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-example-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const secrets = path.join(folder, "secrets");
  await mkdir(secrets);
  for (const [name, value] of Object.entries(world.env))
    await writeFile(path.join(secrets, name.toLowerCase().replaceAll("_", "-")), value);
  const start = async ({ name, words, variables }: Example) => {
    const places = [
      [/^\/(config|etc\/gatehouse)\/gatehouse\.yml$/, path.join(root, "gatehouse.example.yml")],
      [/^\/(data|var\/lib\/.*)$/, path.join(folder, name)],
      [/^(\/run\/secrets\/gatehouse|\/etc\/gatehouse\/secrets(\/inbound)?)(?=\/)/, secrets],
    ] as const;
    const isHttp = Object.entries(variables).some(
      ([variable, value]) => variable.startsWith("SLACK_SIGNING_SECRET") && value !== "",
    );
    const here = Object.entries(variables).map(([variable, value]) => {
      let text = value;
      for (const [there, place] of places) text = text.replace(there, place);
      return [variable, text] as const;
    });
    const [program = "", ...rest] = words;
    expect(path.basename(program)).toBe("node");
    const example = stack.use(
      startNode(
        rest.map((word) => word.replace("/opt/gatehouse", root)),
        {
          ...Object.fromEntries(here),
          // On one machine they can't share a port
          ...(isHttp ? { PORT: "0" } : {}),
          OPS_PORT: "0",
          ...more,
        },
      ),
    );
    const { port, opsPort } = await portsOf(example);
    ports.push(opsPort);
    if (isHttp) world.slack.app.requestUrl = `http://127.0.0.1:${port}/slack/events`;
  };
  await Promise.all(examples.map(start));
  if (world.slack.app.requestUrl === undefined) await world.slack.connected();
  // Until then nobody can name a VM
  const head = world.key("inventory", "head");
  await until(() => world.client.hget(head, "refreshedAt")).not.toBeNull();
  const kept = stack.move();
  return {
    secrets,
    async areReady() {
      const looks = ports.map((port) => fetch(`http://127.0.0.1:${port}/readyz`));
      return (await Promise.all(looks)).every(({ ok }) => ok);
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

async function restarts(world: TestWorld): Promise<void> {
  await world.olivia.types("ops", "/vm restart web-2");
  await hears(world.olivia, "ops", /Restarted web-2 in/);
}

describe(".env.example", () => {
  const text = fileOf(".env.example");
  const filled = {
    SLACK_BOT_TOKEN: "xoxb-1",
    SLACK_APP_TOKEN: "xapp-1",
    COMPUTE_API_URL: "https://compute.example",
    COMPUTE_API_KEY: "key",
    GATEHOUSE_CONFIG: "gatehouse.example.yml",
  };
  const load = (lines: string) =>
    loadConfig({
      env: { ...parseEnv(lines), ...filled },
      role: "all",
      cwd: root,
      terms: policyTerms,
    });

  it("is a whole configuration once it is filled in, and so is each line that is commented out", () => {
    expect(load(text)).toMatchObject({ redisUrl: "redis://localhost:6379", port: 3000 });
    const all = load(text.replaceAll(/^# (?=[A-Z0-9_]+=)/gm, ""));
    expect(all).toMatchObject({
      ops: { port: 3001, host: "127.0.0.1" },
      proxies: { https: "http://proxy.example:3128" },
      redisReplicas: 1,
      api: { port: 3002 },
    });
  });
});

describe("compose.yaml, with gatehouse.example.yml", () => {
  it("works, and forgets nothing when its Redis is killed", async () => {
    await using redis = await composeRedis();
    await promisify(execFile)("sh", ["-c", redis.healthcheck]);
    await using world = await startWorld({
      roles: [],
      redisUrl: redis.url,
      namespace: "gatehouse",
    });
    const { redis: _, "worker-2": second, ...services } = await composeServices();
    expect(Object.keys(services)).toEqual(["gateway", "worker-1"]);
    expect(second).toMatchObject({
      command: services["worker-1"]?.command,
      environment: services["worker-1"]?.environment,
    });
    const values = { ...world.env, REDIS_PASSWORD: redis.password };
    await using running = await startExamples(
      world,
      Object.entries(services).map(([name, { command, environment = {} }]) => ({
        name,
        words: [...imageStarts, ...command],
        variables: Object.fromEntries(
          Object.entries(environment).map(([variable, text]) => [
            variable,
            filledIn(text, values).replace("@redis:6379", `@127.0.0.1:${redis.port}`),
          ]),
        ),
      })),
    );
    await restarts(world);
    const kept = async () => ({
      records: await world.client.xlen(world.key("audit")),
      requests: (await world.store.recentIds({}, 200)).length,
      standing: (await verifyAudit({ redis: world.client, key: world.key })).standing,
    });
    await until(async () => (await kept()).standing).toBe("intact");
    const before = await kept();
    expect(before.requests).toBe(1);
    await redis.kill();
    await redis.start();
    await until(() => world.client.ping().catch(() => "")).toBe("PONG");
    const after = await kept();
    expect(after.records).toBeGreaterThanOrEqual(before.records);
    expect(after).toMatchObject({ requests: 1, standing: "intact" });
    await until(() => running.areReady()).toBe(true);
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    expect(await world.ended("vm snapshot")).toMatchObject({ state: "done" });
    expect(await world.client.exists(world.key("freeze"))).toBe(0);
  });
});

/** What an operator adds: the address of the service, and here that of Slack. */
const settings = ({ env }: TestWorld) => ({
  COMPUTE_API_URL: env["COMPUTE_API_URL"] ?? "",
  SLACK_API_URL: env["SLACK_API_URL"] ?? "",
});

interface Manifest {
  kind: string;
  spec: {
    template: {
      spec: {
        containers: [{ name: string; args: string[]; env: { name: string; value: string }[] }];
      };
    };
  };
}

const wordsOf = (unit: string) => /^ExecStart=(.*)$/m.exec(unit)?.[1]?.split(" ") ?? [];
const variablesOf = (unit: string): Record<string, string> =>
  Object.fromEntries(
    [...unit.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
  );

const places: [place: string, examples: () => Example[]][] = [
  [
    "deploy/systemd",
    () =>
      ["gateway", "worker@"].map((name) => {
        const unit = fileOf(`deploy/systemd/gatehouse-${name}.service`);
        return { name, words: wordsOf(unit), variables: variablesOf(unit) };
      }),
  ],
  [
    "deploy/kubernetes",
    () =>
      ["gateway", "worker"].flatMap((name) =>
        parseAllDocuments(fileOf(`deploy/kubernetes/base/${name}.yaml`), { merge: true })
          .map((document) => document.toJS() as Manifest)
          .filter(({ kind }) => kind === "StatefulSet")
          .map(({ spec }) => {
            const [{ args, env }] = spec.template.spec.containers;
            const variables = Object.fromEntries(env.map((one) => [one.name, one.value]));
            return { name, words: [...imageStarts, ...args], variables };
          }),
      ),
  ],
];

describe.each(places)("%s, with gatehouse.example.yml", (_, examples) => {
  it("starts a gateway and a worker that work together, each with its own secrets from files, which may be replaced", async () => {
    await using redis = await privateRedis();
    await using world = await startWorld({
      roles: [],
      redisUrl: redis.url,
      namespace: "gatehouse",
    });
    const found = examples();
    expect(found).toHaveLength(2);
    await using running = await startExamples(world, found, settings(world));
    await restarts(world);
    await until(() => running.areReady()).toBe(true);
    const file = path.join(running.secrets, "compute-api-key");
    const { apiKey, keys } = world.compute;
    keys.add("the-next-key");
    await writeFile(`${file}.new`, "the-next-key\n");
    await rename(`${file}.new`, file);
    keys.delete(apiKey);
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    expect(await world.ended("vm snapshot")).toMatchObject({ state: "done" });
  });
});

describe("deploy/systemd over HTTP, with gatehouse.example.yml", () => {
  it("starts a gateway that Slack reaches over HTTP", async () => {
    await using redis = await privateRedis();
    await using world = await startWorld({
      roles: ["worker"],
      receive: "http",
      // What fits the durations of the example
      pace: { claimWindowMs: 30_000 },
      policy: fileOf("gatehouse.example.yml"),
      redisUrl: redis.url,
      namespace: "gatehouse",
    });
    const gateway = fileOf("deploy/systemd/gatehouse-gateway.service");
    const over = fileOf("deploy/systemd/http.conf");
    const variables = { ...variablesOf(gateway), ...variablesOf(over) };
    for (const name of /^UnsetEnvironment=(.*)$/m.exec(over)?.[1]?.split(" ") ?? [])
      delete variables[name];
    const example = { name: "gateway", words: wordsOf(gateway), variables };
    await using _ = await startExamples(world, [example], settings(world));
    await restarts(world);
  });
});
