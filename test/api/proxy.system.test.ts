import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { chmod, copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { freePort } from "../../sandbox/ensure-redis.ts";
import { root } from "../structure/sources.ts";
import { programOf } from "../support/programs.ts";
import { certificate } from "../support/redis-nodes.ts";
import { startWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";

it("the API answers through the nginx of docs/operate.md, over TLS and with the path as it was sent", async ({
  skip,
}) => {
  const nginx = programOf("nginx");
  if (nginx === undefined) throw skip("there is no nginx here");
  await using world = await startWorld({ env: { API_PORT: "0" } });
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-nginx-"));
  // Started by root, nginx works as another user, who writes large bodies there.
  await chmod(folder, 0o755);
  for (const what of ["key", "pem"])
    await copyFile(certificate, path.join(folder, `gatehouse.${what}`));
  const [, block = ""] =
    /```nginx\n([^]*?)```/.exec(readFileSync(path.join(root, "docs/operate.md"), "utf8")) ?? [];
  const port = await freePort();
  const server = block
    .replace("listen 443", `listen 127.0.0.1:${port}`)
    .replaceAll("/etc/ssl", folder)
    .replace("127.0.0.1:3002", `127.0.0.1:${world.processes[0]?.apiPort}`);
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const file = path.join(folder, "nginx.conf");
  await writeFile(
    file,
    `daemon off; pid ${folder}/pid; error_log stderr; events {} http { access_log off; ${paths.join(" ")}\n${server}}`,
  );
  const running = spawn(nginx, ["-p", folder, "-c", file], { stdio: "ignore" });
  const ended = once(running, "exit");
  const ask = async (asked: string, body = "") => {
    const call = request({
      host: "127.0.0.1",
      port,
      path: asked,
      method: "POST",
      rejectUnauthorized: false,
    });
    const answered = new Promise<{ status: number; type: string }>((resolve, reject) => {
      call.on("error", reject);
      call.on("response", (answer) => {
        answer.resume();
        const { statusCode = 0, headers } = answer;
        resolve({ status: statusCode, type: headers["content-type"] ?? "" });
      });
    });
    call.end(body);
    return answered;
  };
  try {
    const isUp = async () => (await ask("/other").catch(() => undefined))?.status;
    await until(isUp).toBe(404);
    expect(await ask("/other", "{}")).toEqual({ status: 404, type: "application/problem+json" });
    // A large group of alerts passes; what no source may send doesn't.
    const megabyte = 1024 * 1024;
    // nginx itself answers 502 where it still sends a body when the API has refused it and closed.
    const large = async () => (await ask("/other", "x".repeat(megabyte))).status;
    await until(large).toBe(404);
    expect((await ask("/other", "x".repeat(4 * megabyte + 1))).status).toBe(413);
  } finally {
    running.kill();
    await ended;
    await rm(folder, { recursive: true });
  }
});
