import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { silentLog } from "../../src/log/log.ts";
import { startHealth } from "../../src/operate/health.ts";
import { startWebServer } from "../../src/operate/web-server.ts";
import { root } from "../structure/sources.ts";
import { imageStarts } from "./deployed.ts";

const fileOf = (name: string) => readFile(new URL(`../../${name}`, import.meta.url), "utf8");

/** The exit code of the image's HEALTHCHECK in such an environment. */
async function checked(env: Record<string, string>): Promise<number> {
  const line = /HEALTHCHECK[^]*?CMD (\[.*\])/.exec(await fileOf("Dockerfile"))?.[1] ?? "[]";
  const [, ...words] = JSON.parse(line) as string[];
  const child = spawn(process.execPath, words, { env });
  const [code] = await once(child, "exit");
  return Number(code);
}

it("the image's health check finds the probes where they are, and takes nothing else for them", async () => {
  const log = silentLog();
  let problem: string | undefined;
  const host = "127.0.0.1";
  const ready = async () => undefined;
  const figures = async () => ({ type: "text/plain", text: "" });
  const ops = await startHealth({ port: 0, host, log, figures, alive: () => problem, ready });
  const api = await startWebServer({ port: 0, host, log }, () => false);
  try {
    const [opsPort, slackPort] = [String(ops.port), String(api.port)];
    expect(await checked({ OPS_PORT: opsPort, PORT: slackPort })).toBe(0);
    expect(await checked({ OPS_PORT: slackPort })).toBe(1);
    for (const all of ["0.0.0.0", "::"])
      expect(await checked({ OPS_PORT: opsPort, OPS_HOST: all })).toBe(0);
    problem = "the queue stands still";
    expect(await checked({ OPS_PORT: opsPort, OPS_HOST: "::" })).toBe(1);
  } finally {
    await ops.close();
    await api.close();
  }
});

it("what follows the name of the image are Gatehouse's own words", () => {
  const run = (...words: string[]) => {
    const options = [...imageStarts.slice(1), ...words];
    const { status, stdout, stderr } = spawnSync(process.execPath, options, { cwd: root, env: {} });
    return { status, said: String(stdout) + String(stderr) };
  };
  expect(run("--version")).toEqual({ status: 0, said: expect.stringMatching(/^gatehouse \d/) });
  const incomplete = { status: 78, said: expect.stringContaining("SLACK_BOT_TOKEN: is missing") };
  expect(run("gateway")).toEqual(incomplete);
});

it("compose.yaml publishes no port", async () => {
  const compose = parse(await fileOf("compose.yaml"), { merge: true }) as {
    services: Record<string, { ports?: unknown }>;
  };
  expect(Object.keys(compose.services)).toContain("gateway");
  const published = Object.entries(compose.services).filter(([, { ports }]) => ports !== undefined);
  expect(published).toEqual([]);
});
