import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hears } from "../stories/words.ts";
import { root } from "../structure/sources.ts";
import { startSystemd, type Systemd, systemdProblem } from "../support/start-systemd.ts";
import { type ProgramWorld, startWorldForPrograms } from "../support/start-world.ts";
import { until } from "../support/until.ts";

const fileOf = (name: string) => readFileSync(path.join(root, name), "utf8");
const { version } = JSON.parse(fileOf("package.json")) as { version: string };

/** The blocks of commands under this heading of operate.md, each as it is pasted. */
function blocksUnder(heading: string): string[] {
  const [, section = ""] = fileOf("docs/operate.md").split(`\n${heading}\n`);
  const [own = ""] = section.split(/^#+ /m);
  return [...own.matchAll(/(?:^ {4}.*\n)+/gm)].map(([block]) => block.replaceAll(/^ {4}/gm, ""));
}

/** What docs/install.md leaves: a release with its packages, gatehouse.yml, and .env with these variables. */
function installInto(folder: string, variables: Readonly<Record<string, string>>): void {
  mkdirSync(folder);
  const { packages } = JSON.parse(fileOf("package-lock.json")) as {
    packages: Record<string, { dev?: boolean; link?: boolean }>;
  };
  const needed = Object.entries(packages)
    .filter(([name, { dev, link }]) => name.startsWith("node_modules/") && !dev && !link)
    .map(([name]) => name)
    .filter((name) => existsSync(path.join(root, name)));
  for (const name of ["gatehouse.mjs", "package.json", "src", "deploy", ...needed])
    cpSync(path.join(root, name), path.join(folder, name), { recursive: true });
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(path.join(folder, ".env"), `${fileOf(".env.example")}\n${lines.join("")}`);
  const policy = fileOf("gatehouse.example.yml").replaceAll("U09ADMIN", "U0ADA");
  writeFileSync(path.join(folder, "gatehouse.yml"), policy);
}

describe("docs/operate.md, systemd", () => {
  const problem = systemdProblem();
  let world: ProgramWorld;
  let systemd: Systemd;
  /** In one terminal of root's, as they stand: each command must succeed. */
  const paste = async (...blocks: readonly string[]) => {
    const pasted = await systemd.shell(`cd /mnt/package\nset -ex\n${blocks.join("")}`);
    expect(pasted.code, pasted.stderr).toBe(0);
    return pasted;
  };
  const reads = async (command: string) => (await systemd.shell(command)).stdout;
  /** The status with which a port answers. */
  const statusAt = (address: string, request: RequestInit = {}) =>
    reads(
      `/usr/bin/node -e 'fetch("http://127.0.0.1:${address}", ${JSON.stringify(request)}).then((it) => console.log(it.status), (it) => console.log(String(it.cause)))'`,
    );
  const logOf = (unit: string) => reads(`journalctl --no-pager --output cat --unit '${unit}'`);
  const isReady = (port: number) =>
    until(
      () => statusAt(`${port}/readyz`),
      () => logOf("gatehouse-*"),
    ).toBe("200\n");

  beforeAll(async () => {
    if (problem !== undefined) return;
    world = await startWorldForPrograms();
    systemd = await startSystemd();
    const asked = [
      "SLACK_BOT_TOKEN",
      "SLACK_APP_TOKEN",
      "SLACK_API_URL",
      "COMPUTE_API_URL",
      "COMPUTE_API_KEY",
      "REDIS_URL",
    ] as const;
    const variables = Object.fromEntries(asked.map((name) => [name, world.env[name] ?? ""]));
    const ports = ["SLACK_API_URL", "COMPUTE_API_URL", "REDIS_URL"].map((name) =>
      Number(new URL(variables[name] ?? "").port),
    );
    for (const port of new Set(ports)) await systemd.lead(port);
    // What the units set themselves is in many an .env, too
    const others = {
      LOG_LEVEL: "debug",
      DATA_DIR: ".gatehouse",
      PORT: "3000",
      OPS_PORT: "3001",
      SLACK_SIGNING_SECRET: world.slack.app.signingSecret,
    };
    installInto(path.join(systemd.folder, "package"), { ...variables, ...others });
  });
  afterAll(async () => {
    await systemd?.[Symbol.asyncDispose]();
    await world?.close();
  });

  it("runs a gateway and two workers by what is pasted from it, as it stands", async ({ skip }) => {
    if (problem !== undefined) throw skip(problem);
    const blocks = blocksUnder("### systemd").filter((block) => !block.includes("http.conf"));
    const { stdout } = await paste(...blocks);
    expect(stdout).toContain("app token: Socket Mode opens");
    expect(stdout).toMatch(/\d+ ✓, \d+ !, 0 ✗/);
    await world.slack.connected();
    for (const port of [3001, 3011, 3012]) await isReady(port);
    await world.ada.types("ops", "/gatehouse status");
    await hears(world.ada, "ops", /1 gateway, 2 workers/);
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Restarted web-2 in/);
    const told = ["SLACK_API_URL", "COMPUTE_API_URL", "LOG_LEVEL"];
    const settings = await reads("cut -d= -f1 /etc/gatehouse/settings");
    expect(settings.trimEnd().split("\n").toSorted()).toEqual(told.toSorted());
  });

  it("runs other programs as a unit does, beside it, by gatehouse-run", async ({ skip }) => {
    if (problem !== undefined) throw skip(problem);
    const verified = await systemd.shell("gatehouse-run gatehouse-gateway audit verify");
    expect(verified).toMatchObject({ code: 0, stderr: "" });
    const checked = await systemd.shell("gatehouse-run gatehouse-worker@3011 doctor worker");
    expect(checked.stdout).toMatch(/OPS_PORT 3011: .*\n[^]* 0 ✗/);
    expect(checked.code).toBe(0);
  });

  it("lets only the gateway read what lets deliveries in, and nobody else any secret", async ({
    skip,
  }) => {
    if (problem !== undefined) throw skip(problem);
    /** The secrets that a unit's user can read. */
    const readBy = (unit: string) =>
      reads(
        `of() { systemctl show --property "$1" --value ${unit}; }
         systemd-run --quiet --wait --pipe --property DynamicUser=yes --property User="$(of User)" \\
           --property SupplementaryGroups="$(of SupplementaryGroups)" \\
           find /etc/gatehouse/secrets -type f -readable -printf '%P\\n' | sort`,
      );
    const ofAll = ["compute-api-key", "redis-url", "slack-bot-token"];
    const ofGateways = [
      "compute-api-key",
      "inbound/slack-app-token",
      "redis-url",
      "slack-bot-token",
    ];
    expect(await readBy("gatehouse-gateway")).toBe(`${ofGateways.join("\n")}\n`);
    // It may not even look into the other folder
    expect(await readBy("gatehouse-worker@3011")).toBe(`${ofAll.join("\n")}\n`);
    const modes = "find /etc/gatehouse -type f -printf '%m %P\\n' | sort";
    expect(await reads(modes)).toBe(
      [
        "600 settings",
        "640 secrets/compute-api-key",
        "640 secrets/inbound/slack-app-token",
        "640 secrets/redis-url",
        "640 secrets/slack-bot-token",
        "644 gatehouse.yml\n",
      ].join("\n"),
    );
  });

  it("rereads gatehouse.yml by systemctl reload", async ({ skip }) => {
    if (problem !== undefined) throw skip(problem);
    const [command = ""] = /systemctl reload [^`]+/.exec(fileOf("docs/operate.md")) ?? [];
    await paste(command);
    for (const unit of ["gatehouse-gateway", "gatehouse-worker@3011", "gatehouse-worker@3012"])
      await until(() => logOf(unit)).toContain('"event":"process.reloading"');
  });

  it("takes an upgrade, HTTP, and the API by what is pasted, too", async ({ skip }) => {
    if (problem !== undefined) throw skip(problem);
    const metadata = path.join(systemd.folder, "package/package.json");
    writeFileSync(
      metadata,
      readFileSync(metadata, "utf8").replace(/"version": "[^"]+"/, '"version": "9.0.0"'),
    );
    const blocks = blocksUnder("### systemd");
    await paste(...blocks.filter((block) => !block.includes("doctor")));
    await paste("systemctl restart gatehouse-worker@3011");
    await isReady(3011);
    expect(await reads("ls -d /opt/gatehouse-*")).toBe(
      `/opt/gatehouse-${version}\n/opt/gatehouse-9.0.0\n`,
    );
    await until(() => logOf("gatehouse-worker@3011")).toContain('"version":"9.0.0"');
    await paste(...blocksUnder("## The API").filter((block) => block.includes("api.conf")));
    for (const port of [3001, 3002]) await isReady(port);
    const headers = { "content-type": "application/json" };
    const unsigned = { method: "POST", body: "{}", headers };
    for (const address of ["3000/slack/events", "3002/alerts/prometheus"])
      expect(await statusAt(address, unsigned)).toBe("401\n");
  });

  it("starts a process until it works, however often that takes", async ({ skip }) => {
    if (problem !== undefined) throw skip(problem);
    const unit = "gatehouse-worker@3013";
    // Where its disk is late, for example
    await systemd.shell(
      `mv /opt/gatehouse /opt/away
       mkdir -p /etc/systemd/system/${unit}.service.d
       printf '[Service]\\nRestartSec=10ms\\n' > /etc/systemd/system/${unit}.service.d/soon.conf
       systemctl daemon-reload; systemctl start ${unit}`,
    );
    const restarts = () => reads(`systemctl show --property NRestarts --value ${unit}`);
    await until(async () => Number(await restarts())).toBeGreaterThan(7);
    await systemd.shell("mv /opt/away /opt/gatehouse");
    await isReady(3013);
  });

  it("leaves a process down whose configuration is wrong, and stops the others in order", async ({
    skip,
  }) => {
    if (problem !== undefined) throw skip(problem);
    const resultOf = (unit: string) =>
      reads(`systemctl show --property Result,ExecMainStatus,NRestarts --value ${unit}`);
    await systemd.shell(
      "rm /etc/gatehouse/secrets/redis-url; systemctl restart gatehouse-worker@3012",
    );
    await until(() => resultOf("gatehouse-worker@3012")).toBe("exit-code\n0\n78\n");
    await systemd.shell("systemctl stop gatehouse-gateway gatehouse-worker@3011");
    for (const unit of ["gatehouse-gateway", "gatehouse-worker@3011"])
      expect(await resultOf(unit)).toBe("success\n0\n0\n");
  });
});
