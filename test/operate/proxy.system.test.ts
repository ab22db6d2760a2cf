import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { connectProxy } from "../support/connect-proxy.ts";
import { root } from "../structure/sources.ts";
import { startProgram } from "../support/start-program.ts";
import { startWorldForPrograms } from "../support/start-world.ts";
import { startTlsFront } from "../support/tls-front.ts";
import { until } from "../support/until.ts";

const certificate = path.join(root, "test/fleet/compute/certificates/localhost.pem");

it("a process that reaches the world only through a proxy works, also after the proxy was away: Slack's API, its WebSocket, and the compute service", async () => {
  await using world = await startWorldForPrograms({
    compute: { transitionMs: { restart: 60, stop: 700 } },
  });
  await using proxy = await connectProxy();
  const pem = readFileSync(certificate, "utf8");
  const server = { cert: pem, key: pem };
  await using slackFront = await startTlsFront(server, world.slack.url);
  await using computeFront = await startTlsFront(server, world.compute.url);
  // Its WebSocket and its response URLs are behind the same front
  world.slack.workspace.url = slackFront.url;
  const env = {
    ...world.env,
    SLACK_API_URL: `${slackFront.url}/api/`,
    COMPUTE_API_URL: `${computeFront.url}/v1/`,
    COMPUTE_CA_FILE: certificate,
    // For Slack, as for any program on Node.js
    NODE_EXTRA_CA_CERTS: certificate,
    HTTPS_PROXY: proxy.url,
  };
  await using main = startProgram([], env);
  await world.slack.connected(1).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${main.output()}`);
  });
  await world.olivia.types("ops", "/vm restart web-2");
  await world.compute.called("POST /v1/vms/:id/restart");
  await world.olivia.until((seen) => JSON.stringify(seen).includes("Restarted `web-2`"));
  expect(new Set(proxy.tunnels)).toEqual(
    new Set([slackFront, computeFront].map(({ url }) => new URL(url).host)),
  );
  // All that came to the fronts came through the proxy
  const connections = () => slackFront.connections() + computeFront.connections();
  expect(connections()).toBe(proxy.tunnels.length);
  expect(proxy.carried()).not.toContain(world.compute.apiKey);

  // The proxy is killed with a stop under way, and comes back: sent once, told once, and people are heard again
  await world.olivia.types("ops", "/vm stop db-1");
  await world.compute.called("POST /v1/vms/:id/stop");
  const before = { tunnels: proxy.tunnels.length, connections: connections() };
  await proxy.kill();
  await until(() => world.compute.vm("db-1").status).toBe("STOPPED");
  await proxy.start();
  await world.olivia.until((seen) => JSON.stringify(seen).includes("Stopped `db-1`"));
  await world.slack.connected(1);
  const heard = async () => (await world.vera.types("ops", "/gatehouse help")).acked;
  await until(heard).toBe(true);
  expect(world.compute.writes().map(({ path: where }) => where)).toEqual([
    "/v1/vms/vm-payments-web-2/restart",
    "/v1/vms/vm-payments-db-1/stop",
  ]);
  const told = world.slack.messages().filter(({ text }) => text.includes("Stopped db-1"));
  expect(told.filter(({ threadTs }) => threadTs !== undefined).length).toBeLessThanOrEqual(1);
  // Nothing went around it meanwhile
  expect(connections() - before.connections).toBeLessThanOrEqual(
    proxy.tunnels.length - before.tunnels,
  );
  expect(main.output()).not.toContain("p%w-of-proxy");
});
