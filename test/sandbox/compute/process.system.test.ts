import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { expect, it } from "vitest";
import { fieldsOf } from "../../../sandbox/compute/checks.ts";
import { call } from "./calling.ts";

const main = join(import.meta.dirname, "../../../sandbox/compute/main.ts");

interface Ready {
  url: string;
  apiKey: string;
  controlUrl: string;
}

async function startProcess(
  options: object,
): Promise<Ready & { exit: () => Promise<unknown> } & AsyncDisposable> {
  const child = spawn(process.execPath, [main, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line]: unknown[] = await once(createInterface(child.stdout), "line");
  const ready = fieldsOf(JSON.parse(String(line)));
  const exit = async () => {
    if (child.exitCode !== null) return child.exitCode;
    child.kill("SIGTERM");
    const [code]: unknown[] = await once(child, "exit");
    return code;
  };
  return {
    url: String(ready["url"]),
    apiKey: String(ready["apiKey"]),
    controlUrl: String(ready["controlUrl"]),
    exit,
    [Symbol.asyncDispose]: async () => {
      await exit();
    },
  };
}

async function control(sandbox: Ready, what: string, body?: unknown): Promise<unknown> {
  const [method = "GET", path = ""] = what.split(" ");
  const response = await fetch(`${sandbox.controlUrl}/_sandbox/${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return response.json();
}

it("the sandbox runs as a process of its own, with its truth, weather and edits over HTTP", async () => {
  await using sandbox = await startProcess({ transitionMs: [5, 20], seed: 7 });
  expect(await control(sandbox, "GET health")).toEqual({ ok: true, seed: 7 });
  expect(
    await control(sandbox, "POST weather", { match: "writes", lost: "after", times: 1 }),
  ).toEqual({ id: 1 });
  await expect(call(sandbox, "POST /v1/vms/vm-payments-web-1/restart")).rejects.toThrow();
  await control(sandbox, "GET settled");
  expect(await control(sandbox, "GET truth?touched=1")).toMatchObject({
    vms: { "vm-payments-web-1": { restarts: 1, bootCount: 2, status: "RUNNING" } },
  });
  expect(await control(sandbox, "GET weather")).toMatchObject([{ id: 1, struck: 1 }]);
  expect(await control(sandbox, "GET writes")).toMatchObject([
    { answer: "lost", effect: true, weather: [1] },
  ]);
  expect(await control(sandbox, "GET writes?after=1")).toEqual([]);
  await control(sandbox, "DELETE weather");
  expect(await control(sandbox, "GET weather")).toEqual([]);
  expect(await control(sandbox, "POST edit/renameVm", { vm: "db-1", name: "db-9" })).toEqual({
    result: "vm-payments-db-1",
  });
  expect((await call(sandbox, "GET /v1/vms/vm-payments-db-1")).body["name"]).toBe("db-9");
  expect(await control(sandbox, "POST edit/renameVm", { vm: "nobody", name: "x" })).toEqual({
    error: "no VM nobody",
  });
  expect(await control(sandbox, "POST edit/constructor", {})).toEqual({
    error: "no edit constructor",
  });
  expect(await control(sandbox, "GET nonsense")).toEqual({ error: "no such control" });
  await control(sandbox, "POST forget");
  expect(await control(sandbox, "GET calls")).toEqual([]);
  expect(await sandbox.exit()).toBe(0);
});
