import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { type Program, startProgram } from "../support/start-program.ts";
import { startWorldForPrograms, type TestWorld } from "../support/start-world.ts";

/** Resolves when the program is ready, or has ended. */
async function startMain(role: string, env: Record<string, string>): Promise<Program> {
  const main = startProgram([role], env);
  await Promise.race([main.prints(/"event":"process\.started/).catch(() => undefined), main.ended]);
  return main;
}

const secrets = ["SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_APP_TOKEN", "COMPUTE_API_KEY"];

/** The same environment, with each secret in a file of its own. */
async function inFiles({ env }: TestWorld, folder: string): Promise<Record<string, string>> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (!secrets.includes(name)) result[name] = value;
    else {
      const file = path.join(folder, name.toLowerCase());
      await writeFile(file, value, { mode: 0o600 });
      result[`${name}_FILE`] = file;
    }
  }
  return result;
}

const without = (env: Record<string, string>, ...names: string[]) =>
  Object.fromEntries(
    Object.entries(env).filter(([name]) => !names.some((one) => name.startsWith(one))),
  );

describe.concurrent("secrets of a process", () => {
  it("stand neither in its environment nor among its words when they come from files", async () => {
    await using world = await startWorldForPrograms({ receive: "http" });
    const folder = path.dirname(world.env["GATEHOUSE_CONFIG"] ?? "");
    const env = await inFiles(world, folder);
    await using main = await startMain("all", env);
    const environment = await readFile(`/proc/${main.child.pid}/environ`, "latin1");
    const words = await readFile(`/proc/${main.child.pid}/cmdline`, "latin1");
    expect(environment).toContain("COMPUTE_API_KEY_FILE=");
    for (const name of secrets) {
      const secret = world.env[name];
      if (secret === undefined) continue;
      for (const text of [environment, words, main.output()])
        expect(text.includes(secret), name).toBe(false);
    }
    // It would be found
    await using open = await startMain("all", {
      ...world.env,
      DATA_DIR: path.join(folder, "another"),
    });
    expect(await readFile(`/proc/${open.child.pid}/environ`, "latin1")).toContain(
      world.compute.apiKey,
    );
  });

  it("are those of its role alone: a worker needs nothing that lets deliveries in, and without the key nothing runs", async () => {
    await using world = await startWorldForPrograms({ receive: "http" });
    const { env } = world;
    await using worker = await startMain(
      "worker",
      without(env, "SLACK_SIGNING_SECRET", "SLACK_APP_TOKEN"),
    );
    expect(worker.output()).toMatch(/"event":"process\.started/);
    for (const role of ["worker", "gateway"]) {
      await using keyless = await startMain(role, without(env, "COMPUTE_API_KEY"));
      expect(await keyless.ended).toBe(78);
      expect(keyless.output()).toContain("COMPUTE_API_KEY: is missing");
    }
    // Whoever verifies the trail needs neither Slack nor the service
    await using audit = await startMain("audit", {
      REDIS_URL: env["REDIS_URL"] ?? "",
      DATA_DIR: env["DATA_DIR"] ?? "",
    });
    expect(await audit.ended).not.toBe(78);
  });
});
